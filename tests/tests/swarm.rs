//! Many seeds: each a whole broker with clients and faults. A failure prints its seed and how to
//! repeat it.
//!
//! GRACCHUS_SEEDS sets how many (counted from GRACCHUS_FIRST_SEED), GRACCHUS_SEED runs one alone
//! and, when it fails, prints its history, with what the broker logged (RUST_LOG says how much).

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tests::faults::Effects;
use tests::world::{Report, run_seed};
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Seeds of a plain test run.
const SEEDS: u64 = 60;

/// Records that a seed acknowledges on average, at the least: below it a run proves nothing.
const ACKNOWLEDGED_MIN: usize = 20;

/// What many seeds did together.
#[derive(Default)]
struct Total {
    seeds: u64,
    acknowledged: usize,
    virtual_ms: u64,
    journalled: u64,
    effects: Effects,
    failed: Vec<u64>,
}

impl Total {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.acknowledged += report.summary.acknowledged;
        self.virtual_ms += report.took_ms;
        self.journalled += u64::from(report.journalled);
        self.effects.add(&report.effects);
        if !report.is_good() {
            println!("{}", report.describe());
            self.failed.push(report.plan.seed);
        }
    }

    fn merge(mut self, other: Total) -> Total {
        self.seeds += other.seeds;
        self.acknowledged += other.acknowledged;
        self.virtual_ms += other.virtual_ms;
        self.journalled += other.journalled;
        self.effects.add(&other.effects);
        self.failed.extend(other.failed);
        self
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the seeds on all cores. A run is one thread's, and shares nothing with the others.
fn run_all(seeds: &[u64]) -> Total {
    let next = AtomicU64::new(0);
    let work = || {
        let mut total = Total::default();
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            total.add(&run_seed(*seed));
        }
        total
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let totals = workers.into_iter().map(|worker| worker.join().expect("a run panicked"));
        totals.fold(Total::default(), Total::merge)
    })
}

/// Virtual time since the first line.
#[derive(Default)]
struct VirtualTime(OnceLock<Instant>);

impl FormatTime for VirtualTime {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        let start = self.0.get_or_init(Instant::now);
        write!(w, "{} ms:", start.elapsed().as_millis())
    }
}

/// Prints what the broker logs.
fn log_all() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    log.with_timer(VirtualTime::default()).init();
}

#[test]
fn seeds_keep_every_promise() {
    if let Some(seed) = number("GRACCHUS_SEED") {
        log_all();
        let report = run_seed(seed);
        if !report.is_good() {
            let events = report.history.events.iter();
            events.for_each(|at| println!("{} ms: {:?}", at.at_ms, at.event));
        }
        assert!(report.is_good(), "{}", report.describe());
        return;
    }
    let first = number("GRACCHUS_FIRST_SEED").unwrap_or(0);
    let count = number("GRACCHUS_SEEDS").unwrap_or(SEEDS);
    let seeds: Vec<u64> = (first..first + count).collect();
    let total = run_all(&seeds);
    let Total { seeds, acknowledged, virtual_ms, journalled, effects, mut failed } = total;
    println!("{seeds} seeds, {acknowledged} records acknowledged, {effects:?}");
    println!("{} virtual seconds, {journalled} seeds used the flush journal", virtual_ms / 1000);
    failed.sort();
    assert!(failed.is_empty(), "{} of {seeds} seeds failed, see above: {failed:?}", failed.len());
    if count >= SEEDS {
        let enough = ACKNOWLEDGED_MIN * seeds as usize;
        assert!(acknowledged > enough, "only {acknowledged} records: too few to mean anything");
        assert!(effects.all_took_effect(), "a kind of fault never took effect: {effects:?}");
        assert!(journalled > 0, "nobody used the flush journal");
    }
}

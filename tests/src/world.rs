//! One run: a world of nodes, network, clients and faults, in virtual time on one thread.
//!
//! Owns the order of a run: start, workload under faults, healing, the last reading, the checks.
//! With one node so far; nodes are a list, and each has an address of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broker::env::Clock;
use parking_lot::Mutex;
use storage::disk::Disk;
use storage::flush::JOURNAL_FILE;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::check::{self, Summary, Violation};
use crate::clock::{SimClock, pause_ms};
use crate::dice::Dice;
use crate::faults::{Effects, Faults};
use crate::history::{Event, History};
use crate::net::Network;
use crate::node::{DATA_DIR, NodePlan, SimNode};
use crate::plan::Plan;
use crate::trace::{Trace, Traced};
use crate::workload::{self, Run};

/// Virtual time in which all work must be done once the faults are over.
const HEALED_MS: u64 = 120_000;

/// How often the nodes are looked at while the clients work.
const LOOK_MS: u64 = 500;

/// So many lines say what was wrong with a run.
const LINES_MAX: usize = 30;

/// What came of a run.
pub struct Report {
    pub plan: Plan,
    pub history: History,
    pub violations: Vec<Violation>,
    /// What else went wrong: stuck clients, odd answers, nodes that did not start.
    pub problems: Vec<String>,
    pub summary: Summary,
    pub effects: Effects,
    /// Whether the node made a flush journal.
    pub journalled: bool,
    pub trace: Vec<Traced>,
    /// Virtual length of the run.
    pub took_ms: u64,
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.problems.is_empty()
    }

    /// The seed, the command that repeats it, and all that was wrong.
    pub fn describe(&self) -> String {
        let seed = self.plan.seed;
        let mut text = format!(
            "seed {seed} failed; repeat it with:\n  GRACCHUS_SEED={seed} cargo test -p tests \
             --test swarm\n{:?}\n{:?}\n{:?}\n",
            self.plan, self.summary, self.effects
        );
        let violations = self.violations.iter().map(Violation::to_string);
        let all: Vec<String> = violations.chain(self.problems.iter().cloned()).collect();
        for line in all.iter().take(LINES_MAX) {
            text.push_str(&format!("{line}\n"));
        }
        if let Some(more) = all.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
            text.push_str(&format!("and {more} more\n"));
        }
        text
    }
}

/// Runs the plan of a seed and checks it.
pub fn run_seed(seed: u64) -> Report {
    run(Plan::of(seed), |_| ())
}

/// Runs a plan and checks it. `prepare` may change the node before it starts, to plant a bug.
///
/// # Panics
/// When the runtime cannot be made.
pub fn run(plan: Plan, prepare: impl FnOnce(&mut SimNode)) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| panic!("no runtime: {error}"));
    // Inside, where time stands still: outside, the clock would begin at a real instant.
    runtime.block_on(async { World::new(plan).run(prepare).await })
}

struct World {
    plan: Plan,
    clock: SimClock,
    network: Network,
    trace: Trace,
    nodes: Vec<SimNode>,
    history: Arc<Mutex<History>>,
    problems: Vec<String>,
    effects: Effects,
}

impl World {
    fn new(plan: Plan) -> World {
        let clock = SimClock::start();
        let trace = Trace::new(clock.clone());
        let network = Network::new(plan.seed, plan.latency, trace.clone());
        let node = NodePlan { seed: plan.seed, index: 0, lag: plan.lag, overrides: Vec::new() };
        let nodes = vec![SimNode::new(node, clock.clone(), network.clone())];
        let (history, problems, effects) = (Arc::default(), Vec::new(), Effects::default());
        World { plan, clock, network, trace, nodes, history, problems, effects }
    }

    async fn run(mut self, prepare: impl FnOnce(&mut SimNode)) -> Report {
        self.nodes.iter_mut().take(1).for_each(|node| node.disk().set_now(self.clock.wall_ms()));
        if let Some(node) = self.nodes.first_mut() {
            prepare(node);
        }
        let run = Run {
            seed: self.plan.seed,
            clock: self.clock.clone(),
            network: self.network.clone(),
            server: self.nodes[0].address(),
            history: Arc::clone(&self.history),
            odd: Arc::default(),
            troubles: Arc::default(),
            stop: Arc::default(),
        };
        if let Err(problem) = self.work(&run).await {
            self.problems.push(problem);
            let troubles = std::mem::take(&mut *run.troubles.lock());
            let last = troubles.into_iter().map(|(who, what)| format!("{who}, last at {what}"));
            self.problems.extend(last);
        }
        self.problems.append(&mut run.odd.lock());
        let took_ms = self.clock.now_ms();
        let journal = Path::new(DATA_DIR).join(JOURNAL_FILE);
        let has_journal = |node: &SimNode| matches!(node.disk().stat(&journal), Ok(Some(_)));
        let journalled = self.nodes.iter().any(has_journal);
        for node in &mut self.nodes {
            node.crash(false).await;
        }
        let history = std::mem::take(&mut *self.history.lock());
        Report {
            violations: check::check(&history),
            summary: check::summary(&history),
            trace: self.trace.take(),
            plan: self.plan,
            problems: self.problems,
            effects: self.effects,
            journalled,
            history,
            took_ms,
        }
    }

    /// The run itself.
    async fn work(&mut self, run: &Run) -> Result<(), String> {
        self.nodes.iter_mut().for_each(SimNode::start);
        let create = workload::create_topic(run.clone(), self.plan.partitions);
        timeout(Duration::from_millis(HEALED_MS), create).await.map_err(|_| {
            let looked: Vec<_> = self.nodes.iter_mut().filter_map(|n| n.look().err()).collect();
            format!("stuck: the topic was not created {looked:?}")
        })?;
        let mut workers = self.workers(run);
        let mut watchers = self.watchers(run);
        self.fault(run).await?;
        self.finish(&mut workers, "work was not done").await?;
        run.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.finish(&mut watchers, "a reader did not end").await?;
        if self.plan.power_cut_at_end {
            for node in &mut self.nodes {
                node.crash(true).await;
                run.record(Event::Crash);
                node.start();
            }
        }
        for partition in 0..self.plan.partitions {
            let audit = timeout(Duration::from_millis(HEALED_MS), workload::audit(run, partition));
            match audit.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(format!("partition {partition}: {error:#}")),
                Err(_) => return Err(format!("stuck: partition {partition} cannot be read")),
            }
        }
        self.look()
    }

    /// Clients with an end.
    fn workers(&self, run: &Run) -> JoinSet<()> {
        let mut workers = JoinSet::new();
        for plan in &self.plan.writers {
            workers.spawn(workload::write(run.clone(), *plan));
        }
        for plan in &self.plan.members {
            workers.spawn(workload::member(run.clone(), *plan));
        }
        workers
    }

    /// Clients that go on until they are stopped.
    fn watchers(&self, run: &Run) -> JoinSet<()> {
        let mut watchers = JoinSet::new();
        for reader in 0..self.plan.readers {
            let writers = &self.plan.writers;
            let partition = writers[reader as usize % writers.len()].partition;
            watchers.spawn(workload::read(run.clone(), reader, partition));
        }
        for partition in &self.plan.deletions {
            watchers.spawn(workload::delete_records(run.clone(), *partition));
        }
        watchers
    }

    async fn fault(&mut self, run: &Run) -> Result<(), String> {
        let mut faults = Faults {
            plan: &self.plan,
            clock: &self.clock,
            network: &self.network,
            trace: &self.trace,
            run,
            dice: Dice::of(self.plan.seed, "faults", 0),
            effects: Effects::default(),
        };
        let result = faults.run(&mut self.nodes[0]).await;
        self.effects = faults.effects;
        result
    }

    /// Waits for clients, looks at the nodes meanwhile.
    async fn finish(&mut self, clients: &mut JoinSet<()>, what: &str) -> Result<(), String> {
        let deadline_ms = self.clock.now_ms() + HEALED_MS;
        loop {
            tokio::select! {
                biased;
                ended = clients.join_next() => match ended {
                    None => return Ok(()),
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Err(format!("a client failed: {error}")),
                },
                () = pause_ms(LOOK_MS) => self.look()?,
            }
            if self.clock.now_ms() > deadline_ms {
                return Err(format!("stuck: {what} {HEALED_MS} ms after the last fault"));
            }
        }
    }

    fn look(&mut self) -> Result<(), String> {
        let now_ms = self.clock.wall_ms();
        self.nodes.iter_mut().try_for_each(|node| {
            node.disk().set_now(now_ms);
            node.look()
        })
    }
}

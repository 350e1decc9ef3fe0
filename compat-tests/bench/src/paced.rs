//! At a rate, open loop: each record has a time at which it should be sent, and its latency counts
//! from then, so that a broker that stalls is charged for the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use hdrhistogram::Histogram;

use crate::bulk::half_random;
use crate::conn::Conn;
use crate::wire::{self, Codec, FetchLimits};

/// A load.
#[derive(Clone, Copy)]
pub struct Plan {
    pub producers: u32,
    /// Each of them, records a second.
    pub rate: f64,
    pub value_bytes: usize,
    pub partitions: i32,
    pub linger: Duration,
    /// Connections that read the tail; each reads all partitions, or with `divided` its share.
    pub consumers: u32,
    pub divided: bool,
    pub duration: Duration,
}

impl Plan {
    /// Consumers that have something to read: who shares partitions and gets none would ask for
    /// nothing, be answered at once, and ask again.
    fn reading(&self) -> u32 {
        if self.divided { self.consumers.min(self.partitions as u32) } else { self.consumers }
    }
}

/// Measured from the intended time, in microseconds.
pub struct Outcome {
    pub acked: Histogram<u64>,
    pub seen: Histogram<u64>,
    pub records: u64,
    pub requests: u64,
    pub delivered: u64,
}

/// The first part of a run is not measured: connections open, code warms.
const UNMEASURED: f64 = 0.2;
const STACK_BYTES: usize = 256 << 10;

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 120_000_000, 3).expect("sane bounds")
}

/// What the threads of a run share.
struct Shared {
    begin: Instant,
    measured_from: Duration,
    stop: AtomicBool,
    written: AtomicU64,
}

impl Shared {
    fn note(&self, histogram: &mut Histogram<u64>, intended: Duration) {
        if intended >= self.measured_from {
            let waited = self.begin.elapsed().saturating_sub(intended);
            histogram.saturating_record(waited.as_micros() as u64);
        }
    }
}

type Task<T> = JoinHandle<Result<T>>;

fn spawn<T: Send + 'static>(task: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Task<T>> {
    Ok(thread::Builder::new().stack_size(STACK_BYTES).spawn(task)?)
}

fn join<T>(task: Task<T>) -> Result<T> {
    task.join().map_err(|_| anyhow!("a thread of the generator panicked"))?
}

/// Runs a plan over a topic that is there and empty.
pub fn run(address: &str, topic: &str, plan: Plan) -> Result<Outcome> {
    let shared = Arc::new(Shared {
        begin: Instant::now() + Duration::from_millis(200),
        measured_from: plan.duration.mul_f64(UNMEASURED),
        stop: AtomicBool::new(false),
        written: AtomicU64::new(0),
    });
    let mut readers = Vec::new();
    for number in 0..plan.reading() {
        let (address, topic, shared) = (address.to_owned(), topic.to_owned(), shared.clone());
        readers.push(spawn(move || tail(&address, &topic, plan, number, &shared))?);
    }
    let mut writers = Vec::new();
    for number in 0..plan.producers {
        let (address, topic, shared) = (address.to_owned(), topic.to_owned(), shared.clone());
        writers.push(spawn(move || write(&address, &topic, plan, number, &shared))?);
    }
    let (mut acked, mut seen) = (histogram(), histogram());
    let (mut records, mut requests, mut delivered) = (0, 0, 0);
    for writer in writers {
        let (histogram, count, sent) = join(writer)?;
        acked.add(histogram)?;
        records += count;
        requests += sent;
    }
    shared.written.store(records, Ordering::Release);
    shared.stop.store(true, Ordering::Release);
    for reader in readers {
        let (histogram, count) = join(reader)?;
        seen.add(histogram)?;
        delivered += count;
    }
    let expected = records * if plan.divided { 1 } else { u64::from(plan.consumers) };
    ensure!(
        plan.consumers == 0 || delivered == expected,
        "{delivered} records were read, {expected} acknowledged"
    );
    Ok(Outcome { acked, seen, records, requests, delivered })
}

/// One producer: sends what is due, each partition's records as one batch; another thread takes the
/// acknowledgements.
fn write(
    address: &str,
    topic: &str,
    plan: Plan,
    number: u32,
    shared: &Arc<Shared>,
) -> Result<(Histogram<u64>, u64, u64)> {
    let mut conn = Conn::open(address)?;
    let reader = conn.reader()?;
    let (expect, expected) = mpsc::channel::<Vec<Duration>>();
    let at = shared.clone();
    let acks = spawn(move || take_acks(reader, expected, &at))?;
    let total = (plan.rate * plan.duration.as_secs_f64()) as u64;
    let gap = Duration::from_secs_f64(1.0 / plan.rate);
    // Producers do not beat in time.
    let first = gap.mul_f64(f64::from(number) / f64::from(plan.producers));
    let due = |nth: u64| first + gap.mul_f64(nth as f64);
    let mut value = half_random(plan.value_bytes.max(8), u64::from(number));
    let (mut nth, mut requests) = (0, 0);
    let mut refused = false;
    while nth < total && !refused {
        let wake = due(nth) + plan.linger;
        if let Some(rest) = wake.checked_sub(since(shared.begin)) {
            thread::sleep(rest);
        }
        let now = since(shared.begin);
        let mut intended = Vec::new();
        let mut batches: Vec<(i32, Vec<Vec<u8>>)> = Vec::new();
        while nth < total && due(nth) <= now && intended.len() < 1000 {
            let partition = partition_of(nth, number, plan.partitions);
            value[..8].copy_from_slice(&(due(nth).as_nanos() as u64).to_be_bytes());
            match batches.iter_mut().find(|(at, _)| *at == partition) {
                Some((_, values)) => values.push(value.clone()),
                None => batches.push((partition, vec![value.clone()])),
            }
            intended.push(due(nth));
            nth += 1;
        }
        let encode = |(partition, values): (i32, Vec<Vec<u8>>)| {
            let values = values.iter().map(Vec::as_slice);
            (partition, wire::batch(values, Codec::None, wire::now_ms()))
        };
        let batches: Vec<_> = batches.into_iter().map(encode).collect();
        conn.send(&wire::produce(requests as i32, topic, &batches))?;
        // Who took the answers is gone, and says below why.
        refused = expect.send(intended).is_err();
        requests += 1;
    }
    drop(expect);
    Ok((join(acks)?, total, requests))
}

/// Time since the begin; zero before it.
fn since(begin: Instant) -> Duration {
    Instant::now().saturating_duration_since(begin)
}

/// As a hash of a key would.
fn partition_of(nth: u64, number: u32, partitions: i32) -> i32 {
    let mixed = (nth << 16 | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (mixed % partitions as u64) as i32
}

fn take_acks(
    mut conn: Conn,
    expected: mpsc::Receiver<Vec<Duration>>,
    shared: &Shared,
) -> Result<Histogram<u64>> {
    let mut histogram = histogram();
    for (nth, intended) in expected.into_iter().enumerate() {
        let (correlation, body) = conn.receive()?;
        ensure!(correlation == nth as i32, "answers are out of order");
        for (partition, error, _) in wire::produced(body)? {
            ensure!(error == 0, "partition {partition} refused with error {error}");
        }
        intended.iter().for_each(|at| shared.note(&mut histogram, *at));
    }
    Ok(histogram)
}

/// One consumer at the tail.
fn tail(
    address: &str,
    topic: &str,
    plan: Plan,
    number: u32,
    shared: &Arc<Shared>,
) -> Result<(Histogram<u64>, u64)> {
    let mine = |at: &i32| !plan.divided || *at as u32 % plan.reading() == number;
    let mut next: Vec<(i32, i64)> = (0..plan.partitions).filter(mine).map(|at| (at, 0)).collect();
    let limits = FetchLimits { wait_ms: 100, bytes_min: 1, partition_bytes_max: 1 << 20 };
    let mut conn = Conn::open(address)?;
    let (mut histogram, mut count) = (histogram(), 0);
    loop {
        // Read before the fetch: what was acknowledged by then is in its answer, or comes after.
        let stopping = shared.stop.load(Ordering::Acquire);
        let body = conn.call(&wire::fetch(0, topic, &next, limits))?;
        let before = count;
        for (partition, mut bytes) in wire::fetched(body)? {
            let at = next.iter_mut().find(|(at, _)| *at == partition).expect("asked for");
            while let Some(batch) = wire::next_batch(&mut bytes)? {
                let base = batch.base_offset;
                ensure!(base == at.1, "partition {partition}: batch {base}, expected {}", at.1);
                at.1 += i64::from(batch.count);
                for value in batch.values()? {
                    let intended = u64::from_be_bytes(value[..8].try_into()?);
                    shared.note(&mut histogram, Duration::from_nanos(intended));
                    count += 1;
                }
            }
        }
        if stopping && count == before {
            return Ok((histogram, count));
        }
    }
}

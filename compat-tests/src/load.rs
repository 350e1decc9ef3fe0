//! Records under load: idempotent writers that never stop, and the reading back of everything.
//!
//! The history they leave is judged by `checker`. Breaking the broker meanwhile is the test's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Offset};

use crate::checker::{Found, History, Outcome, Sent};
use crate::client;
use crate::records::{self, Claim, Id};
use crate::settings::Chance;

/// What a load is.
#[derive(Clone, Debug)]
pub struct Plan {
    pub topic: String,
    pub partitions: i32,
    /// Each writes to the partition of its number modulo `partitions`.
    pub writers: u32,
    /// Records a second of each writer, at most.
    pub rate: u64,
    /// Payloads are of 0 to this many bytes.
    pub payload_max: u64,
    /// How long librdkafka tries to deliver a record, in milliseconds.
    pub give_up_ms: u64,
    /// Beside the plan's own, settings of the producers.
    pub settings: Vec<(String, String)>,
}

impl Plan {
    /// Two partitions with two writers each.
    pub fn new(topic: &str) -> Plan {
        Plan {
            topic: topic.to_owned(),
            partitions: 2,
            writers: 4,
            rate: 2_000,
            payload_max: 300,
            give_up_ms: 120_000,
            settings: Vec::new(),
        }
    }
}

/// What the writers and the test share.
#[derive(Default)]
struct Shared {
    history: Mutex<History>,
    acked: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
    pause: AtomicBool,
    fatal: Mutex<Vec<String>>,
    errors: Mutex<std::collections::BTreeMap<String, u64>>,
}

/// Writers at work.
pub struct Load {
    plan: Plan,
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn start(bootstrap: &str, plan: Plan) -> Load {
        let shared = Arc::new(Shared::default());
        // The identity of a run: records of an earlier one must not pass for ours.
        let run = Chance::new(u64::from(std::process::id())).next_u64();
        shared.history.lock().expect("not poisoned").run = run;
        let writers = (0..plan.writers).map(|writer| {
            let (bootstrap, plan) = (bootstrap.to_owned(), plan.clone());
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || write(&bootstrap, &plan, writer, run, &shared))
        });
        let writers = writers.collect();
        Load { plan, shared, writers }
    }

    /// Records acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.shared.acked.load(Ordering::Acquire)
    }

    /// Records given up so far.
    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Waits until `more` records more are acknowledged; how long it took, or None.
    pub fn wait_acked(&self, more: u64, within: Duration) -> Option<Duration> {
        let (started, goal) = (Instant::now(), self.acked() + more);
        while self.acked() < goal {
            if started.elapsed() > within {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Some(started.elapsed())
    }

    /// Errors of the broker that librdkafka told of, with counts.
    pub fn errors(&self) -> std::collections::BTreeMap<String, u64> {
        self.shared.errors.lock().expect("not poisoned").clone()
    }

    /// What there is to say when acknowledgements stop: errors, and producers that gave up.
    pub fn plight(&self) -> String {
        let fatal = self.shared.fatal.lock().expect("not poisoned");
        format!(
            "{} acknowledged, {} given up, errors {:?}, fatal {fatal:?}",
            self.acked(),
            self.failed(),
            self.errors()
        )
    }

    /// Stops sending new records for now, or goes on.
    pub fn pause(&self, pause: bool) {
        self.shared.pause.store(pause, Ordering::Release);
    }

    /// Ends the writers once every record is acknowledged or given up.
    /// Fatal errors of producers come with the history.
    pub fn finish(self) -> (Plan, History, Vec<String>) {
        self.shared.stop.store(true, Ordering::Release);
        for writer in self.writers {
            writer.join().expect("a writer panicked");
        }
        let history = std::mem::take(&mut *self.shared.history.lock().expect("not poisoned"));
        let fatal = std::mem::take(&mut *self.shared.fatal.lock().expect("not poisoned"));
        (self.plan, history, fatal)
    }
}

/// Takes deliveries down.
struct Notes(Arc<Shared>);

impl ClientContext for Notes {
    fn error(&self, error: KafkaError, reason: &str) {
        let code = client::code(&error);
        let mut errors = self.0.errors.lock().expect("not poisoned");
        *errors.entry(format!("{code:?}")).or_default() += 1;
        if code == RDKafkaErrorCode::Fatal {
            self.0.fatal.lock().expect("not poisoned").push(reason.to_owned());
        }
    }

    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, _: &str, _: &str) {
        // Refused connections are what these tests are about.
    }
}

impl ProducerContext for Notes {
    type DeliveryOpaque = Box<Id>;

    fn delivery(&self, result: &DeliveryResult<'_>, id: Box<Id>) {
        let outcome = match result {
            Ok(message) => Outcome::Acked { offset: message.offset() },
            Err((error, _)) => {
                let mut errors = self.0.errors.lock().expect("not poisoned");
                *errors.entry(format!("{:?}", client::code(error))).or_default() += 1;
                outcome_of(client::code(error))
            }
        };
        let counter = match outcome {
            Outcome::Acked { .. } => &self.0.acked,
            _ => &self.0.failed,
        };
        let mut history = self.0.history.lock().expect("not poisoned");
        let sent = history.sent.get_mut(&id).expect("delivered, so it was sent");
        sent.outcome = outcome;
        counter.fetch_add(1, Ordering::Release);
    }
}

/// Only what the broker refuses before it writes is a definite refusal.
fn outcome_of(code: RDKafkaErrorCode) -> Outcome {
    use RDKafkaErrorCode as Code;
    match code {
        Code::MessageSizeTooLarge | Code::InvalidTopic | Code::InvalidRecord => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

fn write(bootstrap: &str, plan: &Plan, writer: u32, run: u64, shared: &Arc<Shared>) {
    let mut config = client::base(bootstrap);
    config.set("enable.idempotence", "true").set("linger.ms", "2");
    config.set("message.timeout.ms", plan.give_up_ms.to_string());
    config.set("socket.timeout.ms", "10000").set("retry.backoff.ms", "20");
    config.set("retry.backoff.max.ms", "200").set("queue.buffering.max.messages", "2000");
    for (key, value) in &plan.settings {
        config.set(key, value);
    }
    let producer: ThreadedProducer<Notes> =
        config.create_with_context(Notes(Arc::clone(shared))).expect("no producer");
    let mut chance = Chance::new(run ^ u64::from(writer));
    let partition = (writer % plan.partitions as u32) as i32;
    let started = Instant::now();
    let mut paused = Duration::ZERO;
    let mut seq = 0;
    while !shared.stop.load(Ordering::Acquire) {
        let due = Duration::from_micros(seq * 1_000_000 / plan.rate) + paused;
        if shared.pause.load(Ordering::Acquire) || started.elapsed() < due {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let id = Id { writer, seq };
        let value = records::encode(
            &Claim { run, id, partition },
            chance.between(0, plan.payload_max) as usize,
        );
        let sent = Sent { partition, outcome: Outcome::Unknown };
        shared.history.lock().expect("not poisoned").sent.insert(id, sent);
        let mut record = BaseRecord::with_opaque_to(&plan.topic, Box::new(id));
        let key = writer.to_be_bytes();
        record = record.partition(partition).key(&key).payload(&value);
        match producer.send(record) {
            Ok(()) => seq += 1,
            Err((error, _)) => {
                // Nothing left the process: the identity is free again.
                shared.history.lock().expect("not poisoned").sent.remove(&id);
                if client::code(&error) == RDKafkaErrorCode::Fatal {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
                // No bursts to catch up once the queue has room again.
                paused = started.elapsed().saturating_sub(due.saturating_sub(paused));
            }
        }
    }
    let give_up = Duration::from_millis(plan.give_up_ms + 10_000);
    producer.flush(give_up).expect("librdkafka gives up by itself");
}

/// Every record of the topic, each partition in order; and the partitions' log starts.
pub fn read_all(bootstrap: &str, plan: &Plan) -> (Vec<Found>, Vec<(i32, i64)>) {
    let mut log = Vec::new();
    let mut starts = Vec::new();
    for partition in 0..plan.partitions {
        let (low, high) = client::watermarks(bootstrap, &plan.topic, partition);
        starts.push((partition, low));
        read_partition(bootstrap, &plan.topic, partition, low..high, &mut log);
    }
    (log, starts)
}

fn read_partition(
    bootstrap: &str,
    topic: &str,
    partition: i32,
    offsets: std::ops::Range<i64>,
    log: &mut Vec<Found>,
) {
    if offsets.is_empty() {
        return;
    }
    let consumer: BaseConsumer = client::base(bootstrap)
        .set("group.id", "audit")
        .set("enable.auto.commit", "false")
        .set("check.crcs", "true")
        .create()
        .expect("no consumer");
    client::assign(&consumer, &[(topic, partition, Offset::Offset(offsets.start))]);
    let mut quiet_since = Instant::now();
    loop {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                quiet_since = Instant::now();
                let claim = records::decode(message.payload().unwrap_or_default());
                log.push(Found { partition, offset: message.offset(), claim });
                if message.offset() + 1 >= offsets.end {
                    return;
                }
            }
            Some(Err(error)) => println!("audit of {topic}/{partition}: {error}"),
            // Asking for the position is a round trip through librdkafka's threads.
            None if position(&consumer) >= offsets.end => return,
            None => {}
        }
        let quiet = quiet_since.elapsed();
        assert!(
            quiet < client::PATIENCE,
            "stuck at {} of {offsets:?} in {partition}",
            position(&consumer)
        );
    }
}

fn position(consumer: &BaseConsumer) -> i64 {
    let positions = consumer.position().expect("a position");
    positions.elements().first().and_then(|one| one.offset().to_raw()).unwrap_or(-1)
}

/// Reads everything back and judges it. Prints what is wrong and how much.
pub fn audit(bootstrap: &str, plan: &Plan, mut history: History) -> Verdict {
    let (log, starts) = read_all(bootstrap, plan);
    history.log_start.extend(starts);
    let violations = history.judge(&log);
    for violation in violations.iter().take(20) {
        println!("{violation}");
    }
    let count = |kind: &str| violations.iter().filter(|v| v.to_string().starts_with(kind)).count();
    Verdict {
        sent: history.sent.len(),
        acked: history.acked(),
        read: log.len(),
        lost: count("LOST"),
        duplicated: count("DUPLICATE"),
        reordered: count("REORDER"),
        others: count("PHANTOM") + count("MISPLACED"),
    }
}

/// What an audit found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub sent: usize,
    pub acked: usize,
    pub read: usize,
    pub lost: usize,
    pub duplicated: usize,
    pub reordered: usize,
    /// Phantoms and misplaced records.
    pub others: usize,
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.reordered + self.others == 0
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} acknowledged of {} sent, {} read back: {} lost, {} duplicated, {} reordered, \
             {} otherwise wrong",
            self.acked,
            self.sent,
            self.read,
            self.lost,
            self.duplicated,
            self.reordered,
            self.others
        )
    }
}

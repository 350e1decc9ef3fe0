//! The workload: topics of every kind that leaves files of its own, filled in two stages.
//!
//! All times but those of LogAppendTime are fixed, all values come from a seed, so that two brokers
//! are to leave the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::differ::batch::{Batch, CODECS, Row, THEN_MS, batch, keyed, row, values};
use crate::differ::codec::hex;
use crate::differ::context::{Step, Stop, T};
use crate::settings::Chance;

/// Segments as small as Kafka allows.
const SMALL_SEGMENTS: (&str, &str) = ("segment.bytes", "1048576");
/// An index entry for each batch, and room for seven: segments of a few small batches.
const SMALL_INDEXES: [(&str, &str); 2] =
    [("index.interval.bytes", "0"), ("segment.index.bytes", "60")];
const APPEND_TIME: (&str, &str) = ("message.timestamp.type", "LogAppendTime");
/// Room for nine: what a segment gets after a start has fewer entries than Kafka makes when it
/// recovers it, and there it must not run out of room (it ends with "append to a full index").
const ROOMY_INDEXES: [(&str, &str); 2] =
    [("index.interval.bytes", "0"), ("segment.index.bytes", "76")];
/// Files of segments that are gone go at once.
const NO_DELAY: (&str, &str) = ("file.delete.delay.ms", "0");
/// The cleaner is to leave the topic alone.
const NEVER: &str = "9223372036854775807";

type Settings = Vec<(&'static str, &'static str)>;

/// A topic of the workload.
pub struct Topic {
    pub part: String,
    pub partitions: i32,
    pub settings: Settings,
    fill: Fill,
}

/// What is written into a topic in the first stage.
#[derive(Clone, Copy)]
enum Fill {
    Nothing,
    /// Batches of many sizes with this codec.
    Mixed(i16),
    /// Small batches with these codecs, again and again.
    Codecs(&'static [i16], usize),
    /// Batches at these seconds.
    Times(&'static [i64]),
    Producers,
    Compacted,
    Second,
}

fn topic(
    part: impl Into<String>,
    settings: &[&[(&'static str, &'static str)]],
    fill: Fill,
) -> Topic {
    Topic { part: part.into(), partitions: 1, settings: settings.concat(), fill }
}

/// All topics that are there in the end.
pub fn topics() -> Vec<Topic> {
    let mut all = Vec::new();
    for (codec, number) in CODECS {
        let fill = Fill::Mixed(number);
        all.push(topic(format!("{codec}-create"), &[&[SMALL_SEGMENTS]], fill));
        all.push(topic(format!("{codec}-append"), &[&[SMALL_SEGMENTS, APPEND_TIME]], fill));
    }
    let small: &[(&str, &str)] = &SMALL_INDEXES;
    let gzip = ("compression.type", "gzip");
    let (lz4, plain) = (("compression.type", "lz4"), ("compression.type", "uncompressed"));
    let compact = [("cleanup.policy", "compact"), ("min.compaction.lag.ms", NEVER)];
    all.extend([
        topic("gzip-anew", &[&[gzip]], Fill::Codecs(&[0, 4, 1, 2], 2)),
        topic("lz4-anew", &[&[lz4, APPEND_TIME]], Fill::Codecs(&[0, 3, 1], 2)),
        topic("plain-anew", &[&[plain]], Fill::Codecs(&[1, 0, 3, 2, 4], 2)),
        topic("indexes", &[small], Fill::Codecs(&[0], 24)),
        topic("indexes-append", &[small, &[APPEND_TIME]], Fill::Codecs(&[0, 3], 9)),
        topic("times", &[&[("segment.ms", "60000")]], Fill::Times(&[0, 60, 61, 30, 130, 131, 99])),
        topic("producers", &[&ROOMY_INDEXES], Fill::Producers),
        topic("compacted", &[small, &compact], Fill::Compacted),
        topic("cut", &[small], Fill::Codecs(&[0], 24)),
        topic("cut-soon", &[small, &[NO_DELAY]], Fill::Codecs(&[0], 24)),
        topic("cut-whole", &[small, &[NO_DELAY]], Fill::Codecs(&[0], 10)),
        topic("kept", &[small, &[NO_DELAY]], Fill::Codecs(&[0], 24)),
        topic("room", &[&[SMALL_SEGMENTS, ("preallocate", "true")]], Fill::Mixed(0)),
        topic("again", &[], Fill::Codecs(&[0], 2)),
        topic("empty", &[], Fill::Nothing),
        Topic { partitions: 3, ..topic("three", &[], Fill::Second) },
    ]);
    all
}

/// One run of the workload against one broker, over its restarts.
pub struct Workload {
    address: String,
    t: T,
    /// The ids of the producers.
    producers: BTreeMap<&'static str, i64>,
}

/// A batch of a producer: who, epoch, first sequence, records.
type Sent = (&'static str, i16, i32, usize);

impl Workload {
    pub fn new(address: &str) -> Workload {
        let t = T::new(address, "disk", 0);
        Workload { address: address.to_owned(), t, producers: BTreeMap::new() }
    }

    /// The same producers at another broker.
    pub fn moved(&self, address: &str) -> Workload {
        Workload { producers: self.producers.clone(), ..Workload::new(address) }
    }

    pub fn t(&mut self) -> &mut T {
        &mut self.t
    }

    /// What was seen since the last call, and how it ended.
    pub fn take_seen(&mut self, step: Step) -> Map<String, Value> {
        let next = T::new(&self.address, "disk", 0);
        std::mem::replace(&mut self.t, next).finish(step)
    }

    /// Makes all topics and fills none.
    pub fn make_topics(&mut self) -> Step {
        for topic in topics() {
            self.t.topic(&topic.part, topic.partitions, &topic.settings)?;
        }
        Ok(())
    }

    /// The first stage.
    pub fn fill(&mut self, data: &Path) -> Step {
        for name in ["gone", "again"] {
            let name = self.t.topic(name, 2, &SMALL_INDEXES)?;
            for number in 0..9 {
                self.t.put(&name, &small(number))?;
            }
            self.t.delete_topic(&name)?;
        }
        self.make_topics()?;
        for topic in topics() {
            let name = self.t.name(&topic.part);
            self.fill_one(&name, topic.fill)?;
        }
        self.shorten(data)
    }

    fn fill_one(&mut self, name: &str, fill: Fill) -> Step {
        match fill {
            Fill::Nothing => Ok(()),
            Fill::Mixed(codec) => {
                mixed().into_iter().try_for_each(|batch| self.write(name, &batch.codec(codec)))
            }
            Fill::Codecs(codecs, rounds) => (0..rounds * codecs.len()).try_for_each(|number| {
                self.write(name, &small(number).codec(codecs[number % codecs.len()]))
            }),
            Fill::Times(seconds) => seconds.iter().try_for_each(|second| {
                self.write(name, &values(&["one", "two"]).at(THEN_MS + second * 1000))
            }),
            Fill::Producers => self.send(name, &FIRST),
            Fill::Compacted => (0..20).try_for_each(|number| {
                let mut rows = vec![keyed(&format!("k{}", number % 5), "value"), keyed("k", "v")];
                if number % 3 == 0 {
                    rows[1].value = None;
                }
                self.write(name, &batch(&rows))
            }),
            Fill::Second => {
                let records = hex(&small(0).bytes());
                let partition = json!({"Index": 1, "Records": records});
                let topic = json!({"Name": name, "PartitionData": [partition]});
                let body = json!({"Acks": -1, "TimeoutMs": 5000, "TopicData": [topic]});
                self.t.look(name, "Produce", 9, body);
                Ok(())
            }
        }
    }

    /// Writes and observes the answer. Two batches do not share a millisecond.
    fn write(&mut self, name: &str, batch: &Batch) -> Step {
        let answer = self.t.produce(name, 9, batch);
        let is_written = answer["ErrorCode"] == json!(0);
        self.t.see(name, answer.clone());
        self.t.pause(2);
        if is_written { Ok(()) } else { Err(Stop(format!("{name}: {answer}"))) }
    }

    /// Batches of producers, each as if it went on where it was or repeated something.
    fn send(&mut self, name: &str, all: &[Sent]) -> Step {
        for (who, epoch, sequence, count) in all.iter().copied() {
            let id = match self.producers.get(who) {
                Some(id) => *id,
                None => self.t.producer_id()?,
            };
            self.producers.insert(who, id);
            let rows: Vec<Row> = (0..count).map(|at| row(&format!("{who} {at}"))).collect();
            let answer = self.t.produce(name, 9, &batch(&rows).producer(id, epoch, sequence));
            self.t.see(format!("{who} {epoch} {sequence}"), answer);
        }
        Ok(())
    }

    /// Takes records away, and waits until their files are gone.
    fn shorten(&mut self, data: &Path) -> Step {
        for (part, offset) in [("cut", 30), ("cut-soon", 30), ("cut-whole", -1)] {
            let name = self.t.name(part);
            let partition = json!({"PartitionIndex": 0, "Offset": offset});
            let topics = json!([{"Name": name, "Partitions": [partition]}]);
            self.t.look(&name, "DeleteRecords", 2, json!({"Topics": topics, "TimeoutMs": 5000}));
        }
        let kept = self.t.name("kept");
        self.t.set_config(&kept, "retention.bytes", "1000")?;
        let waits = [("cut", ".log"), ("cut-soon", ""), ("cut-whole", ""), ("kept", "")];
        for (part, ending) in waits {
            let dir = data.join(format!("{}-0", self.t.name(part)));
            let is_gone = (0..600).any(|_| {
                self.t.pause(50);
                !has_first_segment(&dir, ending)
            });
            if !is_gone {
                return Err(Stop(format!("files of {part} stay")));
            }
        }
        Ok(())
    }

    /// The second stage, after a restart: every log goes on.
    pub fn go_on(&mut self) -> Step {
        self.write_everywhere(1)?;
        let name = self.t.name("producers");
        self.send(&name, &SECOND)?;
        self.ask_epochs()
    }

    /// Where the leader epochs end, also of a log that got no record in the last.
    fn ask_epochs(&mut self) -> Step {
        let name = self.t.name("three");
        for epoch in 0..4 {
            let partition = |index| json!({"Partition": index, "LeaderEpoch": epoch});
            let partitions: Vec<Value> = (0..3).map(partition).collect();
            let topics = json!([{"Topic": name, "Partitions": partitions}]);
            let body = json!({"ReplicaId": -1, "Topics": topics});
            self.t.look(format!("epoch {epoch}"), "OffsetForLeaderEpoch", 4, body);
        }
        Ok(())
    }

    /// What a broker that opened the files does with them: every log goes on, and producers do.
    pub fn go_on_elsewhere(&mut self) -> Step {
        self.write_everywhere(2)?;
        let name = self.t.name("producers");
        self.send(&name, &THIRD)
    }

    fn write_everywhere(&mut self, stage: usize) -> Step {
        self.t.main().close();
        for topic in topics() {
            let name = self.t.name(&topic.part);
            self.t.await_topic(&name, topic.partitions)?;
            if topic.part != "empty" {
                self.write(&name, &batch(&[keyed("later", &format!("{stage}"))]))?;
            }
        }
        Ok(())
    }
}

/// Whether files of the segment at 0 are there whose names end so.
fn has_first_segment(dir: &Path, ending: &str) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with("00000000000000000000.") && name.ends_with(ending))
}

const MAX: i32 = i32::MAX;

/// Three producers: one with many batches and two epochs, one whose sequence wraps, one that begins
/// anywhere; repeats between.
const FIRST: [Sent; 17] = [
    ("a", 0, 0, 2),
    ("a", 0, 2, 2),
    ("b", 0, MAX - 3, 3),
    ("a", 0, 4, 1),
    ("a", 0, 2, 2),
    ("b", 0, MAX, 2),
    ("c", 5, 7, 2),
    ("a", 0, 5, 3),
    ("a", 1, 0, 1),
    ("a", 1, 1, 1),
    ("a", 1, 3, 1),
    ("b", 0, 1, 4),
    ("b", 0, 1, 4),
    ("d", 0, 0, 1),
    ("a", 1, 2, 2),
    ("a", 0, 8, 1),
    ("b", 0, 5, 1),
];

/// After a restart: the next sequences, the last batch again, a gap, a new epoch.
const SECOND: [Sent; 7] = [
    ("b", 0, 5, 1),
    ("a", 1, 4, 2),
    ("b", 0, 6, 2),
    ("c", 5, 10, 1),
    ("c", 6, 0, 2),
    ("d", 0, 1, 1),
    ("d", 0, 1, 1),
];

/// At the broker that opened the files.
const THIRD: [Sent; 8] = [
    ("a", 1, 4, 2),
    ("d", 0, 1, 1),
    ("c", 6, 0, 2),
    ("a", 1, 7, 1),
    ("a", 1, 6, 1),
    ("b", 0, 8, 1),
    ("c", 5, 9, 1),
    ("d", 1, 0, 1),
];

/// Two records of a few bytes, a second later than those before; each fifth an hour back.
fn small(number: usize) -> Batch {
    let back = if number % 5 == 4 { 3600 } else { 0 };
    let time_ms = THEN_MS + (number as i64 - back) * 1000;
    values(&[&format!("value {number}"), "and another"]).at(time_ms)
}

/// Batches as (records, bytes of each value).
const MIXED: [(usize, usize); 12] = [
    (3, 20),
    (1, 0),
    (40, 100),
    (1, 200_000),
    (5, 2000),
    (2, 150_000),
    (1, 400_000),
    (3, 20),
    (1, 300_000),
    (60, 50),
    (1, 250_000),
    (2, 3000),
];

fn mixed() -> Vec<Batch> {
    let mut chance = Chance::new(44);
    let mut number = 0;
    let batches = MIXED.iter().map(|(records, bytes)| {
        let rows = (0..*records).map(|_| {
            number += 1;
            let mut row = keyed(&format!("key {}", number % 7), &text(&mut chance, *bytes));
            row.time_ms = THEN_MS + number * 10 - (number % 6) * 1000;
            if number % 4 == 0 {
                row.headers = vec![(Some(b"header".to_vec()), Some(number.to_string().into()))];
            }
            if number % 9 == 0 {
                row.key = None;
            }
            row
        });
        batch(&rows.collect::<Vec<_>>())
    });
    batches.collect()
}

/// What can be printed, in no order: it compresses by a fifth.
fn text(chance: &mut Chance, bytes: usize) -> String {
    (0..bytes).map(|_| chance.between(0x20, 0x7e) as u8 as char).collect()
}

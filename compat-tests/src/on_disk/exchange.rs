//! Each broker opens and serves the files of the other: what is copied, and what readers then see.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::workload::{Workload, topics};
use crate::differ::batch::{self, THEN_MS};
use crate::differ::codec::bytes_of;
use crate::differ::context::{Step, Stop};

const METADATA: &str = "partition.metadata";
const CLEAN_STOP: &str = ".kafka_cleanshutdown";
const LOG_STARTS: &str = "log-start-offset-checkpoint";
/// What tells a broker what it need not look at.
const MARKS: [&str; 2] = ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"];

/// How a broker finds the files that are not its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// As after a clean stop, with the checkpoints of the broker that wrote them.
    Clean,
    /// Without them, as after a crash: all is checked and indexes are made anew.
    Unclean,
}

/// Copies the partitions of the cases from one log directory to another, where they are made
/// already and keep their topics' ids. Both brokers are stopped.
pub fn hand_over(from: &Path, to: &Path, stopped: Stopped) {
    for name in names(from).iter().filter(|name| is_partition(name)) {
        let (from, to) = (from.join(name), to.join(name));
        for old in names(&to).iter().filter(|old| *old != METADATA) {
            fs::remove_file(to.join(old)).expect("an old file");
        }
        for new in names(&from).iter().filter(|new| *new != METADATA) {
            fs::copy(from.join(new), to.join(new)).expect("a new file");
        }
    }
    merge(&from.join(LOG_STARTS), &to.join(LOG_STARTS));
    match stopped {
        Stopped::Clean => MARKS.iter().for_each(|name| merge(&from.join(name), &to.join(name))),
        Stopped::Unclean => {
            for name in [&MARKS[..], &[CLEAN_STOP]].concat() {
                fs::remove_file(to.join(name)).expect("a stopped broker left it");
            }
        }
    }
}

/// A copy of the partitions and checkpoints, so that the broker may go on.
pub fn keep(from: &Path, to: &Path) {
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_file() {
            fs::copy(&from, &to).expect("a checkpoint");
        } else if is_partition(&name) {
            fs::create_dir(&to).expect("a new directory");
            for file in names(&from) {
                fs::copy(from.join(&file), to.join(&file)).expect("a new file");
            }
        }
    }
}

fn is_partition(name: &str) -> bool {
    name.starts_with("a-") && !name.ends_with("-delete")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let entries = entries.map(|entry| entry.expect("an entry").file_name());
    entries.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// Gives a checkpoint the lines that another has of the cases' partitions.
fn merge(from: &Path, to: &Path) {
    let lines = |path: &Path, mine: bool| {
        let text = fs::read_to_string(path).expect("a checkpoint");
        let lines = text.lines().skip(2).filter(|line| line.starts_with("a-") == mine);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let all = [lines(to, false), lines(from, true)].concat();
    let text = all.iter().fold(format!("0\n{}\n", all.len()), |text, line| text + line + "\n");
    fs::write(to, text).expect("a checkpoint can be written");
}

/// What readers get from one partition.
#[derive(PartialEq)]
pub struct Served {
    /// All batches from the log start on.
    pub bytes: Vec<u8>,
    /// The answers to ListOffsets.
    pub offsets: Vec<Value>,
}

/// Reads every partition of the workload.
pub fn serve(workload: &mut Workload) -> Step<BTreeMap<String, Served>> {
    workload.t().main().close();
    let mut all = BTreeMap::new();
    for topic in topics() {
        let name = workload.t().name(&topic.part);
        workload.t().await_topic(&name, topic.partitions)?;
        for partition in 0..topic.partitions {
            let served = serve_one(workload, &name, partition)?;
            all.insert(format!("{name}-{partition}"), served);
        }
    }
    Ok(all)
}

/// Times to ask for: the special ones, and some about those of the records.
const TIMES: [i64; 12] = [
    -2,
    -1,
    -3,
    0,
    THEN_MS - 3_600_000,
    THEN_MS - 3_595_000,
    THEN_MS,
    THEN_MS + 1,
    THEN_MS + 500,
    THEN_MS + 13_000,
    THEN_MS + 61_000,
    i64::MAX,
];

fn serve_one(workload: &mut Workload, name: &str, partition: i32) -> Step<Served> {
    let t = workload.t();
    let mut offsets = Vec::new();
    for time in TIMES {
        let wanted = json!({"PartitionIndex": partition, "Timestamp": time});
        let topics = json!([{"Name": name, "Partitions": [wanted]}]);
        let body = json!({"ReplicaId": -1, "Topics": topics});
        let mut answer = t.need("ListOffsets", 7, body)?["Topics"][0]["Partitions"][0].take();
        if time < 0
            && let Some(fields) = answer.as_object_mut()
        {
            // Of the leadership, not of the log.
            fields.remove("LeaderEpoch");
        }
        offsets.push(answer);
    }
    let offset = |at: usize| offsets[at]["Offset"].as_i64().unwrap_or(-1);
    let (mut next, end) = (offset(0), offset(1));
    let mut bytes = Vec::new();
    while next < end {
        let mut body = t.fetch_body(name, next);
        body["Topics"][0]["Partitions"][0]["Partition"] = json!(partition);
        let answer = t.need("Fetch", 11, body)?["Responses"][0]["Partitions"][0].take();
        let records = bytes_of(&answer["Records"]).unwrap_or_default();
        let (whole, after) = whole_batches(&records);
        match after.filter(|_| answer["ErrorCode"] == json!(0)) {
            Some(after) if after > next => next = after,
            _ => return Err(Stop(format!("{name}-{partition} at {next}: {answer}"))),
        }
        bytes.extend(&records[..whole]);
    }
    Ok(Served { bytes, offsets })
}

/// The length of the whole batches, and the offset after the last of them.
fn whole_batches(bytes: &[u8]) -> (usize, Option<i64>) {
    let (mut at, mut next) = (0, None);
    while let Some(head) = bytes.get(at..at + 27) {
        let int = |from: usize, size: usize| {
            head[from..from + size].iter().fold(0i64, |sum, byte| sum << 8 | i64::from(*byte))
        };
        let size = 12 + int(8, 4) as usize;
        if at + size > bytes.len() {
            break;
        }
        next = Some(int(0, 8) + int(23, 4) + 1);
        at += size;
    }
    (at, next)
}

/// What is served otherwise than it should be.
pub fn compare(want: &BTreeMap<String, Served>, got: &BTreeMap<String, Served>) -> Vec<String> {
    let mut out = Vec::new();
    for (name, want) in want {
        let Some(got) = got.get(name) else {
            out.push(format!("{name} is not served"));
            continue;
        };
        if want.bytes != got.bytes {
            let (want, got) = (batch::parse(&want.bytes), batch::parse(&got.bytes));
            let first = crate::differ::compare::differences(&want, &got).into_iter().next();
            out.push(format!("{name}: other bytes: {first:?}"));
        }
        for ((time, want), got) in TIMES.iter().zip(&want.offsets).zip(&got.offsets) {
            if want != got {
                out.push(format!("{name}: offset at {time}: {want} became {got}"));
            }
        }
    }
    out
}

/// How many bytes are served.
pub fn bytes_in(served: &BTreeMap<String, Served>) -> usize {
    served.values().map(|served| served.bytes.len()).sum()
}

/// The answers of two that went on from the same files.
pub fn answers_differ(want: &Map<String, Value>, got: &Map<String, Value>) -> Vec<String> {
    let (want, got) = (Value::Object(want.clone()), Value::Object(got.clone()));
    let found = crate::differ::compare::differences(&want, &got);
    found
        .iter()
        .map(|found| format!("{}: {} and {}", found.path, found.kafka, found.ours))
        .collect()
}

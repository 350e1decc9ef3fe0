//! What the cases left on the disks of two brokers: segments, indexes and checkpoints of the same
//! topics, read by a reader of its own. Of a broker that was stopped also what it leaves for its
//! next start: the files' names, producer snapshots (`disk/snapshot.rs`) and the files of the log
//! directory (`disk/directory.rs`).

mod directory;
mod snapshot;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::batch;
use super::rules::{Rules, now_ms};
use super::run::Seen;

/// Topics of which records expire while one looks.
const MOVING: &str = "a-retention-";

/// What lies in each partition's directory under `data` that belongs to a case's first run.
pub fn look(data: &Path) -> Seen {
    look_at(data, false)
}

fn look_at(data: &Path, stopped: bool) -> Seen {
    let mut seen = Seen::new();
    for entry in std::fs::read_dir(data).expect("a data directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_deleted = name.ends_with("-delete") || name.ends_with("-stray");
        if name.starts_with("a-") && !name.starts_with(MOVING) && !is_deleted {
            seen.insert(format!("disk/{name}"), partition(&entry.path(), stopped));
        }
    }
    seen
}

/// The same of a broker that was stopped, and all that it left.
pub fn look_stopped(data: &Path) -> Seen {
    let mut seen = look_at(data, true);
    seen.insert("disk".to_owned(), directory::look(data));
    seen
}

/// The names of the partitions whose brokers compress anew end so.
pub const ANEW: &str = "anew-0";

/// Leaves only the directories that both have: topics of cases with more runs, or that are being
/// deleted, are on one side only. So are index files of brokers that run: when they are written is
/// their own affair.
pub fn common(kafka: &mut Seen, ours: &mut Seen) {
    kafka.retain(|name, _| ours.contains_key(name));
    ours.retain(|name, _| kafka.contains_key(name));
    for (name, files) in kafka {
        let there = &ours[name];
        files.retain(|file, _| !file.ends_with("index") || there.contains_key(file));
    }
}

fn partition(dir: &Path, stopped: bool) -> Map<String, Value> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.map(|entry| {
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()))
    });
    let files: BTreeMap<String, Vec<u8>> =
        files.filter_map(|(name, bytes)| Some((name, bytes.ok()?))).collect();
    let mut rules = Rules::new("a-", "a-");
    let mut out = Map::new();
    if stopped {
        out.insert("files".to_owned(), directory::names(files.keys()));
    }
    let are_sizes_given = stopped && !dir.to_string_lossy().ends_with(ANEW);
    let has_records = files.iter().any(|(name, bytes)| name.ends_with(".log") && !bytes.is_empty());
    for (name, bytes) in &files {
        let Some((base, kind)) = name.rsplit_once('.') else {
            // Kafka makes it with the log; what an empty log's says nobody needs.
            if name == "leader-epoch-checkpoint" && has_records {
                out.insert(name.clone(), epochs_of(bytes));
            }
            continue;
        };
        let batches = |base: &str| {
            let log = files.get(&format!("{base}.log")).map_or(&[][..], Vec::as_slice);
            batch::parse(log)
        };
        // Where a broker compressed anew the sizes are its own, and so are positions.
        let is_plain = |batches: &Value| {
            let batches = batches.as_array().into_iter().flatten();
            batches.into_iter().all(|batch| batch["attributes"].as_i64().unwrap_or(0) & 7 == 0)
        };
        match kind {
            "log" => {
                out.insert(name.clone(), by_the_hour(rules.apply("records", &batches(base))));
            }
            "index" if are_sizes_given || is_plain(&batches(base)) => {
                drop(out.insert(name.clone(), entries_of(bytes, 4)))
            }
            "timeindex" => {
                out.insert(name.clone(), rules.apply("InOrder", &entries_of(bytes, 8)));
            }
            "metadata" if stopped => {
                out.insert(name.clone(), directory::partition_metadata(bytes));
            }
            "metadata" => {
                out.insert(name.clone(), json!("there"));
            }
            "snapshot" if stopped => {
                out.insert(name.clone(), rules.apply("InOrder", &snapshot::parse(bytes)));
            }
            _ => {}
        }
    }
    // An index without entries may as well not be there.
    out.retain(|_, value| *value != json!([]));
    out
}

/// Times that a case set from the clock, hours ahead or behind, as so many hours.
fn by_the_hour(mut batches: Value) -> Value {
    const HOUR_MS: i64 = 3_600_000;
    for batch in batches.as_array_mut().into_iter().flatten() {
        for field in ["BaseTimestamp", "MaxTimestamp"] {
            let ahead_ms = batch[field].as_i64().map_or(i64::MAX, |time| time - now_ms());
            if ahead_ms.checked_abs().is_some_and(|ms| ms < 100 * HOUR_MS) {
                let hours = (ahead_ms as f64 / HOUR_MS as f64).round();
                batch[field] = json!(format!("<now {hours:+} h>"));
            }
        }
    }
    batches
}

/// The epochs of a checkpoint. Where the first began is left out: Kafka moves it along with the
/// start of the log, for readers it is the start of the log anyway.
fn epochs_of(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().skip(2);
    let epochs = lines.enumerate().map(|(at, line)| match line.split_once(' ') {
        Some((epoch, _)) if at == 0 => epoch.to_owned(),
        _ => line.to_owned(),
    });
    json!(epochs.collect::<Vec<_>>())
}

/// Entries of a key of so many bytes and four more, up to the zeros that are reserved behind them.
fn entries_of(bytes: &[u8], key_len: usize) -> Value {
    let number = |bytes: &[u8]| bytes.iter().fold(0i64, |sum, byte| sum << 8 | i64::from(*byte));
    let mut out = Vec::new();
    for entry in bytes.chunks_exact(key_len + 4) {
        let (key, value) = entry.split_at(key_len);
        let is_first_time = key_len == 8 && out.is_empty() && number(key) != 0;
        if number(key) == 0 && number(value) == 0 && !is_first_time {
            break;
        }
        out.push(json!({"Time": number(key), "at": number(value)}));
    }
    Value::Array(out)
}

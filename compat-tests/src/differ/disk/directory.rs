//! The files of a log directory beside the partitions: checkpoints, identity, the marker of a clean
//! stop, and what waits to be deleted.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The checkpoints that list an offset for each partition.
const CHECKPOINTS: [&str; 4] = [
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
];

/// What lies in `data` itself.
pub fn look(data: &Path) -> Map<String, Value> {
    let mut out = Map::new();
    let mut names = Vec::new();
    let mut leaving = Vec::new();
    for entry in std::fs::read_dir(data).expect("a data directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() {
            names.push(name);
        } else if name.starts_with("a-") && name.ends_with("-delete") {
            leaving.push(without_id(&name));
        }
    }
    names.sort();
    leaving.sort();
    let text = |name: &str| std::fs::read_to_string(data.join(name)).unwrap_or_default();
    for name in names.iter().filter(|name| CHECKPOINTS.contains(&name.as_str())) {
        out.insert(name.clone(), offsets(&text(name)));
    }
    out.insert("meta.properties".to_owned(), properties(&text("meta.properties")));
    out.insert(".kafka_cleanshutdown".to_owned(), json!(marker(&text(".kafka_cleanshutdown"))));
    out.insert("files".to_owned(), self::names(names.iter()));
    out.insert("leaving".to_owned(), json!(leaving));
    out
}

/// Names of files that are there.
pub fn names<'a>(names: impl Iterator<Item = &'a String>) -> Value {
    names.map(|name| (name.clone(), json!("there"))).collect::<Map<_, _>>().into()
}

/// The offsets of a checkpoint, of the cases' partitions.
pub fn offsets(text: &str) -> Value {
    let mut lines = text.lines();
    let head = (lines.next(), lines.next().map(str::parse::<usize>));
    let rest: Vec<&str> = lines.collect();
    let is_whole = matches!(head, (Some("0"), Some(Ok(count))) if count == rest.len());
    if !is_whole && !text.is_empty() {
        return json!(format!("damaged: {text}"));
    }
    let mut mine: Vec<&str> = rest.into_iter().filter(|line| line.starts_with("a-")).collect();
    mine.sort_unstable();
    let by_partition = mine.into_iter().map(|line| {
        let (partition, offset) = line.rsplit_once(' ').unwrap_or((line, ""));
        (partition.replace(' ', "-"), json!(offset))
    });
    by_partition.collect::<Map<_, _>>().into()
}

fn properties(text: &str) -> Value {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs: BTreeMap<&str, Value> = lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| match key {
            "cluster.id" | "directory.id" => (key, json!(id(value))),
            _ => (key, json!(value)),
        })
        .collect();
    json!(pairs)
}

/// The topic's id, and the rest as it is.
pub fn partition_metadata(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    match text.rsplit_once(' ') {
        Some((head, value)) => json!(format!("{head} {}", id(value))),
        None => json!(text),
    }
}

/// A marker with its broker epoch left open.
fn marker(text: &str) -> String {
    let digit = |c: char| c.is_ascii_digit();
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.starts_with(digit) => {
            format!("{head}:<epoch>{}", tail.trim_start_matches(digit))
        }
        _ => text.to_owned(),
    }
}

/// `<id>` for sixteen bytes as Kafka writes them.
fn id(text: &str) -> String {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_id = text.len() == 22 && text.bytes().all(usual);
    if is_id { "<id>".to_owned() } else { text.to_owned() }
}

/// `topic-0.<id>-delete` without the 32 digits.
fn without_id(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((head, tail)) if tail.len() == 32 + "-delete".len() => format!("{head}.<id>-delete"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_lists_the_cases_partitions() {
        let check = |text: &str, want: Value| assert_eq!(offsets(text), want, "{text:?}");
        check("0\n2\na-x 0 7\n__consumer_offsets 3 9\n", json!({"a-x-0": "7"}));
        check("", json!({}));
        check("0\n1\n", json!("damaged: 0\n1\n"));
        check("1\n0\n", json!("damaged: 1\n0\n"));
    }

    #[test]
    fn what_a_run_makes_up_is_left_open() {
        assert_eq!(
            marker("{\"version\":0,\"brokerEpoch\":12}"),
            "{\"version\":0,\"brokerEpoch\":<epoch>}"
        );
        assert_eq!(id("4L6g3nShT-eMCtK--X86sw"), "<id>");
        assert_eq!(id("4L6g3nShT-eMCtK--X86s"), "4L6g3nShT-eMCtK--X86s");
        assert_eq!(
            without_id("a-b-0.0123456789abcdef0123456789abcdef-delete"),
            "a-b-0.<id>-delete"
        );
    }
}

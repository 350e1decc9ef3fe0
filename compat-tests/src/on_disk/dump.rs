//! Kafka's own reader of the files, `DumpLogSegments`, over those of a broker that was stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::differ::disk::ANEW;
use crate::differ::rules::now_ms;
use crate::differ::run::Seen;
use crate::kafka;

const CLASS: &str = "org.apache.kafka.tools.DumpLogSegments";
const KINDS: [&str; 5] = ["log", "index", "timeindex", "snapshot", "txnindex"];
/// Longer lines are given by their beginning and a sum.
const LINE_MAX: usize = 420;
const HOUR_MS: i64 = 3_600_000;

/// How lines begin that complain of nothing.
const USUAL: [&str; 6] =
    ["baseOffset: ", "| offset: ", "offset: ", "timestamp: ", "producerId: ", "Log starting "];

/// What the tool says of all files of the cases' partitions under `data`: the content of each, and
/// whether the indexes are of their logs.
pub fn dump(jars: &Path, data: &Path) -> Seen {
    let files = files(data);
    let indexes: Vec<String> =
        files.iter().filter(|path| path.ends_with("index")).cloned().collect();
    let mut lines: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (options, files) in [
        (&["--deep-iteration", "--print-data-log"][..], &files),
        (&["--index-sanity-check"], &indexes),
        (&["--verify-index-only"], &indexes),
    ] {
        let all = files.join(",");
        let out = kafka::tool(jars, CLASS, &[options, &["--files", &all]].concat());
        sort_out(&out, data, &mut lines);
    }
    let mut seen = Seen::new();
    for ((dir, file), lines) in lines {
        seen.entry(format!("dump/{dir}")).or_default().insert(file, json!(lines));
    }
    seen
}

/// The lines that say that something is wrong.
pub fn complaints(seen: &Seen) -> Vec<String> {
    let files = seen.iter().flat_map(|(dir, files)| files.iter().map(move |(f, v)| (dir, f, v)));
    let lines = files.flat_map(|(dir, file, lines)| {
        let lines = lines.as_array().into_iter().flatten().filter_map(Value::as_str);
        lines.map(move |line| (dir, file, line))
    });
    let bad = lines.filter(|(_, _, line)| !is_usual(line));
    bad.map(|(dir, file, line)| format!("{dir}/{file}: {line}")).collect()
}

fn is_usual(line: &str) -> bool {
    let is_known = USUAL.iter().any(|start| line.starts_with(start));
    let is_fine = line.ends_with(" is empty.") || line.ends_with(" passed sanity check.");
    (is_known || is_fine) && !line.contains("isvalid: false")
}

/// The files to dump, in order.
fn files(data: &Path) -> Vec<String> {
    let list = |dir: &Path| {
        let entries = std::fs::read_dir(dir).expect("a directory").flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_mine = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("a-") && !name.ends_with("-delete")
    };
    let is_dumped = |path: &PathBuf| {
        path.extension().is_some_and(|end| KINDS.contains(&&*end.to_string_lossy()))
    };
    let dirs = list(data).into_iter().filter(is_mine);
    let files = dirs.flat_map(|dir| list(&dir)).filter(is_dumped);
    let mut files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    files.sort();
    files
}

/// Adds the tool's output to what is known of each file.
fn sort_out(out: &str, data: &Path, lines: &mut BTreeMap<(String, String), Vec<String>>) {
    let root = format!("{}/", data.display());
    let mut current = (String::new(), String::new());
    for line in out.lines() {
        let line = line.replace(&root, "");
        if let Some(path) = line.strip_prefix("Dumping ") {
            let (dir, file) = path.split_once('/').unwrap_or(("", path));
            current = (dir.to_owned(), file.to_owned());
            lines.entry(current.clone()).or_default();
            continue;
        }
        let is_anew = current.0.ends_with(ANEW);
        lines.entry(current.clone()).or_default().push(usual(&line, is_anew));
    }
}

/// A line without what two brokers cannot have alike: times of now, producer ids, sums over these,
/// and sizes where they compressed anew.
fn usual(line: &str, is_anew: bool) -> String {
    if line.starts_with("| offset") || !line.contains(": ") {
        return shortened(&usual_words(line, is_now));
    }
    let is_summed = line.contains("LogAppendTime: ") || !line.contains("producerId: -1 ");
    usual_words(line, |name, value| match name {
        "producerId:" => value != "-1",
        "crc:" => is_summed || is_anew,
        "size:" | "position:" => is_anew,
        _ => is_now(name, value),
    })
}

fn is_now(name: &str, value: &str) -> bool {
    let is_time = name.ends_with("ime:") || name.ends_with("imestamp:");
    is_time && value.parse().is_ok_and(|time: i64| (time - now_ms()).abs() < HOUR_MS)
}

/// The line with a `<...>` for each value that is left open, given the word before it.
fn usual_words(line: &str, is_open: impl Fn(&str, &str) -> bool) -> String {
    let mut before = "";
    let words = line.split(' ').map(|word| {
        let name = std::mem::replace(&mut before, word);
        if is_open(name, word) {
            format!("<{}>", name.trim_end_matches(':'))
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_MAX) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}... {:08x}", &line[..at], crc32c::crc32c(line.as_bytes())),
    }
}

/// How many files a dump is of.
pub fn count(seen: &Seen) -> usize {
    seen.values().map(Map::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_what_is_of_now() {
        let check = |line: &str, is_anew, want: &str| assert_eq!(usual(line, is_anew), want);
        let now = now_ms();
        check(&format!("timestamp: {now} offset: 3"), false, "timestamp: <timestamp> offset: 3");
        let plain = "producerId: -1 position: 0 CreateTime: 1700000000000 size: 94 crc: 12";
        check(plain, false, plain);
        check(
            plain,
            true,
            "producerId: -1 position: <position> CreateTime: 1700000000000 size: <size> crc: <crc>",
        );
        check(
            &format!("producerId: -1 LogAppendTime: {now} size: 94 crc: 12"),
            false,
            "producerId: -1 LogAppendTime: <LogAppendTime> size: 94 crc: <crc>",
        );
        check("producerId: 7 crc: 12", false, "producerId: <producerId> crc: <crc>");
        check("| offset: 0 payload: crc: 1", false, "| offset: 0 payload: crc: 1");
    }

    #[test]
    fn a_complaint_is_seen() {
        let check = |line: &str, want: bool| {
            let files = json!({"0.index": ["offset: 3 position: 83", line]});
            let Value::Object(files) = files else { unreachable!("made above") };
            let seen = Seen::from([("dump/a".to_owned(), files)]);
            assert_eq!(complaints(&seen).is_empty(), want, "{line}");
        };
        check("a/0.index is empty.", true);
        check("a/0.index passed sanity check.", true);
        check("Mismatches in :a/0.index", false);
        check("  Index offset: 3, log offset: 4", false);
        check("baseOffset: 0 isvalid: false", false);
    }
}

//! Kafka's checkpoint files: text of a version, a count, and one entry per line.
//!
//! Owns the format, and the offset checkpoints of a log directory. When they are written, and what
//! a missing offset means, is the caller's; the leader-epoch checkpoint uses [`parse_lines`] and
//! [`print_lines`] with entries of its own. Source: `CheckpointFile`, `OffsetCheckpointFile`.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::io;
use std::path::{Path, PathBuf};

use protocol_compat::ids::{TopicPartition, valid_topic_name};
use thiserror::Error;

use crate::disk::{Disk, read_to_vec, write_atomic};

/// Offsets below which each log is known to be on the disk; lists every partition.
pub const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
/// Log start offsets; lists the partitions whose log start is above the base of their first
/// segment.
pub const LOG_START_OFFSETS: &str = "log-start-offset-checkpoint";
/// High watermarks; lists every partition.
pub const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
/// First offsets not yet cleaned; empty before the first cleaning.
pub const CLEANER_OFFSETS: &str = "cleaner-offset-checkpoint";

/// The longest checkpoint that is read: room for 200,000 partitions with the longest names.
pub const CHECKPOINT_BYTES_MAX: usize = 64 << 20;

/// The one version that Kafka has written so far.
const VERSION: i32 = 0;

/// An offset per partition.
pub type Offsets = BTreeMap<TopicPartition, i64>;

/// A checkpoint could not be read or written.
#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {malformed}", path.display())]
    Malformed { path: PathBuf, malformed: Malformed },
}

/// What is wrong with a checkpoint's text.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {reason}")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl Malformed {
    /// For entry `index` (from 0) of a checkpoint: its line is two below the version and the count.
    pub fn entry(index: usize, reason: impl Into<String>) -> Malformed {
        Malformed { line: index + 3, reason: reason.into() }
    }
}

/// Reads an offset checkpoint. An absent or an empty file holds nothing. Where a partition stands
/// twice the later line counts, as in Kafka.
///
/// # Errors
/// `Malformed` for anything but the format, a file cut short included; nothing is then returned, as
/// half a checkpoint is worse than none.
pub fn read_offsets(disk: &dyn Disk, path: &Path) -> Result<Offsets, CheckpointError> {
    let bytes = match read_to_vec(disk, path, CHECKPOINT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Offsets::new()),
        Err(source) => return Err(CheckpointError::Io { path: path.to_owned(), source }),
    };
    let malformed = |malformed| CheckpointError::Malformed { path: path.to_owned(), malformed };
    parse_offsets(&bytes).map_err(malformed)
}

/// Replaces an offset checkpoint: after a crash the file holds the old offsets or the new ones.
pub fn write_offsets(
    disk: &dyn Disk,
    path: &Path,
    offsets: &Offsets,
) -> Result<(), CheckpointError> {
    let text = print_offsets(offsets);
    write_atomic(disk, path, text.as_bytes())
        .map_err(|source| CheckpointError::Io { path: path.to_owned(), source })
}

/// The text of an offset checkpoint.
pub fn print_offsets(offsets: &Offsets) -> String {
    let line =
        |(tp, offset): (&TopicPartition, &i64)| format!("{} {} {offset}", tp.topic, tp.partition);
    print_lines(offsets.len(), offsets.iter().map(line))
}

/// Parses the text of an offset checkpoint.
pub fn parse_offsets(bytes: &[u8]) -> Result<Offsets, Malformed> {
    let mut offsets = Offsets::new();
    for (index, line) in parse_lines(bytes)?.into_iter().enumerate() {
        let entry = parse_offset(line).ok_or_else(|| {
            let shown: String = line.chars().take(300).collect();
            Malformed::entry(index, format!("not a topic, a partition and an offset: {shown:?}"))
        })?;
        offsets.insert(entry.0, entry.1);
    }
    Ok(offsets)
}

fn parse_offset(line: &str) -> Option<(TopicPartition, i64)> {
    let mut words = line.split_ascii_whitespace();
    let (topic, partition, offset) = (words.next()?, words.next()?, words.next()?);
    let partition: i32 = partition.parse().ok().filter(|partition| *partition >= 0)?;
    let offset = offset.parse().ok()?;
    if words.next().is_some() || valid_topic_name(topic).is_err() {
        return None;
    }
    Some((TopicPartition::new(topic, partition), offset))
}

/// The text of a checkpoint with `count` entries.
pub fn print_lines<L: Display>(count: usize, lines: impl Iterator<Item = L>) -> String {
    let mut text = format!("{VERSION}\n{count}\n");
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The entry lines of a checkpoint. Nothing at all counts as no entries; blank lines at the end and
/// `\r` are let through; nothing is allocated by the count that the file claims.
pub fn parse_lines(bytes: &[u8]) -> Result<Vec<&str>, Malformed> {
    let fail = |line, reason: String| Err(Malformed { line, reason });
    let Ok(text) = std::str::from_utf8(bytes) else {
        return fail(1, "not text".to_owned());
    };
    let text = text.trim_end();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = text.lines();
    match lines.next().map(|line| line.trim().parse::<i32>()) {
        Some(Ok(VERSION)) => {}
        Some(Ok(version)) => return fail(1, format!("version {version}, {VERSION} is known")),
        _ => return fail(1, "no version".to_owned()),
    }
    let count = match lines.next().map(|line| line.trim().parse::<usize>()) {
        Some(Ok(count)) => count,
        _ => return fail(2, "no entry count".to_owned()),
    };
    let entries: Vec<&str> = lines.collect();
    if entries.len() != count {
        return fail(2, format!("{count} entries announced, {} found", entries.len()));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{SimConfig, SimDisk};
    use proptest::prelude::*;

    fn offsets(entries: &[(&str, i32, i64)]) -> Offsets {
        entries.iter().map(|(t, p, o)| (TopicPartition::new(*t, *p), *o)).collect()
    }

    #[test]
    fn text_never_changes() {
        let two = offsets(&[("orders", 0, 42), ("__consumer_offsets", 49, i64::MAX)]);
        let text = "0\n2\n__consumer_offsets 49 9223372036854775807\norders 0 42\n";
        assert_eq!(print_offsets(&two), text);
        assert_eq!(print_offsets(&Offsets::new()), "0\n0\n");
        assert_eq!(parse_offsets(text.as_bytes()), Ok(two));
    }

    /// `want` is the start of the error, or empty for no error.
    #[track_caller]
    fn check(text: &str, want: &str) {
        let error =
            parse_offsets(text.as_bytes()).map_or_else(|e| e.to_string(), |_| String::new());
        assert!(error.starts_with(want) && error.is_empty() == want.is_empty(), "{error}");
    }

    #[test]
    fn odd_texts() {
        check("", "");
        check("\n", "");
        check("0\n0\n", "");
        check("0\r\n1\r\na 0 1\r\n\n\n", "");
        check("0\n1\na  0\t1", "");
        check("0\n1\na 0 -1\n", "");
        check("0\n2\na 0 1\na 0 2\n", "");
        check("1\n0\n", "line 1: version 1, 0 is known");
        check("x", "line 1: no version");
        check("0", "line 2: no entry count");
        check("0\n-1\n", "line 2: no entry count");
        check("0\n99999999999999999999\n", "line 2: no entry count");
        check("0\n9999999999\na 0 1\n", "line 2: 9999999999 entries announced, 1 found");
        check("0\n1\na 0 1\nb 0 1\n", "line 2: 1 entries announced, 2 found");
        check("0\n1\na 0\n", "line 3: not a topic");
        check("0\n2\na 0 1\na 0 1 2\n", "line 4: not a topic");
        check("0\n1\na -1 1\n", "line 3: not a topic");
        check("0\n1\na 0 x\n", "line 3: not a topic");
        check("0\n1\na/b 0 1\n", "line 3: not a topic");
        assert!(parse_offsets(&[0xff, 0xfe]).is_err());
    }

    #[test]
    fn later_lines_win() {
        assert_eq!(parse_offsets(b"0\n2\na 0 1\na 0 2\n"), Ok(offsets(&[("a", 0, 2)])));
    }

    #[test]
    fn files_are_replaced_whole() {
        let path = Path::new("dir/checkpoint");
        for cut in 0..12 {
            let disk = SimDisk::new(SimConfig::seeded(cut));
            crate::disk::create_dir_durable(&disk, Path::new("dir")).unwrap();
            assert_eq!(read_offsets(&disk, path).unwrap(), Offsets::new());
            let (old, new) = (offsets(&[("a", 0, 1)]), offsets(&[("a", 0, 2), ("b", 1, 3)]));
            write_offsets(&disk, path, &old).unwrap();
            disk.cut_power_after(cut);
            let written = write_offsets(&disk, path, &new);
            let now = read_offsets(&disk.crash(), path).unwrap();
            assert!(now == new || (written.is_err() && now == old), "{now:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_parsed(
            entries in prop::collection::btree_map(
                ("[a-zA-Z0-9._-]{3,20}", 0..i32::MAX),
                any::<i64>(),
                0..20,
            ),
        ) {
            let offsets: Offsets =
                entries.into_iter().map(|((t, p), o)| (TopicPartition::new(t, p), o)).collect();
            prop_assert_eq!(parse_offsets(print_offsets(&offsets).as_bytes()), Ok(offsets));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_offsets(&bytes);
        }
    }
}

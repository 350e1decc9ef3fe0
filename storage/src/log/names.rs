//! The names of the files of a partition (Kafka `LogFileUtils`).

use std::path::{Path, PathBuf};

use protocol_compat::ids::TopicPartition;

/// Holds the topic id.
pub const METADATA_FILE: &str = "partition.metadata";
/// The longest name a directory may have.
const NAME_MAX: usize = 255;

/// What a file of a segment is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Log,
    Index,
    TimeIndex,
    TxnIndex,
    Snapshot,
}

impl Kind {
    /// The log first: indexes without a log are removed when a log is opened, not the reverse.
    pub(crate) const ALL: [Kind; 5] =
        [Kind::Log, Kind::Index, Kind::TimeIndex, Kind::TxnIndex, Kind::Snapshot];

    fn extension(self) -> &'static str {
        match self {
            Kind::Log => ".log",
            Kind::Index => ".index",
            Kind::TimeIndex => ".timeindex",
            Kind::TxnIndex => ".txnindex",
            Kind::Snapshot => ".snapshot",
        }
    }
}

/// What a file is on its way to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suffix {
    /// In use.
    None,
    /// Will be removed.
    Deleted,
    /// Compaction was writing it; worthless.
    Cleaned,
    /// Compaction has finished it; takes the place of what it was made from.
    Swap,
    /// Written, not yet durable; worthless.
    Tmp,
}

pub(crate) const DELETED: &str = ".deleted";
pub(crate) const SWAP: &str = ".swap";
pub(crate) const TMP: &str = ".tmp";

/// `<20 digits>.<kind>`.
pub(crate) fn file_name(offset: i64, kind: Kind) -> String {
    format!("{offset:020}{}", kind.extension())
}

pub(crate) fn file_path(dir: &Path, offset: i64, kind: Kind) -> PathBuf {
    dir.join(file_name(offset, kind))
}

/// Reads what [`file_name`] writes, with or without a suffix; `None` for any other name.
pub(crate) fn parse(name: &str) -> Option<(i64, Kind, Suffix)> {
    let (digits, rest) = name.split_at_checked(20)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let offset = digits.parse().ok()?;
    let of_kind = |kind: Kind| rest.strip_prefix(kind.extension()).map(|suffix| (kind, suffix));
    // Longest first: ".log" and the like are no prefixes of each other, but stay safe.
    let (kind, suffix) = Kind::ALL.into_iter().find_map(of_kind)?;
    let suffix = match suffix {
        "" => Suffix::None,
        DELETED => Suffix::Deleted,
        ".cleaned" => Suffix::Cleaned,
        SWAP => Suffix::Swap,
        TMP => Suffix::Tmp,
        _ => return None,
    };
    Some((offset, kind, suffix))
}

/// The directory name of a partition that is being deleted: `<topic>-<partition>.<32 hex>-delete`,
/// the topic cut so that it fits 255 bytes (Kafka `LocalLog.logDeleteDirName`).
pub fn delete_dir_name(tp: &TopicPartition, unique_hex: &str) -> String {
    dir_name(tp, unique_hex, "delete")
}

/// The directory name of a partition that no topic has any more, kept for somebody to look at:
/// `<topic>-<partition>.<32 hex>-stray`, cut likewise (Kafka `LocalLog.logStrayDirName`).
pub fn stray_dir_name(tp: &TopicPartition, unique_hex: &str) -> String {
    dir_name(tp, unique_hex, "stray")
}

fn dir_name(tp: &TopicPartition, unique_hex: &str, what: &str) -> String {
    let suffix = format!("-{}.{unique_hex}-{what}", tp.partition);
    let keep = NAME_MAX.saturating_sub(suffix.len());
    // Legal topic names are ASCII, so a byte is a character.
    let topic: String = tp.topic.chars().take(keep).collect();
    topic + &suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let check = |name: &str, want: Option<(i64, Kind, Suffix)>| assert_eq!(parse(name), want);
        check("00000000000000000000.log", Some((0, Kind::Log, Suffix::None)));
        check("00000000000000000042.index", Some((42, Kind::Index, Suffix::None)));
        check(
            "00000000000000000042.timeindex.deleted",
            Some((42, Kind::TimeIndex, Suffix::Deleted)),
        );
        check(
            "09223372036854775807.txnindex.cleaned",
            Some((i64::MAX, Kind::TxnIndex, Suffix::Cleaned)),
        );
        check("00000000000000000007.log.swap", Some((7, Kind::Log, Suffix::Swap)));
        check("00000000000000000007.snapshot.tmp", Some((7, Kind::Snapshot, Suffix::Tmp)));
        for other in [
            "",
            "partition.metadata",
            "0.log",
            "0000000000000000000x.log",
            "+0000000000000000001.log",
            "99999999999999999999.log",
            "00000000000000000000.logs",
            "00000000000000000000",
            "00000000000000000000.log.bak",
            "é0000000000000000000.log",
        ] {
            check(other, None);
        }
        assert_eq!(file_name(123, Kind::TimeIndex), "00000000000000000123.timeindex");
    }

    #[test]
    fn delete_names_fit_255_bytes() {
        let hex = "0123456789abcdef0123456789abcdef";
        let tp = TopicPartition::new("orders", 3);
        assert_eq!(delete_dir_name(&tp, hex), format!("orders-3.{hex}-delete"));
        assert_eq!(stray_dir_name(&tp, hex), format!("orders-3.{hex}-stray"));
        let tp = TopicPartition::new("t".repeat(249), 1234);
        let name = delete_dir_name(&tp, hex);
        assert_eq!(name.len(), 255);
        assert!(name.ends_with(&format!("t-1234.{hex}-delete")));
    }
}

//! Leader epochs: at which offset each leader's reign began (KIP-101, KIP-279), and the file
//! `leader-epoch-checkpoint` that says so.
//!
//! Owns the entries and their text; when the file is written and made durable is `log/flush.rs`.

use std::fmt::Write as _;

/// The file in a partition's directory.
pub const EPOCH_FILE: &str = "leader-epoch-checkpoint";
/// The largest file that is read: about a million epochs.
pub(crate) const EPOCH_FILE_MAX: usize = 32 << 20;

/// Kafka's answer for "not known", as epoch and as offset.
pub const UNDEFINED: (i32, i64) = (-1, -1);

/// A leader epoch and the offset of its first record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEntry {
    pub epoch: i32,
    pub start_offset: i64,
}

/// The entries of one log; both epochs and offsets rise (Kafka `LeaderEpochFileCache`).
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EpochCache {
    entries: Vec<EpochEntry>,
    /// Whether the entries changed since [`EpochCache::take_changed`].
    changed: bool,
}

impl EpochCache {
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The epoch of the record at `offset`; `None` below the first entry.
    pub fn epoch_of(&self, offset: i64) -> Option<i32> {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        self.entries.get(after.checked_sub(1)?).map(|entry| entry.epoch)
    }

    /// Where `epoch` ended: the largest known epoch at or below it and the offset at which the next
    /// one began, or the log end for the latest. [`UNDEFINED`] for a later epoch than any known; an
    /// epoch below all known ones answers itself and the first offset known (Kafka `endOffsetFor`).
    pub fn end_offset(&self, epoch: i32, log_end_offset: i64) -> (i32, i64) {
        let Some(latest) = self.latest() else { return UNDEFINED };
        if epoch == UNDEFINED.0 || epoch > latest.epoch {
            return UNDEFINED;
        }
        if epoch == latest.epoch {
            return (epoch, log_end_offset);
        }
        let above = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let floor = above.checked_sub(1).and_then(|at| self.entries.get(at));
        match (floor, self.entries.get(above)) {
            (Some(floor), Some(next)) => (floor.epoch, next.start_offset),
            (None, Some(next)) => (epoch, next.start_offset),
            (_, None) => UNDEFINED,
        }
    }

    /// Notes that records of `epoch` begin at `start_offset`. Entries that contradict it (same or
    /// later epoch, same or later offset) go. Unset epochs and what is known already change
    /// nothing.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) {
        if epoch < 0 {
            return;
        }
        if let Some(latest) = self.latest()
            && latest.epoch == epoch
            && latest.start_offset <= start_offset
        {
            return;
        }
        let keep = |entry: &EpochEntry| entry.epoch < epoch && entry.start_offset < start_offset;
        while self.entries.last().is_some_and(|last| !keep(last)) {
            self.entries.pop();
        }
        self.entries.push(EpochEntry { epoch, start_offset });
        self.changed = true;
    }

    /// Forgets epochs that begin at or after `end_offset`: the log was cut there.
    pub fn truncate_from_end(&mut self, end_offset: i64) {
        let keep = self.entries.partition_point(|entry| entry.start_offset < end_offset);
        self.changed |= keep < self.entries.len();
        self.entries.truncate(keep);
    }

    /// Forgets epochs that ended at or before `start_offset`; the one that holds it begins there
    /// now.
    pub fn truncate_from_start(&mut self, start_offset: i64) {
        let begun = self.entries.partition_point(|entry| entry.start_offset <= start_offset);
        let Some(last_begun) = begun.checked_sub(1) else { return };
        let Some(entry) = self.entries.get_mut(last_begun) else { return };
        if last_begun == 0 && entry.start_offset == start_offset {
            return;
        }
        entry.start_offset = start_offset;
        self.entries.drain(..last_begun);
        self.changed = true;
    }

    pub fn clear(&mut self) {
        self.changed |= !self.entries.is_empty();
        self.entries.clear();
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    pub(crate) fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// Whether there is something to write; asks once.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The file's text: version 0, the count, one `epoch offset` a line.
    pub fn encode(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for entry in &self.entries {
            let written = writeln!(text, "{} {}", entry.epoch, entry.start_offset);
            assert!(written.is_ok(), "writing to a string cannot fail");
        }
        text
    }

    /// Reads what [`EpochCache::encode`] writes. `None` for any other text, also for entries that
    /// do not rise: half a file must not pass for a whole one.
    pub fn decode(text: &str) -> Option<EpochCache> {
        let mut lines = text.lines();
        if lines.next()?.trim() != "0" {
            return None;
        }
        let count: usize = lines.next()?.trim().parse().ok()?;
        let mut cache = EpochCache::default();
        for line in lines {
            let (epoch, start_offset) = line.trim().split_once(' ')?;
            let entry =
                EpochEntry { epoch: epoch.parse().ok()?, start_offset: start_offset.parse().ok()? };
            let floor = cache.latest().unwrap_or(EpochEntry { epoch: -1, start_offset: -1 });
            if entry.epoch <= floor.epoch || entry.start_offset <= floor.start_offset {
                return None;
            }
            cache.entries.push(entry);
        }
        (cache.entries.len() == count).then_some(cache)
    }
}

#[cfg(test)]
mod tests;

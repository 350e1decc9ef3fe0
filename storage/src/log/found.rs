//! What lies in a partition's directory, after the leftovers of earlier runs are cleared away
//! (Kafka `LogLoader.removeTempFilesAndCollectSwapFiles` and what follows it).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::names::{DELETED, Kind, METADATA_FILE, SWAP, Suffix, TMP, file_name, file_path, parse};
use super::scan::{HeaderScan, LOOK_UP, ScanError};
use crate::disk::{Disk, OpenMode, suffixed};
use crate::epochs::EPOCH_FILE;
use crate::errors::StorageError;

/// The files of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct FoundSegment {
    /// Bytes of the log file.
    pub(super) size: u64,
    pub(super) index: bool,
    pub(super) time_index: bool,
    pub(super) txn_index: bool,
}

impl FoundSegment {
    /// Whether both indexes are there, as they are for a segment that was rolled or closed.
    pub(super) fn is_indexed(&self) -> bool {
        self.index && self.time_index
    }
}

/// A partition's directory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Found {
    pub(super) segments: BTreeMap<i64, FoundSegment>,
    pub(super) snapshots: BTreeSet<i64>,
    pub(super) epochs: bool,
    pub(super) metadata: bool,
    /// Files that were removed.
    pub(super) removed: usize,
}

/// Every name that is a file of a segment.
type Names = Vec<(i64, Kind, Suffix)>;

/// Looks into the directory and clears it.
pub(super) fn look(disk: &dyn Disk, dir: &Path) -> Result<Found, StorageError> {
    let look = || -> io::Result<Found> {
        let mut found = Found::default();
        let mut names = Names::new();
        for entry in disk.list(dir)?.into_iter().filter(|entry| !entry.is_dir) {
            match entry.name.as_str() {
                EPOCH_FILE => found.epochs = true,
                METADATA_FILE => found.metadata = true,
                name if name.ends_with(TMP) || name.ends_with(DELETED) => {
                    disk.remove_file(&dir.join(name))?;
                    found.removed += 1;
                }
                name => names.extend(parse(name)),
            }
        }
        found.removed += finish_compaction(disk, dir, &mut names)?;
        found.removed += remove_orphans(disk, dir, &mut names)?;
        found.fill(disk, dir, &names)?;
        Ok(found)
    };
    look().map_err(|e| StorageError::io("look into", dir, e))
}

impl Found {
    fn fill(&mut self, disk: &dyn Disk, dir: &Path, names: &Names) -> io::Result<()> {
        for (offset, kind, _) in names {
            let segment = |found: &mut Found, set: fn(&mut FoundSegment)| {
                set(found.segments.entry(*offset).or_default())
            };
            match kind {
                Kind::Log => {
                    let stat = disk.stat(&file_path(dir, *offset, Kind::Log))?;
                    let size = stat.map_or(0, |stat| stat.len);
                    self.segments.entry(*offset).or_default().size = size;
                }
                Kind::Index => segment(self, |s| s.index = true),
                Kind::TimeIndex => segment(self, |s| s.time_index = true),
                Kind::TxnIndex => segment(self, |s| s.txn_index = true),
                Kind::Snapshot => drop(self.snapshots.insert(*offset)),
            }
        }
        Ok(())
    }
}

fn remove(disk: &dyn Disk, dir: &Path, name: &str) -> io::Result<()> {
    disk.remove_file(&dir.join(name))
}

/// Throws away what compaction had begun and completes what it had finished.
fn finish_compaction(disk: &dyn Disk, dir: &Path, names: &mut Names) -> io::Result<usize> {
    let of = |names: &Names, wanted: Suffix| -> Vec<(i64, Kind)> {
        let is = |(_, _, suffix): &&(i64, Kind, Suffix)| *suffix == wanted;
        names.iter().filter(is).map(|(offset, kind, _)| (*offset, *kind)).collect()
    };
    let cleaned = of(names, Suffix::Cleaned);
    let mut swaps = of(names, Suffix::Swap);
    let mut removed = 0;
    // Names are swapped from the last segment to the first, so a swap at or above what was not
    // renamed yet belongs to a group whose originals are all still there (KAFKA-6264).
    if let Some(first_cleaned) = cleaned.iter().map(|(offset, _)| *offset).min() {
        for (offset, kind) in swaps.extract_if(.., |(offset, _)| *offset >= first_cleaned) {
            remove(disk, dir, &(file_name(offset, kind) + SWAP))?;
            removed += 1;
        }
        for (offset, kind) in &cleaned {
            remove(disk, dir, &(file_name(*offset, *kind) + ".cleaned"))?;
            removed += 1;
        }
    }
    let range = swapped_range(disk, dir, &swaps)?;
    for (offset, kind, _) in names.extract_if(.., |(offset, kind, suffix)| {
        *suffix == Suffix::None && *kind != Kind::Snapshot && range.contains(offset)
    }) {
        remove(disk, dir, &file_name(offset, kind))?;
        removed += 1;
    }
    for (offset, kind) in &swaps {
        let name = dir.join(file_name(*offset, *kind));
        disk.rename(&suffixed(&name, SWAP), &name)?;
        names.push((*offset, *kind, Suffix::None));
    }
    names.retain(|(_, _, suffix)| *suffix == Suffix::None);
    Ok(removed)
}

/// The offsets that finished segments take the place of.
fn swapped_range(
    disk: &dyn Disk,
    dir: &Path,
    swaps: &[(i64, Kind)],
) -> io::Result<std::ops::Range<i64>> {
    let mut range = 0..0;
    for (base_offset, _) in swaps.iter().filter(|(_, kind)| *kind == Kind::Log) {
        let path = suffixed(&file_path(dir, *base_offset, Kind::Log), SWAP);
        let file = disk.open(&path, OpenMode::Read)?;
        let mut next_offset = base_offset + 1;
        let mut scan = HeaderScan::new(&*file, 0, file.len()?, LOOK_UP);
        loop {
            match scan.next() {
                Ok(Some(batch)) => next_offset = next_offset.max(batch.header.next_offset()),
                Ok(None) | Err(ScanError::Bad { .. }) => break,
                Err(ScanError::Io(error)) => return Err(error),
            }
        }
        range = if range.is_empty() {
            *base_offset..next_offset
        } else {
            range.start.min(*base_offset)..range.end.max(next_offset)
        };
    }
    Ok(range)
}

/// Indexes without a log are of no use.
fn remove_orphans(disk: &dyn Disk, dir: &Path, names: &mut Names) -> io::Result<usize> {
    let logs: BTreeSet<i64> = names
        .iter()
        .filter(|(_, kind, _)| *kind == Kind::Log)
        .map(|(offset, _, _)| *offset)
        .collect();
    let is_orphan = |(offset, kind, _): &mut (i64, Kind, Suffix)| {
        !matches!(kind, Kind::Log | Kind::Snapshot) && !logs.contains(offset)
    };
    let mut removed = 0;
    for (offset, kind, _) in names.extract_if(.., is_orphan) {
        remove(disk, dir, &file_name(offset, kind))?;
        removed += 1;
    }
    Ok(removed)
}

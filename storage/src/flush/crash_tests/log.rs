//! A log that is just enough: batches in segments, appends, rolls, cuts, removals, replacement, and
//! what the flusher is owed. It keeps in memory what must be found after a crash.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol_compat::batch::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, crc_matches};
use protocol_compat::ids::topic_id_text;
use uuid::Uuid;

use crate::disk::{Disk, File, OpenMode, SimDisk, create_dir_durable, read_to_vec, write_atomic};
use crate::flush::{Cuts, Dirty, DirtyFile};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    pub segment: i64,
    pub offset: i64,
    pub epoch: i32,
    pub bytes: Vec<u8>,
}

/// One offset per batch.
pub fn batch(segment: i64, offset: i64, epoch: i32, payload: usize, fill: u8) -> Batch {
    let mut header = BatchHeader {
        base_offset: offset,
        batch_length: (HEADER_LEN - LOG_OVERHEAD + payload) as i32,
        partition_leader_epoch: epoch,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: 0,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: 1,
    };
    let body = vec![fill; payload];
    let after_crc = [header.encode().get(21..).unwrap(), &body].concat();
    header.crc = crc32c::crc32c(&after_crc);
    Batch { segment, offset, epoch, bytes: [header.encode().as_slice(), &body].concat() }
}

struct Segment {
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
    /// Where the next `Dirty` starts; `None`: nothing to tell.
    dirty_from: Option<u64>,
}

/// A state that a crash may leave though the log has moved on without a flush: the log before a
/// cut.
pub struct Version {
    pub batches: Vec<Batch>,
    /// Offsets below this must be there in any case.
    pub flushed: i64,
}

pub struct Log {
    pub dir: PathBuf,
    pub topic_id: Uuid,
    /// Tells one directory from the next of the same name.
    pub incarnation: u32,
    pub epoch: i32,
    pub batches: Vec<Batch>,
    pub start: i64,
    pub next: i64,
    pub flushed: i64,
    pub versions: Vec<Version>,
    pub acked_once: bool,
    cuts: Cuts,
    segments: BTreeMap<i64, Segment>,
    new_dirs: Vec<PathBuf>,
}

impl Log {
    pub fn create(
        disk: &SimDisk,
        dir: &Path,
        topic_id: Uuid,
        incarnation: u32,
        start: i64,
        epoch: i32,
    ) -> io::Result<Log> {
        disk.create_dir_all(dir)?;
        let id = topic_id_text(topic_id);
        let text = format!("version: 0\ntopic_id: {id}\nincarnation: {incarnation}\n");
        write_atomic(disk, &dir.join("partition.metadata"), text.as_bytes())?;
        let mut log = Log::empty(dir, topic_id, incarnation, start, epoch);
        log.new_dirs.push(dir.parent().unwrap().to_owned());
        log.add_segment(disk, start)?;
        Ok(log)
    }

    fn empty(dir: &Path, topic_id: Uuid, incarnation: u32, start: i64, epoch: i32) -> Log {
        Log {
            dir: dir.to_owned(),
            topic_id,
            incarnation,
            epoch,
            batches: Vec::new(),
            start,
            next: start,
            flushed: start,
            versions: Vec::new(),
            acked_once: false,
            cuts: Cuts::default(),
            segments: BTreeMap::new(),
            new_dirs: Vec::new(),
        }
    }

    fn add_segment(&mut self, disk: &SimDisk, base: i64) -> io::Result<()> {
        let path = self.dir.join(format!("{base:020}.log"));
        let file = disk.open(&path, OpenMode::Create)?;
        file.set_len(0)?;
        self.new_dirs.push(self.dir.clone());
        self.segments.insert(base, Segment { file, path, len: 0, dirty_from: Some(0) });
        Ok(())
    }

    fn active(&mut self) -> (i64, &mut Segment) {
        let (base, segment) = self.segments.last_entry().map(|e| (*e.key(), e.into_mut())).unwrap();
        (base, segment)
    }

    pub fn append(&mut self, payload: usize, fill: u8) -> io::Result<()> {
        let (offset, epoch) = (self.next, self.epoch);
        let (base, segment) = self.active();
        let batch = batch(base, offset, epoch, payload, fill);
        let at = segment.len;
        segment.len += batch.bytes.len() as u64;
        segment.dirty_from.get_or_insert(at);
        let file = segment.file.clone();
        self.next += 1;
        self.batches.push(batch);
        // In the model first: a write that fails may be on the disk whole.
        let bytes = self.batches.last().map_or(&[][..], |batch| &batch.bytes);
        file.write_at(&[bytes], at)
    }

    pub fn roll(&mut self, disk: &SimDisk) -> io::Result<()> {
        let base = self.next;
        if self.active().0 < base { self.add_segment(disk, base) } else { Ok(()) }
    }

    pub fn take_dirty(&mut self) -> Option<Dirty> {
        let mut files = Vec::new();
        for segment in self.segments.values_mut() {
            if let Some(from) = segment.dirty_from.take() {
                let (file, path) = (segment.file.clone(), segment.path.clone());
                files.push(DirtyFile { file, path, from, to: segment.len });
            }
        }
        if files.is_empty() && self.new_dirs.is_empty() {
            return None;
        }
        Some(Dirty {
            topic_id: self.topic_id,
            files,
            dirs: std::mem::take(&mut self.new_dirs),
            end_offset: self.next,
            cuts: self.cuts.clone(),
            cuts_taken: self.cuts.count(),
        })
    }

    pub fn flushed(&mut self, dirty: &Dirty) {
        // A log of the same name that took its place has a count of its own.
        if dirty.is_current() && self.cuts.is_same(&dirty.cuts) {
            assert!(dirty.end_offset >= self.flushed);
            self.flushed = dirty.end_offset;
            self.versions.clear();
            self.acked_once = true;
        }
    }

    /// Remembers the state before a cut that keeps offsets below `cut`.
    fn remember(&mut self, cut: i64) {
        self.cuts.begin();
        let (batches, flushed) = (self.batches.clone(), self.flushed);
        self.versions.push(Version { batches, flushed });
        for version in &mut self.versions {
            version.flushed = version.flushed.min(cut);
        }
        self.flushed = self.flushed.min(cut);
        self.next = cut;
        self.epoch += 1;
        self.batches.retain(|batch| batch.offset < cut);
    }

    pub fn truncate_to(&mut self, disk: &SimDisk, cut: i64) -> io::Result<()> {
        self.remember(cut);
        while self.segments.len() > 1 && self.active().0 > cut {
            let path = self.active().1.path.clone();
            disk.remove_file(&path)?;
            self.segments.pop_last();
        }
        disk.sync_dir(&self.dir)?;
        let base = self.active().0;
        let of_segment = self.batches.iter().filter(|batch| batch.segment == base);
        let len = of_segment.map(|batch| batch.bytes.len() as u64).sum();
        let segment = self.active().1;
        (segment.len, segment.dirty_from) =
            (len, Some(segment.dirty_from.map_or(len, |from| from.min(len))));
        segment.file.set_len(len)?;
        segment.file.sync_data()
    }

    pub fn restart_at(&mut self, disk: &SimDisk, offset: i64) -> io::Result<()> {
        self.remember(i64::MIN);
        for version in &mut self.versions {
            version.flushed = i64::MIN;
        }
        (self.start, self.next, self.flushed) = (offset, offset, offset);
        while let Some((_, segment)) = self.segments.pop_last() {
            disk.remove_file(&segment.path)?;
        }
        disk.sync_dir(&self.dir)?;
        self.add_segment(disk, offset)
    }

    /// Retention: the oldest segment goes, if it is flushed and not the active one.
    pub fn drop_oldest(&mut self, disk: &SimDisk) -> io::Result<()> {
        let bases: Vec<i64> = self.segments.keys().copied().collect();
        let (Some(first), Some(second)) = (bases.first(), bases.get(1)) else { return Ok(()) };
        if *second > self.flushed {
            return Ok(());
        }
        self.start = *second;
        self.batches.retain(|batch| batch.segment != *first);
        let segment = self.segments.remove(first).unwrap();
        let deleted = segment.path.with_extension("log.deleted");
        disk.rename(&segment.path, &deleted)?;
        disk.remove_file(&deleted)
    }

    /// Compaction: the `nth` segment is replaced by one with other bytes for the same offsets.
    pub fn replace(&mut self, disk: &SimDisk, nth: usize, fill: u8) -> io::Result<()> {
        let bases: Vec<i64> = self.segments.keys().copied().collect();
        let (Some(base), Some(end)) = (bases.get(nth), bases.get(nth + 1)) else { return Ok(()) };
        if *end >= self.flushed || !self.versions.is_empty() {
            return Ok(());
        }
        let mut batches = self.batches.clone();
        let mut bytes = Vec::new();
        for old in batches.iter_mut().filter(|old| old.segment == *base) {
            *old = batch(old.segment, old.offset, old.epoch, 3, fill);
            bytes.extend_from_slice(&old.bytes);
        }
        let segment = self.segments.get_mut(base).unwrap();
        let swap = segment.path.with_extension("log.swap");
        let file = disk.open(&swap, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(&[&bytes], 0)?;
        file.sync_data()?;
        // From here on a crash may leave the one or the other.
        self.versions.push(Version { batches: batches.clone(), flushed: self.flushed });
        disk.rename(&swap, &segment.path)?;
        disk.sync_dir(&self.dir)?;
        self.versions.clear();
        (segment.file, segment.len) = (file, bytes.len() as u64);
        self.batches = batches;
        Ok(())
    }

    pub fn mark_deleted(&mut self, disk: &SimDisk) -> io::Result<()> {
        self.cuts.begin();
        // Whether it is there after a crash or not: nothing of it is owed any more.
        (self.flushed, self.acked_once) = (self.start, false);
        let mut gone = self.dir.clone().into_os_string();
        gone.push(".0123456789abcdef0123456789abcdef-delete");
        if disk.stat(Path::new(&gone))?.is_some() {
            disk.remove_dir_all(Path::new(&gone))?;
        }
        disk.rename(&self.dir, Path::new(&gone))
    }

    /// What the directory says of itself; `None` when there is none.
    pub fn found_incarnation(disk: &SimDisk, dir: &Path) -> Option<u32> {
        let bytes = read_to_vec(disk, &dir.join("partition.metadata"), 1000).ok()?;
        let text = String::from_utf8(bytes).unwrap();
        text.lines().find_map(|line| line.strip_prefix("incarnation: "))?.parse().ok()
    }

    /// The batches that a recovery finds: from the first segment at or above `start`, as long as
    /// offsets go on and checksums hold.
    pub fn scan(disk: &SimDisk, dir: &Path, start: i64) -> Vec<Batch> {
        let mut found = Vec::new();
        let names = disk.list(dir).unwrap_or_default();
        let bases = names.iter().filter_map(|e| e.name.strip_suffix(".log")?.parse::<i64>().ok());
        let mut expected = None;
        for base in bases.filter(|base| *base >= start) {
            if *expected.get_or_insert(base) != base {
                break;
            }
            let path = dir.join(format!("{base:020}.log"));
            let bytes = read_to_vec(disk, &path, 1 << 20).unwrap();
            let mut rest = bytes.as_slice();
            while let Ok(header) = BatchHeader::parse(rest) {
                let Some((bytes, tail)) = rest.split_at_checked(header.total_size()) else { break };
                if !crc_matches(bytes) || Some(header.base_offset) != expected {
                    break;
                }
                let (offset, epoch) = (header.base_offset, header.partition_leader_epoch);
                found.push(Batch { segment: base, offset, epoch, bytes: bytes.to_vec() });
                expected = Some(header.next_offset());
                rest = tail;
            }
            if !rest.is_empty() {
                break;
            }
        }
        found
    }

    /// Takes over what a crash left: cuts at the first bad batch, removes what is behind, syncs
    /// all.
    pub fn adopt(self, disk: &SimDisk, found: Vec<Batch>) -> io::Result<Log> {
        create_dir_durable(disk, &self.dir)?;
        let mut log =
            Log::empty(&self.dir, self.topic_id, self.incarnation, self.start, self.epoch);
        log.start = found.first().map_or(self.next, |batch| batch.segment);
        log.next = found.last().map_or(log.start, |batch| batch.offset + 1);
        let last = found.last().map_or(log.start, |batch| batch.segment);
        for entry in disk.list(&self.dir)? {
            let base = entry.name.strip_suffix(".log").and_then(|base| base.parse::<i64>().ok());
            if base.is_some_and(|base| base < log.start || base > last) {
                disk.remove_file(&self.dir.join(&entry.name))?;
            }
        }
        let mut bases: Vec<i64> = found.iter().map(|batch| batch.segment).collect();
        bases.push(last);
        bases.dedup();
        for base in bases {
            let path = self.dir.join(format!("{base:020}.log"));
            let file = disk.open(&path, OpenMode::Create)?;
            let of_segment = found.iter().filter(|batch| batch.segment == base);
            let len = of_segment.map(|batch| batch.bytes.len() as u64).sum();
            file.set_len(len)?;
            file.sync_data()?;
            log.segments.insert(base, Segment { file, path, len, dirty_from: None });
        }
        disk.sync_dir(&self.dir)?;
        (log.flushed, log.batches, log.acked_once) = (log.next, found, true);
        log.epoch += 1;
        Ok(log)
    }
}

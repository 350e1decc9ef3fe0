//! Replay: after a stop that was not clean, puts back what the journal holds and the segments lost.
//!
//! Per segment the groups are folded into an *image*: an item at a position means that the segment
//! ended there, so it replaces everything earlier from that position on. The image is then compared
//! with the file. Where they agree the same bytes are written again: they may be in the page cache
//! alone, and count as clean there after a sync that failed. Where they differ the image counts,
//! because bytes that reached the disk by other ways agree with it, with these exceptions:
//! - the partition is gone, or its directory belongs to another topic: nothing to do;
//! - the batch before the item is not the one it continued: the file is another one, or was cut and
//!   has gone on, so leave it;
//! - the file holds a whole batch of a later leader epoch there: the log was cut and went on.
//!
//! A replay that is interrupted is repeated from the start, with the same outcome.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol_compat::batch::{BatchHeader, crc_matches};
use protocol_compat::ids::parse_topic_id;
use uuid::Uuid;

use super::batches::{batches, header_at, header_bytes};
use super::format::{
    BLOCK, BadSuperblock, Change, Context, GROUP_HEADER_LEN, GroupHeader, Item, MARK_SLOTS,
    SUPERBLOCK_LEN, SegmentKey, Superblock, items,
};
use super::pool::{Syncer, Target};
use crate::disk::{Disk, File, OpenMode, read_to_vec};

/// Read from the journal at once.
const CHUNK: u64 = 64 * BLOCK;
/// The longest batch that is read to learn whether it is whole.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// What a replay found and did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Groups that had to be looked at.
    pub groups: u64,
    /// Segments that lacked bytes and got them back.
    pub restored: Vec<PathBuf>,
    /// Bytes written to segments.
    pub bytes: u64,
    /// Segments skipped because file or partition is gone or belongs to another topic.
    pub gone: u64,
    /// Segments skipped, or skipped in part, because the file has gone on without the journal.
    pub stale: u64,
    /// The journal itself is damaged: acknowledged bytes may be missing from the segments.
    pub damaged: bool,
}

/// Why a journal could not be replayed.
pub(super) enum ReplayError {
    Io(PathBuf, io::Error),
    /// A version that this build does not know.
    TooNew(u32),
}

/// The journal of an earlier run.
pub(super) struct OldJournal {
    file: Arc<dyn File>,
    path: PathBuf,
    superblock: Superblock,
}

/// What lies at the journal's path.
pub(super) enum Found {
    Nothing,
    /// A file whose making did not end, or whose superblocks are both `damaged`.
    Useless {
        damaged: bool,
    },
    Journal(OldJournal),
}

/// Opens the journal of an earlier run.
pub(super) fn find(disk: &dyn Disk, path: &Path) -> Result<Found, ReplayError> {
    let fail = |error| ReplayError::Io(path.to_owned(), error);
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(fail(error)),
    };
    let (mut best, mut damaged) = (None::<Superblock>, true);
    for offset in [0, BLOCK] {
        let mut bytes = [0; SUPERBLOCK_LEN];
        file.read_at(&mut bytes, offset).map_err(fail)?;
        match Superblock::decode(&bytes) {
            Ok(found) if best.is_none_or(|b| b.stamp.incarnation < found.stamp.incarnation) => {
                best = Some(found);
            }
            Ok(_) => {}
            Err(BadSuperblock::TooNew(version)) => return Err(ReplayError::TooNew(version)),
            // A making that did not end may leave one of them torn, but then the other is zeros.
            Err(BadSuperblock::Damaged) => damaged &= bytes.iter().any(|byte| *byte != 0),
        }
    }
    Ok(match best {
        Some(superblock) => Found::Journal(OldJournal { file, path: path.to_owned(), superblock }),
        None => Found::Useless { damaged },
    })
}

impl OldJournal {
    pub fn incarnation(&self) -> u64 {
        self.superblock.stamp.incarnation
    }

    /// Puts back what the segments below `log_dir` lack, and syncs every segment that the journal
    /// speaks of: the ones that lack nothing may have it in the cache only.
    pub fn replay(
        &self,
        disk: &dyn Disk,
        log_dir: &Path,
        syncer: &dyn Syncer,
    ) -> Result<Replayed, ReplayError> {
        let mut report = Replayed::default();
        let groups = self.needed_groups()?;
        report.groups = groups.len() as u64;
        let images = fold(groups);
        let mut touched = Vec::new();
        for (key, image) in &images {
            let path = key.path(log_dir);
            let fail = |error| ReplayError::Io(path.clone(), error);
            match open_segment(disk, log_dir, key, image.topic_id).map_err(fail)? {
                None => report.gone += 1,
                Some(file) => {
                    image.restore(&*file, &path, &mut report).map_err(fail)?;
                    touched.push((file, path));
                }
            }
        }
        let files: Vec<_> = touched.iter().map(|(file, _)| Target::File(file.clone())).collect();
        syncer.sync(&files).map_err(|(at, error)| {
            let path = touched.get(at).map_or_else(PathBuf::new, |(_, path)| path.clone());
            ReplayError::Io(path, error)
        })?;
        Ok(report)
    }

    /// The groups that the last whole one asks for, in order, with their payloads.
    fn needed_groups(&self) -> Result<Vec<(GroupHeader, Vec<u8>)>, ReplayError> {
        let fail = |error| ReplayError::Io(self.path.clone(), error);
        let mut headers = self.scan().map_err(fail)?;
        headers.sort_unstable_by_key(|(header, _)| std::cmp::Reverse(header.sequence));
        let mut groups = Vec::new();
        let mut needed_from = None;
        for (header, start) in headers {
            if needed_from.is_some_and(|needed| header.sequence < needed) {
                break;
            }
            let mut payload = vec![0; header.payload_len as usize];
            let read = self.file.read_at(&mut payload, start + GROUP_HEADER_LEN as u64);
            if read.map_err(fail)? == payload.len() && header.payload_is_whole(&payload) {
                needed_from.get_or_insert(header.needed_from);
                groups.push((header, payload));
            }
        }
        groups.reverse();
        Ok(groups)
    }

    /// Every group header of this incarnation, whole or not, with its position. Looks at all
    /// blocks: the length in a stale header may reach over newer groups.
    fn scan(&self) -> io::Result<Vec<(GroupHeader, u64)>> {
        let end = self.superblock.size.min(self.file.len()?);
        let mut headers = Vec::new();
        let mut chunk = vec![0; CHUNK as usize];
        let mut at = MARK_SLOTS[0];
        while at < end {
            let read = self.file.read_at(&mut chunk, at)?;
            let blocks = chunk.get(..read).unwrap_or_default().chunks(BLOCK as usize);
            for (block, start) in blocks.zip((at..end).step_by(BLOCK as usize)) {
                let header = GroupHeader::decode(block, self.superblock.stamp);
                // A payload that cannot fit is none, and is not allocated.
                headers.extend(
                    header
                        .filter(|h| start.saturating_add(u64::from(h.payload_len)) <= end)
                        .map(|h| (h, start)),
                );
            }
            at += CHUNK;
        }
        Ok(headers)
    }
}

/// What the journal says of one segment.
struct Image {
    topic_id: Uuid,
    /// In order of position, not overlapping; maybe with gaps, where bytes were synced directly.
    pieces: Vec<Piece>,
}

struct Piece {
    position: u64,
    context: Context,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.position.saturating_add(self.bytes.len() as u64)
    }
}

fn fold(groups: Vec<(GroupHeader, Vec<u8>)>) -> BTreeMap<SegmentKey, Image> {
    let mut images = BTreeMap::new();
    for (header, payload) in groups {
        for Item { key, topic_id, change } in items(&payload, header.items) {
            match change {
                Change::Void => drop(images.remove(&key)),
                Change::Bytes { position, context, bytes } => {
                    let new = || Image { topic_id, pieces: Vec::new() };
                    let image: &mut Image = images.entry(key).or_insert_with(new);
                    if image.topic_id != topic_id {
                        *image = new();
                    }
                    image.cut(position);
                    image.pieces.push(Piece { position, context, bytes: bytes.to_vec() });
                }
            }
        }
    }
    images
}

impl Image {
    fn cut(&mut self, position: u64) {
        self.pieces.retain(|piece| piece.position < position);
        if let Some(last) = self.pieces.last_mut() {
            let kept = position - last.position;
            last.bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        }
    }

    fn restore(&self, file: &dyn File, path: &Path, report: &mut Replayed) -> io::Result<()> {
        let (mut wrote, mut stale) = (0, false);
        for (at, piece) in self.pieces.iter().enumerate() {
            let is_last = at + 1 == self.pieces.len();
            match restore_piece(file, piece, is_last)? {
                Outcome::Same => {}
                Outcome::Wrote(bytes) => wrote += bytes,
                Outcome::Stale => stale = true,
            }
        }
        report.stale += u64::from(stale);
        report.bytes += wrote;
        if wrote > 0 {
            report.restored.push(path.to_owned());
        }
        Ok(())
    }
}

/// What became of a piece.
enum Outcome {
    Same,
    /// So many bytes, at least 1.
    Wrote(u64),
    Stale,
}

fn restore_piece(file: &dyn File, piece: &Piece, is_last: bool) -> io::Result<Outcome> {
    let Some(before) = piece.position.checked_sub(u64::from(piece.context.batch_len)) else {
        return Ok(Outcome::Stale);
    };
    let context = Context::of(piece.context.batch_len, &header_bytes(file, before)?);
    if context != piece.context || file.len()? < piece.position {
        return Ok(Outcome::Stale);
    }
    let mut found = vec![0; piece.bytes.len()];
    let read = file.read_at(&mut found, piece.position)?;
    found.truncate(read);
    if found == piece.bytes {
        // A cut below, then these bytes, may have left older ones behind them.
        if is_last && leftover_behind(file, piece)? {
            file.set_len(piece.end())?;
        }
        file.write_at(&[&piece.bytes], piece.position)?;
        return Ok(Outcome::Same);
    }
    let differs = piece.bytes.iter().zip(&found).take_while(|(want, have)| want == have).count();
    if is_newer(file, piece, differs)? {
        return Ok(Outcome::Stale);
    }
    let keep_tail = !is_last || continues(file, piece)?;
    let missing = piece.bytes.get(differs..).unwrap_or_default();
    file.write_at(&[&piece.bytes], piece.position)?;
    if !keep_tail {
        file.set_len(piece.end())?;
    }
    Ok(Outcome::Wrote(missing.len() as u64))
}

/// Whether the file holds the whole batch of which this is the header.
fn is_whole(file: &dyn File, position: u64, header: &BatchHeader) -> io::Result<bool> {
    let size = header.total_size();
    if size > BATCH_BYTES_MAX || position.saturating_add(size as u64) > file.len()? {
        return Ok(false);
    }
    let mut bytes = vec![0; size];
    let read = file.read_at(&mut bytes, position)?;
    Ok(read == size && crc_matches(&bytes))
}

/// Whether the batch that holds the first difference is, in the file, a whole one of a later leader
/// epoch than the piece's: then the log was cut and has gone on, and that reached the disk.
fn is_newer(file: &dyn File, piece: &Piece, differs: usize) -> io::Result<bool> {
    let Some((start, ours)) = batches(&piece.bytes).take_while(|(at, _)| *at <= differs).last()
    else {
        return Ok(false);
    };
    let position = piece.position.saturating_add(start as u64);
    match header_at(file, position)? {
        Some(theirs) if theirs.partition_leader_epoch > ours.partition_leader_epoch => {
            is_whole(file, position, &theirs)
        }
        _ => Ok(false),
    }
}

/// Whether a whole batch behind the piece continues it: next offset, same epoch. Then the piece was
/// synced with what follows, and has rotted since.
fn continues(file: &dyn File, piece: &Piece) -> io::Result<bool> {
    let Some((_, last)) = batches(&piece.bytes).last() else { return Ok(false) };
    match header_at(file, piece.end())? {
        Some(next)
            if next.base_offset == last.next_offset()
                && next.partition_leader_epoch == last.partition_leader_epoch =>
        {
            is_whole(file, piece.end(), &next)
        }
        _ => Ok(false),
    }
}

/// Whether a batch of an earlier epoch stands behind the piece: a cut that did not reach the disk.
fn leftover_behind(file: &dyn File, piece: &Piece) -> io::Result<bool> {
    let Some((_, last)) = batches(&piece.bytes).last() else { return Ok(false) };
    let next = header_at(file, piece.end())?;
    Ok(next.is_some_and(|next| next.partition_leader_epoch < last.partition_leader_epoch))
}

/// The segment's file, unless it or its partition is gone or the directory is another topic's.
fn open_segment(
    disk: &dyn Disk,
    log_dir: &Path,
    key: &SegmentKey,
    topic_id: Uuid,
) -> io::Result<Option<Arc<dyn File>>> {
    let dir = key.dir_path(log_dir);
    if !disk.stat(&dir)?.is_some_and(|stat| stat.is_dir) {
        return Ok(None);
    }
    let found = topic_id_of(disk, &dir)?;
    if !found.is_nil() && !topic_id.is_nil() && found != topic_id {
        return Ok(None);
    }
    match disk.open(&key.path(log_dir), OpenMode::Write) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The topic id in `partition.metadata`; nil when the file is absent or says nothing.
fn topic_id_of(disk: &dyn Disk, dir: &Path) -> io::Result<Uuid> {
    let bytes = match read_to_vec(disk, &dir.join("partition.metadata"), 4096) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Uuid::nil()),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    let id = text.lines().find_map(|line| line.strip_prefix("topic_id:"));
    Ok(id.and_then(|id| parse_topic_id(id.trim())).unwrap_or_default())
}

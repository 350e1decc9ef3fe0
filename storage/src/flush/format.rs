//! The journal's bytes. Nothing here does I/O.
//!
//! ```text
//! 0      superblock   one sector: magic, version, stamp, size, CRC
//! 4096   superblock   the same again, against bit rot
//! 8192   marks        two blocks for groups without items, used in turn
//! 16384  ring         groups, each at a multiple of 4096, zeros up to the next
//!
//! group  magic 8 | secret 16 | incarnation 8 | sequence 8 | needed from 8 | payload length 4 |
//!        items 4 | payload CRC 4 | header CRC 4 | payload
//! item   kind 1 | name length 1 | zero 2 | topic id 16 | base offset 8 | position 8 | length 4 |
//!        previous batch's length 4 | its header's CRC 4 | name | bytes
//! ```
//! Numbers are big endian, checksums CRC-32C. The payload holds what clients sent, so a stale block
//! of it might be made to look like a group: the secret, new and random in every incarnation, is
//! what tells a group from a forgery and from the groups of earlier incarnations.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::dirs::parse_partition_name;

/// Groups begin at multiples of this, and the superblocks too.
pub(super) const BLOCK: u64 = 4096;
/// Where groups without items are written.
pub(super) const MARK_SLOTS: [u64; 2] = [2 * BLOCK, 3 * BLOCK];
/// Where all other groups begin.
pub(super) const RING_START: u64 = 4 * BLOCK;
/// The superblock is one sector, which a device writes whole or not at all.
pub(super) const SUPERBLOCK_LEN: usize = 512;
pub(super) const GROUP_HEADER_LEN: usize = 64;

const SUPERBLOCK_MAGIC: &[u8; 8] = b"GRJSUPER";
const GROUP_MAGIC: &[u8; 8] = b"GRJGROUP";
const VERSION: u32 = 1;
const KIND_BYTES: u8 = 1;
const KIND_VOID: u8 = 2;

/// A segment file of a log directory, by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SegmentKey {
    /// `<topic>-<partition>`
    pub dir: String,
    pub base_offset: i64,
}

impl SegmentKey {
    /// `None` for anything that is not the `.log` file of a partition right below `log_dir`.
    pub fn of_path(log_dir: &Path, path: &Path) -> Option<SegmentKey> {
        let below = path.strip_prefix(log_dir).ok()?.to_str()?;
        let (dir, file) = below.split_once('/')?;
        let digits = file.strip_suffix(".log")?;
        let base_offset = digits.parse().ok().filter(|base| *base >= 0)?;
        let key = SegmentKey { dir: dir.to_owned(), base_offset };
        (key.is_sound() && key.file_name() == file).then_some(key)
    }

    /// Names a partition's directory, so also no path out of the log directory.
    fn is_sound(&self) -> bool {
        self.base_offset >= 0 && parse_partition_name(&self.dir).is_some()
    }

    pub fn dir_path(&self, log_dir: &Path) -> PathBuf {
        log_dir.join(&self.dir)
    }

    pub fn path(&self, log_dir: &Path) -> PathBuf {
        self.dir_path(log_dir).join(self.file_name())
    }

    fn file_name(&self) -> String {
        format!("{:020}.log", self.base_offset)
    }
}

/// What every group of one incarnation of the journal carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    pub secret: u128,
    pub incarnation: u64,
}

/// The journal's first sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    pub stamp: Stamp,
    /// Where the ring ends.
    pub size: u64,
}

/// Why a superblock is not one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadSuperblock {
    /// Never written, torn or rotten.
    Damaged,
    TooNew(u32),
}

impl Superblock {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SUPERBLOCK_LEN);
        out.extend(SUPERBLOCK_MAGIC);
        out.extend(VERSION.to_be_bytes());
        out.extend([0; 4]);
        out.extend(self.stamp.secret.to_be_bytes());
        out.extend(self.stamp.incarnation.to_be_bytes());
        out.extend(self.size.to_be_bytes());
        out.resize(SUPERBLOCK_LEN - 4, 0);
        out.extend(crc32c::crc32c(&out).to_be_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Superblock, BadSuperblock> {
        let parse = || {
            let (body, crc) = bytes.get(..SUPERBLOCK_LEN)?.split_at_checked(SUPERBLOCK_LEN - 4)?;
            let mut fields = Fields(body);
            let magic = fields.take(8)?;
            if magic != SUPERBLOCK_MAGIC || Fields(crc).u32()? != crc32c::crc32c(body) {
                return None;
            }
            let version = fields.u32()?;
            fields.take(4)?;
            let stamp = Stamp { secret: fields.u128()?, incarnation: fields.u64()? };
            Some((version, Superblock { stamp, size: fields.u64()? }))
        };
        match parse() {
            Some((VERSION, superblock)) => Ok(superblock),
            Some((version, _)) => Err(BadSuperblock::TooNew(version)),
            None => Err(BadSuperblock::Damaged),
        }
    }
}

/// The front of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupHeader {
    pub sequence: u64,
    /// Groups before this one need no replay once this one is durable.
    pub needed_from: u64,
    pub payload_len: u32,
    pub items: u32,
    payload_crc: u32,
}

impl GroupHeader {
    /// `None` for anything but a group header of this incarnation.
    pub fn decode(bytes: &[u8], stamp: Stamp) -> Option<GroupHeader> {
        let (body, crc) = bytes.get(..GROUP_HEADER_LEN)?.split_at_checked(GROUP_HEADER_LEN - 4)?;
        let mut fields = Fields(body);
        if fields.take(8)? != GROUP_MAGIC || Fields(crc).u32()? != crc32c::crc32c(body) {
            return None;
        }
        let found = Stamp { secret: fields.u128()?, incarnation: fields.u64()? };
        let header = GroupHeader {
            sequence: fields.u64()?,
            needed_from: fields.u64()?,
            payload_len: fields.u32()?,
            items: fields.u32()?,
            payload_crc: fields.u32()?,
        };
        (found == stamp && header.needed_from <= header.sequence).then_some(header)
    }

    fn encode(&self, stamp: Stamp) -> Vec<u8> {
        let mut out = Vec::with_capacity(GROUP_HEADER_LEN);
        out.extend(GROUP_MAGIC);
        out.extend(stamp.secret.to_be_bytes());
        out.extend(stamp.incarnation.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.needed_from.to_be_bytes());
        out.extend(self.payload_len.to_be_bytes());
        out.extend(self.items.to_be_bytes());
        out.extend(self.payload_crc.to_be_bytes());
        out.extend(crc32c::crc32c(&out).to_be_bytes());
        out
    }

    pub fn payload_is_whole(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_len as usize && crc32c::crc32c(payload) == self.payload_crc
    }
}

/// One item of a group, as replay reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item<'a> {
    pub key: SegmentKey,
    pub topic_id: Uuid,
    pub change: Change<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change<'a> {
    /// The segment ended at `position` and then got these bytes.
    Bytes { position: u64, context: Context, bytes: &'a [u8] },
    /// What earlier groups say of this segment counts no more.
    Void,
}

/// The batch before an item, by which replay knows that the file it finds is still the one that the
/// item continued. The header stands for the whole batch: offset, leader epoch and CRC are in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context {
    /// Of the batch that ends at the item's position.
    pub batch_len: u32,
    pub header_crc: u32,
}

impl Context {
    pub fn of(batch_len: u32, header: &[u8]) -> Context {
        Context { batch_len, header_crc: crc32c::crc32c(header) }
    }
}

/// The items of a payload, to the first that is malformed (which a matching CRC rules out).
pub(super) fn items(payload: &[u8], count: u32) -> Vec<Item<'_>> {
    let mut fields = Fields(payload);
    let mut items = Vec::new();
    for _ in 0..count {
        let Some(item) = decode_item(&mut fields) else { break };
        items.push(item);
    }
    items
}

fn decode_item<'a>(fields: &mut Fields<'a>) -> Option<Item<'a>> {
    let kind = fields.u8()?;
    let name_len = fields.u8()?;
    fields.take(2)?;
    let topic_id = Uuid::from_u128(fields.u128()?);
    let base_offset = fields.u64()?.cast_signed();
    let position = fields.u64()?;
    let len = fields.u32()?;
    let context = Context { batch_len: fields.u32()?, header_crc: fields.u32()? };
    let dir = std::str::from_utf8(fields.take(usize::from(name_len))?).ok()?.to_owned();
    let bytes = fields.take(len as usize)?;
    let key = SegmentKey { dir, base_offset };
    let change = match kind {
        KIND_BYTES => Change::Bytes { position, context, bytes },
        KIND_VOID => Change::Void,
        _ => return None,
    };
    key.is_sound().then_some(Item { key, topic_id, change })
}

/// A group being put together, in a buffer that is used again.
pub(super) struct GroupBuilder {
    buffer: Vec<u8>,
    items: u32,
}

impl GroupBuilder {
    pub fn new(mut buffer: Vec<u8>) -> GroupBuilder {
        buffer.clear();
        buffer.resize(GROUP_HEADER_LEN, 0);
        GroupBuilder { buffer, items: 0 }
    }

    /// Bytes so far, padding not counted.
    pub fn len(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// A place to go [`back_to`](GroupBuilder::back_to).
    pub fn mark(&self) -> (usize, u32) {
        (self.buffer.len(), self.items)
    }

    /// Drops the items added since a mark.
    pub fn back_to(&mut self, (len, items): (usize, u32)) {
        self.buffer.truncate(len);
        self.items = items;
    }

    /// Adds an item and returns the `len` bytes of it that the caller fills.
    pub fn put_bytes(
        &mut self,
        key: &SegmentKey,
        topic_id: Uuid,
        position: u64,
        context: Context,
        len: u32,
    ) -> &mut [u8] {
        self.put_header(KIND_BYTES, key, topic_id, position, len, context);
        self.items += 1;
        let start = self.buffer.len();
        self.buffer.resize(start + len as usize, 0);
        self.buffer.get_mut(start..).unwrap_or_default()
    }

    pub fn put_void(&mut self, key: &SegmentKey) {
        self.put_header(KIND_VOID, key, Uuid::nil(), 0, 0, Context { batch_len: 0, header_crc: 0 });
        self.items += 1;
    }

    fn put_header(
        &mut self,
        kind: u8,
        key: &SegmentKey,
        topic_id: Uuid,
        position: u64,
        len: u32,
        context: Context,
    ) {
        let name_len = u8::try_from(key.dir.len()).unwrap_or(u8::MAX);
        assert_eq!(usize::from(name_len), key.dir.len(), "a file name has at most 255 bytes");
        let out = &mut self.buffer;
        out.extend([kind, name_len, 0, 0]);
        out.extend(topic_id.as_bytes());
        out.extend(key.base_offset.to_be_bytes());
        out.extend(position.to_be_bytes());
        out.extend(len.to_be_bytes());
        out.extend(context.batch_len.to_be_bytes());
        out.extend(context.header_crc.to_be_bytes());
        out.extend(key.dir.as_bytes());
    }

    /// The whole group, padded to a multiple of [`BLOCK`].
    pub fn seal(mut self, stamp: Stamp, sequence: u64, needed_from: u64) -> Vec<u8> {
        let payload = self.buffer.get(GROUP_HEADER_LEN..).unwrap_or_default();
        let header = GroupHeader {
            sequence,
            needed_from,
            payload_len: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            items: self.items,
            payload_crc: crc32c::crc32c(payload),
        };
        assert_eq!(header.payload_len as usize, payload.len(), "a group is far below 4 GiB");
        let header = header.encode(stamp);
        if let Some(front) = self.buffer.get_mut(..GROUP_HEADER_LEN) {
            front.copy_from_slice(&header);
        }
        self.buffer.resize(padded(self.buffer.len() as u64) as usize, 0);
        self.buffer
    }
}

/// `len` rounded up to whole blocks.
pub(super) fn padded(len: u64) -> u64 {
    len.div_ceil(BLOCK) * BLOCK
}

/// Fixed-size fields from the front of bytes; `None` once they run out.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_be_bytes)
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;

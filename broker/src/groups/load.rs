//! Replays a partition of `__consumer_offsets` into a shard.
//!
//! Reads and applies outside any lock, so that requests meanwhile hear that the coordinator is
//! loading.

use kraft::machine::Shard;
use protocol_compat::batch::{self, BatchError};
use protocol_compat::error::ErrorCode;
use tracing::warn;

use super::codec;
use super::log::GroupLog;
use super::machine::GroupMachine;
use super::soft::Soft;

/// Bytes asked of the log at a time.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A batch may inflate to no more than this.
pub const INFLATED_BYTES_MAX: usize = 64 << 20;

/// Why a partition could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The log could not be read.
    #[error("the log answered {}", .0.name())]
    Log(ErrorCode),
    /// The log holds what nobody should have written.
    #[error("damage at offset {offset}: {what}")]
    Damage { offset: i64, what: String },
    /// The partition was unloaded, or loaded in a later epoch, while this load ran.
    #[error("a later change of leadership overtook the load")]
    Overtaken,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    pub records: u64,
    pub bytes: u64,
    pub end_offset: i64,
}

/// Replays the log from its start to its end. `go_on` is asked between chunks.
///
/// Errors: as [`LoadError`]; then the partition has no coordinator here until it is loaded again.
pub fn replay(
    log: &dyn GroupLog,
    partition: i32,
    soft: Soft,
    go_on: &dyn Fn() -> bool,
) -> Result<(Shard<GroupMachine>, Loaded), LoadError> {
    let mut shard = Shard::with_soft(soft);
    let bounds = log.bounds(partition).map_err(LoadError::Log)?;
    let mut loaded = Loaded { end_offset: bounds.start_offset, ..Loaded::default() };
    while loaded.end_offset < bounds.end_offset {
        if !go_on() {
            return Err(LoadError::Overtaken);
        }
        let chunk = log.read(partition, loaded.end_offset, CHUNK_BYTES).map_err(LoadError::Log)?;
        let before = loaded.end_offset;
        if chunk.is_empty() {
            // Offsets at the end that nobody holds any more.
            loaded.end_offset = bounds.end_offset;
        }
        for item in batch::batches(&chunk) {
            let (header, bytes) = item.map_err(|error| damage(before, error))?;
            apply_batch(&mut shard, bytes, &mut loaded)?;
            loaded.end_offset = loaded.end_offset.max(header.next_offset());
            loaded.bytes += bytes.len() as u64;
        }
        if loaded.end_offset == before {
            let what = "no whole batch where the log has one".to_owned();
            return Err(LoadError::Damage { offset: before, what });
        }
    }
    Ok((shard, loaded))
}

fn apply_batch(
    shard: &mut Shard<GroupMachine>,
    bytes: &[u8],
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    let from_offset = loaded.end_offset;
    if !batch::crc_matches(bytes) {
        let what = "the checksum does not match".to_owned();
        return Err(LoadError::Damage { offset: from_offset, what });
    }
    let mut scratch = Vec::new();
    let opened = batch::records(bytes, &mut scratch, INFLATED_BYTES_MAX);
    let (header, records) = opened.map_err(|error| damage(from_offset, error))?;
    if header.is_control() || header.is_transactional() {
        // Offsets committed in transactions are not ours to judge yet; Gracchus writes none.
        return Ok(());
    }
    for record in records {
        let record = record.map_err(|error| damage(header.base_offset, error))?;
        let offset = header.base_offset + i64::from(record.offset_delta);
        if offset < from_offset {
            continue;
        }
        let damaged = |what: String| LoadError::Damage { offset, what };
        let key = record.key.ok_or_else(|| damaged("a record without a key".to_owned()))?;
        match codec::decode(key, record.value).map_err(|error| damaged(error.to_string()))? {
            Some(known) => shard.load(&known),
            None => warn!(offset, "a record of an unknown type is passed over"),
        }
        loaded.records += 1;
    }
    Ok(())
}

fn damage(offset: i64, error: BatchError) -> LoadError {
    LoadError::Damage { offset, what: error.to_string() }
}

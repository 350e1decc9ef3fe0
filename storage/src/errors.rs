//! What can go wrong in a log, as values.
//!
//! Three kinds: the disk failed or is full, the bytes on it are damaged, the caller asked for
//! something the log refuses. Which Kafka error code each becomes is the broker's to say.

use std::io;
use std::path::{Path, PathBuf};

/// The disk, or what is on it.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A call failed. The log is as it was before.
    #[error("{what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// No room. The log is as it was before, and works again once there is room.
    #[error("{what} {}: no space left", path.display())]
    Full { what: &'static str, path: PathBuf },
    /// Bytes that were once flushed are not what was written. Never cut, never served.
    #[error("{} is damaged at byte {position}: {what}", path.display())]
    Corrupt { path: PathBuf, position: u64, what: String },
}

impl StorageError {
    /// Wraps a failed call; a full disk is told apart.
    pub fn io(what: &'static str, path: &Path, source: io::Error) -> StorageError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StorageError::Full { what, path }
            }
            _ => StorageError::Io { what, path, source },
        }
    }

    pub(crate) fn corrupt(path: &Path, position: u64, what: impl Into<String>) -> StorageError {
        StorageError::Corrupt { path: path.to_path_buf(), position, what: what.into() }
    }

    /// Whether a sync failed: nobody knows what is on the disk, and the process must end.
    pub fn is_failed_sync(&self) -> bool {
        matches!(self, StorageError::Io { what: "sync", .. })
    }

    /// Whether a file was absent: a reader may have raced with a deletion.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Why nothing was appended (for a follower: nothing further).
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Kafka OUT_OF_ORDER_SEQUENCE_NUMBER.
    #[error("producer {producer_id} sent sequence {got} after {last} (epoch {epoch})")]
    OutOfOrderSequence { producer_id: i64, epoch: i16, last: i32, got: i32 },
    /// Kafka INVALID_PRODUCER_EPOCH.
    #[error("producer {producer_id} has epoch {current}, this batch {got}")]
    InvalidProducerEpoch { producer_id: i64, current: i16, got: i16 },
    /// Kafka INVALID_TXN_STATE: a plain batch inside a transaction, or a transactional batch of a
    /// transaction that this partition knows nothing of.
    #[error("producer {producer_id}: {what}")]
    InvalidTxnState { producer_id: i64, what: &'static str },
    /// Kafka TRANSACTION_COORDINATOR_FENCED: the marker comes from an older coordinator.
    #[error("producer {producer_id}: marker of coordinator epoch {got}, {current} was seen")]
    CoordinatorFenced { producer_id: i64, current: i32, got: i32 },
    /// Kafka RECORD_LIST_TOO_LARGE: the batch does not fit a segment.
    #[error("a batch of {size} bytes does not fit a segment of {segment_bytes}")]
    RecordListTooLarge { size: usize, segment_bytes: u32 },
    /// Kafka CORRUPT_MESSAGE: the bytes are not whole batches with right checksums.
    #[error("not a record batch: {0}")]
    Malformed(String),
    /// A follower got offsets below its log end (Kafka `UnexpectedAppendOffsetException`).
    #[error("offset {got} comes before the log end {log_end_offset}")]
    OffsetsBehind { got: i64, log_end_offset: i64 },
    /// The disk refused; nothing of the batch is left in the log. Kafka KAFKA_STORAGE_ERROR.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ReadError {
    /// Whether the answer is on the disk, and only what is in memory was to be read.
    pub fn is_cold(&self) -> bool {
        let ReadError::Storage(StorageError::Io { source, .. }) = self else { return false };
        source.kind() == io::ErrorKind::WouldBlock
    }
}

/// Why a read has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Kafka OFFSET_OUT_OF_RANGE.
    #[error("offset {offset} is outside {start}..={end}")]
    OffsetOutOfRange { offset: i64, start: i64, end: i64 },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

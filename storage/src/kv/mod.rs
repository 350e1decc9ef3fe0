//! A small ordered key-value store: the Raft log, metadata snapshots, node state. Never on the data
//! path.
//!
//! Owns the contract. `rocks.rs` keeps it with RocksDB, `mem.rs` in memory with crashes;
//! `conformance.rs` holds both to the same suite. What the keys mean is the caller's.

pub mod conformance;
mod mem;
mod rocks;

use thiserror::Error;

pub use mem::{MemKv, MemStore};
pub use rocks::RocksKv;

/// A store failed. Nothing is known about a batch whose write failed: the caller must treat it like
/// a failed sync.
#[derive(Debug, Error)]
pub enum KvError {
    /// The store could not be opened or the disk under it failed.
    #[error("key-value store: {0}")]
    Io(String),
    /// The store's own checks found damage.
    #[error("key-value store is damaged: {0}")]
    Corrupt(String),
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KvOp {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        key: Vec<u8>,
    },
    /// Every key in `from..to`.
    DeleteRange {
        from: Vec<u8>,
        to: Vec<u8>,
    },
}

/// Changes that become visible and durable together, applied in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KvBatch {
    pub ops: Vec<KvOp>,
}

impl KvBatch {
    pub fn new() -> KvBatch {
        KvBatch::default()
    }

    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> &mut KvBatch {
        self.ops.push(KvOp::Put { key: key.into(), value: value.into() });
        self
    }

    pub fn delete(&mut self, key: impl Into<Vec<u8>>) -> &mut KvBatch {
        self.ops.push(KvOp::Delete { key: key.into() });
        self
    }

    /// Deletes every key in `from..to`; nothing when the range is empty or turned round.
    pub fn delete_range(
        &mut self,
        from: impl Into<Vec<u8>>,
        to: impl Into<Vec<u8>>,
    ) -> &mut KvBatch {
        self.ops.push(KvOp::DeleteRange { from: from.into(), to: to.into() });
        self
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The key-value pairs of a scan, in key order.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// One ordered byte-string map.
pub trait Kv: Send {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError>;

    /// The first `limit` pairs of `from..to` in key order.
    fn scan(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Pairs, KvError>;

    /// Applies a batch whole. With `sync` it, and every batch before it, is durable on return;
    /// without, a crash may lose it, but never keep a later batch and lose an earlier one.
    fn write(&mut self, batch: KvBatch, sync: bool) -> Result<(), KvError>;
}

#[cfg(test)]
mod tests;

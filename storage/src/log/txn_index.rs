//! Aborted transactions of a segment (`.txnindex`, Kafka `TransactionIndex`).
//!
//! An entry lies in the segment of its abort marker, so that a reader of committed records finds
//! every transaction that may overlap what it reads by walking forward from there.

use std::io;
use std::path::Path;

use crate::disk::{Disk, read_to_vec};
use crate::producers::CompletedTxn;

const ENTRY: usize = 34;
const VERSION: i16 = 0;
/// The largest file that is read: some millions of aborts in one segment.
const FILE_MAX: usize = 256 << 20;

/// One aborted transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbortedTxn {
    pub producer_id: i64,
    pub first_offset: i64,
    /// Of the abort marker.
    pub last_offset: i64,
    /// The last stable offset right after the abort.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    pub(crate) fn of(txn: &CompletedTxn) -> AbortedTxn {
        AbortedTxn {
            producer_id: txn.producer_id,
            first_offset: txn.first_offset,
            last_offset: txn.last_offset,
            last_stable_offset: txn.last_stable_offset,
        }
    }

    pub(crate) fn encode(&self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        bytes[2..10].copy_from_slice(&self.producer_id.to_be_bytes());
        bytes[10..18].copy_from_slice(&self.first_offset.to_be_bytes());
        bytes[18..26].copy_from_slice(&self.last_offset.to_be_bytes());
        bytes[26..].copy_from_slice(&self.last_stable_offset.to_be_bytes());
        bytes
    }

    /// `None` for an unknown version.
    pub(crate) fn decode(bytes: &[u8; ENTRY]) -> Option<AbortedTxn> {
        let (version, rest) = bytes.split_first_chunk()?;
        if i16::from_be_bytes(*version) != VERSION {
            return None;
        }
        let mut fields = rest.chunks_exact(8).map(|eight| {
            let eight = eight.first_chunk().copied().unwrap_or_default();
            i64::from_be_bytes(eight)
        });
        Some(AbortedTxn {
            producer_id: fields.next()?,
            first_offset: fields.next()?,
            last_offset: fields.next()?,
            last_stable_offset: fields.next()?,
        })
    }
}

/// The entries of a file up to the first that is torn or damaged; none when it is absent.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<AbortedTxn>> {
    let bytes = match read_to_vec(disk, path, FILE_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let (entries, _torn) = bytes.as_chunks();
    Ok(entries.iter().map_while(AbortedTxn::decode).collect())
}

/// Position of the entry number `count`.
pub(crate) fn position(count: usize) -> u64 {
    (count * ENTRY) as u64
}

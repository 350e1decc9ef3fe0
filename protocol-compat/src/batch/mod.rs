//! The record batch, magic 2: reading, checking, changing and building it.
//!
//! `header` is the fixed front, `records` walks what follows, `assign` is what a leader writes
//! into a batch, `validate` is what it demands of a producer's, `recode` changes the codec of one,
//! `build` makes new ones.
//! Where batches are stored is not known here.

mod assign;
mod build;
mod header;
mod recode;
mod records;
mod validate;
mod walk;

pub use assign::{assign, correct_header, set_append_time};
pub use build::{BatchBuilder, ControlType, control_key, end_txn_value};
pub use header::{
    BatchHeader, CODEC_MASK, CONTROL, DELETE_HORIZON, HEADER_LEN, LENGTH_MIN, LOG_APPEND_TIME,
    LOG_OVERHEAD, MAGIC, TRANSACTIONAL, add_sequence, crc_matches,
};
pub use records::{HeaderIter, Record, RecordIter, records};
pub use validate::{
    FirstBatch, INFLATED_MAX, ProduceRefusal, ProduceRules, RECORD_ERRORS_MAX, Validated,
    check_shape, first_batch, validate_produce,
};

use crate::compression::CompressionError;

/// Why bytes are not a batch, or not a batch that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("needs {need} bytes, has {have}")]
    Truncated { need: usize, have: usize },
    #[error("magic {0} is not 2")]
    Magic(i8),
    #[error("length field {0} does not cover the header")]
    Length(i32),
    #[error("unknown codec {0}")]
    Codec(u8),
    #[error("malformed record: {0}")]
    Record(&'static str),
    #[error(transparent)]
    Compression(#[from] CompressionError),
}

/// The batches of `bytes` one after the other, whole ones only: ends before a torn tail, and
/// after an error, which it yields once.
pub fn batches(bytes: &[u8]) -> impl Iterator<Item = Result<(BatchHeader, &[u8]), BatchError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.len() < HEADER_LEN {
            return None;
        }
        let header = match BatchHeader::parse(rest) {
            Ok(header) => header,
            Err(error) => {
                rest = &[];
                return Some(Err(error));
            }
        };
        let (batch, after) = rest.split_at_checked(header.total_size())?;
        rest = after;
        Some(Ok((header, batch)))
    })
}

#[cfg(test)]
mod tests;

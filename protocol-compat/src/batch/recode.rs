//! Encoding a producer's batch anew, because its topic wants another codec.
//!
//! Streams: one piece of the input and the output are in memory, never all records. The records
//! were walked before, so that nothing is looked for here but the limit of the output.

use super::build::{FRONT_MAX, front as put_front, put_varint, seal, zigzag};
use super::header::{BatchHeader, HEADER_LEN, LOG_APPEND_TIME, LOG_OVERHEAD, MAGIC, TRANSACTIONAL};
use super::validate::{INFLATED_MAX, ProduceRefusal, ProduceRules, with_window};
use super::walk::{Fault, Inflating, Plain, Source, front};
use crate::compression::{Codec, CompressionError, Deflater, Inflater};
use crate::error::ErrorCode;

/// The batch with offset deltas 0, 1, 2, ..., compressed as `target` says. The first record's time
/// becomes the base (Kafka `LogValidator.buildRecordsAndAssignOffsets`).
///
/// # Errors
/// MESSAGE_TOO_LARGE once the output exceeds `max_message_bytes`; UNKNOWN_SERVER_ERROR for what
/// Kafka's writer chokes on: a producer id without epoch or sequence, a transaction without
/// producer, a negative timestamp other than -1.
pub(super) fn recode(
    batch: &[u8],
    header: &BatchHeader,
    source: Codec,
    target: (Codec, i32),
    rules: &ProduceRules<'_>,
) -> Result<Vec<u8>, ProduceRefusal> {
    if !writable(header) {
        return Err(ProduceRefusal::by_log(ErrorCode::UnknownServerError));
    }
    let limit = usize::try_from(rules.max_message_bytes).unwrap_or(0);
    let mut writer = Writer {
        deflater: Deflater::new(target.0, target.1, vec![0; HEADER_LEN], limit)
            .map_err(Failure::from)?,
        header,
        base_timestamp: None,
        max_timestamp: -1,
    };
    let payload = &batch[HEADER_LEN..];
    if source == Codec::None {
        writer.copy_all(&mut Plain::new(payload))?;
    } else {
        with_window(|window| {
            let inflater = Inflater::new(source, payload, INFLATED_MAX).map_err(Fault::from)?;
            writer.copy_all(&mut Inflating::new(inflater, window, usize::MAX))
        })?;
    }
    writer.finish(target.0, rules)
}

/// Whether Kafka's writer would take on such a producer (`MemoryRecordsBuilder`).
fn writable(header: &BatchHeader) -> bool {
    match header.producer_id {
        -1 => !header.is_transactional(),
        _ => header.producer_epoch != -1 && header.base_sequence >= 0,
    }
}

struct Writer<'a> {
    deflater: Deflater,
    header: &'a BatchHeader,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
}

impl Writer<'_> {
    fn copy_all<S: Source>(&mut self, source: &mut S) -> Result<(), Failure> {
        (0..self.header.record_count).try_for_each(|index| self.copy(source, index))
    }

    /// Writes the front anew and the rest, from the key on, as it is.
    fn copy<S: Source>(&mut self, source: &mut S, index: i32) -> Result<(), Failure> {
        let old = front(source)?;
        let timestamp = if self.header.is_log_append_time() {
            self.header.max_timestamp
        } else {
            self.header.base_timestamp.wrapping_add(old.timestamp_delta)
        };
        if timestamp < -1 {
            return Err(Failure::NegativeTime);
        }
        let base_timestamp = *self.base_timestamp.get_or_insert(timestamp);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let rest = old.body_at + old.size as u64 - source.taken();
        let rest = usize::try_from(rest).map_err(|_| Fault::End)?;
        let mut buffer = [0; FRONT_MAX];
        let new = put_front(&mut buffer, timestamp.wrapping_sub(base_timestamp), index);
        let mut size = Vec::with_capacity(10);
        put_varint(&mut size, zigzag((new.len() + rest) as i64));
        self.deflater.write(&size)?;
        self.deflater.write(new)?;
        source.pieces(rest, |piece| self.deflater.write(piece).map_err(Failure::from))
    }

    fn finish(self, target: Codec, rules: &ProduceRules<'_>) -> Result<Vec<u8>, ProduceRefusal> {
        let mut batch = self.deflater.finish().map_err(Failure::from)?;
        let length = i32::try_from(batch.len() - LOG_OVERHEAD);
        let (time_type, max_timestamp) = match rules.log_append_time {
            true => (LOG_APPEND_TIME, rules.now_ms),
            false => (0, self.max_timestamp),
        };
        let kept = self.header.attributes & TRANSACTIONAL;
        let header = BatchHeader {
            batch_length: length.map_err(|_| ProduceRefusal::too_large())?,
            magic: MAGIC,
            attributes: i16::from(target.number()) | time_type | kept,
            base_timestamp: self.base_timestamp.unwrap_or(-1),
            max_timestamp,
            ..*self.header
        };
        seal(&mut batch, header);
        Ok(batch)
    }
}

/// Why a batch was not encoded anew.
enum Failure {
    Read(Fault),
    Write(CompressionError),
    NegativeTime,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Read(fault)
    }
}

/// Of a writer. A reader's comes as a [`Fault`].
impl From<CompressionError> for Failure {
    fn from(error: CompressionError) -> Failure {
        Failure::Write(error)
    }
}

impl From<Failure> for ProduceRefusal {
    fn from(failure: Failure) -> ProduceRefusal {
        match failure {
            Failure::Read(fault) => fault.into(),
            Failure::Write(CompressionError::TooLarge { .. }) => ProduceRefusal::too_large(),
            Failure::Write(_) | Failure::NegativeTime => {
                ProduceRefusal::by_log(ErrorCode::UnknownServerError)
            }
        }
    }
}

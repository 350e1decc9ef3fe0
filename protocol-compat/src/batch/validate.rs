//! What a leader demands of the bytes that a producer sends for one partition.
//!
//! The checks of Kafka's Produce in Kafka's order with Kafka's answers (`ProduceRequest`,
//! `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`). Checks that need more than the bytes
//! and the topic's settings (permissions, leadership, sequence numbers, segment size) are
//! elsewhere; `recode.rs` re-encodes a batch whose topic wants another codec.

use std::cell::RefCell;

use super::assign::{correct_header, set_append_time};
use super::header::{
    BatchHeader, HEADER_LEN, LENGTH_AT, LOG_OVERHEAD, MAGIC, MAGIC_AT, TRANSACTIONAL, crc_matches,
};
use super::recode::recode;
use super::walk::{Fault, Inflating, Ordinary, Plain, Seen, Source, Span, run, walk};
use crate::compression::{Codec, CompressionError, Inflater};
use crate::error::ErrorCode;
use crate::ids::TopicPartition;

/// The most bytes that the records of one batch may inflate to. Kafka has no such bound; no
/// consumer could hold such a batch.
pub const INFLATED_MAX: usize = i32::MAX as usize;

/// A refusal lists this many records at most; its message counts all. Kafka lists all.
pub const RECORD_ERRORS_MAX: usize = 10_000;

/// The least that Kafka takes for a length field, of whatever magic (`RECORD_OVERHEAD_V0`).
const OLD_LENGTH_MIN: i32 = 14;

/// What one partition demands of a producer's batch, and when and how the batch came.
#[derive(Clone, Copy, Debug)]
pub struct ProduceRules<'a> {
    /// Named in the texts of refusals.
    pub partition: &'a TopicPartition,
    /// Version of the Produce request.
    pub request_version: i16,
    pub now_ms: i64,
    /// `max.message.bytes`: of the whole batch, as it arrives and as it is stored.
    pub max_message_bytes: i32,
    /// `message.timestamp.type` is LogAppendTime.
    pub log_append_time: bool,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// `cleanup.policy` includes compact: records need keys.
    pub compacted: bool,
    /// `compression.type` and its level; `None` stores what the producer chose.
    pub compression: Option<(Codec, i32)>,
    /// `max.decompressed.message.bytes`: of one record in a compressed batch, size field not
    /// counted.
    pub max_decompressed: i32,
}

impl<'a> ProduceRules<'a> {
    /// Kafka's defaults for a topic.
    pub fn new(partition: &'a TopicPartition, request_version: i16, now_ms: i64) -> Self {
        ProduceRules {
            partition,
            request_version,
            now_ms,
            max_message_bytes: 1_048_588,
            log_append_time: false,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            compacted: false,
            compression: None,
            max_decompressed: 2_147_483_639,
        }
    }
}

/// A batch that may be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// The header as it is to be stored, but for base offset and leader epoch.
    pub header: BatchHeader,
    /// The batch to store, if it had to be encoded anew. Otherwise it is the first `len` bytes of
    /// what was validated, corrected in place.
    pub replaced: Option<Vec<u8>>,
    /// Bytes of the batch to store; loose bytes after it are not to be stored.
    pub len: usize,
    /// What the answer says: the time of the append, or -1 if records keep the producer's times.
    pub log_append_time_ms: i64,
}

/// Why a producer's bytes are not taken, as the answer is to put it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceRefusal {
    pub error: ErrorCode,
    /// Index and text of each record at fault (request version 8 on), if records are to blame.
    pub record_errors: Vec<(i32, String)>,
    /// For version 8 on; often null even for an error.
    pub message: Option<String>,
    /// Whether the answer gives the real log start offset instead of -1.
    pub with_log_start: bool,
    /// Kafka fails **all** partitions of the request with this error and message, before anything
    /// is appended: see [`first_batch`].
    pub whole_request: bool,
}

impl ProduceRefusal {
    /// Refused before the log was asked.
    fn early(error: ErrorCode) -> ProduceRefusal {
        ProduceRefusal {
            error,
            record_errors: Vec::new(),
            message: None,
            with_log_start: false,
            whole_request: false,
        }
    }

    /// Refused by the log, whose start the answer gives.
    pub(super) fn by_log(error: ErrorCode) -> ProduceRefusal {
        ProduceRefusal { with_log_start: true, ..ProduceRefusal::early(error) }
    }

    pub(super) fn too_large() -> ProduceRefusal {
        ProduceRefusal::early(ErrorCode::MessageTooLarge)
    }
}

impl From<Fault> for ProduceRefusal {
    fn from(fault: Fault) -> ProduceRefusal {
        ProduceRefusal::by_log(match fault {
            Fault::End | Fault::Malformed(_) | Fault::TooLarge => ErrorCode::InvalidRecord,
            Fault::Inflate(CompressionError::TooLarge { .. }) => ErrorCode::InvalidRecord,
            Fault::Inflate(_) | Fault::Overlong => ErrorCode::UnknownServerError,
        })
    }
}

/// What must be known of the first batch of each partition before a request is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstBatch {
    pub transactional: bool,
    pub producer_id: i64,
    pub producer_epoch: i16,
}

/// Looks at the first batch of one partition's bytes; `None` if there is no whole one.
///
/// Kafka looks at all partitions first, to find transactional batches, and a batch of unknown
/// magic or impossible length then fails the **whole** request.
pub fn first_batch(payload: &[u8]) -> Result<Option<FirstBatch>, ProduceRefusal> {
    let size = match next_batch(payload) {
        Ok(Some(size)) => size,
        Ok(None) => return Ok(None),
        Err(message) => {
            let refusal = ProduceRefusal::early(ErrorCode::CorruptMessage);
            return Err(ProduceRefusal { message: Some(message), whole_request: true, ..refusal });
        }
    };
    let bytes = payload.get(..size).unwrap_or(payload);
    if magic_of(bytes) != MAGIC {
        return Ok(Some(FirstBatch { transactional: false, producer_id: -1, producer_epoch: -1 }));
    }
    // A batch shorter than its header is refused later; until then it has the bits it has.
    let mut head = [0xff; HEADER_LEN];
    let there = bytes.len().min(HEADER_LEN);
    head[..there].copy_from_slice(&bytes[..there]);
    let header = BatchHeader::decode(&head);
    Ok(Some(FirstBatch {
        transactional: header.attributes & TRANSACTIONAL != 0,
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
    }))
}

/// The checks that come before all others, even before `acks` is looked at: exactly one batch, of
/// magic 2, of a codec that the request version allows. Returns the size of the batch.
pub fn check_shape(payload: &[u8], request_version: i16) -> Result<usize, ProduceRefusal> {
    first_batch(payload)?;
    let invalid = || ProduceRefusal::early(ErrorCode::InvalidRecord);
    let size = next_batch(payload).ok().flatten().ok_or_else(invalid)?;
    let (batch, rest) = payload.split_at_checked(size).ok_or_else(invalid)?;
    if magic_of(batch) != MAGIC {
        return Err(invalid());
    }
    if request_version < 7 {
        match batch.get(22).map(|low| low & 0x07) {
            Some(4) => return Err(ProduceRefusal::early(ErrorCode::UnsupportedCompressionType)),
            Some(5..) => return Err(ProduceRefusal::early(ErrorCode::UnknownServerError)),
            _ => {}
        }
    }
    match next_batch(rest) {
        Ok(None) => Ok(size),
        Ok(Some(_)) => Err(invalid()),
        Err(_) => Err(ProduceRefusal::early(ErrorCode::CorruptMessage)),
    }
}

/// The size of the batch at the front of `bytes`; `None` if it is not all there. An impossible
/// length or magic is an error, with Kafka's text (`ByteBufferLogInputStream.nextBatchSize`).
fn next_batch(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(front) = bytes.first_chunk::<LOG_OVERHEAD>() else { return Ok(None) };
    let [.., a, b, c, d] = *front;
    let length = i32::from_be_bytes([a, b, c, d]);
    debug_assert_eq!(LENGTH_AT + 4, LOG_OVERHEAD);
    if length < OLD_LENGTH_MIN {
        return Err(format!(
            "Record size {length} is less than the minimum record overhead ({OLD_LENGTH_MIN})"
        ));
    }
    if bytes.len() <= MAGIC_AT {
        return Ok(None);
    }
    let magic = magic_of(bytes);
    if !(0..=MAGIC).contains(&magic) {
        return Err(format!("Invalid magic found in record: {magic}"));
    }
    let size = length.unsigned_abs() as usize + LOG_OVERHEAD;
    Ok((size <= bytes.len()).then_some(size))
}

/// The magic of bytes that reach so far; 0 for fewer.
fn magic_of(bytes: &[u8]) -> i8 {
    bytes.get(MAGIC_AT).map_or(0, |magic| *magic as i8)
}

/// Checks all that Kafka checks in the bytes of one partition, walks the records, and corrects the
/// header in place: the max timestamp and the time type, and the checksum if either was wrong.
/// Base offset and leader epoch stay for the log to set.
///
/// # Errors
/// The refusal that Kafka would give. `payload` is then as it was.
pub fn validate_produce(
    payload: &mut [u8],
    rules: &ProduceRules<'_>,
) -> Result<Validated, ProduceRefusal> {
    let size = check_shape(payload, rules.request_version)?;
    let batch = &mut payload[..size];
    let header = check_envelope(batch, rules)?;
    let codec =
        header.codec().map_err(|_| ProduceRefusal::by_log(ErrorCode::UnknownServerError))?;
    check_claims(&header)?;
    let (target, level) = rules.compression.unwrap_or((codec, codec.default_level()));
    let seen = walk_records(batch, &header, codec, rules)?;
    let log_append_time_ms = if rules.log_append_time { rules.now_ms } else { -1 };
    if target != codec {
        let replaced = recode(batch, &header, codec, (target, level), rules)?;
        let header = BatchHeader::parse(&replaced)
            .map_err(|_| ProduceRefusal::by_log(ErrorCode::UnknownServerError))?;
        let len = replaced.len();
        return Ok(Validated { header, replaced: Some(replaced), len, log_append_time_ms });
    }
    if codec != Codec::None && !seen.in_order {
        // Kafka sets out to rebuild such a batch and fails, having thrown its values away.
        return Err(ProduceRefusal::by_log(ErrorCode::UnknownServerError));
    }
    if rules.log_append_time {
        set_append_time(batch, rules.now_ms);
    } else {
        correct_header(batch, seen.max_timestamp);
    }
    let header = BatchHeader::parse(batch)
        .map_err(|_| ProduceRefusal::by_log(ErrorCode::UnknownServerError))?;
    Ok(Validated { header, replaced: None, len: size, log_append_time_ms })
}

/// The log's first look: base offset, size, checksum, in this order.
fn check_envelope(batch: &[u8], rules: &ProduceRules<'_>) -> Result<BatchHeader, ProduceRefusal> {
    let base_offset = batch.first_chunk::<8>().map(|bytes| i64::from_be_bytes(*bytes));
    if base_offset != Some(0) {
        return Err(ProduceRefusal::by_log(ErrorCode::InvalidRecord));
    }
    if batch.len() > usize::try_from(rules.max_message_bytes).unwrap_or(0) {
        return Err(ProduceRefusal::too_large());
    }
    match BatchHeader::parse(batch) {
        Ok(header) if crc_matches(batch) => Ok(header),
        _ => Err(ProduceRefusal::early(ErrorCode::CorruptMessage)),
    }
}

/// What the header claims: offsets, count, kind and sequence.
fn check_claims(header: &BatchHeader) -> Result<(), ProduceRefusal> {
    let offsets = i64::from(header.last_offset_delta) + 1;
    let count = i64::from(header.record_count);
    let no_sequence = header.has_producer_id() && header.base_sequence < 0;
    if offsets <= 0 || count <= 0 || offsets != count || header.is_control() || no_sequence {
        return Err(ProduceRefusal::by_log(ErrorCode::InvalidRecord));
    }
    Ok(())
}

/// What the records have in common.
struct Walked {
    /// The highest time of any record, at least -1.
    max_timestamp: i64,
    /// Whether the offset deltas are 0, 1, 2, ...
    in_order: bool,
}

thread_local! {
    /// Where records are inflated, piece by piece.
    static WINDOW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The window is given back to the allocator if a batch made it larger than this.
const WINDOW_KEPT: usize = 1 << 20;

/// Lends this thread's window.
pub(super) fn with_window<T>(body: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    WINDOW.with_borrow_mut(|window| {
        let result = body(window);
        if window.capacity() > WINDOW_KEPT {
            *window = Vec::new();
        }
        result
    })
}

fn walk_records(
    batch: &[u8],
    header: &BatchHeader,
    codec: Codec,
    rules: &ProduceRules<'_>,
) -> Result<Walked, ProduceRefusal> {
    let payload = &batch[HEADER_LEN..];
    let mut checks = Checks::new(header, rules);
    if codec == Codec::None {
        let mut source = Plain::new(payload);
        checks.walk_all(&mut source)?;
        if !source.is_empty() {
            return Err(Fault::Malformed("bytes after the last record").into());
        }
    } else {
        with_window(|window| -> Result<(), Fault> {
            let inflater = Inflater::new(codec, payload, INFLATED_MAX)?;
            let record_max = usize::try_from(rules.max_decompressed).unwrap_or(0);
            let mut source = Inflating::new(inflater, window, record_max);
            checks.walk_all(&mut source)?;
            if !source.is_empty()? {
                return Err(Fault::Malformed("bytes after the last record"));
            }
            Ok(())
        })
        // Kafka's other reader has another word for this one.
        .map_err(|fault| if fault == Fault::Overlong { Fault::End } else { fault })?;
    }
    checks.finish()
}

/// The checks of each record, and what they found.
struct Checks<'a> {
    header: &'a BatchHeader,
    rules: &'a ProduceRules<'a>,
    max_timestamp: i64,
    in_order: bool,
    /// The first faults in full, and how many there were of each kind.
    faults: Vec<(i32, String)>,
    key_faults: u64,
    time_faults: u64,
}

impl<'a> Checks<'a> {
    fn new(header: &'a BatchHeader, rules: &'a ProduceRules<'a>) -> Self {
        Checks {
            header,
            rules,
            max_timestamp: -1,
            in_order: true,
            faults: Vec::new(),
            key_faults: 0,
            time_faults: 0,
        }
    }

    /// Takes as many records as the header announces.
    fn walk_all<S: Source>(&mut self, source: &mut S) -> Result<(), Fault> {
        let ordinary = Ordinary {
            count: self.header.record_count,
            base_timestamp: self.header.base_timestamp,
            times: self.fine_times(),
            needs_key: self.rules.compacted,
            size_max: source.size_max(),
        };
        let mut index = 0;
        loop {
            if !self.header.is_log_append_time() {
                let run = run(source.window(), index, self.max_timestamp, &ordinary);
                source.advance(run.taken);
                (index, self.max_timestamp) = (run.index, run.max_timestamp);
            }
            if index >= ordinary.count {
                return Ok(());
            }
            let seen = walk(source)?;
            self.look_closer(index, &seen);
            index += 1;
        }
    }

    /// The times that need no closer look: all of them where the log sets the time. Being among
    /// them is enough for Kafka's check, whose arithmetic wraps.
    fn fine_times(&self) -> (i64, i64) {
        let ProduceRules { now_ms, before_max_ms, after_max_ms, .. } = *self.rules;
        match self.rules.log_append_time {
            true => (i64::MIN, i64::MAX),
            false => (now_ms.saturating_sub(before_max_ms), now_ms.saturating_add(after_max_ms)),
        }
    }

    /// Decides about a record that may be at fault. Times are not checked where the log sets
    /// them, and -1 is exempt; but there, a batch may not claim to bear the time of an append.
    fn look_closer(&mut self, index: i32, seen: &Seen) {
        let claims_append = self.header.is_log_append_time();
        let timestamp = match claims_append {
            true => self.header.max_timestamp,
            false => self.header.base_timestamp.wrapping_add(seen.front.timestamp_delta),
        };
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.in_order &= seen.front.offset_delta == index;
        let ProduceRules { now_ms, before_max_ms, after_max_ms, .. } = *self.rules;
        // Kafka's own arithmetic, wrapping included.
        let age = now_ms.wrapping_sub(timestamp);
        let out_of_range = age > before_max_ms || age.wrapping_neg() > after_max_ms;
        let time_is_checked = !self.rules.log_append_time && timestamp != -1;
        if self.rules.compacted && seen.key.is_none() {
            self.no_key(index);
        } else if time_is_checked && out_of_range {
            self.bad_time(index, timestamp, seen.front.offset_delta);
        } else if !time_is_checked && claims_append {
            self.bad_time_type(index, timestamp, seen);
        }
    }

    fn no_key(&mut self, index: i32) {
        self.key_faults += 1;
        let partition = self.rules.partition;
        self.list(index, || {
            format!(
                "Compacted topic cannot accept message without key in topic partition {partition}"
            )
        });
    }

    fn bad_time(&mut self, index: i32, timestamp: i64, offset: i32) {
        self.time_faults += 1;
        let ProduceRules { now_ms, before_max_ms, after_max_ms, .. } = *self.rules;
        self.list(index, || {
            let (low, high) =
                (now_ms.wrapping_sub(before_max_ms), now_ms.wrapping_add(after_max_ms));
            format!(
                "Timestamp {timestamp} of message with offset {offset} is out of range. The \
                 timestamp should be within [{low}, {high}]"
            )
        });
    }

    fn bad_time_type(&mut self, index: i32, timestamp: i64, seen: &Seen) {
        self.time_faults += 1;
        let len = |span: Span| span.map_or(0, |(_, len)| len);
        let (offset, key, value) = (seen.front.offset_delta, len(seen.key), len(seen.value));
        self.list(index, || {
            format!(
                "Invalid timestamp type in message DefaultRecord(offset={offset}, \
                 timestamp={timestamp}, key={key} bytes, value={value} bytes). Producer should \
                 not set timestamp type to LogAppendTime."
            )
        });
    }

    /// Keeps the text for one record, unless enough are kept already.
    fn list(&mut self, index: i32, text: impl FnOnce() -> String) {
        if self.faults.len() < RECORD_ERRORS_MAX {
            self.faults.push((index, text()));
        }
    }

    fn finish(self) -> Result<Walked, ProduceRefusal> {
        let faults = self.key_faults + self.time_faults;
        if faults == 0 {
            let Checks { max_timestamp, in_order, .. } = self;
            return Ok(Walked { max_timestamp, in_order });
        }
        let opening = "One or more records have been rejected due to";
        let (error, message) = if self.time_faults > 0 {
            (ErrorCode::InvalidTimestamp, format!("{opening} invalid timestamp"))
        } else {
            let first: Vec<String> = self.faults.iter().take(3).map(record_error).collect();
            let first = first.join(", ");
            let message = format!(
                "{opening} {faults} record errors in total, and only showing the first three \
                 errors at most: [{first}]"
            );
            (ErrorCode::InvalidRecord, message)
        };
        Err(ProduceRefusal {
            record_errors: self.faults,
            message: Some(message),
            ..ProduceRefusal::by_log(error)
        })
    }
}

/// One record's error as Kafka prints it.
fn record_error((index, text): &(i32, String)) -> String {
    format!("RecordError(batchIndex={index}, message='{text}')")
}

#[cfg(test)]
mod tests;

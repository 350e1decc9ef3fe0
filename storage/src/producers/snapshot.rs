//! The bytes of a producer snapshot, `<offset>.snapshot`.
//!
//! ```text
//! version i16 = 1 | crc u32 of all that follows | count i32 | count entries of 46 bytes:
//!   producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32,
//!   timestamp i64, coordinator epoch i32, first offset of the open transaction i64 (-1: none)
//! ```
//!
//! Kafka keeps the last batch of a producer only, so that its broker forgets the duplicate window
//! over a clean restart. Where a producer has more batches in its window, they follow the entries
//! in a trailer that Kafka's reader passes over (it reads `count` entries and checks the sum of
//! all):
//!
//! ```text
//! magic u32 "GRW1" | count i32 | per producer: id i64, marks u8, marks of 24 bytes, oldest first:
//!   last sequence i32, last offset i64, offset delta i32, timestamp i64
//! ```

use super::{BatchMark, Producer, Producers, WINDOW};

/// The largest snapshot that is read: some millions of producers.
pub(crate) const SNAPSHOT_MAX: usize = 1 << 30;

const VERSION: i16 = 1;
const BODY_AT: usize = 6;
const ENTRY: usize = 46;
const TRAILER: u32 = u32::from_be_bytes(*b"GRW1");

/// Why bytes are not a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("too short")]
    Short,
    #[error("version {0} is not known")]
    Version(i16),
    #[error("checksum does not match")]
    Crc,
}

impl Producers {
    /// The bytes of a snapshot of this state.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BODY_AT + 4 + self.len() * ENTRY);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&count(self.len()));
        for (id, producer) in self.iter() {
            put_entry(&mut out, id, producer);
        }
        self.put_trailer(&mut out);
        let crc = crc32c::crc32c(&out[BODY_AT..]);
        out[2..BODY_AT].copy_from_slice(&crc.to_be_bytes());
        out
    }

    fn put_trailer(&self, out: &mut Vec<u8>) {
        let wide = || self.iter().filter(|(_, producer)| producer.marks().len() > 1);
        let producers = wide().count();
        if producers == 0 {
            return;
        }
        out.extend_from_slice(&TRAILER.to_be_bytes());
        out.extend_from_slice(&count(producers));
        for (id, producer) in wide() {
            let older = &producer.marks()[..producer.marks().len() - 1];
            out.extend_from_slice(&id.to_be_bytes());
            out.push(older.len() as u8);
            older.iter().for_each(|mark| put_mark(out, mark));
        }
    }

    /// Reads a snapshot, leaving out producers expired by `now_ms`.
    ///
    /// # Errors
    /// The bytes are no snapshot, or damaged.
    pub fn decode(
        bytes: &[u8],
        now_ms: i64,
        expiration_ms: i64,
    ) -> Result<Producers, SnapshotError> {
        let mut reader = Reader(bytes);
        let version = i16::from_be_bytes(reader.take()?);
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let crc = u32::from_be_bytes(reader.take()?);
        if crc != crc32c::crc32c(reader.0) {
            return Err(SnapshotError::Crc);
        }
        let entries = i32::from_be_bytes(reader.take()?);
        let mut producers = Producers::default();
        for _ in 0..entries {
            let (id, producer) = reader.entry()?;
            producers.insert(id, producer);
        }
        // A foreign or newer trailer costs the window, never the state.
        let _ = reader.trailer(&mut producers);
        producers.expire(now_ms, expiration_ms);
        Ok(producers)
    }
}

fn count(len: usize) -> [u8; 4] {
    let count = i32::try_from(len).unwrap_or(i32::MAX);
    count.to_be_bytes()
}

fn put_entry(out: &mut Vec<u8>, id: i64, producer: &Producer) {
    let last = producer.marks().last().copied().unwrap_or(BatchMark::NONE);
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&producer.epoch.to_be_bytes());
    out.extend_from_slice(&last.last_sequence.to_be_bytes());
    out.extend_from_slice(&last.last_offset.to_be_bytes());
    out.extend_from_slice(&last.offset_delta.to_be_bytes());
    out.extend_from_slice(&producer.last_timestamp_ms.to_be_bytes());
    out.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&producer.txn_first_offset.unwrap_or(-1).to_be_bytes());
}

fn put_mark(out: &mut Vec<u8>, mark: &BatchMark) {
    out.extend_from_slice(&mark.last_sequence.to_be_bytes());
    out.extend_from_slice(&mark.last_offset.to_be_bytes());
    out.extend_from_slice(&mark.offset_delta.to_be_bytes());
    out.extend_from_slice(&mark.timestamp_ms.to_be_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(SnapshotError::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    fn i32(&mut self) -> Result<i32, SnapshotError> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    fn i64(&mut self) -> Result<i64, SnapshotError> {
        Ok(i64::from_be_bytes(self.take()?))
    }

    fn entry(&mut self) -> Result<(i64, Producer), SnapshotError> {
        let mut producer = Producer::new();
        let id = self.i64()?;
        producer.epoch = i16::from_be_bytes(self.take()?);
        let mark = self.mark()?;
        producer.last_timestamp_ms = mark.timestamp_ms;
        producer.coordinator_epoch = self.i32()?;
        producer.txn_first_offset = Some(self.i64()?).filter(|offset| *offset >= 0);
        if mark.last_offset >= 0 {
            producer.push(mark);
        }
        Ok((id, producer))
    }

    fn mark(&mut self) -> Result<BatchMark, SnapshotError> {
        Ok(BatchMark {
            last_sequence: self.i32()?,
            last_offset: self.i64()?,
            offset_delta: self.i32()?,
            timestamp_ms: self.i64()?,
        })
    }

    fn trailer(&mut self, producers: &mut Producers) -> Result<(), SnapshotError> {
        if self.take()? != TRAILER.to_be_bytes() {
            return Ok(());
        }
        for _ in 0..self.i32()? {
            let id = self.i64()?;
            let [marks] = self.take()?;
            let mut window = Vec::with_capacity(WINDOW);
            for _ in 0..marks {
                window.push(self.mark()?);
            }
            if let Some(producer) = producers.by_id.get_mut(&id) {
                let newest = producer.marks().to_vec();
                producer.forget_marks();
                window.into_iter().chain(newest).for_each(|mark| producer.push(mark));
            }
        }
        Ok(())
    }
}

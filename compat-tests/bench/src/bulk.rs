//! As fast as it goes: pre-encoded batches, several requests in flight on one connection, every
//! acknowledgement and offset checked; and reading everything back.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Result, ensure};

use crate::conn::Conn;
use crate::wire::{self, Codec, FetchLimits};

/// Requests in flight, as the default of Kafka's producer.
const IN_FLIGHT: usize = 5;
const PARTITION_BYTES_MAX: i32 = 1 << 20;

/// What is written.
#[derive(Clone, Copy)]
pub struct Shape {
    pub partitions: i32,
    pub value_bytes: usize,
    /// Of records, before compression.
    pub batch_bytes: usize,
    pub codec: Codec,
}

impl Shape {
    pub fn records_per_batch(self) -> usize {
        // A record costs about 8 bytes beside its value.
        (self.batch_bytes / (self.value_bytes + 8)).max(1)
    }

    fn records_per_request(self) -> u64 {
        self.records_per_batch() as u64 * self.partitions as u64
    }
}

/// Text of which half repeats: compresses like records do.
pub fn half_random(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let digit = |bits: u64| b"0123456789abcdef"[bits as usize & 15];
    (0..bytes).map(|at| if at % 2 == 0 { b'a' + (at % 13) as u8 } else { digit(next()) }).collect()
}

/// Writes at least `records` records; how many it were.
pub fn produce(address: &str, topic: &str, shape: Shape, records: u64) -> Result<u64> {
    let values: Vec<_> =
        (0..shape.records_per_batch()).map(|n| half_random(shape.value_bytes, n as u64)).collect();
    let batch = wire::batch(values.iter().map(Vec::as_slice), shape.codec, wire::now_ms());
    let batches: Vec<_> = (0..shape.partitions).map(|at| (at, batch.clone())).collect();
    let frame = wire::produce(0, topic, &batches);
    let requests = records.div_ceil(shape.records_per_request());
    let mut conn = Conn::open(address)?;
    let mut next = vec![0i64; shape.partitions as usize];
    let mut sent = 0;
    let mut answered = 0;
    while answered < requests {
        while sent < requests && sent - answered < IN_FLIGHT as u64 {
            conn.send(&frame)?;
            sent += 1;
        }
        let answers = wire::produced(conn.receive()?.1)?;
        ensure!(answers.len() == next.len(), "an answer without all partitions");
        for (partition, error, base) in answers {
            ensure!(error == 0, "partition {partition} refused with error {error}");
            let next = &mut next[partition as usize];
            ensure!(base == *next, "partition {partition}: offset {base}, expected {next}");
            *next += shape.records_per_batch() as i64;
        }
        answered += 1;
    }
    Ok(requests * shape.records_per_request())
}

/// Reads `records` records from the start, each batch's checksum and offset checked.
pub fn consume(address: &str, topic: &str, partitions: i32, records: u64) -> Result<u64> {
    let limits =
        FetchLimits { wait_ms: 500, bytes_min: 1, partition_bytes_max: PARTITION_BYTES_MAX };
    let mut conn = Conn::open(address)?;
    let mut next: BTreeMap<i32, i64> = (0..partitions).map(|at| (at, 0)).collect();
    // Those that came first wait longest: an answer may hold only some of the partitions.
    let mut order: VecDeque<i32> = (0..partitions).collect();
    let mut seen = 0;
    while seen < records {
        let at: Vec<_> = order.iter().map(|at| (*at, next[at])).collect();
        let body = conn.call(&wire::fetch(0, topic, &at, limits))?;
        let before = seen;
        for (partition, mut bytes) in wire::fetched(body)? {
            let next = next.get_mut(&partition).expect("asked for");
            while let Some(batch) = wire::next_batch(&mut bytes)? {
                let base = batch.base_offset;
                ensure!(base == *next, "partition {partition}: batch {base}, expected {next}");
                *next += i64::from(batch.count);
                seen += batch.count as u64;
            }
        }
        ensure!(seen > before, "{seen} of {records} records, and no more come");
        order.rotate_left(1);
    }
    Ok(seen)
}

//! What holds for any batch, any producer's bytes, and anything compressed.

// A test binary or fuzz target uses some of these, never all.
#![allow(unreachable_pub, unused)]

use protocol_compat::batch::{
    BatchError, BatchHeader, HEADER_LEN, ProduceRules, batches, crc_matches, records,
    validate_produce,
};
use protocol_compat::compression::Codec;
use protocol_compat::ids::TopicPartition;

/// Most that anything here is inflated to.
const INFLATED_MAX: usize = 1 << 20;

/// Batches, one after the other: each that has a header is read to its end or its first error.
pub fn any_batches(data: &[u8]) {
    let mut scratch = Vec::new();
    for batch in batches(data) {
        let Ok((header, batch)) = batch else { continue };
        assert_eq!(header.total_size(), batch.len());
        crc_matches(batch);
        let Ok((_, iter)) = records(batch, &mut scratch, INFLATED_MAX) else { continue };
        let mut count = 0;
        for record in iter.map_while(Result::ok) {
            count += 1;
            assert!(record.headers.count() <= record.size);
        }
        assert!(count <= header.record_count.max(0));
        assert!(scratch.len() <= INFLATED_MAX);
    }
}

/// Two bytes of rules, then what a producer sends for one partition, its checksum set right.
pub fn any_produce(data: &[u8]) {
    let Some((&[rule, codec], data)) = data.split_first_chunk::<2>() else { return };
    let partition = TopicPartition { topic: "t".into(), partition: 0 };
    let flag = |bit: u8| rule & 1 << bit != 0;
    let target = Codec::from_number(codec % 8).map(|codec| (codec, codec.default_level()));
    let rules = ProduceRules {
        log_append_time: flag(0),
        compacted: flag(1),
        before_max_ms: if flag(2) { 1000 } else { i64::MAX },
        max_decompressed: if flag(3) { 100 } else { i32::MAX },
        compression: target,
        ..ProduceRules::new(&partition, if flag(4) { 3 } else { 11 }, 5000)
    };
    let mut payload = data.to_vec();
    set_crc(&mut payload);
    let before = payload.clone();
    match validate_produce(&mut payload, &rules) {
        Err(_) => assert_eq!(payload, before, "changed though refused"),
        Ok(taken) => {
            payload.truncate(taken.len.min(payload.len()));
            let mut stored = taken.replaced.unwrap_or(payload);
            assert_eq!(stored.len(), taken.len);
            is_stored_batch(&stored, taken.header);
            // A producer may not set the time type that the broker just set.
            if !rules.log_append_time {
                // An old request may not bring zstd, but its topic may want it.
                let rules = ProduceRules { request_version: 11, ..rules };
                let again = validate_produce(&mut stored, &rules).expect("taken once");
                assert_eq!(again.len, stored.len());
            }
        }
    }
}

fn set_crc(payload: &mut [u8]) {
    let Some(header) = payload.get(8..12) else { return };
    let length = u32::from_be_bytes(header.try_into().expect("four bytes"));
    let end = payload.len().min((length as usize).saturating_add(12));
    let Some(covered) = payload.get(21..end) else { return };
    let crc = crc32c::crc32c(covered);
    payload[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// What is stored can be read, by the header that says what it is.
fn is_stored_batch(stored: &[u8], header: BatchHeader) {
    let parsed = BatchHeader::parse(stored).expect("has a header");
    assert_eq!(parsed.total_size(), stored.len());
    assert_eq!(
        BatchHeader { crc: 0, ..parsed },
        BatchHeader { crc: 0, batch_length: parsed.batch_length, ..header }
    );
    assert!(crc_matches(stored));
    let mut scratch = Vec::new();
    match records(stored, &mut scratch, INFLATED_MAX) {
        Err(BatchError::Compression(_)) => {}
        read => {
            let (_, iter) = read.expect("readable");
            let all: Result<Vec<_>, _> = iter.collect();
            assert_eq!(all.expect("each record").len(), parsed.record_count as usize);
        }
    }
}

/// One byte of codec, then bytes of that codec: never more out than was allowed, and what comes
/// out goes back in.
pub fn any_compressed(data: &[u8]) {
    let Some((codec, data)) = data.split_first() else { return };
    let Some(codec) = Codec::from_number(codec % 5) else { return };
    let mut out = Vec::new();
    if codec.decompress(data, INFLATED_MAX, &mut out).is_err() {
        return;
    }
    assert!(out.len() <= INFLATED_MAX);
    let again = codec.compress(codec.default_level(), &out).expect("compresses");
    let mut twice = Vec::new();
    codec.decompress(&again, out.len(), &mut twice).expect("ours can be inflated");
    assert_eq!(out, twice);
}

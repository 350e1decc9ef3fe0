//! Producer snapshots: what a partition knows of its producers, as its next start reads it.

use serde_json::{Value, json};

const VERSION: i64 = 1;
const HEAD_LEN: usize = 10;
const ENTRY_LEN: usize = 46;

/// The entries by producer id, and what else there is to say.
pub fn parse(bytes: &[u8]) -> Value {
    if bytes.len() < HEAD_LEN || int(bytes, 0, 2) != VERSION {
        return json!(format!("unreadable: {} bytes", bytes.len()));
    }
    let count = int(bytes, 6, 4).max(0) as usize;
    let body = &bytes[HEAD_LEN..];
    let mut entries: Vec<&[u8]> = body.chunks_exact(ENTRY_LEN).take(count).collect();
    entries.sort_by_key(|entry| int(entry, 0, 8));
    json!({
        "crcHolds": i64::from(crc32c::crc32c(&bytes[6..])) == int(bytes, 2, 4) & 0xffff_ffff,
        "InOrder": entries.iter().map(|entry| parse_entry(entry)).collect::<Vec<_>>(),
        "behind": behind(&body[(count * ENTRY_LEN).min(body.len())..]),
        "missing": count - entries.len(),
    })
}

fn parse_entry(entry: &[u8]) -> Value {
    json!({
        "ProducerId": int(entry, 0, 8),
        "epoch": int(entry, 8, 2),
        "lastSequence": int(entry, 10, 4),
        "lastOffset": int(entry, 14, 8),
        "offsetDelta": int(entry, 22, 4),
        "LastTimestamp": int(entry, 26, 8),
        "coordinatorEpoch": int(entry, 34, 4),
        "firstOffset": int(entry, 38, 8),
    })
}

/// What lies behind the entries, by the name that it begins with.
fn behind(bytes: &[u8]) -> Value {
    match bytes.get(..4) {
        None => json!(bytes.len()),
        Some(name) => json!(String::from_utf8_lossy(name)),
    }
}

fn int(bytes: &[u8], at: usize, size: usize) -> i64 {
    let negative = bytes[at] & 0x80 != 0;
    let mut full = if negative { [0xff; 8] } else { [0; 8] };
    full[8 - size..].copy_from_slice(&bytes[at..at + size]);
    i64::from_be_bytes(full)
}

//! What the records of a run hold: who wrote them, their number, their partition, and a filling
//! that follows from these, so that a damaged or mixed-up value shows.

use crate::dice::mix;
use crate::history::RecordId;

/// The longest filling, in bytes.
const FILLING_MAX: u64 = 300;

/// The value of a record.
pub fn encode(id: RecordId, partition: i32) -> Vec<u8> {
    let RecordId { writer, seq } = id;
    let bits = mix(u64::from(writer) << 32 | u64::from(seq));
    let filling = format!("{bits:016x}");
    let filling = filling.bytes().cycle().take((bits % FILLING_MAX) as usize);
    let mut value = format!("{writer}:{seq}:{partition}:").into_bytes();
    value.extend(filling);
    value
}

/// The record and partition of a value; `None` when it is not exactly one of ours.
pub fn decode(value: &[u8]) -> Option<(RecordId, i32)> {
    let text = std::str::from_utf8(value).ok()?;
    let mut parts = text.splitn(4, ':');
    let writer = parts.next()?.parse().ok()?;
    let seq = parts.next()?.parse().ok()?;
    let partition = parts.next()?.parse().ok()?;
    let id = RecordId { writer, seq };
    (encode(id, partition) == value).then_some((id, partition))
}

#[cfg(test)]
mod tests {
    use super::{RecordId, decode, encode};

    #[test]
    fn values_come_back_and_damage_shows() {
        for seq in 0..300 {
            let id = RecordId { writer: 7, seq };
            let mut value = encode(id, 3);
            assert_eq!(decode(&value), Some((id, 3)));
            let at = seq as usize % value.len();
            value[at] ^= 1;
            assert_ne!(decode(&value), Some((id, 3)));
        }
    }
}

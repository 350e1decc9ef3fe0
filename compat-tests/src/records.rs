//! Records that say who they are: (writer, seq) is never used twice in a run, and a CRC covers the
//! whole value, so that what comes back can be judged without remembering what was sent.

/// What a value holds beside its payload: magic 4, run 8, writer 4, partition 4, seq 8, length 4.
const HEAD_LEN: usize = 32;
const CRC_LEN: usize = 4;
const MAGIC: [u8; 4] = *b"ARC1";

/// The identity of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    pub writer: u32,
    pub seq: u64,
}

/// A record as its value tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub run: u64,
    pub id: Id,
    /// The partition it was written to.
    pub partition: i32,
}

/// The value of a record; its payload of `payload_len` bytes follows from its identity.
pub fn encode(claim: &Claim, payload_len: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(HEAD_LEN + payload_len + CRC_LEN);
    value.extend_from_slice(&MAGIC);
    value.extend_from_slice(&claim.run.to_be_bytes());
    value.extend_from_slice(&claim.id.writer.to_be_bytes());
    value.extend_from_slice(&claim.partition.to_be_bytes());
    value.extend_from_slice(&claim.id.seq.to_be_bytes());
    value.extend_from_slice(&(payload_len as u32).to_be_bytes());
    let mut chance = crate::settings::Chance::new(claim.id.seq ^ u64::from(claim.id.writer) << 40);
    while value.len() < HEAD_LEN + payload_len {
        let left = HEAD_LEN + payload_len - value.len();
        value.extend_from_slice(&chance.next_u64().to_be_bytes()[..left.min(8)]);
    }
    let crc = crc32c::crc32c(&value);
    value.extend_from_slice(&crc.to_be_bytes());
    value
}

/// What the value claims to be; why not, if it is none of ours or damaged.
pub fn decode(value: &[u8]) -> Result<Claim, String> {
    let Some((body, crc)) = value.split_last_chunk::<CRC_LEN>() else {
        return Err(format!("{} bytes are no record", value.len()));
    };
    if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
        return Err("the CRC does not match".to_owned());
    }
    if body.len() < HEAD_LEN || body[..4] != MAGIC {
        return Err("not a record of the harness".to_owned());
    }
    let u64_at = |at: usize| u64::from_be_bytes(body[at..at + 8].try_into().expect("8 bytes"));
    let u32_at = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("4 bytes"));
    if body.len() != HEAD_LEN + u32_at(28) as usize {
        return Err("the length does not match".to_owned());
    }
    Ok(Claim {
        run: u64_at(4),
        id: Id { writer: u32_at(12), seq: u64_at(20) },
        partition: u32_at(16) as i32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: Claim = Claim { run: 7, id: Id { writer: 3, seq: 1 << 40 }, partition: 2 };

    #[test]
    fn a_value_tells_what_was_put_in() {
        for len in [0, 1, 7, 8, 9, 5000] {
            assert_eq!(decode(&encode(&CLAIM, len)), Ok(CLAIM));
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let value = encode(&CLAIM, 20);
        for bit in 0..value.len() * 8 {
            let mut bad = value.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_cut_is_seen() {
        let value = encode(&CLAIM, 20);
        for len in 0..value.len() {
            assert!(decode(&value[..len]).is_err(), "cut to {len}");
        }
    }
}

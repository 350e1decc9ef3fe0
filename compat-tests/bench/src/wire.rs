//! The few messages that the generator speaks, in their last versions before the flexible ones, and
//! record batches made by hand. Nothing here knows a socket.

use anyhow::{Context, Result, ensure};

/// Codec numbers of the batch attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None = 0,
    Lz4 = 3,
    Zstd = 4,
}

/// Bytes of a batch before its records.
const HEADER_BYTES: usize = 61;
/// Where the part begins that the checksum covers.
const CRC_FROM: usize = 21;
const CLIENT_ID: &str = "bench";

pub const PRODUCE: (i16, i16) = (0, 7);
pub const FETCH: (i16, i16) = (1, 11);
pub const METADATA: (i16, i16) = (3, 8);
pub const CREATE_TOPICS: (i16, i16) = (19, 4);
pub const DELETE_TOPICS: (i16, i16) = (20, 3);

/// A request frame in the making.
pub struct Request(Vec<u8>);

impl Request {
    pub fn new((key, version): (i16, i16), correlation: i32) -> Request {
        let mut request = Request(vec![0; 4]);
        request.i16(key).i16(version).i32(correlation).string(CLIENT_ID);
        request
    }

    pub fn i8(&mut self, value: i8) -> &mut Request {
        self.raw(&value.to_be_bytes())
    }

    pub fn i16(&mut self, value: i16) -> &mut Request {
        self.raw(&value.to_be_bytes())
    }

    pub fn i32(&mut self, value: i32) -> &mut Request {
        self.raw(&value.to_be_bytes())
    }

    pub fn i64(&mut self, value: i64) -> &mut Request {
        self.raw(&value.to_be_bytes())
    }

    pub fn string(&mut self, text: &str) -> &mut Request {
        self.i16(text.len() as i16).raw(text.as_bytes())
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Request {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The frame, with its length in front.
    pub fn frame(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as i32;
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// One batch for each of some partitions of one topic, acks=all.
pub fn produce(correlation: i32, topic: &str, batches: &[(i32, Vec<u8>)]) -> Vec<u8> {
    let mut request = Request::new(PRODUCE, correlation);
    request.i16(-1).i16(-1).i32(30_000).i32(1).string(topic).i32(batches.len() as i32);
    for (partition, batch) in batches {
        request.i32(*partition).i32(batch.len() as i32).raw(batch);
    }
    request.frame()
}

/// What a fetch asks for, beside where.
#[derive(Clone, Copy)]
pub struct FetchLimits {
    pub wait_ms: i32,
    pub bytes_min: i32,
    pub partition_bytes_max: i32,
}

/// A fetch without a session: partitions and offsets.
pub fn fetch(correlation: i32, topic: &str, at: &[(i32, i64)], limits: FetchLimits) -> Vec<u8> {
    let mut request = Request::new(FETCH, correlation);
    request.i32(-1).i32(limits.wait_ms).i32(limits.bytes_min).i32(50 << 20).i8(0);
    request.i32(0).i32(-1).i32(1).string(topic).i32(at.len() as i32);
    for (partition, offset) in at {
        request.i32(*partition).i32(-1).i64(*offset).i64(-1).i32(limits.partition_bytes_max);
    }
    request.i32(0).string("");
    request.frame()
}

pub fn create_topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> Vec<u8> {
    let mut request = Request::new(CREATE_TOPICS, 0);
    request.i32(1).string(name).i32(partitions).i16(1).i32(0).i32(configs.len() as i32);
    for (key, value) in configs {
        request.string(key).string(value);
    }
    request.i32(60_000).i8(0);
    request.frame()
}

pub fn delete_topic(name: &str) -> Vec<u8> {
    let mut request = Request::new(DELETE_TOPICS, 0);
    request.i32(1).string(name).i32(60_000);
    request.frame()
}

pub fn metadata(topic: &str) -> Vec<u8> {
    let mut request = Request::new(METADATA, 0);
    request.i32(1).string(topic).i8(1).i8(0).i8(0);
    request.frame()
}

/// A response, read from its front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count).context("a short response")?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    pub fn i8(&mut self) -> Result<i8> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn string(&mut self) -> Result<&'a [u8]> {
        let length = self.i16()?.max(0);
        self.take(length as usize)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.i32()?.max(0);
        self.take(length as usize)
    }
}

/// What a Produce response says of each partition: index, error, base offset.
pub fn produced(body: &[u8]) -> Result<Vec<(i32, i16, i64)>> {
    let mut reader = Reader(body);
    let mut answers = Vec::new();
    for _ in 0..reader.i32()? {
        reader.string()?;
        for _ in 0..reader.i32()? {
            answers.push((reader.i32()?, reader.i16()?, reader.i64()?));
            reader.take(16)?;
        }
    }
    Ok(answers)
}

/// What a Fetch response brings for each partition: index and records.
pub fn fetched(body: &[u8]) -> Result<Vec<(i32, &[u8])>> {
    let mut reader = Reader(body);
    reader.i32()?;
    let error = reader.i16()?;
    ensure!(error == 0, "the fetch failed with error {error}");
    reader.i32()?;
    let mut answers = Vec::new();
    for _ in 0..reader.i32()? {
        reader.string()?;
        for _ in 0..reader.i32()? {
            let (partition, error) = (reader.i32()?, reader.i16()?);
            ensure!(error == 0, "partition {partition} failed with error {error}");
            reader.take(24)?;
            for _ in 0..reader.i32()?.max(0) {
                reader.take(16)?;
            }
            reader.i32()?;
            answers.push((partition, reader.bytes()?));
        }
    }
    Ok(answers)
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn read_varint(reader: &mut Reader) -> Result<i64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = reader.i8()? as u8;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
        shift += 7;
        ensure!(shift < 64, "a varint without an end");
    }
}

/// A batch of records without keys.
pub fn batch<'v>(values: impl Iterator<Item = &'v [u8]>, codec: Codec, now_ms: i64) -> Vec<u8> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut count = 0i32;
    for value in values {
        record.clear();
        record.push(0);
        varint(&mut record, 0);
        varint(&mut record, i64::from(count));
        varint(&mut record, -1);
        varint(&mut record, value.len() as i64);
        record.extend_from_slice(value);
        varint(&mut record, 0);
        varint(&mut records, record.len() as i64);
        records.extend_from_slice(&record);
        count += 1;
    }
    let records = compress(&records, codec);
    let mut batch = Vec::with_capacity(HEADER_BYTES + records.len());
    batch.extend(0i64.to_be_bytes());
    batch.extend((49 + records.len() as i32).to_be_bytes());
    batch.extend((-1i32).to_be_bytes());
    batch.push(2);
    batch.extend([0; 4]);
    batch.extend((codec as i16).to_be_bytes());
    batch.extend((count - 1).to_be_bytes());
    batch.extend(now_ms.to_be_bytes());
    batch.extend(now_ms.to_be_bytes());
    batch.extend((-1i64).to_be_bytes());
    batch.extend((-1i16).to_be_bytes());
    batch.extend((-1i32).to_be_bytes());
    batch.extend(count.to_be_bytes());
    batch.extend(records);
    let crc = crc32c::crc32c(&batch[CRC_FROM..]);
    batch[17..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
    batch
}

/// Milliseconds since 1970: retention goes by the timestamps of records, so they must be new.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_millis() as i64
}

fn compress(records: &[u8], codec: Codec) -> Vec<u8> {
    match codec {
        Codec::None => records.to_vec(),
        Codec::Zstd => zstd::bulk::compress(records, 3).expect("memory takes everything"),
        Codec::Lz4 => {
            let mut encoder = lz4::EncoderBuilder::new();
            encoder
                .block_mode(lz4::BlockMode::Independent)
                .checksum(lz4::ContentChecksum::NoChecksum);
            let mut encoder = encoder.build(Vec::new()).expect("memory takes everything");
            std::io::Write::write_all(&mut encoder, records).expect("memory takes everything");
            let (out, ended) = encoder.finish();
            ended.expect("memory takes everything");
            out
        }
    }
}

/// A batch as fetched.
pub struct Batch<'a> {
    pub base_offset: i64,
    pub count: i32,
    pub bytes: &'a [u8],
}

/// The next whole batch of fetched records, its checksum checked; none when only a part is left.
pub fn next_batch<'a>(records: &mut &'a [u8]) -> Result<Option<Batch<'a>>> {
    let mut reader = Reader(records);
    if records.len() < HEADER_BYTES {
        return Ok(None);
    }
    let base_offset = reader.i64()?;
    let length = 12 + reader.i32()? as usize;
    let Some((bytes, rest)) = records.split_at_checked(length) else { return Ok(None) };
    *records = rest;
    let mut reader = Reader(&bytes[17..]);
    let crc = reader.i32()? as u32;
    ensure!(crc == crc32c::crc32c(&bytes[CRC_FROM..]), "a batch at {base_offset} is damaged");
    let mut reader = Reader(&bytes[57..]);
    Ok(Some(Batch { base_offset, count: reader.i32()?, bytes }))
}

impl<'a> Batch<'a> {
    /// The values of a batch that is not compressed.
    pub fn values(&self) -> Result<Vec<&'a [u8]>> {
        let mut reader = Reader(&self.bytes[HEADER_BYTES..]);
        let mut values = Vec::with_capacity(self.count as usize);
        for _ in 0..self.count {
            let length = read_varint(&mut reader)? as usize;
            let mut record = Reader(reader.take(length)?);
            record.i8()?;
            read_varint(&mut record)?;
            read_varint(&mut record)?;
            ensure!(read_varint(&mut record)? == -1, "a record with a key");
            let length = read_varint(&mut record)? as usize;
            values.push(record.take(length)?);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let values: [&[u8]; 3] = [b"one", b"", &[7; 300]];
        let batch = batch(values.iter().copied(), Codec::None, 5);
        let mut rest = &batch[..];
        let read = next_batch(&mut rest).expect("a good batch").expect("a whole one");
        assert_eq!((read.base_offset, read.count, rest.len()), (0, 3, 0));
        assert_eq!(read.values().expect("good records"), values);
        let mut half = &batch[..batch.len() - 1];
        assert!(next_batch(&mut half).expect("not damaged").is_none());
        let mut damaged = batch.clone();
        damaged[70] ^= 1;
        assert!(next_batch(&mut &damaged[..]).is_err());
    }
}

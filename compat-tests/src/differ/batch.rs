//! Record batches for cases: built with any field forged, and read back into values.

use std::io::{Read, Write};

use serde_json::{Map, Value, json};

use super::codec::put_varint;

/// The time of records that do not say another: far enough back to be a plain number.
pub const THEN_MS: i64 = 1_700_000_000_000;

pub const CODECS: [(&str, i16); 5] =
    [("none", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)];

type Bytes = Option<Vec<u8>>;

/// One record.
#[derive(Clone, Debug)]
pub struct Row {
    pub key: Bytes,
    pub value: Bytes,
    pub headers: Vec<(Bytes, Bytes)>,
    pub time_ms: i64,
    pub offset_delta: Option<i32>,
}

/// A record without a key.
pub fn row(value: &str) -> Row {
    let value = Some(value.as_bytes().to_vec());
    Row { key: None, value, headers: Vec::new(), time_ms: THEN_MS, offset_delta: None }
}

/// A record with a key.
pub fn keyed(key: &str, value: &str) -> Row {
    Row { key: Some(key.as_bytes().to_vec()), ..row(value) }
}

/// The three records that most cases send.
pub fn three() -> Vec<Row> {
    vec![keyed("k1", "one"), keyed("k2", "two"), row("three")]
}

/// A batch to be; what is `None` is made right.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub rows: Vec<Row>,
    pub base_offset: i64,
    pub length: Option<i32>,
    pub leader_epoch: i32,
    pub magic: Option<i8>,
    pub crc: Option<u32>,
    /// Bits beside those of the codec.
    pub attributes: i16,
    pub codec: i16,
    /// Raw snappy instead of the framing of Java clients.
    pub unframed: bool,
    pub last_delta: Option<i32>,
    pub base_time_ms: Option<i64>,
    pub max_time_ms: Option<i64>,
    /// Id, epoch and first sequence number.
    pub producer: Option<(i64, i16, i32)>,
    pub count: Option<i32>,
    /// What stands where the records should, uncompressed or not.
    pub payload: Option<Vec<u8>>,
}

pub fn batch(rows: &[Row]) -> Batch {
    Batch { rows: rows.to_vec(), ..Batch::default() }
}

/// A batch of values without keys.
pub fn values(values: &[&str]) -> Batch {
    batch(&values.iter().map(|value| row(value)).collect::<Vec<_>>())
}

impl Batch {
    pub fn forge(mut self, forge: impl FnOnce(&mut Batch)) -> Batch {
        forge(&mut self);
        self
    }

    pub fn codec(self, codec: i16) -> Batch {
        self.forge(|batch| batch.codec = codec)
    }

    pub fn producer(self, id: i64, epoch: i16, sequence: i32) -> Batch {
        self.forge(|batch| batch.producer = Some((id, epoch, sequence)))
    }

    /// All records at that time.
    pub fn at(mut self, time_ms: i64) -> Batch {
        self.rows.iter_mut().for_each(|row| row.time_ms = time_ms);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let base_time_ms = self.base_time_ms.or(self.rows.first().map(|row| row.time_ms));
        let base_time_ms = base_time_ms.unwrap_or(-1);
        let mut body = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            put_record(&mut body, row, base_time_ms, index as i32);
        }
        let body = match &self.payload {
            Some(payload) => payload.clone(),
            None => compress(self.codec, &body, self.unframed),
        };
        let count = self.rows.len() as i32;
        let newest = self.rows.iter().map(|row| row.time_ms).max().unwrap_or(-1);
        let (id, epoch, sequence) = self.producer.unwrap_or((-1, -1, -1));
        let mut covered = Vec::new();
        covered.extend((self.attributes | self.codec).to_be_bytes());
        covered.extend(self.last_delta.unwrap_or((count - 1).max(0)).to_be_bytes());
        covered.extend(base_time_ms.to_be_bytes());
        covered.extend(self.max_time_ms.unwrap_or(newest).to_be_bytes());
        covered.extend(id.to_be_bytes());
        covered.extend(epoch.to_be_bytes());
        covered.extend(sequence.to_be_bytes());
        covered.extend(self.count.unwrap_or(count).to_be_bytes());
        covered.extend(body);
        let mut out = Vec::new();
        out.extend(self.base_offset.to_be_bytes());
        out.extend(self.length.unwrap_or(covered.len() as i32 + 9).to_be_bytes());
        out.extend(self.leader_epoch.to_be_bytes());
        out.push(self.magic.unwrap_or(2) as u8);
        out.extend(self.crc.unwrap_or_else(|| crc32c::crc32c(&covered)).to_be_bytes());
        out.extend(covered);
        out
    }
}

fn put_record(out: &mut Vec<u8>, row: &Row, base_time_ms: i64, index: i32) {
    let mut body = vec![0];
    put_signed(&mut body, row.time_ms.wrapping_sub(base_time_ms));
    put_signed(&mut body, i64::from(row.offset_delta.unwrap_or(index)));
    put_bytes(&mut body, &row.key);
    put_bytes(&mut body, &row.value);
    put_signed(&mut body, row.headers.len() as i64);
    for (key, value) in &row.headers {
        put_bytes(&mut body, key);
        put_bytes(&mut body, value);
    }
    put_signed(out, body.len() as i64);
    out.extend(body);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &Bytes) {
    put_signed(out, bytes.as_ref().map_or(-1, |bytes| bytes.len() as i64));
    out.extend(bytes.iter().flatten());
}

/// An old message set, with magic 0 or 1.
pub fn message_set(values: &[&str], magic: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for (offset, value) in values.iter().enumerate() {
        let mut body = vec![magic, 0];
        if magic == 1 {
            body.extend(THEN_MS.to_be_bytes());
        }
        body.extend((-1i32).to_be_bytes());
        body.extend((value.len() as i32).to_be_bytes());
        body.extend(value.as_bytes());
        let mut crc = flate2::Crc::new();
        crc.update(&body);
        out.extend((offset as i64).to_be_bytes());
        out.extend((body.len() as i32 + 4).to_be_bytes());
        out.extend(crc.sum().to_be_bytes());
        out.extend(body);
    }
    out
}

const XERIAL: [u8; 8] = *b"\x82SNAPPY\0";

fn compress(codec: i16, bytes: &[u8], unframed: bool) -> Vec<u8> {
    let snappy = || snap::raw::Encoder::new().compress_vec(bytes).expect("it fits");
    match codec {
        1 => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            out.write_all(bytes).and_then(|()| out.finish()).expect("memory takes it")
        }
        2 if unframed => snappy(),
        2 => {
            let block = snappy();
            let mut out = XERIAL.to_vec();
            out.extend([0, 0, 0, 1, 0, 0, 0, 1]);
            out.extend((block.len() as i32).to_be_bytes());
            out.extend(block);
            out
        }
        3 => {
            let mut builder = lz4::EncoderBuilder::new();
            builder
                .block_mode(lz4::BlockMode::Independent)
                .checksum(lz4::ContentChecksum::NoChecksum);
            let mut out = builder.build(Vec::new()).expect("memory takes it");
            out.write_all(bytes).expect("memory takes it");
            let (out, result) = out.finish();
            result.expect("memory takes it");
            out
        }
        4 => zstd::encode_all(bytes, 3).expect("memory takes it"),
        _ => bytes.to_vec(),
    }
}

fn decompress(codec: u8, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let failed = |error: std::io::Error| error.to_string();
    match codec {
        0 => out.extend(bytes),
        1 => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).map_err(failed)?),
        2 => {
            let mut raw = |block: &[u8]| {
                let block = snap::raw::Decoder::new().decompress_vec(block);
                block.map(|block| out.extend(block)).map_err(|error| error.to_string())
            };
            match bytes.strip_prefix(&XERIAL) {
                None => raw(bytes)?,
                Some(rest) => {
                    let mut rest = rest.get(8..).ok_or("a snappy header cut short")?;
                    while let Some((size, more)) = rest.split_first_chunk::<4>() {
                        let size = u32::from_be_bytes(*size) as usize;
                        let (block, more) =
                            more.split_at_checked(size).ok_or("a block cut short")?;
                        raw(block)?;
                        rest = more;
                    }
                }
            }
        }
        3 => {
            let mut decoder = lz4::Decoder::new(bytes).map_err(failed)?;
            decoder.read_to_end(&mut out).map_err(failed)?;
        }
        4 => out = zstd::decode_all(bytes).map_err(failed)?,
        other => return Err(format!("codec {other}")),
    }
    Ok(out)
}

/// Lists with more records than these are given as a sum.
const RECORDS_SHOWN_MAX: usize = 8;

/// What an answer's record bytes hold, batch by batch; a last one cut short as its length.
pub fn parse(mut bytes: &[u8]) -> Value {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let length = bytes.get(8..12).map(|length| {
            i32::from_be_bytes(length.try_into().expect("four bytes")).max(0) as usize + 12
        });
        match length.and_then(|length| bytes.split_at_checked(length)) {
            Some((batch, rest)) if batch.len() >= 61 => {
                out.push(parse_batch(batch));
                bytes = rest;
            }
            _ => {
                out.push(json!({ "cutShortAfter": bytes.len() }));
                break;
            }
        }
    }
    Value::Array(out)
}

fn parse_batch(bytes: &[u8]) -> Value {
    let int = |at: usize, size: usize| {
        let negative = bytes[at] & 0x80 != 0;
        let mut full = if negative { [0xff; 8] } else { [0; 8] };
        full[8 - size..].copy_from_slice(&bytes[at..at + size]);
        i64::from_be_bytes(full)
    };
    let attributes = int(21, 2);
    let codec = (attributes & 7) as u8;
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
    put("baseOffset", json!(int(0, 8)));
    put("leaderEpoch", json!(int(12, 4)));
    put("magic", json!(int(16, 1)));
    put("crcHolds", json!(crc32c::crc32c(&bytes[21..]) == int(17, 4) as u32));
    put("attributes", json!(attributes));
    put("lastDelta", json!(int(23, 4)));
    put("BaseTimestamp", json!(int(27, 8)));
    put("MaxTimestamp", json!(int(35, 8)));
    put("ProducerId", json!(int(43, 8)));
    put("producerEpoch", json!(int(51, 2)));
    put("sequence", json!(int(53, 4)));
    put("count", json!(int(57, 4)));
    if codec == 0 {
        put("size", json!(bytes.len()));
    }
    let records = decompress(codec, &bytes[61..]).and_then(|body| records(&body));
    put("records", records.unwrap_or_else(|why| json!(format!("unreadable: {why}"))));
    Value::Object(out)
}

/// Records as one line each: offset and time deltas, key, value, headers.
fn records(mut body: &[u8]) -> Result<Value, String> {
    let mut out: Vec<String> = Vec::new();
    while !body.is_empty() {
        let length = usize::try_from(signed(&mut body)?).map_err(|_| "a negative length")?;
        let (mut record, rest) = body.split_at_checked(length).ok_or("a record cut short")?;
        body = rest;
        record = record.get(1..).ok_or("an empty record")?;
        let time = signed(&mut record)?;
        let offset = signed(&mut record)?;
        let key = text(&mut record)?;
        let value = text(&mut record)?;
        let mut line = format!("{offset} +{time}ms {key}={value}");
        for _ in 0..signed(&mut record)? {
            let name = text(&mut record)?;
            line.push_str(&format!(" {name}:{}", text(&mut record)?));
        }
        if !record.is_empty() {
            line.push_str(&format!(" and {} bytes", record.len()));
        }
        out.push(line);
    }
    if out.len() <= RECORDS_SHOWN_MAX {
        return Ok(json!(out));
    }
    let sum = crc32c::crc32c(out.join("\n").as_bytes());
    Ok(json!(format!("{} records, {sum:08x}", out.len())))
}

fn signed(bytes: &mut &[u8]) -> Result<i64, String> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("a number cut short")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err("a number without end".to_owned())
}

fn text(bytes: &mut &[u8]) -> Result<String, String> {
    let length = signed(bytes)?;
    if length < 0 {
        return Ok("null".to_owned());
    }
    let (mine, rest) = bytes.split_at_checked(length as usize).ok_or("bytes cut short")?;
    *bytes = rest;
    if mine.len() > 64 {
        return Ok(format!("<{} bytes {:08x}>", mine.len(), crc32c::crc32c(mine)));
    }
    Ok(format!("{:?}", String::from_utf8_lossy(mine)))
}

#[cfg(test)]
mod tests;

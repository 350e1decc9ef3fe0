//! Which produced batches are taken, changed or refused, and in what order.

use proptest::prelude::*;

use super::*;
use crate::batch::{BatchBuilder, LOG_APPEND_TIME, RecordIter, assign, records};

const NOW: i64 = 1_600_000_000_000;

fn partition() -> TopicPartition {
    TopicPartition::new("t", 0)
}

// ---- what Kafka's own classes answered ----

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// A batch as far as codecs may not agree on bytes: its header and its records.
fn content(batch: &[u8]) -> (BatchHeader, String) {
    assert!(crc_matches(batch));
    let mut scratch = Vec::new();
    let (header, iter) = records(batch, &mut scratch, 1 << 20).expect("readable");
    let list: Vec<String> = iter
        .map(|record| {
            let r = record.expect("readable");
            let headers: Vec<_> = r.headers.clone().collect();
            format!(
                "{} {} {:?} {:?} {headers:?}",
                r.offset_delta, r.timestamp_delta, r.key, r.value
            )
        })
        .collect();
    (BatchHeader { crc: 0, batch_length: 0, ..header }, list.join("\n"))
}

fn refusal_text(refusal: &ProduceRefusal) -> String {
    let records: Vec<String> =
        refusal.record_errors.iter().map(|(index, text)| format!("{index}:{text}")).collect();
    format!(
        "ERR {} {} {} [{}] {}",
        refusal.error.code(),
        u8::from(refusal.with_log_start),
        u8::from(refusal.whole_request),
        records.join("|").replace(' ', "_"),
        refusal.message.as_deref().unwrap_or("null")
    )
}

#[test]
fn answers_are_those_of_kafkas_own_classes() {
    let mut cases = 0;
    for line in include_str!("kafka-4.4.0.txt").lines().filter(|line| !line.starts_with('#')) {
        let (case, want) = line.split_once(" => ").expect("a case");
        let fields: Vec<&str> = case.split(' ').collect();
        let number = |at: usize| fields[at].parse::<i64>().expect("a number");
        let codec = u8::try_from(number(6)).ok().and_then(Codec::from_number);
        let partition = partition();
        let rules = ProduceRules {
            partition: &partition,
            request_version: number(0) as i16,
            max_message_bytes: number(1) as i32,
            log_append_time: number(2) == 1,
            before_max_ms: number(3),
            after_max_ms: number(4),
            compacted: number(5) == 1,
            compression: codec.map(|codec| (codec, number(7) as i32)),
            max_decompressed: number(8) as i32,
            now_ms: number(9),
        };
        let mut bytes = unhex(fields.get(10).copied().unwrap_or_default());
        let before = bytes.clone();
        match validate_produce(&mut bytes, &rules) {
            Err(refusal) => {
                assert_eq!(refusal_text(&refusal), want, "{case}");
                assert_eq!(bytes, before, "a refused batch is left alone");
            }
            Ok(validated) => {
                bytes.truncate(validated.len);
                let mut stored = validated.replaced.unwrap_or(bytes);
                assert_eq!(BatchHeader::parse(&stored), Ok(validated.header));
                assert_eq!(stored.len(), validated.len);
                assign(&mut stored, 0, 0);
                let want = want.strip_prefix("OK ").unwrap_or_else(|| panic!("accepted {line}"));
                assert_eq!(content(&stored), content(&unhex(want)), "{case}");
            }
        }
        cases += 1;
    }
    assert!(cases > 200, "{cases}");
}

// ---- forged batches, with the answers of a running Kafka 4.4.0 ----

fn three(codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0, codec);
    builder.append(NOW, Some(b"k1"), Some(b"one"), &[]);
    builder.append(NOW, Some(b"k2"), Some(b"two"), &[]);
    builder.append(NOW, None, Some(b"three"), &[]);
    builder.build().to_vec()
}

/// Puts `payload` behind the header of `batch`.
fn with_payload(batch: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = [&batch[..HEADER_LEN], payload].concat();
    let length = (out.len() - LOG_OVERHEAD) as i32;
    out[8..12].copy_from_slice(&length.to_be_bytes());
    sealed(out)
}

fn sealed(mut batch: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

/// Where header fields lie; `crc` and `length` are forged without a new checksum.
fn forge(mut batch: Vec<u8>, field: &str, value: i64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let (at, size) = match field {
        "base" => (0, 8),
        "length" => (8, 4),
        "epoch" => (12, 4),
        "magic" => (16, 1),
        "crc" => (17, 4),
        "attributes" => (21, 2),
        "delta" => (23, 4),
        "max" => (35, 8),
        "pid" => (43, 8),
        "producer epoch" => (51, 2),
        "sequence" => (53, 4),
        "count" => (57, 4),
        _ => panic!("{field}"),
    };
    batch[at..at + size].copy_from_slice(&bytes[8 - size..]);
    if matches!(field, "crc" | "length" | "magic") { batch } else { sealed(batch) }
}

#[track_caller]
fn check_bytes(mut bytes: Vec<u8>, want: &str) {
    let partition = partition();
    let got = match validate_produce(&mut bytes, &ProduceRules::new(&partition, 9, NOW)) {
        Ok(validated) => {
            let batch = &bytes[..validated.len];
            assert!(crc_matches(batch));
            let header = validated.header;
            assert_eq!((header.max_timestamp, header.is_log_append_time()), (NOW, false));
            "ok".to_owned()
        }
        Err(refusal) => {
            let (log_start, whole) = (refusal.with_log_start, refusal.whole_request);
            let marks =
                format!("{}{}", if log_start { "+" } else { "" }, if whole { "!" } else { "" });
            let message = refusal.message.map(|text| format!(" {text}")).unwrap_or_default();
            format!("{}{marks}{message}", refusal.error.code())
        }
    };
    assert_eq!(got, want);
}

/// `fields` such as "count 2, delta 1". Wants a code, `+` for the real log start, `!` for the whole
/// request, a message. Plain, then inside gzip unless `gzip` says otherwise.
#[track_caller]
fn check(fields: &str, plain: &str, gzip: &str) {
    for (codec, want) in [(Codec::None, plain), (Codec::Gzip, gzip)] {
        let mut batch = three(codec);
        for (field, value) in fields.split(", ").filter_map(|field| field.rsplit_once(' ')) {
            let mut value = value.parse().expect("a number");
            if field == "attributes" {
                value |= i64::from(codec.number());
            }
            batch = forge(batch, field, value);
        }
        check_bytes(batch, want);
    }
}

#[test]
fn forged_headers() {
    let both = |fields: &str, want: &str| check(fields, want, want);
    both("", "ok");
    both("crc 12345", "2");
    both("magic 0", "87");
    both("magic 1", "87");
    both("magic 3", "2! Invalid magic found in record: 3");
    both("magic -1", "2! Invalid magic found in record: -1");
    both("count 2", "87+");
    both("count 4", "87+");
    both("count 0", "87+");
    both("count -1", "87+");
    both("count 2147483647", "87+");
    both("delta 1", "87+");
    both("delta 5", "87+");
    both("delta -1", "87+");
    both("delta 2147483647", "87+");
    both("count 5, delta 4", "87+");
    both("count 2, delta 1", "87+");
    both("base 5", "87+");
    both("base -1", "87+");
    both("attributes 32", "87+");
    both("attributes 8", "ok");
    both("attributes 64", "ok");
    both("attributes 16384", "ok");
    both("attributes -32768", "ok");
    both("length 60", "2");
    both("length 48", "2");
    both("length 49", "2");
    both("length 10000", "87");
    both("length 0", "2! Record size 0 is less than the minimum record overhead (14)");
    both("length -1", "2! Record size -1 is less than the minimum record overhead (14)");
    both("epoch 7", "ok");
    both("max 1", "ok");
    both("max 1700000000000", "ok");
    both("max -1", "ok");
    both("pid 5, producer epoch 0", "87+");
    both("pid 5, producer epoch 0, sequence 0", "ok");
    both("pid 5, sequence 0", "ok");
    both("sequence 3", "ok");
    both("attributes 16", "ok"); // Who may write it is asked elsewhere.
    for codec in 5..8 {
        check_bytes(forge(three(Codec::None), "attributes", codec), "-1+");
    }
}

#[test]
fn forged_records() {
    let deltas = |deltas: [i32; 3], codec: Codec| {
        let mut payload = Vec::new();
        for delta in deltas {
            // Size 7: attributes, time, offset, null key, value of one byte, no headers.
            payload.extend_from_slice(&[14, 0, 0, (delta * 2) as u8, 1, 2, b'v', 0]);
        }
        let payload = codec.compress(codec.default_level(), &payload).expect("compresses");
        with_payload(&forge(three(Codec::None), "attributes", i64::from(codec.number())), &payload)
    };
    for wrong in [[0, 0, 0], [0, 2, 1], [1, 2, 3], [0, 1, 5]] {
        check_bytes(deltas(wrong, Codec::None), "ok");
        check_bytes(deltas(wrong, Codec::Gzip), "-1+");
    }
    check_bytes(deltas([0, 1, 2], Codec::Gzip), "ok");
    let plain = three(Codec::None);
    check_bytes(with_payload(&plain, &[0x10, 0, 0]), "87+");
    check_bytes(with_payload(&plain, &[]), "87+");
    check_bytes(with_payload(&plain, &[0xff; 40]), "-1+");
    check_bytes(with_payload(&plain, &[&plain[HEADER_LEN..], &[0]].concat()), "87+");
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = forge(three(Codec::None), "attributes", i64::from(codec.number()));
        check_bytes(with_payload(&batch, b"\x01\x02garbage that is no frame"), "-1+");
    }
    // A null header key: size 10, one header of key null and value "x".
    let null_key = [20, 0, 0, 0, 1, 2, b'v', 2, 1, 2, b'x'];
    let one = forge(forge(plain, "count", 1), "delta", 0);
    check_bytes(with_payload(&one, &null_key), "87+");
    let packed = Codec::Gzip.compress(-1, &null_key).expect("compresses");
    check_bytes(with_payload(&forge(one, "attributes", 1), &packed), "87+");
}

#[test]
fn shapes() {
    let good = three(Codec::None);
    check_bytes(Vec::new(), "87");
    check_bytes(vec![0; 10], "87");
    check_bytes(vec![0; 100], "2! Record size 0 is less than the minimum record overhead (14)");
    check_bytes([&good[..], &good].concat(), "87");
    check_bytes([&good[..], b"junk"].concat(), "ok");
    check_bytes([&good[..], &good[..40]].concat(), "ok");
    check_bytes([&good[..], &[0; 12]].concat(), "2");
    check_bytes(good[..good.len() - 1].to_vec(), "87");
    // Every cut, be it of a batch or of a length field.
    for len in 0..good.len() {
        assert!(check_shape(&good[..len], 9).is_err());
        assert_eq!(first_batch(&good[..len]), Ok(None));
    }
    assert_eq!(check_shape(&[&good[..], &[0; 11]].concat(), 9), Ok(good.len()));
}

#[test]
fn zstd_needs_version_7() {
    let partition = partition();
    for (version, want) in [(3, Some(76)), (6, Some(76)), (7, None), (13, None)] {
        let mut batch = forge(three(Codec::Zstd), "crc", 1);
        let rules = ProduceRules::new(&partition, version, NOW);
        let got = validate_produce(&mut batch, &rules).expect_err("the checksum is wrong");
        assert_eq!(got.error.code(), want.unwrap_or(2), "v{version}");
        assert_eq!(check_shape(&batch, version).is_err(), want.is_some());
    }
    let twice = [three(Codec::Zstd), three(Codec::None)].concat();
    assert_eq!(check_shape(&twice, 3).map_err(|r| r.error.code()), Err(76));
}

#[test]
fn the_first_batch_tells_what_a_request_needs() {
    let check = |batch: Vec<u8>, want: (bool, i64, i16)| {
        let first = first_batch(&batch).expect("no refusal").expect("a batch");
        assert_eq!((first.transactional, first.producer_id, first.producer_epoch), want);
    };
    check(three(Codec::None), (false, -1, -1));
    let mut builder = BatchBuilder::new(0, Codec::Zstd).producer(9, 2, 0, true);
    builder.append(NOW, None, None, &[]);
    check(builder.build().to_vec(), (true, 9, 2));
    check(forge(three(Codec::None), "magic", 1), (false, -1, -1));
    check(forge(three(Codec::None), "length", 14), (false, -1, -1));
    assert_eq!(first_batch(b""), Ok(None));
    assert!(first_batch(&forge(three(Codec::None), "magic", 3)).expect_err("bad").whole_request);
}

#[test]
fn which_error_wins() {
    let partition = partition();
    let check = |fields: &[(&str, i64)], want: i16| {
        let mut batch = three(Codec::None);
        for (field, value) in fields {
            batch = forge(batch, field, *value);
        }
        let rules = ProduceRules { max_message_bytes: 70, ..ProduceRules::new(&partition, 9, NOW) };
        let refusal = validate_produce(&mut batch, &rules).expect_err("too large");
        assert_eq!(refusal.error.code(), want);
    };
    check(&[("base", 1), ("crc", 1)], 87);
    check(&[("crc", 1)], 10);
    check(&[("attributes", 32)], 10);
    check(&[("magic", 1)], 87);
    let rules = ProduceRules::new(&partition, 9, NOW);
    let mut batch = forge(forge(three(Codec::None), "attributes", 32), "crc", 1);
    assert_eq!(validate_produce(&mut batch, &rules).map_err(|r| r.error.code()), Err(2));
    // Exactly the limit passes.
    let mut batch = three(Codec::None);
    let limit = batch.len() as i32;
    let rules = ProduceRules { max_message_bytes: limit, ..rules };
    assert!(validate_produce(&mut batch, &rules).is_ok());
}

// ---- what topics ask for ----

#[test]
fn compacted_topics_need_keys() {
    let partition = partition();
    let rules = ProduceRules { compacted: true, ..ProduceRules::new(&partition, 9, NOW) };
    for codec in Codec::ALL {
        let refusal = validate_produce(&mut three(codec), &rules).expect_err("a null key");
        let text = "Compacted topic cannot accept message without key in topic partition t-0";
        assert_eq!(refusal.record_errors, [(2, text.to_owned())]);
        assert_eq!((refusal.error, refusal.with_log_start), (ErrorCode::InvalidRecord, true));
        let message = format!(
            "One or more records have been rejected due to 1 record errors in total, and only \
             showing the first three errors at most: [RecordError(batchIndex=2, message='{text}')]"
        );
        assert_eq!(refusal.message, Some(message));
    }
    let mut builder = BatchBuilder::new(0, Codec::None);
    (0..5).for_each(|_| builder.append(NOW, None, None, &[]));
    builder.append(NOW, Some(b""), None, &[]);
    let refusal = validate_produce(&mut builder.build(), &rules).expect_err("null keys");
    assert_eq!(refusal.record_errors.len(), 5);
    let message = refusal.message.expect("a message");
    assert!(message.contains("due to 5 record errors in total"));
    assert_eq!(message.matches("batchIndex").count(), 3);
}

#[test]
fn timestamps_lie_within_bounds() {
    let partition = partition();
    let hour = 3_600_000;
    let check = |before_max_ms: i64, after_max_ms: i64, timestamp: i64, fits: bool| {
        let rules =
            ProduceRules { before_max_ms, after_max_ms, ..ProduceRules::new(&partition, 9, NOW) };
        for codec in [Codec::None, Codec::Lz4] {
            let mut builder = BatchBuilder::new(0, codec);
            builder.append(NOW, None, None, &[]);
            builder.append(timestamp, None, None, &[]);
            let got = validate_produce(&mut builder.build(), &rules);
            assert_eq!(got.is_ok(), fits, "{timestamp}");
            if let Err(refusal) = got {
                let (low, high) = (NOW.wrapping_sub(before_max_ms), NOW.wrapping_add(after_max_ms));
                let text = format!(
                    "Timestamp {timestamp} of message with offset 1 is out of range. The timestamp \
                     should be within [{low}, {high}]"
                );
                assert_eq!(refusal.record_errors, [(1, text)]);
                let message = "One or more records have been rejected due to invalid timestamp";
                assert_eq!(refusal.message.as_deref(), Some(message));
                assert_eq!(refusal.error, ErrorCode::InvalidTimestamp);
            }
        }
    };
    check(i64::MAX, hour, NOW + hour, true);
    check(i64::MAX, hour, NOW + hour + 1, false);
    for past in [NOW - 1, 1, 0, -1, -5] {
        check(i64::MAX, hour, past, true);
    }
    check(60_000, hour, NOW - 60_000, true);
    check(60_000, hour, NOW - 60_001, false);
    check(60_000, hour, 0, false);
    check(60_000, hour, -1, true);
    check(60_000, hour, -5, false);
    check(i64::MAX, i64::MAX, i64::MAX, true);
}

#[test]
fn log_append_time_stamps_the_batch() {
    let partition = partition();
    let rules = ProduceRules {
        log_append_time: true,
        before_max_ms: 0,
        after_max_ms: 0,
        ..ProduceRules::new(&partition, 9, NOW + 77)
    };
    for codec in Codec::ALL {
        for target in [None, Some((Codec::Zstd, 3)), Some((Codec::None, 0))] {
            let mut batch = three(codec);
            let rules = ProduceRules { compression: target, ..rules };
            let validated = validate_produce(&mut batch, &rules).expect("no time is checked");
            assert_eq!(validated.log_append_time_ms, NOW + 77);
            let stored = validated.replaced.unwrap_or(batch);
            let header = BatchHeader::parse(&stored).expect("a header");
            assert_eq!((header.max_timestamp, header.base_timestamp), (NOW + 77, NOW));
            assert!(header.is_log_append_time() && crc_matches(&stored));
            let mut scratch = Vec::new();
            let (header, mut iter) = records(&stored, &mut scratch, 1 << 20).expect("readable");
            assert!(iter.all(|record| record.expect("readable").timestamp(&header) == NOW + 77));
        }
    }
    // A producer may not claim it on such a topic; on others the claim is dropped.
    let mut batch = forge(three(Codec::None), "attributes", i64::from(LOG_APPEND_TIME));
    let refusal = validate_produce(&mut batch, &rules).expect_err("claims append time");
    assert_eq!((refusal.error, refusal.record_errors.len()), (ErrorCode::InvalidTimestamp, 3));
}

#[test]
fn untouched_when_there_is_nothing_to_correct() {
    let partition = partition();
    for codec in Codec::ALL {
        let mut batch = forge(three(codec), "attributes", 0x4000 | i64::from(codec.number()));
        let before = batch.clone();
        let validated = validate_produce(&mut batch, &ProduceRules::new(&partition, 9, NOW));
        assert_eq!(validated.expect("good").len, before.len());
        assert_eq!(batch, before);
    }
}

#[test]
fn codecs_are_changed_on_request() {
    let partition = partition();
    for source in Codec::ALL {
        for target in Codec::ALL {
            let mut builder = BatchBuilder::new(0, source).producer(7, 1, 5, true);
            for i in 0..200i64 {
                let value = [i as u8; 500];
                builder.append(NOW - i * 100, Some(b"k"), Some(&value), &[("h", None)]);
            }
            let batch = builder.build();
            let compression = Some((target, target.default_level()));
            let rules = ProduceRules { compression, ..ProduceRules::new(&partition, 9, NOW) };
            let mut sent = batch.to_vec();
            let validated = validate_produce(&mut sent, &rules).expect("good");
            assert_eq!(validated.replaced.is_none(), source == target);
            let stored = validated.replaced.unwrap_or(sent);
            let (header, list) = content(&stored);
            let (sent_header, sent_list) = content(&batch);
            assert_eq!(list, sent_list);
            let attributes = i16::from(target.number()) | TRANSACTIONAL;
            assert_eq!(header, BatchHeader { attributes, ..sent_header });
        }
    }
}

/// Kafka's writer does not take all that Kafka's reader takes.
#[test]
fn what_cannot_be_encoded_anew() {
    let partition = partition();
    let compression = Some((Codec::Gzip, -1));
    let rules = ProduceRules { compression, ..ProduceRules::new(&partition, 9, NOW) };
    let check = |fields: &[(&str, i64)], want: i16| {
        let mut batch = three(Codec::None);
        for (field, value) in fields {
            batch = forge(batch, field, *value);
        }
        let got =
            validate_produce(&mut batch, &rules).map(|_| 0).unwrap_or_else(|r| r.error.code());
        assert_eq!(got, want);
    };
    check(&[("pid", 5), ("producer epoch", -1), ("sequence", 0)], -1);
    check(&[("pid", 5), ("producer epoch", 0), ("sequence", 0)], 0);
    check(&[("attributes", i64::from(TRANSACTIONAL))], -1);
    let mut builder = BatchBuilder::new(0, Codec::None);
    builder.append(-5, None, None, &[]);
    let refusal = validate_produce(&mut builder.build(), &rules).expect_err("a negative time");
    assert_eq!((refusal.error, refusal.with_log_start), (ErrorCode::UnknownServerError, true));
}

// ---- bounds ----

/// 3 MB of zeros in a few hundred bytes: fine as it is, too large once unpacked.
#[test]
fn the_limit_holds_for_what_is_stored() {
    let partition = partition();
    let mut builder = BatchBuilder::new(0, Codec::Zstd);
    builder.append(NOW, None, Some(&vec![0; 3_000_000]), &[]);
    let batch = builder.build();
    assert!(batch.len() < 2_000);
    for (compression, fits) in
        [(None, true), (Some((Codec::None, 0)), false), (Some((Codec::Gzip, -1)), true)]
    {
        let rules = ProduceRules { compression, ..ProduceRules::new(&partition, 9, NOW) };
        match validate_produce(&mut batch.to_vec(), &rules) {
            Ok(_) => assert!(fits),
            Err(refusal) => {
                assert!(!fits && !refusal.with_log_start);
                assert_eq!(refusal.error, ErrorCode::MessageTooLarge);
            }
        }
    }
}

#[test]
fn records_in_compressed_batches_are_bounded() {
    let partition = partition();
    for codec in Codec::ALL {
        let mut builder = BatchBuilder::new(0, codec);
        builder.append(NOW, None, Some(b"x"), &[]);
        builder.append(NOW, None, Some(&[7; 992]), &[]);
        let batch = builder.build();
        let (_, record) = records(&batch, &mut Vec::new(), 1 << 20)
            .map(|(header, iter)| (header, iter.last().map(|r| r.expect("readable").size)))
            .expect("readable");
        assert_eq!(record, Some(1_001)); // Two of them are the size field.
        for (max_decompressed, fits) in [(999, true), (998, codec == Codec::None)] {
            let rules = ProduceRules { max_decompressed, ..ProduceRules::new(&partition, 9, NOW) };
            let got = validate_produce(&mut batch.to_vec(), &rules);
            assert_eq!(got.is_ok(), fits, "{codec} {max_decompressed}");
            if let Err(refusal) = got {
                assert_eq!(refusal.error, ErrorCode::InvalidRecord);
                assert!(refusal.record_errors.is_empty() && refusal.message.is_none());
            }
        }
    }
}

/// Very many records in a small batch: walked with a small window, all faulty ones counted, few
/// of them listed.
#[test]
fn bombs_are_walked_with_little_memory() {
    let partition = partition();
    let count = 100_000i32;
    let mut payload = Vec::new();
    for i in 0..count {
        let mut body = vec![0, 0];
        crate::batch::build::put_varint(&mut body, crate::batch::build::zigzag(i64::from(i)));
        body.extend_from_slice(&[1, 1, 0]);
        payload.push((body.len() * 2) as u8);
        payload.extend_from_slice(&body);
    }
    for codec in [Codec::Snappy, Codec::Lz4, Codec::Zstd, Codec::Gzip] {
        let packed = codec.compress(codec.default_level(), &payload).expect("compresses");
        let mut batch = with_payload(&three(Codec::None), &packed);
        for (field, value) in
            [("attributes", i64::from(codec.number())), ("count", i64::from(count))]
        {
            batch = forge(batch, field, value);
        }
        let mut batch = forge(batch, "delta", i64::from(count) - 1);
        let rules = ProduceRules {
            max_message_bytes: i32::MAX,
            compacted: true,
            ..ProduceRules::new(&partition, 9, NOW)
        };
        let refusal = validate_produce(&mut batch, &rules).expect_err("no keys");
        assert_eq!(refusal.record_errors.len(), RECORD_ERRORS_MAX);
        assert!(refusal.message.is_some_and(|text| text.contains("100000 record errors in total")));
        let rules = ProduceRules { compacted: false, ..rules };
        assert!(validate_produce(&mut batch, &rules).is_ok());
        assert!(with_window(|window| window.capacity()) <= WINDOW_KEPT);
    }
}

/// Kafka takes a compressed record that lies about its size, though nobody can read it.
#[test]
fn lying_sizes_are_refused_even_where_kafka_is_not_looking() {
    for (size, want) in [(14, "ok"), (12, "87+"), (16, "87+")] {
        let payload = [size, 0, 0, 0, 1, 2, b'v', 0];
        for codec in [Codec::None, Codec::Zstd] {
            let packed = codec.compress(codec.default_level(), &payload).expect("compresses");
            let one = forge(forge(three(Codec::None), "count", 1), "delta", 0);
            let one = forge(one, "attributes", i64::from(codec.number()));
            check_bytes(with_payload(&one, &packed), want);
        }
    }
}

// ---- properties ----

type Parts = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(String, Option<Vec<u8>>)>);

fn parts() -> impl Strategy<Value = Vec<Parts>> {
    let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    let headers = prop::collection::vec(("[a-z]{0,5}", bytes()), 0..3);
    prop::collection::vec((NOW - 1_000..NOW + 1_000, bytes(), bytes(), headers), 1..20)
}

fn build(parts: &[Parts], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0, codec);
    for (timestamp, key, value, headers) in parts {
        let headers: Vec<(&str, Option<&[u8]>)> =
            headers.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        builder.append(*timestamp, key.as_deref(), value.as_deref(), &headers);
    }
    builder.build().to_vec()
}

/// Any codec or none.
fn target() -> impl Strategy<Value = Option<(Codec, i32)>> {
    (0u8..6)
        .prop_map(|number| Codec::from_number(number).map(|codec| (codec, codec.default_level())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn built_batches_pass_and_read_back(
        parts in parts(),
        number in 0u8..5,
        compression in target(),
    ) {
        let codec = Codec::from_number(number).expect("a codec");
        let partition = partition();
        let rules = ProduceRules { compression, ..ProduceRules::new(&partition, 9, NOW) };
        let mut batch = build(&parts, codec);
        let validated = validate_produce(&mut batch, &rules).expect("good");
        let stored = validated.replaced.unwrap_or(batch);
        let mut scratch = Vec::new();
        let (header, iter) = records(&stored, &mut scratch, 1 << 20).expect("readable");
        prop_assert_eq!(header.max_timestamp, parts.iter().map(|part| part.0).max().expect("one"));
        let mut seen = Vec::new();
        for (index, record) in iter.enumerate() {
            let record = record.expect("readable");
            prop_assert_eq!(record.offset_delta, index as i32);
            seen.push((
                record.timestamp(&header),
                record.key.map(<[u8]>::to_vec),
                record.value.map(<[u8]>::to_vec),
                record.headers.map(|(key, value)| {
                    (String::from_utf8(key.to_vec()).expect("text"), value.map(<[u8]>::to_vec))
                }).collect(),
            ));
        }
        prop_assert_eq!(seen, parts);
    }

    /// Damage anywhere, checksum mended or not: never a panic, and what passes can be read.
    #[test]
    fn damaged_batches_never_panic(
        parts in parts(),
        number in 0u8..5,
        compression in target(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 0..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        mend: bool,
    ) {
        let mut batch = build(&parts, Codec::from_number(number).expect("a codec"));
        for (at, bit) in flips {
            let at = at.index(batch.len());
            batch[at] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            batch.truncate(cut.index(batch.len()));
        }
        if mend && batch.len() > 21 {
            batch = sealed(batch);
        }
        let _ = first_batch(&batch);
        let _ = records(&batch, &mut Vec::new(), 1 << 20).map(|(_, iter)| iter.count());
        let partition = partition();
        let rules = ProduceRules { compression, ..ProduceRules::new(&partition, 9, NOW) };
        let mut sent = batch.clone();
        match validate_produce(&mut sent, &rules) {
            Err(_) => prop_assert_eq!(sent, batch),
            Ok(validated) => {
                sent.truncate(validated.len);
                let stored = validated.replaced.unwrap_or(sent);
                prop_assert!(crc_matches(&stored));
                let mut scratch = Vec::new();
                let (header, iter) = records(&stored, &mut scratch, 1 << 24).expect("readable");
                prop_assert_eq!(iter.filter(Result::is_ok).count(), header.record_count as usize);
            }
        }
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200), count in 0i32..20) {
        let _ = check_shape(&noise, 9);
        for record in RecordIter::new(&noise, count).flatten() {
            prop_assert!(record.headers.count() <= noise.len());
        }
    }
}

//! Tests of the records' bytes.

use proptest::prelude::*;

use super::fields::put_varint;
use super::*;

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Records of topics and partitions.
fn topic_kinds() -> Vec<MetadataRecord> {
    let partition = PartitionRecord {
        topic_id: id(1),
        partition: 2,
        replicas: vec![1, 2, 300],
        directories: vec![id(4), id(5), id(6)],
        isr: vec![2],
        adding: vec![300],
        removing: vec![1],
        elr: vec![1],
        last_known_elr: vec![2],
        leader: -1,
        recovering: true,
        leader_epoch: 70,
        partition_epoch: 8,
    };
    let change = PartitionChangeRecord {
        topic_id: id(1),
        partition: 2,
        isr: Some(vec![]),
        leader: Some(-1),
        replicas: Some(vec![3]),
        directories: Some(vec![id(9)]),
        removing: Some(vec![1, 2]),
        adding: Some(vec![3]),
        elr: Some(vec![2]),
        last_known_elr: Some(vec![2]),
        recovering: Some(false),
    };
    vec![
        MetadataRecord::Topic(TopicRecord { name: "t".into(), topic_id: id(1) }),
        MetadataRecord::Partition(partition),
        MetadataRecord::PartitionChange(change),
        MetadataRecord::RemoveTopic { topic_id: id(1) },
    ]
}

/// Records of brokers.
fn broker_kinds() -> Vec<MetadataRecord> {
    let broker = BrokerRecord {
        broker_id: 7,
        incarnation_id: id(10),
        broker_epoch: 1 << 40,
        endpoints: vec![Endpoint {
            name: "SSL".into(),
            host: "h".into(),
            port: 65_535,
            security_protocol: 1,
        }],
        features: vec![FeatureRange { name: "f".into(), min_level: 0, max_level: 33 }],
        rack: Some("r".into()),
        fenced: true,
        in_controlled_shutdown: true,
        directories: vec![id(11)],
    };
    let broker_change = BrokerChangeRecord {
        broker_id: 7,
        broker_epoch: -1,
        fenced: Some(false),
        in_controlled_shutdown: Some(true),
        directories: Some(vec![]),
    };
    vec![
        MetadataRecord::RegisterBroker(broker),
        MetadataRecord::UnregisterBroker { broker_id: 7, broker_epoch: 3 },
        MetadataRecord::BrokerChange(broker_change),
    ]
}

/// All other records.
fn other_kinds() -> Vec<MetadataRecord> {
    let config = ConfigRecord {
        resource: ConfigResource::topic("t"),
        key: "k".into(),
        value: Some("v\u{e9}".into()),
    };
    let quota = ClientQuotaRecord {
        entity: vec![("client-id".into(), None), ("user".into(), Some("u".into()))],
        key: "q".into(),
        value: Some(1.5),
    };
    let acl = AclRecord {
        id: id(12),
        resource_type: 2,
        resource_name: "t".into(),
        pattern_type: 3,
        principal: "User:a".into(),
        host: "*".into(),
        operation: 4,
        permission_type: 3,
    };
    let scram = ScramRecord {
        user: "u".into(),
        mechanism: 1,
        salt: vec![1],
        stored_key: vec![2, 3],
        server_key: vec![],
        iterations: 4096,
    };
    vec![
        MetadataRecord::Config(config),
        MetadataRecord::FeatureLevel { name: "f".into(), level: 33 },
        MetadataRecord::ProducerIds { broker_id: 7, broker_epoch: 3, next_producer_id: 2000 },
        MetadataRecord::ClientQuota(quota),
        MetadataRecord::Acl(acl),
        MetadataRecord::RemoveAcl { id: id(12) },
        MetadataRecord::Scram(scram),
        MetadataRecord::RemoveScram { user: "u".into(), mechanism: 2 },
        MetadataRecord::ClearElr { topic: Some("t".into()) },
        MetadataRecord::BrokerEpoch { last: 5 },
        MetadataRecord::NoOp,
    ]
}

/// One record of every type, with every field away from its default.
fn every_kind() -> Vec<MetadataRecord> {
    [topic_kinds(), broker_kinds(), other_kinds()].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Shortens runs of zeros, as uuids have them.
fn golden(record: &MetadataRecord) -> String {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    hex(&bytes).replace(&"00".repeat(15), "..")
}

#[test]
fn bytes_never_change() {
    let want = [
        "0201 0174 ..01",
        "0301 ..01 04 030204d804 03..04..05..06 0104 01d804 0102 0102 0104 01 01 8c01 10",
        "0501 ..01 04 0100 0101 010106 0101..09 01020204 010106 010104 010104 0100",
        "0901 ..01",
        "0001 0e ..0a 808080808040 01 0353534c 0168 feff07 02 01 0166 00 42 010172 01 01 01..0b",
        "0101 0e 06",
        "1101 0e 01 0100 0101 0100",
        "0401 02 0174 016b 010376c3a9",
        "0c01 0166 42",
        "0f01 0e 06 a01f",
        "0e01 02 09636c69656e742d6964 00 0475736572 010175 0171 013ff8000000000000",
        "1201 ..0c 02 0174 03 06557365723a61 012a 04 03",
        "1301 ..0c",
        "0b01 0175 01 0101 020203 00 8040",
        "1601 0175 02",
        "1c01 010174",
        "8001 0a",
        "1401",
    ];
    let records = every_kind();
    let got: Vec<String> = records.iter().map(golden).collect();
    assert_eq!(got, want.map(|bytes| bytes.replace(char::is_whitespace, "")));
    let batch = encode_batch(&[MetadataRecord::NoOp, MetadataRecord::BrokerEpoch { last: 5 }]);
    assert_eq!(hex(&batch), "01020214010380010a");
}

#[test]
fn every_record_reads_back() {
    let records = every_kind();
    assert_eq!(decode_batch(&encode_batch(&records)), Ok(records));
    assert_eq!(decode_batch(&encode_batch(&[])), Ok(vec![]));
    let bare = PartitionChangeRecord { topic_id: id(1), partition: 0, ..Default::default() };
    let bare = vec![MetadataRecord::PartitionChange(bare)];
    assert_eq!(decode_batch(&encode_batch(&bare)), Ok(bare));
}

#[test]
fn cut_off_and_surplus_bytes_are_errors() {
    for record in every_kind() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        for len in 0..bytes.len() {
            let cut = MetadataRecord::decode(&bytes[..len]);
            assert_eq!(cut, Err(RecordError::Truncated), "{record:?} cut to {len}");
        }
        bytes.push(0);
        assert_eq!(MetadataRecord::decode(&bytes), Err(RecordError::Surplus), "{record:?}");
    }
    let mut batch = encode_batch(&every_kind());
    batch.push(0);
    assert_eq!(decode_batch(&batch), Err(RecordError::Surplus));
}

#[track_caller]
fn check_error(bytes: &[u8], want: RecordError) {
    assert_eq!(decode_batch(bytes), Err(want), "{bytes:?}");
}

#[test]
fn what_a_newer_release_wrote_is_an_error() {
    check_error(&[], RecordError::Truncated);
    check_error(&[2, 0], RecordError::UnknownBatchVersion(2));
    check_error(&[1, 1, 2, 99, 1], RecordError::UnknownType(99));
    check_error(&[1, 1, 2, 20, 2], RecordError::UnknownVersion { kind: 20, version: 2 });
}

#[test]
fn bad_fields_are_errors() {
    let text = RecordError::Malformed("text is not UTF-8");
    check_error(&[1, 1, 5, 12, 1, 1, 0xff, 0], text);
    check_error(&[1, 1, 7, 4, 1, 3, 0, 0, 0, 0], {
        RecordError::Malformed("unknown config resource type")
    });
    check_error(&[1, 1, 3, 28, 1, 2], RecordError::Malformed("not a bool"));
    let mut level = vec![1, 1, 0, 12, 1, 0];
    put_varint(&mut level, 1 << 20);
    level[2] = level.len() as u8 - 3;
    check_error(&level, RecordError::Malformed("not an int16"));
    let mut long = vec![1, 1, 13, 128, 1];
    long.extend([0xff; 11]);
    check_error(&long, RecordError::Malformed("number too large"));
}

#[test]
fn counts_claim_no_more_than_there_is() {
    // A batch of 2^63 records, a record of 2^63 bytes, a list of 2^63 ids.
    let mut huge = Vec::new();
    put_varint(&mut huge, 1 << 63);
    check_error(&[&[1], huge.as_slice()].concat(), RecordError::Truncated);
    check_error(&[&[1, 1], huge.as_slice(), &[0; 4]].concat(), RecordError::Truncated);
    let mut record = vec![17, 1, 0, 0, 0, 0, 1];
    record.extend(&huge);
    let len = record.len() as u8;
    check_error(&[&[1, 1, len], record.as_slice()].concat(), RecordError::Truncated);
}

#[test]
fn keys_stay_out_of_logs() {
    let scram = every_kind().into_iter().find(|r| matches!(r, MetadataRecord::Scram(_)));
    let text = format!("{scram:?}");
    assert!(text.contains("4096") && !text.contains("stored_key"), "{text}");
}

proptest! {
    #[test]
    fn junk_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_batch(&bytes);
        let _ = MetadataRecord::decode(&bytes);
    }

    #[test]
    fn a_flipped_byte_never_panics(at in 0usize..2_000, value: u8) {
        let mut bytes = encode_batch(&every_kind());
        let at = at % bytes.len();
        bytes[at] = value;
        if let Ok(records) = decode_batch(&bytes) {
            let again = decode_batch(&encode_batch(&records)).unwrap();
            prop_assert_eq!(again.len(), records.len());
        }
    }
}

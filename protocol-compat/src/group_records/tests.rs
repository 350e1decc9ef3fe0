//! The bytes are what Kafka 4.4.0's own classes write for the same values.

use proptest::prelude::*;

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

#[test]
fn keys_have_kafkas_bytes() {
    let check = |key: GroupKey, want: &str| {
        assert_eq!(hex(&key.encode()), want);
        assert_eq!(GroupKey::decode(&unhex(want)), Ok(key));
    };
    let (group, topic) = ("g".to_owned(), "t".to_owned());
    let legacy = GroupKey::LegacyOffsetCommit { group, topic, partition: 7 };
    check(legacy, "000000016700017400000007");
    let (group, topic) = ("g".to_owned(), "t".to_owned());
    check(GroupKey::OffsetCommit { group, topic, partition: 7 }, "000100016700017400000007");
    check(GroupKey::GroupMetadata { group: "gr".to_owned() }, "000200026772");
    let unknown = GroupKey::Unknown { kind: 3, rest: Bytes::from_static(&[0, 2, b'g', b'r']) };
    check(unknown, "000300026772");
    check(GroupKey::Unknown { kind: -1, rest: Bytes::new() }, "ffff");
}

#[test]
fn offset_values_have_kafkas_bytes() {
    let full = |version: i16| OffsetCommitValue {
        offset: 42,
        leader_epoch: if version >= 3 { 5 } else { -1 },
        metadata: "md".to_owned(),
        commit_timestamp_ms: 1_000,
        expire_timestamp_ms: if version == 1 { 2_000 } else { -1 },
        topic_id: if version >= 4 { Uuid::from_u64_pair(1, 2) } else { Uuid::nil() },
    };
    let check = |version: i16, value: OffsetCommitValue, want: &str| {
        assert_eq!(hex(&value.encode(version)), want, "version {version}");
        assert_eq!(OffsetCommitValue::decode(&unhex(want)), Ok(value), "version {version}");
    };
    check(0, full(0), "0000000000000000002a00026d6400000000000003e8");
    check(1, full(1), "0001000000000000002a00026d6400000000000003e800000000000007d0");
    check(2, full(2), "0002000000000000002a00026d6400000000000003e8");
    check(3, full(3), "0003000000000000002a0000000500026d6400000000000003e8");
    check(
        4,
        full(4),
        "0004000000000000002a00000005036d6400000000000003e801001000000000000000010000000000000002",
    );
    let plain = OffsetCommitValue { metadata: String::new(), ..full(0) };
    check(4, plain, "0004000000000000002affffffff0100000000000003e800");
    assert_eq!((full(0).natural_version(), full(1).natural_version()), (4, 1));
}

#[test]
fn group_values_have_kafkas_bytes() {
    let full = |version: i16| GroupMetadataValue {
        protocol_type: "consumer".to_owned(),
        generation: 3,
        protocol: Some("range".to_owned()),
        leader: Some("m1".to_owned()),
        current_state_timestamp_ms: if version >= 2 { 99 } else { -1 },
        members: vec![GroupMember {
            member_id: "m1".to_owned(),
            group_instance_id: (version >= 3).then(|| "i".to_owned()),
            client_id: "c".to_owned(),
            client_host: "/h".to_owned(),
            rebalance_timeout_ms: if version >= 1 { 20 } else { -1 },
            session_timeout_ms: 10,
            subscription: Bytes::from_static(&[1]),
            assignment: Bytes::from_static(&[2, 3]),
        }],
    };
    let check = |version: i16, value: GroupMetadataValue, want: &str| {
        assert_eq!(hex(&value.encode(version)), want, "version {version}");
        assert_eq!(GroupMetadataValue::decode(&unhex(want)), Ok(value), "version {version}");
    };
    let front = "0008636f6e73756d657200000003000572616e676500026d31";
    let (id, client, rest) = ("00026d31", "00016300022f68", "0000000a0000000101000000020203");
    let time = "0000000000000063";
    assert_eq!(
        (full(0).members[0].rebalance_timeout(), full(1).members[0].rebalance_timeout()),
        (10, 20)
    );
    check(0, full(0), &format!("0000{front}00000001{id}{client}{rest}"));
    check(1, full(1), &format!("0001{front}00000001{id}{client}00000014{rest}"));
    check(2, full(2), &format!("0002{front}{time}00000001{id}{client}00000014{rest}"));
    check(3, full(3), &format!("0003{front}{time}00000001{id}000169{client}00000014{rest}"));
    check(
        4,
        full(4),
        "000409636f6e73756d6572000000030672616e6765036d31000000000000006302036d3102690263032f68\
         000000140000000a02010302030000",
    );
    let empty = GroupMetadataValue {
        protocol_type: "consumer".to_owned(),
        generation: 0,
        protocol: None,
        leader: None,
        current_state_timestamp_ms: -1,
        members: Vec::new(),
    };
    let nothing = "ffffffffffffffffffffffff00000000";
    check(3, empty.clone(), &format!("00030008636f6e73756d657200000000{nothing}"));
    check(4, empty, "000409636f6e73756d6572000000000000ffffffffffffffff0100");
}

#[test]
fn records_keep_what_they_do_not_know() {
    let unknown = GroupRecord::decode(&unhex("000300026772"), Some(&[0, 0, 9])).expect("kept");
    assert_eq!(unknown.key().encode(), unhex("000300026772"));
    assert!(matches!(unknown, GroupRecord::Unknown { value: Some(v), .. } if v[..] == [0, 0, 9]));
    let gone = GroupRecord::decode(&unhex("000200026772"), None).expect("a tombstone");
    assert!(matches!(gone, GroupRecord::GroupMetadata { value: None, .. }));
    for (key, kind) in [("000100016700017400000007", 1), ("000200026772", 2)] {
        for version in [5i16, -1] {
            let got = GroupRecord::decode(&unhex(key), Some(&version.to_be_bytes()));
            assert_eq!(got, Err(GroupRecordError::Version { kind, version }));
        }
    }
}

#[test]
fn claims_are_not_believed() {
    // A key cut anywhere, and a count of members that cannot fit.
    let key = unhex("000100016700017400000007");
    assert!((0..key.len()).all(|len| GroupKey::decode(&key[..len]).is_err()));
    let claims = unhex("00030008636f6e73756d657200000000ffffffffffffffffffffffff7fffffff");
    assert!(GroupMetadataValue::decode(&claims).is_err());
}

proptest! {
    #[test]
    fn noise_never_panics(
        key in prop::collection::vec(any::<u8>(), 0..40),
        value in prop::collection::vec(any::<u8>(), 0..80),
        version in 0i16..5,
    ) {
        let _ = GroupRecord::decode(&key, Some(&value));
        let value = [&version.to_be_bytes()[..], &value].concat();
        let _ = OffsetCommitValue::decode(&value);
        let _ = GroupMetadataValue::decode(&value);
    }

    #[test]
    fn every_version_reads_back(
        version in 0i16..5,
        offset: i64,
        epoch: i32,
        metadata: String,
        members in prop::collection::vec(("[a-z]*", any::<i32>(), any::<Vec<u8>>()), 0..4),
    ) {
        let value = OffsetCommitValue {
            offset,
            leader_epoch: if version >= 3 { epoch } else { -1 },
            metadata,
            commit_timestamp_ms: 1,
            expire_timestamp_ms: -1,
            topic_id: Uuid::nil(),
        };
        prop_assert_eq!(OffsetCommitValue::decode(&value.encode(version)), Ok(value));
        let member = |(text, timeout_ms, bytes): (String, i32, Vec<u8>)| GroupMember {
            member_id: text.clone(),
            group_instance_id: (version >= 3 && timeout_ms > 0).then(|| text.clone()),
            client_id: text.clone(),
            client_host: text,
            rebalance_timeout_ms: if version >= 1 { timeout_ms } else { -1 },
            session_timeout_ms: timeout_ms,
            subscription: Bytes::from(bytes.clone()),
            assignment: Bytes::from(bytes),
        };
        let value = GroupMetadataValue {
            protocol_type: String::new(),
            generation: epoch,
            protocol: None,
            leader: None,
            current_state_timestamp_ms: -1,
            members: members.into_iter().map(member).collect(),
        };
        prop_assert_eq!(GroupMetadataValue::decode(&value.encode(version)), Ok(value));
    }
}

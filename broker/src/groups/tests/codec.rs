//! The machine's records as bytes of `__consumer_offsets`, there and back.

use bytes::Bytes;
use proptest::prelude::*;
use protocol_compat::batch;
use protocol_compat::group_records::{
    GroupKey, GroupMember, GroupMetadataValue, OffsetCommitValue,
};
use uuid::Uuid;

use crate::groups::codec;
use crate::groups::*;

fn name() -> impl Strategy<Value = Name> {
    "[a-z\u{e9}]{0,9}".prop_map(Name::from)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from)
}

fn offset_value() -> impl Strategy<Value = OffsetValue> {
    let times = (0..i64::MAX, prop::option::of(0..i64::MAX));
    (any::<i64>(), -1..100i32, name(), times, any::<u128>()).prop_map(
        |(offset, leader_epoch, metadata, (commit_ms, expire_ms), topic_id)| {
            // A commit with a deadline of its own is stored in a version that has neither.
            let plain = expire_ms.is_none();
            OffsetValue {
                offset,
                leader_epoch: if plain { leader_epoch } else { -1 },
                metadata,
                commit_ms,
                expire_ms,
                topic_id: if plain { Uuid::from_u128(topic_id) } else { Uuid::nil() },
            }
        },
    )
}

fn member() -> impl Strategy<Value = MemberValue> {
    let names = (name(), prop::option::of(name()), name(), name());
    (names, any::<i32>(), any::<i32>(), bytes(), bytes()).prop_map(
        |(names, rebalance_timeout_ms, session_timeout_ms, subscription, assignment)| {
            let (member_id, instance_id, client_id, client_host) = names;
            MemberValue {
                member_id,
                instance_id,
                client_id,
                client_host,
                rebalance_timeout_ms,
                session_timeout_ms,
                subscription,
                assignment,
            }
        },
    )
}

fn group_value() -> impl Strategy<Value = GroupValue> {
    let names = (prop::option::of(name()), prop::option::of(name()), prop::option::of(name()));
    let members = prop::collection::vec(member(), 0..4);
    (names, any::<i32>(), prop::option::of(0..i64::MAX), members).prop_map(
        |((protocol_type, protocol, leader), generation, state_since_ms, members)| GroupValue {
            protocol_type: protocol_type.filter(|name| !name.is_empty()),
            generation,
            protocol,
            leader,
            state_since_ms,
            members,
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    let group = (name(), prop::option::of(group_value()));
    let offset = (name(), name(), any::<i32>(), prop::option::of(offset_value()));
    prop_oneof![
        group.prop_map(|(group, value)| Record::Group { group, value }),
        offset.prop_map(|(group, topic, partition, value)| Record::Offset {
            group,
            topic,
            partition,
            value
        }),
    ]
}

proptest! {
    #[test]
    fn records_read_back(records in prop::collection::vec(record(), 1..8), now_ms in 0..i64::MAX) {
        let batch = codec::batch(&records, now_ms);
        prop_assert!(batch::crc_matches(&batch));
        let mut scratch = Vec::new();
        let (header, stored) = batch::records(&batch, &mut scratch, 1 << 20).expect("a batch");
        prop_assert_eq!(header.record_count as usize, records.len());
        let producer = (header.producer_id, header.producer_epoch, header.base_sequence);
        prop_assert_eq!(producer, (-1, -1, 0));
        for (stored, record) in stored.zip(records) {
            let stored = stored.expect("a record");
            let key = stored.key.expect("a key");
            prop_assert_eq!(codec::decode(key, stored.value), Ok(Some(record)));
        }
    }
}

/// What older brokers wrote.
#[test]
fn old_versions() {
    let value = OffsetCommitValue {
        offset: 5,
        leader_epoch: 3,
        metadata: "note".to_owned(),
        commit_timestamp_ms: 7,
        expire_timestamp_ms: 9,
        topic_id: Uuid::from_u128(1),
    };
    let (group, topic) = ("g".to_owned(), "t".to_owned());
    let key = GroupKey::LegacyOffsetCommit { group, topic, partition: 2 }.encode();
    for version in 0..=4 {
        let read = codec::decode(&key, Some(&value.encode(version))).expect("a record");
        let want = OffsetValue {
            offset: 5,
            leader_epoch: if version >= 3 { 3 } else { -1 },
            metadata: Name::from("note"),
            commit_ms: 7,
            expire_ms: (version == 1).then_some(9),
            topic_id: if version == 4 { Uuid::from_u128(1) } else { Uuid::nil() },
        };
        let (group, topic) = (Name::from("g"), Name::from("t"));
        let want = Record::Offset { group, topic, partition: 2, value: Some(want) };
        assert_eq!(read, Some(want), "version {version}");
    }
    let member = GroupMember {
        member_id: "m".to_owned(),
        group_instance_id: Some("i".to_owned()),
        client_id: "c".to_owned(),
        client_host: "/h".to_owned(),
        rebalance_timeout_ms: 1,
        session_timeout_ms: 2,
        subscription: Bytes::from_static(b"s"),
        assignment: Bytes::from_static(b"a"),
    };
    let value = GroupMetadataValue {
        protocol_type: "consumer".to_owned(),
        generation: 4,
        protocol: Some("range".to_owned()),
        leader: Some("m".to_owned()),
        current_state_timestamp_ms: 8,
        members: vec![member],
    };
    let key = GroupKey::GroupMetadata { group: "g".to_owned() }.encode();
    for version in 0..=4 {
        let read = codec::decode(&key, Some(&value.encode(version))).expect("a record");
        let Some(Record::Group { value: Some(read), .. }) = read else {
            panic!("no group: {read:?}")
        };
        assert_eq!(read.state_since_ms, (version >= 2).then_some(8));
        assert_eq!(read.members[0].instance_id.is_some(), version >= 3);
        assert_eq!(read.members[0].rebalance_timeout_ms, if version >= 1 { 1 } else { -1 });
        assert_eq!((read.generation, read.leader.as_deref()), (4, Some("m")));
    }
}

#[test]
fn other_records() {
    // A consumer group of the new protocol.
    assert_eq!(codec::decode(&[0, 3, 0, 1, b'g'], Some(&[0, 0])), Ok(None));
    assert_eq!(codec::decode(&[0, 3, 0, 1, b'g'], None), Ok(None));
    for (key, value) in [(&[][..], None), (&[0, 2], None), (&[0, 2, 0, 1, b'g'], Some(&[0, 9][..]))]
    {
        assert!(codec::decode(key, value).is_err(), "{key:?}");
    }
}

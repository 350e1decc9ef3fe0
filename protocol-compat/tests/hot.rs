//! Our own Produce and Fetch against kafka-protocol's: what is read is the same, what is written
//! is the same bytes, in every version.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{
    FetchPartition, FetchTopic, ForgottenTopic, ReplicaState,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    FetchRequest, FetchResponse, ProduceRequest, ProduceResponse, ResponseHeader, TopicName,
};
use kafka_protocol::messages::{fetch_response, produce_response};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use protocol_compat::hot::{NodeEndpoint, fetch, produce};
use protocol_compat::later::decode_request;
use protocol_compat::random;
use protocol_compat::wire::text_at;

const SEEDS: u64 = 60;
const PRODUCE: std::ops::RangeInclusive<i16> = 3..=13;
const FETCH: std::ops::RangeInclusive<i16> = 4..=18;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic(name: &str) -> TopicName {
    text(name).into()
}

#[test]
fn produce_requests_read_alike() {
    for version in PRODUCE {
        for seed in 0..SEEDS {
            let body = random::odd_request(seed, 0, version).expect("the table has it");
            for bytes in [body.plain, body.odd] {
                let ours = produce_request(version, &bytes);
                let theirs: ProduceRequest =
                    decode_request(version, &Bytes::from(bytes)).expect("decodes");
                assert_eq!(ours, theirs, "version {version} seed {seed}");
            }
        }
    }
}

fn produce_request(version: i16, body: &[u8]) -> ProduceRequest {
    let ours = produce::parse(version, body).expect("parses");
    let partition = |partition: produce::ProducePartition| {
        let records = partition.records.map(|range| body.get(range).expect("inside the body"));
        PartitionProduceData::default()
            .with_index(partition.index)
            .with_records(records.map(Bytes::copy_from_slice))
    };
    let topics = ours.topics.into_iter().map(|data| {
        TopicProduceData::default()
            .with_name(topic(&text_at(body, &data.name)))
            .with_topic_id(data.topic_id)
            .with_partition_data(data.partitions.into_iter().map(partition).collect())
    });
    let transactional_id = ours.transactional_id.map(|id| text(&text_at(body, &id)).into());
    ProduceRequest::default()
        .with_transactional_id(transactional_id)
        .with_acks(ours.acks)
        .with_timeout_ms(ours.timeout_ms)
        .with_topic_data(topics.collect())
}

#[test]
fn fetch_requests_read_alike() {
    for version in FETCH {
        for seed in 0..SEEDS {
            let body = random::odd_request(seed, 1, version).expect("the table has it");
            for bytes in [body.plain, body.odd] {
                let ours = fetch_request(version, &bytes);
                let theirs: FetchRequest =
                    decode_request(version, &Bytes::from(bytes)).expect("decodes");
                assert_eq!(ours, theirs, "version {version} seed {seed}");
            }
        }
    }
}

fn fetch_request(version: i16, body: &[u8]) -> FetchRequest {
    let ours = fetch::parse(version, body).expect("parses");
    let partition = |partition: &fetch::FetchPartition| {
        FetchPartition::default()
            .with_partition(partition.partition)
            .with_current_leader_epoch(partition.current_leader_epoch)
            .with_fetch_offset(partition.fetch_offset)
            .with_last_fetched_epoch(partition.last_fetched_epoch)
            .with_log_start_offset(partition.log_start_offset)
            .with_partition_max_bytes(partition.partition_max_bytes)
            .with_replica_directory_id(partition.replica_directory_id)
            .with_high_watermark(partition.high_watermark)
    };
    let topics = ours.topics.iter().map(|data| {
        FetchTopic::default()
            .with_topic(topic(&data.name))
            .with_topic_id(data.topic_id)
            .with_partitions(data.partitions.iter().map(partition).collect())
    });
    let forgotten = ours.forgotten.iter().map(|data| {
        ForgottenTopic::default()
            .with_topic(topic(&data.name))
            .with_topic_id(data.topic_id)
            .with_partitions(data.partitions.clone())
    });
    let mut request = FetchRequest::default()
        .with_cluster_id(ours.cluster_id.map(|id| text(&id)))
        .with_max_wait_ms(ours.max_wait_ms)
        .with_min_bytes(ours.min_bytes)
        .with_max_bytes(ours.max_bytes)
        .with_isolation_level(ours.isolation_level)
        .with_session_id(ours.session_id)
        .with_session_epoch(ours.session_epoch)
        .with_topics(topics.collect())
        .with_forgotten_topics_data(forgotten.collect())
        .with_rack_id(text(&ours.rack_id));
    if version < 15 {
        request.replica_id = ours.replica_id.into();
    } else {
        request.replica_state = ReplicaState::default()
            .with_replica_id(ours.replica_id.into())
            .with_replica_epoch(ours.replica_epoch);
    }
    request
}

#[test]
fn produce_responses_are_written_alike() {
    for version in PRODUCE {
        for seed in 0..SEEDS {
            let body = random::response(seed, 0, version).expect("the table has it");
            let theirs = ProduceResponse::decode(&mut Bytes::from(body.clone()), version);
            let mut ours = BytesMut::new();
            produce_response(theirs.expect("decodes")).encode(version, &mut ours);
            assert_eq!(ours.as_ref(), body, "version {version} seed {seed}");
        }
    }
}

fn produce_response(theirs: ProduceResponse) -> produce::ProduceResponse {
    let partition = |theirs: produce_response::PartitionProduceResponse| {
        let leader = theirs.current_leader;
        let errors = theirs.record_errors.into_iter().map(|error| {
            let message = error.batch_index_error_message.map(|text| text.to_string());
            (error.batch_index, message)
        });
        produce::ProducePartitionResponse {
            index: theirs.index,
            error_code: theirs.error_code,
            base_offset: theirs.base_offset,
            log_append_time_ms: theirs.log_append_time_ms,
            log_start_offset: theirs.log_start_offset,
            record_errors: errors.collect(),
            error_message: theirs.error_message.map(|text| text.to_string()),
            current_leader: Some((leader.leader_id.0, leader.leader_epoch)),
        }
    };
    let topics = theirs.responses.into_iter().map(|data| produce::ProduceTopicResponse {
        name: data.name.as_str().into(),
        topic_id: data.topic_id,
        partitions: data.partition_responses.into_iter().map(partition).collect(),
    });
    let endpoint = |theirs: produce_response::NodeEndpoint| NodeEndpoint {
        node_id: theirs.node_id.0,
        host: theirs.host.as_str().into(),
        port: theirs.port,
        rack: theirs.rack.map(|rack| rack.as_str().into()),
    };
    produce::ProduceResponse {
        topics: topics.collect(),
        throttle_time_ms: theirs.throttle_time_ms,
        node_endpoints: theirs.node_endpoints.into_iter().map(endpoint).collect(),
    }
}

#[test]
fn fetch_responses_are_written_alike() {
    for version in FETCH {
        for seed in 0..SEEDS {
            let body = random::response(seed, 1, version).expect("the table has it");
            let mut theirs =
                FetchResponse::decode(&mut Bytes::from(body), version).expect("decodes");
            let mut records = Vec::new();
            for partition in theirs.responses.iter_mut().flat_map(|data| &mut data.partitions) {
                // Of raft, which does not go this way; and no broker sends null records.
                partition.snapshot_id = fetch_response::SnapshotId::default();
                records.extend(partition.records.get_or_insert_default().to_vec());
            }
            let mut want = BytesMut::from([0, 0, 0, 0].as_slice());
            ResponseHeader::default()
                .with_correlation_id(77)
                .encode(&mut want, i16::from(version >= 12))
                .expect("encodes");
            theirs.encode(&mut want, version).expect("encodes");
            let size = (want.len() - 4) as u32;
            want[..4].copy_from_slice(&size.to_be_bytes());
            let got = fetch_frame(version, theirs, &records);
            assert_eq!(got, want.as_ref(), "version {version} seed {seed}");
        }
    }
}

/// Our frame behind some other bytes, its places filled with the records.
fn fetch_frame(version: i16, theirs: FetchResponse, mut records: &[u8]) -> Vec<u8> {
    let ours = fetch_response(theirs);
    let partitions = ours.topics.iter().flat_map(|data| &data.partitions);
    let lens: Vec<usize> =
        partitions.map(|partition| partition.records_len).filter(|len| *len > 0).collect();
    let mut out = BytesMut::from(b"before".as_slice());
    let places = ours.encode_frame(version, 77, &mut out);
    assert_eq!(places.len(), lens.len());
    let mut frame = Vec::new();
    let mut written = 6;
    for (place, len) in places.into_iter().zip(lens) {
        frame.extend_from_slice(&out[written..place]);
        let (these, rest) = records.split_at(len);
        frame.extend_from_slice(these);
        (written, records) = (place, rest);
    }
    assert!(records.is_empty());
    frame.extend_from_slice(&out[written..]);
    frame
}

fn fetch_response(theirs: FetchResponse) -> fetch::FetchResponse {
    let partition = |theirs: fetch_response::PartitionData| {
        let (leader, diverging) = (theirs.current_leader, theirs.diverging_epoch);
        let aborted = theirs.aborted_transactions.map(|aborted| {
            aborted.into_iter().map(|txn| (txn.producer_id.0, txn.first_offset)).collect()
        });
        fetch::FetchPartitionResponse {
            index: theirs.partition_index,
            error_code: theirs.error_code,
            high_watermark: theirs.high_watermark,
            last_stable_offset: theirs.last_stable_offset,
            log_start_offset: theirs.log_start_offset,
            diverging_epoch: Some((diverging.epoch, diverging.end_offset)),
            current_leader: Some((leader.leader_id.0, leader.leader_epoch)),
            aborted,
            preferred_read_replica: theirs.preferred_read_replica.0,
            records_len: theirs.records.map_or(0, |records| records.len()),
        }
    };
    let topics = theirs.responses.into_iter().map(|data| fetch::FetchTopicResponse {
        name: data.topic.as_str().into(),
        topic_id: data.topic_id,
        partitions: data.partitions.into_iter().map(partition).collect(),
    });
    let endpoint = |theirs: fetch_response::NodeEndpoint| NodeEndpoint {
        node_id: theirs.node_id.0,
        host: theirs.host.as_str().into(),
        port: theirs.port,
        rack: theirs.rack.map(|rack| rack.as_str().into()),
    };
    fetch::FetchResponse {
        throttle_time_ms: theirs.throttle_time_ms,
        error_code: theirs.error_code,
        session_id: theirs.session_id,
        topics: topics.collect(),
        node_endpoints: theirs.node_endpoints.into_iter().map(endpoint).collect(),
    }
}

//! What holds for any bytes: the functions that fuzz targets and plain tests share.
//!
//! Each takes arbitrary input and panics when a promise of the crate does not hold for it.

// A test binary or fuzz target uses some of these, never all.
#![allow(unreachable_pub, unused)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message, Request};
use protocol_compat::batch::{
    BatchError, BatchHeader, HEADER_LEN, ProduceRules, batches, crc_matches, records,
    validate_produce,
};
use protocol_compat::compression::Codec;
use protocol_compat::hot::{fetch, produce};
use protocol_compat::ids::TopicPartition;
use protocol_compat::later::{DecodeError, decode_request, encode_response};
use protocol_compat::wire::Malformed;
use protocol_compat::{frame, header, schema, shape, versions};

/// What kafka-protocol does with the messages of one API.
pub struct Types {
    pub key: i16,
    /// The last versions that the request's and the response's types have.
    pub last: (i16, i16),
    /// Decodes the body of a request, and encodes it again; shows it if the version is later.
    pub request: fn(i16, &Bytes) -> Result<Vec<u8>, DecodeError>,
    /// Decodes the body of a response in a version that kafka-protocol has, and encodes it in
    /// another (`decode`, `encode`).
    pub response: fn((i16, i16), &[u8]) -> Result<Vec<u8>, String>,
}

macro_rules! types {
    ($($request:ty,)*) => {
        /// All that kafka-protocol has.
        pub static TYPES: &[Types] = &[$(Types {
            key: <$request as Request>::KEY,
            last: (
                <$request as Message>::VERSIONS.max,
                <<$request as Request>::Response as Message>::VERSIONS.max,
            ),
            request: request::<$request>,
            response: response::<$request>,
        },)*];
    };
}

types! {
    ProduceRequest, FetchRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetFetchRequest, FindCoordinatorRequest, JoinGroupRequest, HeartbeatRequest,
    LeaveGroupRequest, SyncGroupRequest, DescribeGroupsRequest, ListGroupsRequest,
    SaslHandshakeRequest, ApiVersionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DeleteRecordsRequest, InitProducerIdRequest, OffsetForLeaderEpochRequest,
    AddPartitionsToTxnRequest, AddOffsetsToTxnRequest, EndTxnRequest, WriteTxnMarkersRequest,
    TxnOffsetCommitRequest, DescribeAclsRequest, CreateAclsRequest, DeleteAclsRequest,
    DescribeConfigsRequest, AlterConfigsRequest, AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest, SaslAuthenticateRequest, CreatePartitionsRequest,
    CreateDelegationTokenRequest, RenewDelegationTokenRequest, ExpireDelegationTokenRequest,
    DescribeDelegationTokenRequest, DeleteGroupsRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest, OffsetDeleteRequest, DescribeClientQuotasRequest,
    AlterClientQuotasRequest, DescribeUserScramCredentialsRequest,
    AlterUserScramCredentialsRequest, VoteRequest, BeginQuorumEpochRequest,
    EndQuorumEpochRequest, DescribeQuorumRequest, AlterPartitionRequest, UpdateFeaturesRequest,
    EnvelopeRequest, FetchSnapshotRequest, DescribeClusterRequest, DescribeProducersRequest,
    BrokerRegistrationRequest, BrokerHeartbeatRequest, UnregisterBrokerRequest,
    DescribeTransactionsRequest, ListTransactionsRequest, AllocateProducerIdsRequest,
    ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest, ControllerRegistrationRequest,
    GetTelemetrySubscriptionsRequest, PushTelemetryRequest, AssignReplicasToDirsRequest,
    ListConfigResourcesRequest, DescribeTopicPartitionsRequest, ShareGroupHeartbeatRequest,
    ShareGroupDescribeRequest, ShareFetchRequest, ShareAcknowledgeRequest, AddRaftVoterRequest,
    RemoveRaftVoterRequest, UpdateRaftVoterRequest, InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest, WriteShareGroupStateRequest, DeleteShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest, DescribeShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequest,
}

/// kafka-protocol's types of an API.
pub fn types(key: i16) -> Option<&'static Types> {
    TYPES.iter().find(|types| types.key == key)
}

fn request<R: Request + std::fmt::Debug + 'static>(
    version: i16,
    body: &Bytes,
) -> Result<Vec<u8>, DecodeError> {
    let request: R = decode_request(version, body)?;
    let mut out = BytesMut::new();
    let types = version.min(R::VERSIONS.max);
    // What a later version has may have no place in the types' last one.
    if version == types {
        request.encode(&mut out, types).expect("a decoded request can be encoded");
    } else {
        out.extend_from_slice(format!("{request:?}").as_bytes());
    }
    Ok(out.to_vec())
}

fn response<R: Request>((decode, encode): (i16, i16), body: &[u8]) -> Result<Vec<u8>, String> {
    let mut body = Bytes::copy_from_slice(body);
    let response = R::Response::decode(&mut body, decode).map_err(|e| e.to_string())?;
    let mut out = BytesMut::new();
    encode_response::<R>(encode, &response, &mut out).map_err(|e| e.to_string())?;
    Ok(out.to_vec())
}

/// Two bytes of key, two of version, then the body of a request.
pub fn any_request(data: &[u8]) {
    let Some((head, body)) = data.split_first_chunk::<4>() else { return };
    let [a, b, c, d] = *head;
    one_request(i16::from_be_bytes([a, b]), i16::from_be_bytes([c, d]), body);
}

/// Whatever the shape check takes, the decoders take; whatever it refuses, ours refuse.
/// Whether it was taken.
pub fn one_request(key: i16, version: i16, body: &[u8]) -> bool {
    let shape = shape::check_request(key, version, body);
    let known = schema::api(key).is_some_and(|api| api.has(version));
    if key == 0 && known {
        same_verdict(shape, produce::parse(version, body).map(drop));
    }
    if key == 1 && known {
        same_verdict(shape, fetch::parse(version, body).map(drop));
    }
    let Ok(shape) = shape else { return false };
    assert!(shape.len <= body.len());
    if let Some(types) = types(key) {
        let body = Bytes::copy_from_slice(body);
        let decoded = (types.request)(version, &body);
        assert!(decoded.is_ok(), "{key} v{version}: {:?} of {body:02x?}", decoded.err());
    }
    true
}

#[track_caller]
fn same_verdict(shape: Result<shape::Shape, shape::ShapeError>, parsed: Result<(), Malformed>) {
    match (shape, parsed) {
        // How much memory is too much depends on the structs.
        (Err(shape::ShapeError::Malformed(Malformed::TooMuch)), _)
        | (_, Err(Malformed::TooMuch)) => {}
        (shape, parsed) => {
            assert_eq!(shape.is_ok(), parsed.is_ok(), "{shape:?} against {parsed:?}");
        }
    }
}

/// A stream of frames, as it comes from a socket.
pub fn any_frames(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(len)) = frame::split(rest, 1 << 20) {
        let start = frame::SIZE_LEN;
        let one = rest.get(start..start + len).expect("split says that it is there");
        if let Ok(header) = header::RequestHeader::parse(one)
            && !header.is_unsupported()
        {
            let body = one.get(header.body_start..).expect("the body starts in the frame");
            one_request(header.api_key, header.api_version, body);
        }
        rest = rest.get(start + len..).expect("split says that it is there");
    }
}

/// Most that anything here is inflated to.
const INFLATED_MAX: usize = 1 << 20;

/// Batches, one after the other: each that has a header is read to its end or its first error.
pub fn any_batches(data: &[u8]) {
    let mut scratch = Vec::new();
    for batch in batches(data) {
        let Ok((header, batch)) = batch else { continue };
        assert_eq!(header.total_size(), batch.len());
        crc_matches(batch);
        let Ok((_, iter)) = records(batch, &mut scratch, INFLATED_MAX) else { continue };
        let mut count = 0;
        for record in iter.map_while(Result::ok) {
            count += 1;
            assert!(record.headers.count() <= record.size);
        }
        assert!(count <= header.record_count.max(0));
        assert!(scratch.len() <= INFLATED_MAX);
    }
}

/// Two bytes of rules, then what a producer sends for one partition, its checksum set right.
pub fn any_produce(data: &[u8]) {
    let Some((&[rule, codec], data)) = data.split_first_chunk::<2>() else { return };
    let partition = TopicPartition { topic: "t".into(), partition: 0 };
    let flag = |bit: u8| rule & 1 << bit != 0;
    let target = Codec::from_number(codec % 8).map(|codec| (codec, codec.default_level()));
    let rules = ProduceRules {
        log_append_time: flag(0),
        compacted: flag(1),
        before_max_ms: if flag(2) { 1000 } else { i64::MAX },
        max_decompressed: if flag(3) { 100 } else { i32::MAX },
        compression: target,
        ..ProduceRules::new(&partition, if flag(4) { 3 } else { 11 }, 5000)
    };
    let mut payload = data.to_vec();
    set_crc(&mut payload);
    let before = payload.clone();
    match validate_produce(&mut payload, &rules) {
        Err(_) => assert_eq!(payload, before, "changed though refused"),
        Ok(taken) => {
            payload.truncate(taken.len.min(payload.len()));
            let mut stored = taken.replaced.unwrap_or(payload);
            assert_eq!(stored.len(), taken.len);
            is_stored_batch(&stored, taken.header);
            // A producer may not set the time type that the broker just set.
            if !rules.log_append_time {
                let again = validate_produce(&mut stored, &rules).expect("taken once");
                assert_eq!(again.len, stored.len());
            }
        }
    }
}

fn set_crc(payload: &mut [u8]) {
    let Some(header) = payload.get(8..12) else { return };
    let length = u32::from_be_bytes(header.try_into().expect("four bytes"));
    let end = payload.len().min((length as usize).saturating_add(12));
    let Some(covered) = payload.get(21..end) else { return };
    let crc = crc32c::crc32c(covered);
    payload[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// What is stored can be read, by the header that says what it is.
fn is_stored_batch(stored: &[u8], header: BatchHeader) {
    let parsed = BatchHeader::parse(stored).expect("has a header");
    assert_eq!(parsed.total_size(), stored.len());
    assert_eq!(
        BatchHeader { crc: 0, ..parsed },
        BatchHeader { crc: 0, batch_length: parsed.batch_length, ..header }
    );
    assert!(crc_matches(stored));
    let mut scratch = Vec::new();
    match records(stored, &mut scratch, INFLATED_MAX) {
        Err(BatchError::Compression(_)) => {}
        read => {
            let (_, iter) = read.expect("readable");
            let all: Result<Vec<_>, _> = iter.collect();
            assert_eq!(all.expect("each record").len(), parsed.record_count as usize);
        }
    }
}

/// One byte of codec, then bytes of that codec: never more out than was allowed, and what comes
/// out goes back in.
pub fn any_compressed(data: &[u8]) {
    let Some((codec, data)) = data.split_first() else { return };
    let Some(codec) = Codec::from_number(codec % 5) else { return };
    let mut out = Vec::new();
    if codec.decompress(data, INFLATED_MAX, &mut out).is_err() {
        return;
    }
    assert!(out.len() <= INFLATED_MAX);
    let again = codec.compress(codec.default_level(), &out).expect("compresses");
    let mut twice = Vec::new();
    codec.decompress(&again, out.len(), &mut twice).expect("ours can be inflated");
    assert_eq!(out, twice);
}

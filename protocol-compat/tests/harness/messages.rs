//! What holds for any frame and any request.

// A test binary or fuzz target uses some of these, never all.
#![allow(unreachable_pub, unused)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message, Request};
use protocol_compat::hot::{fetch, produce};
use protocol_compat::later::{DecodeError, decode_request, encode_response};
use protocol_compat::wire::Malformed;
use protocol_compat::{frame, header, schema, shape, versions};

/// The versions to decode and to encode in, a body, and the body encoded again.
pub type Recode = fn((i16, i16), &[u8]) -> Result<Vec<u8>, String>;

/// What kafka-protocol does with the messages of one API.
pub struct Types {
    pub key: i16,
    /// The last versions that the request's and the response's types have.
    pub last: (i16, i16),
    /// Decodes the body of a request, and encodes it again; shows it if the version is later.
    pub request: fn(i16, &Bytes) -> Result<Vec<u8>, DecodeError>,
    /// Decodes the body of a response in a version that kafka-protocol has, encodes it in any.
    pub response: Recode,
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

//! Later versions against their bytes, written out by hand from the field table.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_log_dirs_response::DescribeLogDirsResult;
use kafka_protocol::messages::{
    ApiVersionsRequest, DeleteGroupsRequest, DeleteGroupsResponse, DescribeLogDirsRequest,
    DescribeLogDirsResponse, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest,
    TxnOffsetCommitRequest, WriteTxnMarkersRequest,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::*;

/// Bytes from a list of pieces: text stands for itself, numbers for bytes.
macro_rules! bytes {
    ($($piece:expr),* $(,)?) => {{
        let mut all: Vec<u8> = Vec::new();
        $(all.extend_from_slice(AsRef::<[u8]>::as_ref($piece));)*
        all
    }};
}

#[test]
fn list_offsets_11_is_10() {
    let body = bytes!(
        &[0xff, 0xff, 0xff, 0xff, 1, 2, 2],
        "t",
        &[2],
        &[0, 0, 0, 3],
        &[0xff; 4],
        &[0xff; 7],
        &[0xfa],
        &[0, 0],
        &[0, 0, 0, 9, 0]
    );
    let request: ListOffsetsRequest = decode_request(11, &Bytes::from(body)).expect("decodes");
    assert_eq!(request.topics[0].partitions[0].timestamp, -6);
    assert_eq!(request.timeout_ms, 9);
}

#[test]
fn api_versions_5_names_its_cluster() {
    let body = bytes!(&[2], "a", &[3], "1x", &[4], "abc", &[0, 0, 0, 7], &[0], "surplus");
    let request = api_versions::parse(5, &body).expect("parses");
    assert_eq!(request.client_software_name, "a");
    assert_eq!(request.client_software_version, "1x");
    assert_eq!(request.cluster_id.as_deref(), Some("abc"));
    assert_eq!(request.node_id, 7);

    let body = bytes!(&[2], "a", &[3], "1x", &[0], &[0xff; 4], &[0]);
    let request = api_versions::parse(5, &body).expect("parses");
    assert_eq!((request.cluster_id, request.node_id), (None, -1));
    assert!(api_versions::parse(5, &body[..body.len() - 1]).is_err());
    assert_eq!(api_versions::parse(2, &[]).expect("no body").node_id, -1);
}

#[test]
fn api_versions_5_through_the_crate() {
    let body = bytes!(&[2], "a", &[3], "1x", &[4], "abc", &[0, 0, 0, 7], &[0], "surplus");
    let request: ApiVersionsRequest = decode_request(5, &Bytes::from(body)).expect("decodes");
    assert_eq!(request.client_software_name.as_str(), "a");
    assert_eq!(text(&request.unknown_tagged_fields, "ClusterId").as_deref(), Some("abc"));
    assert_eq!(int(&request.unknown_tagged_fields, "NodeId"), Some(7));
}

#[test]
fn delete_groups_3_has_messages() {
    let result = |id: &str, code| {
        let group = StrBytes::from_string(id.to_owned()).into();
        DeletableGroupResult::default().with_group_id(group).with_error_code(code)
    };
    let mut response =
        DeleteGroupsResponse::default().with_results(vec![result("g", 16), result("h", 0)]);
    let mut out = BytesMut::new();
    encode_response::<DeleteGroupsRequest>(1, &response, &mut out).expect("encodes");
    let want = bytes!(&[0; 4], &[0, 0, 0, 2], &[0, 1], "g", &[0, 16], &[0, 1], "h", &[0, 0]);
    assert_eq!(out.as_ref(), want);

    set_text(&mut response.results[0].unknown_tagged_fields, "ErrorMessage", Some("no"));
    let mut out = BytesMut::new();
    encode_response::<DeleteGroupsRequest>(3, &response, &mut out).expect("encodes");
    let first = bytes!(&[2], "g", &[0, 16], &[3], "no", &[0]);
    let second = bytes!(&[2], "h", &[0, 0], &[0], &[0]);
    assert_eq!(out.as_ref(), bytes!(&[0; 4], &[3], &first, &second, &[0]));
}

#[test]
fn describe_log_dirs_5_says_what_is_cordoned() {
    let dir = DescribeLogDirsResult::default()
        .with_log_dir(StrBytes::from_static_str("d"))
        .with_total_bytes(1)
        .with_usable_bytes(2);
    let mut response = DescribeLogDirsResponse::default().with_results(vec![dir.clone(), dir]);
    set_flag(&mut response.results[1].unknown_tagged_fields, "IsCordoned", true);
    let mut out = BytesMut::new();
    encode_response::<DescribeLogDirsRequest>(5, &response, &mut out).expect("encodes");
    let result = |cordoned: u8| {
        bytes!(&[0, 0, 2], "d", &[1], &[0; 7], &[1], &[0; 7], &[2], &[cordoned], &[0])
    };
    assert_eq!(out.as_ref(), bytes!(&[0; 4], &[0, 0], &[3], &result(0), &result(1), &[0]));
}

#[test]
fn fields_of_later_requests_stay_where_they_belong() {
    let marker = bytes!(&[0; 8], &[0, 1], &[1], &[1], &[0, 0, 0, 5], &[2], &[0]);
    let body = Bytes::from(bytes!(&[2], &marker, &[0]));
    let request: WriteTxnMarkersRequest = decode_request(2, &body).expect("decodes");
    assert_eq!(request.markers[0].coordinator_epoch, 5);
    let tags = &request.markers[0].unknown_tagged_fields;
    assert_eq!(int(tags, "TransactionVersion"), Some(2));

    let id = Uuid::from_u128(77);
    let topic = bytes!(id.as_bytes(), &[1], &[0]);
    let head = bytes!(&[2], "x", &[2], "g", &[0; 8], &[0, 0], &[0xff; 4], &[1], &[0]);
    let body = Bytes::from(bytes!(&head, &[2], &topic, &[0]));
    let request: TxnOffsetCommitRequest = decode_request(6, &body).expect("decodes");
    assert_eq!(request.topics[0].name.as_str(), "");
    assert_eq!(uuid(&request.topics[0].unknown_tagged_fields, "TopicId"), Some(id));

    // An unknown tag is dropped, also one that looks like ours.
    let mut spoof = BytesMut::new();
    wire::put_uvarint(&mut spoof, extra_tag("Name"));
    let topic = bytes!(id.as_bytes(), &[1], &[1], &spoof, &[1], "!");
    let body = Bytes::from(bytes!(&[2], "g", &[0xff; 4], &[1], &[0], &[2], &topic, &[0]));
    let request: OffsetCommitRequest = decode_request(10, &body).expect("decodes");
    assert_eq!(request.topics[0].name.as_str(), "");
    assert_eq!(request.topics[0].topic_id, id);
    assert!(request.topics[0].unknown_tagged_fields.is_empty());
    let topic = bytes!(id.as_bytes(), &[2, 0, 0, 0, 3], &[0]);
    let body = Bytes::from(bytes!(&[2], &[2], "g", &[0], &[0xff; 4], &[2], &topic, &[0, 0, 0]));
    let request: OffsetFetchRequest = decode_request(10, &body).expect("decodes");
    let topics = request.groups[0].topics.as_ref().expect("not null");
    assert_eq!((topics[0].topic_id, topics[0].partition_indexes.as_slice()), (id, &[3][..]));
    assert!(topics[0].unknown_tagged_fields.is_empty());
}

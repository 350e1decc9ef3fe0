//! Decoding of requests and encoding of responses with kafka-protocol's types, also in versions
//! of Kafka 4.4 that are later than the crate's.
//!
//! Nothing reaches the crate's decoder that did not pass `shape`. A later version is bridged by
//! rewriting the body to the crate's newest one, or back. A field that only the later version
//! has travels in `unknown_tagged_fields` of the struct it belongs to, where [`uuid`] and its
//! like read it and [`set_text`] and its like put it.
//!
//! | API | from version | field |
//! |---|---|---|
//! | OffsetCommit, OffsetFetch | 10 | none: the crate has a `topic_id` in the request's topics |
//! | ApiVersions | 5 | `ClusterId`, `NodeId` (see also [`api_versions`]) |
//! | TxnOffsetCommit | 6 | `TopicId` of each topic, in the response to be set |
//! | DescribeLogDirs | 5 | `IsCordoned` of each result, to be set |
//! | DeleteGroups | 3 | `ErrorMessage` of each result, to be set |
//! | WriteTxnMarkers | 2 | `TransactionVersion` of each marker |
//!
//! and what the field table has for the share, quorum and streams APIs. A field that is not set
//! gets its default. In versions that the crate has, none must be set: it would be sent as is.

pub mod api_versions;

use std::any::Any;
use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetFetchRequest};
use kafka_protocol::protocol::{Encodable, Message, Request};
use uuid::Uuid;

use crate::rewrite::{Mode, extra_tag, rewrite};
use crate::schema;
use crate::shape::{ShapeError, request_body};
use crate::versions::same_layout;
use crate::wire::{self, Malformed, Reader};

const TOPIC_ID: &str = "TopicId";

/// Why a request could not be decoded; the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// kafka-protocol refused what the shape check let through.
    #[error("decoder: {0}")]
    Decoder(String),
}

impl From<Malformed> for DecodeError {
    fn from(malformed: Malformed) -> Self {
        DecodeError::Shape(ShapeError::Malformed(malformed))
    }
}

/// Why a response could not be encoded: a field is set that the version does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("encoder: {0}")]
pub struct EncodeError(pub String);

/// Decodes a request body in any version of the field table: shape check, then kafka-protocol.
/// Text and bytes are slices of `body`, so whoever keeps them keeps the frame: copy them.
pub fn decode_request<R: Request + 'static>(version: i16, body: &Bytes) -> Result<R, DecodeError> {
    let api = schema::api(R::KEY).ok_or(ShapeError::UnknownApi(R::KEY))?;
    let types = version.min(R::VERSIONS.max);
    let mut checked = request_body(R::KEY, version, body)?;
    if !same_layout(api.request, version, types) {
        let versions = (version, types);
        checked = rewrite(api, api.request, versions, &checked, Mode::Keep)?.freeze();
    }
    let request = R::decode(&mut checked, types);
    let mut request = request.map_err(|e| DecodeError::Decoder(e.to_string()))?;
    if version > types {
        place_topic_ids(&mut request);
    }
    Ok(request)
}

/// Two requests of the crate have a place for the topic id, but not the version that has it.
fn place_topic_ids(request: &mut dyn Any) {
    let place = |tags: &mut Tags, topic_id: &mut Uuid| {
        *topic_id = uuid(tags, TOPIC_ID).unwrap_or_default();
        tags.remove(&(extra_tag(TOPIC_ID) as i32));
    };
    if let Some(request) = request.downcast_mut::<OffsetCommitRequest>() {
        for topic in &mut request.topics {
            place(&mut topic.unknown_tagged_fields, &mut topic.topic_id);
        }
    } else if let Some(request) = request.downcast_mut::<OffsetFetchRequest>() {
        let groups = request.groups.iter_mut();
        for topic in groups.filter_map(|group| group.topics.as_mut()).flatten() {
            place(&mut topic.unknown_tagged_fields, &mut topic.topic_id);
        }
    }
}

/// Encodes a response body in any version of the field table.
///
/// # Errors
/// When a field is set that the version does not have and that may not be dropped. `out` may
/// then hold a part of the body.
pub fn encode_response<R: Request>(
    version: i16,
    response: &R::Response,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let unknown = || EncodeError(format!("API {} version {version} is not known", R::KEY));
    let api = schema::api(R::KEY).filter(|api| api.has(version)).ok_or_else(unknown)?;
    let types = version.min(R::Response::VERSIONS.max);
    if same_layout(api.response, version, types) {
        return encode(response, types, out);
    }
    let mut body = BytesMut::new();
    encode(response, types, &mut body)?;
    let body = rewrite(api, api.response, (types, version), &body, Mode::Fill);
    out.put_slice(&body.map_err(|e| EncodeError(e.to_string()))?);
    Ok(())
}

fn encode<M: Message + Encodable>(
    message: &M,
    version: i16,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let size = message.compute_size(version).map_err(|e| EncodeError(e.to_string()))?;
    out.reserve(size);
    message.encode(out, version).map_err(|e| EncodeError(e.to_string()))
}

/// kafka-protocol's `unknown_tagged_fields`.
type Tags = BTreeMap<i32, Bytes>;

fn get<'a>(tags: &'a Tags, field: &str) -> Option<Reader<'a>> {
    tags.get(&(extra_tag(field) as i32)).map(|bytes| Reader::new(bytes))
}

/// The id that a later version carries in `field`; `None` in versions without it.
pub fn uuid(tags: &BTreeMap<i32, Bytes>, field: &str) -> Option<Uuid> {
    get(tags, field)?.uuid().ok()
}

/// The number, of any width, that a later version carries in `field`.
pub fn int(tags: &BTreeMap<i32, Bytes>, field: &str) -> Option<i64> {
    let mut reader = get(tags, field)?;
    match reader.remaining() {
        1 => reader.i8().ok().map(i64::from),
        2 => reader.i16().ok().map(i64::from),
        4 => reader.i32().ok().map(i64::from),
        _ => reader.i64().ok(),
    }
}

/// The flag that a later version carries in `field`.
pub fn flag(tags: &BTreeMap<i32, Bytes>, field: &str) -> Option<bool> {
    get(tags, field)?.bool().ok()
}

/// The text that a later version carries in `field`; `None` also for null.
pub fn text(tags: &BTreeMap<i32, Bytes>, field: &str) -> Option<String> {
    let bytes = get(tags, field)?.nullable_string(true).ok()??;
    Some(wire::text(bytes).into_owned())
}

fn set(tags: &mut Tags, field: &str, value: BytesMut) {
    tags.insert(extra_tag(field) as i32, value.freeze());
}

/// Sets an id that only a later version has.
pub fn set_uuid(tags: &mut BTreeMap<i32, Bytes>, field: &str, value: Uuid) {
    set(tags, field, BytesMut::from(value.as_bytes().as_slice()));
}

/// Sets a number of four bytes that only a later version has.
pub fn set_i32(tags: &mut BTreeMap<i32, Bytes>, field: &str, value: i32) {
    set(tags, field, BytesMut::from(value.to_be_bytes().as_slice()));
}

/// Sets a number of eight bytes that only a later version has.
pub fn set_i64(tags: &mut BTreeMap<i32, Bytes>, field: &str, value: i64) {
    set(tags, field, BytesMut::from(value.to_be_bytes().as_slice()));
}

/// Sets a flag that only a later version has.
pub fn set_flag(tags: &mut BTreeMap<i32, Bytes>, field: &str, value: bool) {
    set(tags, field, BytesMut::from([u8::from(value)].as_slice()));
}

/// Sets a text that only a later version has.
pub fn set_text(tags: &mut BTreeMap<i32, Bytes>, field: &str, value: Option<&str>) {
    let mut bytes = BytesMut::new();
    wire::put_nullable_string(&mut bytes, true, value);
    set(tags, field, bytes);
}

#[cfg(test)]
mod tests;

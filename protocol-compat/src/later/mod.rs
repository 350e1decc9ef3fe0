//! Decoding of requests and encoding of responses with kafka-protocol's types, also in versions
//! of Kafka 4.4 that are later than the crate.
//!
//! Nothing reaches the crate's decoder that did not pass `shape`. A later version is bridged by
//! rewriting the body to the crate's newest one (or back): a field that only the later version
//! has is handed over separately, or gets its default. One file per API for those whose new
//! fields have a meaning here.

pub mod api_versions;
pub mod delete_groups;
pub mod describe_log_dirs;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Encodable, Message, Request};

pub use crate::rewrite::Value;

use crate::rewrite::{Difference, rewrite};
use crate::schema::{self, Api, Field};
use crate::shape::{ShapeError, request_body};
use crate::versions::{same_layout, stand_in};
use crate::wire::Malformed;

/// Why a request could not be decoded; the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// kafka-protocol lacks the API.
    #[error("no types for version {version} of API {key}")]
    NoTypes { key: i16, version: i16 },
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

/// What a request says in a field that kafka-protocol does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Kafka's name of the field.
    pub field: &'static str,
    pub value: Value,
}

/// Decodes a request body: shape check, then kafka-protocol. Text and bytes are slices of `body`.
///
/// Fields that a later version has are dropped; [`decode_request_with`] keeps them.
pub fn decode_request<R: Request>(version: i16, body: &Bytes) -> Result<R, DecodeError> {
    Ok(decode_request_with(version, body)?.0)
}

/// Like [`decode_request`], with what the request says in fields that kafka-protocol lacks, in
/// wire order. They are 4.4's: for example `TopicId` of each topic in TxnOffsetCommit v6, whose
/// `Name` is then empty.
pub fn decode_request_with<R: Request>(
    version: i16,
    body: &Bytes,
) -> Result<(R, Vec<Extra>), DecodeError> {
    let mut extras = Dropped(Vec::new());
    let no_types = DecodeError::NoTypes { key: R::KEY, version };
    let api = schema::api(R::KEY).ok_or(no_types.clone())?;
    let checked = request_body(R::KEY, version, body)?;
    let types = stand_in(R::KEY, version).ok_or(no_types)?;
    let mut body = if same_layout(api.request, version, types) {
        checked
    } else {
        rewrite(api, api.request, (version, types), &checked, &mut extras)?.freeze()
    };
    let request = R::decode(&mut body, types).map_err(|e| DecodeError::Decoder(e.to_string()))?;
    Ok((request, extras.0))
}

struct Dropped(Vec<Extra>);

impl Difference for Dropped {
    fn dropped(&mut self, field: &'static Field, value: Value) {
        self.0.push(Extra { field: field.name, value });
    }

    fn added(&mut self, _: &'static Field) -> Option<Value> {
        None
    }
}

/// Encodes a response body. Fields that only a later version has get their default.
///
/// # Errors
/// When a field is set that the version does not have and that Kafka may not drop. `out` may
/// then hold a part of the body.
pub fn encode_response<R: Request>(
    version: i16,
    response: &R::Response,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    encode_response_with::<R>(version, response, |_| None, out)
}

/// Like [`encode_response`], but `added` is asked, in wire order, for the value of each field
/// that kafka-protocol lacks; `None` gives its default.
pub fn encode_response_with<R: Request>(
    version: i16,
    response: &R::Response,
    added: impl FnMut(&'static str) -> Option<Value>,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let unknown = || EncodeError(format!("no types for version {version} of API {}", R::KEY));
    let api = schema::api(R::KEY).ok_or_else(unknown)?;
    let types = stand_in(R::KEY, version).ok_or_else(unknown)?;
    if same_layout(api.response, version, types) {
        return encode(response, types, out);
    }
    let mut body = BytesMut::new();
    encode(response, types, &mut body)?;
    out.put_slice(&upgrade(api, (types, version), &body, added)?);
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

fn upgrade(
    api: &Api,
    versions: (i16, i16),
    body: &[u8],
    added: impl FnMut(&'static str) -> Option<Value>,
) -> Result<BytesMut, EncodeError> {
    let mut added = Added(added);
    rewrite(api, api.response, versions, body, &mut added).map_err(|e| EncodeError(e.to_string()))
}

struct Added<F>(F);

impl<F: FnMut(&'static str) -> Option<Value>> Difference for Added<F> {
    fn dropped(&mut self, _: &'static Field, _: Value) {}

    fn added(&mut self, field: &'static Field) -> Option<Value> {
        (self.0)(field.name)
    }
}

#[cfg(test)]
mod tests;

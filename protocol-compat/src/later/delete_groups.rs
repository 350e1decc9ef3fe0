//! DeleteGroups (42), the response of v0-3.
//!
//! v3: a message with each error, which kafka-protocol's type has no place for.

use bytes::BytesMut;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::{EncodeError, Value, encode_response_with};

/// Writes the response body; `messages` goes with its results one by one, a missing one is null.
pub fn encode(
    version: i16,
    response: &DeleteGroupsResponse,
    messages: &[Option<String>],
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let mut messages = messages.iter().cloned();
    let next = |_: &'static str| messages.next().map(Value::Text);
    encode_response_with::<DeleteGroupsRequest>(version, response, next, out)
}

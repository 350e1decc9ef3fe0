//! Request and response headers.
//!
//! Which header version goes with which API version comes from `schema`; the body is left to
//! `shape`, `hot`, `later` and kafka-protocol.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use crate::schema;
use crate::wire::{self, Malformed, Reader};

/// The key of ApiVersions, whose headers have rules of their own.
pub const API_VERSIONS: i16 = 18;

/// What stands in front of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
    /// Not valid UTF-8 is decoded with U+FFFD, as Kafka does. Kafka takes null as empty.
    pub client_id: Option<Cow<'a, str>>,
    /// Where the body starts in the frame.
    pub body_start: usize,
}

/// Why a header was refused. Kafka closes the connection on each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("no API has key {0}")]
    UnknownApi(i16),
    /// Not for ApiVersions: see [`RequestHeader::parse`].
    #[error("API {key} has no version {version}")]
    UnsupportedVersion { key: i16, version: i16 },
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl<'a> RequestHeader<'a> {
    /// Reads the header of a frame (without its size field).
    ///
    /// A version of ApiVersions that does not exist is accepted here, its header read as v2 when
    /// the version is above 2, else as v1: the caller must answer it with a v0 body holding
    /// UNSUPPORTED_VERSION and must not read its body ([`RequestHeader::is_unsupported`]).
    pub fn parse(frame: &'a [u8]) -> Result<RequestHeader<'a>, HeaderError> {
        let mut reader = Reader::new(frame);
        let api_key = reader.i16()?;
        let api_version = reader.i16()?;
        let api = schema::api(api_key).ok_or(HeaderError::UnknownApi(api_key))?;
        if api_key != API_VERSIONS && !api.serves(api_version) {
            return Err(HeaderError::UnsupportedVersion { key: api_key, version: api_version });
        }
        let correlation_id = reader.i32()?;
        // The client id keeps the old two-byte length also in a flexible header.
        let client_id = reader.nullable_string(false)?.map(wire::text);
        if api.is_flexible(api_version) {
            reader.skip_tags()?;
        }
        let body_start = reader.position();
        Ok(RequestHeader { api_key, api_version, correlation_id, client_id, body_start })
    }

    /// Whether the version is one that the API does not have: only ever true for ApiVersions.
    pub fn is_unsupported(&self) -> bool {
        schema::api(self.api_key).is_none_or(|api| !api.serves(self.api_version))
    }
}

/// How many bytes [`put_response_header`] writes: 4, or 5 in a flexible version.
pub fn response_header_len(key: i16, version: i16) -> usize {
    let flexible = schema::api(key).is_some_and(|api| api.is_flexible(version));
    // Clients cannot know the version of an ApiVersions answer, so its header is always v0.
    if flexible && key != API_VERSIONS { 5 } else { 4 }
}

/// The header of a response to a request of this key and version.
pub fn put_response_header(out: &mut BytesMut, key: i16, version: i16, correlation_id: i32) {
    out.put_i32(correlation_id);
    if response_header_len(key, version) == 5 {
        out.put_u8(0);
    }
}

#[cfg(test)]
mod tests;

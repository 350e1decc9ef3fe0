//! From a frame to a handler and back: shape check, decode, handle, encode at the same version.

use std::future::Future;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::Request;
use protocol_compat::header::put_response_header;
use protocol_compat::later;

use super::{Answer, Ctx, Head, Started};
use crate::net::out::Reply;

/// The response type of a handler.
pub type ResponseOf<H> = <<H as Handler>::Request as Request>::Response;

/// One API: everything about it that is not common to all.
///
/// Bodies are decoded and encoded by `protocol_compat::later`, so that every version of Kafka 4.4
/// works; fields that kafka-protocol lacks travel in `unknown_tagged_fields`.
pub trait Handler: 'static {
    type Request: Request + Send;

    /// Answers one decoded request. Failures of single items are part of the answer.
    fn handle(
        ctx: Ctx,
        version: i16,
        request: Self::Request,
    ) -> impl Future<Output = ResponseOf<Self>> + Send;
}

/// Runs handler `H` on one request.
pub fn run<H: Handler>(ctx: Ctx, body: Bytes) -> Started
where
    ResponseOf<H>: Send,
{
    let Head { key, version, .. } = ctx.head;
    let request = match later::decode_request::<H::Request>(version, &body) {
        Ok(request) => request,
        Err(error) => {
            let what = format!("a request (API key {key}, version {version}) is broken: {error}");
            return Started::Done(Answer::Close(what));
        }
    };
    Started::Running(Box::pin(async move {
        let head = ctx.head.clone();
        let response = H::handle(ctx, version, request).await;
        let mut out = begin(&head);
        match later::encode_response::<H::Request>(version, &response, &mut out) {
            Ok(()) => Answer::Reply(finish(out)),
            Err(error) => {
                tracing::error!(key, version, %error, "an answer could not be encoded");
                Answer::Close(format!("the answer could not be encoded: {error}"))
            }
        }
    }))
}

/// A frame with its header, its size still open.
pub fn begin(head: &Head) -> BytesMut {
    let mut out = BytesMut::with_capacity(256);
    out.put_i32(0);
    put_response_header(&mut out, head.key, head.version, head.correlation_id);
    out
}

/// Fills in the size.
pub fn finish(mut out: BytesMut) -> Reply {
    let size = i32::try_from(out.len() - 4).unwrap_or(i32::MAX);
    out[..4].copy_from_slice(&size.to_be_bytes());
    Reply::from(out)
}

/// The answer to an ApiVersions request of a version that is not known: version 0, error 35, one
/// key, so that the client asks again (KIP-511).
pub fn too_new(head: &Head) -> Reply {
    let mut out = BytesMut::with_capacity(32);
    out.put_i32(0);
    out.put_i32(head.correlation_id);
    out.put_i16(protocol_compat::error::ErrorCode::UnsupportedVersion.code());
    out.put_i32(1);
    let row = super::table::row(head.key);
    out.put_i16(head.key);
    out.put_i16(row.map_or(0, |row| row.advertised.0));
    out.put_i16(row.map_or(0, |row| row.advertised.1));
    finish(out)
}

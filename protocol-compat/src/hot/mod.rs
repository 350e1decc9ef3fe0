//! Produce and Fetch, read and written without kafka-protocol: no copy of any record, and no
//! allocation but the `Vec`s of the structs.
//!
//! Both parsers take exactly what Kafka 4.4 takes (see `shape`), so their bodies need no shape
//! check before. The other messages go through `shape` and kafka-protocol, or `later`.

pub mod fetch;
pub mod produce;

use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use crate::wire;

/// Most partitions one Produce or Fetch request may name. Kafka has no such limit; this one keeps
/// what a request takes in memory near what it took on the wire.
pub const PARTITIONS_MAX: usize = 1 << 20;

/// Where a broker is, for clients that are told of a leader they may not know yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEndpoint {
    pub node_id: i32,
    pub host: Arc<str>,
    pub port: i32,
    pub rack: Option<Arc<str>>,
}

/// The body's tagged-field section of both responses: only node endpoints are ever in it.
fn put_node_endpoints(out: &mut BytesMut, endpoints: &[NodeEndpoint]) {
    if endpoints.is_empty() {
        out.put_u8(0);
        return;
    }
    let mut payload = BytesMut::new();
    wire::put_len(&mut payload, true, Some(endpoints.len()));
    for endpoint in endpoints {
        payload.put_i32(endpoint.node_id);
        wire::put_string(&mut payload, true, &endpoint.host);
        payload.put_i32(endpoint.port);
        wire::put_nullable_string(&mut payload, true, endpoint.rack.as_deref());
        payload.put_u8(0);
    }
    out.put_slice(&[1, 0]);
    wire::put_uvarint(out, payload.len() as u32);
    out.put_slice(&payload);
}

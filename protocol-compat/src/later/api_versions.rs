//! ApiVersions (18), the request of v0-5.
//!
//! v3: flexible, with the name and version of the client software. v5 (KIP-1242): the cluster
//! and node the client believes it talks to. What they must look like is the broker's to check.

use crate::wire::{self, Malformed, Reader};

/// The first version with compact lengths, tagged fields, and anything in its body.
const FLEXIBLE: i16 = 3;
/// The first version that names cluster and node.
const CLUSTER: i16 = 5;

/// An ApiVersions request. A field that its version lacks has Kafka's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiVersionsRequest {
    pub client_software_name: String,
    pub client_software_version: String,
    pub cluster_id: Option<String>,
    /// -1 when not given.
    pub node_id: i32,
}

/// Reads a request body of version 0 to 5. Bytes behind the body are left alone.
pub fn parse(version: i16, body: &[u8]) -> Result<ApiVersionsRequest, Malformed> {
    let mut request = ApiVersionsRequest {
        client_software_name: String::new(),
        client_software_version: String::new(),
        cluster_id: None,
        node_id: -1,
    };
    if version < FLEXIBLE {
        return Ok(request);
    }
    let mut reader = Reader::new(body);
    request.client_software_name = wire::text(reader.string(true)?).into_owned();
    request.client_software_version = wire::text(reader.string(true)?).into_owned();
    if version >= CLUSTER {
        let cluster_id = reader.nullable_string(true)?;
        request.cluster_id = cluster_id.map(|bytes| wire::text(bytes).into_owned());
        request.node_id = reader.i32()?;
    }
    reader.skip_tags()?;
    Ok(request)
}

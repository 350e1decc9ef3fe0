//! ApiVersions (18), 0-5.
//!
//! v3: flexible, the client's software name and version, features. v4: features with minimum 0 are
//! listed too. v5: the client says which cluster and node it means (KIP-1242). Any other version is
//! answered in the form of v0 with error 35, by `dispatch::too_new`.

use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;
use protocol_compat::error::ErrorCode;
use protocol_compat::later;

use super::{Ctx, Handler, TABLE};

pub struct ApiVersions;

impl Handler for ApiVersions {
    type Request = ApiVersionsRequest;

    async fn handle(ctx: Ctx, version: i16, request: ApiVersionsRequest) -> ApiVersionsResponse {
        let mut response = ApiVersionsResponse::default();
        if version >= 3
            && !(is_software_name(&request.client_software_name)
                && is_software_name(&request.client_software_version))
        {
            response.error_code = ErrorCode::InvalidRequest.code();
            return response;
        }
        if let Err(code) = check_target(&ctx, &request) {
            response.error_code = code.code();
            return response;
        }
        response.api_keys = TABLE
            .iter()
            .map(|row| {
                let mut key = ApiVersion::default();
                key.api_key = row.key;
                (key.min_version, key.max_version) = row.advertised;
                key
            })
            .collect();
        if version >= 3 {
            features(&ctx, version, &mut response);
        }
        response
    }
}

fn features(ctx: &Ctx, version: i16, response: &mut ApiVersionsResponse) {
    let image = ctx.node.quorum.image();
    // Old Java clients choke on a minimum of 0 (KAFKA-17492).
    let shown = |min: i16| version >= 4 || min > 0;
    response.supported_features = crate::features::SUPPORTED
        .iter()
        .filter(|feature| shown(feature.min_level))
        .map(|feature| {
            let mut key = SupportedFeatureKey::default();
            key.name = StrBytes::from_static_str(feature.name);
            key.min_version = feature.min_level;
            key.max_version = feature.max_level;
            key
        })
        .collect();
    response.finalized_features = image
        .features()
        .filter(|(_, level)| *level > 0)
        .map(|(name, level)| {
            let mut key = FinalizedFeatureKey::default();
            key.name = super::ctx::text(name);
            key.min_version_level = level;
            key.max_version_level = level;
            key
        })
        .collect();
    response.finalized_features_epoch = image.last_applied();
}

/// KIP-1242: a client that says which node of which cluster it means must have found it.
fn check_target(ctx: &Ctx, request: &ApiVersionsRequest) -> Result<(), ErrorCode> {
    let tags = &request.unknown_tagged_fields;
    let cluster = later::text(tags, "ClusterId");
    let node = later::int(tags, "NodeId").filter(|id| *id != -1);
    match (cluster, node) {
        (None, None) => Ok(()),
        (Some(cluster), Some(node)) => {
            let here = *cluster == *ctx.node.cluster_id && node == i64::from(ctx.node.id);
            if here { Ok(()) } else { Err(ErrorCode::RebootstrapRequired) }
        }
        _ => Err(ErrorCode::InvalidRequest),
    }
}

/// KIP-511: letters and digits at both ends, `-` and `.` between them too.
fn is_software_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let bytes = name.as_bytes();
    bytes.iter().all(|&byte| inner(byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::is_software_name;

    #[test]
    fn software_names_follow_kip_511() {
        for (name, good) in [
            ("a", true),
            ("a-b.c", true),
            ("apache-kafka-java", true),
            ("", false),
            ("a b", false),
            ("-a", false),
            ("a-", false),
            (".", false),
            ("é", false),
        ] {
            assert_eq!(is_software_name(name), good, "{name:?}");
        }
    }
}

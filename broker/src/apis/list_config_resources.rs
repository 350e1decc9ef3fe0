//! ListConfigResources (74), 0-1. v0 lists client metrics only; v1 by type (KIP-1142).

use std::collections::BTreeSet;

use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use kraft::record::ResourceKind;
use protocol_compat::error::ErrorCode;

use super::ctx::text;
use super::{Ctx, Handler};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

pub struct ListConfigResources;

impl Handler for ListConfigResources {
    type Request = ListConfigResourcesRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: ListConfigResourcesRequest,
    ) -> ListConfigResourcesResponse {
        let mut response = ListConfigResourcesResponse::default();
        let mut kinds: BTreeSet<i8> = request.resource_types.iter().copied().collect();
        let every = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];
        if version == 0 {
            kinds = BTreeSet::from([CLIENT_METRICS]);
        } else if kinds.is_empty() {
            kinds = BTreeSet::from(every);
        }
        if kinds.iter().any(|kind| !every.contains(kind)) {
            response.error_code = ErrorCode::UnsupportedVersion.code();
            return response;
        }
        for kind in kinds {
            for name in names(&ctx, kind) {
                let mut resource = ConfigResource::default();
                resource.resource_name = text(&name);
                if version >= 1 {
                    resource.resource_type = kind;
                }
                response.config_resources.push(resource);
            }
        }
        response
    }
}

fn names(ctx: &Ctx, kind: i8) -> Vec<String> {
    let image = ctx.node.quorum.image();
    match kind {
        TOPIC => image.topics().map(|topic| topic.name.to_string()).collect(),
        BROKER | BROKER_LOGGER => image.brokers().map(|broker| broker.id.to_string()).collect(),
        kind => {
            let kind = ResourceKind::from_code(kind);
            let set = image.all_configs().filter(|(resource, _)| Some(resource.kind) == kind);
            set.map(|(resource, _)| resource.name.to_string()).collect()
        }
    }
}

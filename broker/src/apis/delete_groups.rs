//! DeleteGroups (42), 0-3. v2: flexible. v3: room for a text with an error (KIP-1043), which a
//! refused or missing group does not use.

use std::collections::BTreeSet;

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::ctx::name;
use super::dispatch::ResponseOf;
use super::{Ctx, Handler};

pub struct DeleteGroups;

impl Handler for DeleteGroups {
    type Request = DeleteGroupsRequest;

    async fn handle(ctx: Ctx, _version: i16, request: DeleteGroupsRequest) -> ResponseOf<Self> {
        let mut response = DeleteGroupsResponse::default();
        let mut seen = BTreeSet::new();
        for group in request.groups_names {
            if !seen.insert(group.clone()) {
                continue;
            }
            let now_ms = ctx.node.env.clock.steady_ms();
            let code = ctx.node.groups.delete_group(now_ms, name(&group)).await;
            let mut result = DeletableGroupResult::default();
            result.group_id = group;
            result.error_code = code.code();
            response.results.push(result);
        }
        response
    }
}

//! DeleteGroups (42), 0-3. v2: flexible. v3: a text with each error.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use protocol_compat::error::ErrorCode;
use protocol_compat::later;

use super::ctx::name;
use super::{Ctx, Handler};

pub struct DeleteGroups;

impl Handler for DeleteGroups {
    type Request = DeleteGroupsRequest;

    async fn handle(ctx: Ctx, version: i16, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
        let mut response = DeleteGroupsResponse::default();
        for group in request.groups_names {
            let now_ms = ctx.node.env.clock.steady_ms();
            let code = ctx.node.groups.delete_group(now_ms, name(&group)).await;
            let mut result = DeletableGroupResult::default();
            result.group_id = group;
            result.error_code = code.code();
            if version >= 3 && code != ErrorCode::None {
                let tags = &mut result.unknown_tagged_fields;
                later::set_text(tags, "ErrorMessage", Some(code.message()));
            }
            response.results.push(result);
        }
        response
    }
}

//! ListGroups (16), 0-5. v3: flexible. v4: by state. v5: by type.

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};

use super::ctx::text;
use super::{Ctx, Handler};
use crate::groups::ListFilter;

pub struct ListGroups;

impl Handler for ListGroups {
    type Request = ListGroupsRequest;

    async fn handle(ctx: Ctx, version: i16, request: ListGroupsRequest) -> ListGroupsResponse {
        let filter = ListFilter {
            states: request.states_filter.iter().map(|state| state.to_string()).collect(),
            types: request.types_filter.iter().map(|of| of.to_string()).collect(),
        };
        let mut response = ListGroupsResponse::default();
        let listed = match ctx.node.groups.list(ctx.node.env.clock.steady_ms(), filter).await {
            Ok(listed) => listed,
            Err(code) => return response.with_error_code(code.code()),
        };
        let groups = listed.into_iter().map(|group| {
            let mut out = ListedGroup::default();
            out.group_id = GroupId(text(&group.group));
            out.protocol_type = text(&group.protocol_type);
            if version >= 4 {
                out.group_state = text(group.state.name());
            }
            if version >= 5 {
                out.group_type = text(group.group_type);
            }
            out
        });
        response.groups = groups.collect();
        response
    }
}

//! DescribeGroups (15), 0-6.
//!
//! v3: authorized operations. v4: static membership. v5: flexible. v6: an error and a text for a
//! group that is not there; before, it is Dead without an error.

use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use protocol_compat::error::ErrorCode;

use super::ctx::{name, opt_text, text};
use super::metadata::operations;
use super::{Ctx, Handler};
use crate::groups::Description;

/// What everybody may do to a group without an authorizer: read, delete, describe, describe and
/// alter configs.
const GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

pub struct DescribeGroups;

impl Handler for DescribeGroups {
    type Request = DescribeGroupsRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: DescribeGroupsRequest,
    ) -> DescribeGroupsResponse {
        let mut response = DescribeGroupsResponse::default();
        for group in request.groups {
            let now_ms = ctx.node.env.clock.steady_ms();
            let description = ctx.node.groups.describe(now_ms, name(&group)).await;
            let mut answer = describe(version, group, description);
            if version >= 3 {
                // Nobody is told what may be done to a group that is not there.
                let there = answer.error_code == 0 || version < 6;
                let asked = request.include_authorized_operations && there;
                answer.authorized_operations = operations(asked, GROUP_OPERATIONS);
            }
            response.groups.push(answer);
        }
        response
    }
}

fn describe(version: i16, group: GroupId, description: Description) -> DescribedGroup {
    let mut answer = DescribedGroup::default();
    if description.error == ErrorCode::GroupIdNotFound {
        if version >= 6 {
            answer.error_code = description.error.code();
            answer.error_message = Some(text(&format!("Group {} not found.", group.as_str())));
        }
    } else {
        answer.error_code = description.error.code();
    }
    answer.group_id = group;
    answer.group_state = text(description.state.name());
    if !matches!(description.error, ErrorCode::None | ErrorCode::GroupIdNotFound) {
        answer.group_state = text("");
    }
    answer.protocol_type = text(&description.protocol_type);
    answer.protocol_data = text(&description.protocol);
    let members = description.members.into_iter().map(|member| {
        let mut out = DescribedGroupMember::default();
        out.member_id = text(&member.member_id);
        if version >= 4 {
            out.group_instance_id = opt_text(member.instance_id.as_deref());
        }
        out.client_id = text(&member.client_id);
        out.client_host = text(&member.client_host);
        out.member_metadata = member.metadata;
        out.member_assignment = member.assignment;
        out
    });
    answer.members = members.collect();
    answer
}

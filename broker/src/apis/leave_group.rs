//! LeaveGroup (13), 0-5. v3: several members, by instance id too. v4: flexible. v5: reason.

use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use protocol_compat::error::ErrorCode;

use super::ctx::{name, opt_name};
use super::{Ctx, Handler};
use crate::groups::{LeaveRequest, Leaving};

pub struct LeaveGroup;

impl Handler for LeaveGroup {
    type Request = LeaveGroupRequest;

    async fn handle(ctx: Ctx, version: i16, request: LeaveGroupRequest) -> LeaveGroupResponse {
        let members = if version < 3 {
            let member_id = name(&request.member_id);
            vec![Leaving { member_id, instance_id: None, reason: None }]
        } else {
            let leaving = request.members.iter().map(|member| Leaving {
                member_id: name(&member.member_id),
                instance_id: opt_name(member.group_instance_id.as_ref()),
                reason: opt_name(member.reason.as_ref()),
            });
            leaving.collect()
        };
        let input = LeaveRequest { group: name(&request.group_id), members };
        let reply = ctx.node.groups.leave(ctx.node.env.clock.steady_ms(), input).await;
        let mut response = LeaveGroupResponse::default();
        response.error_code = reply.error.code();
        if version < 3 {
            let of_member = reply.members.first().copied().unwrap_or(ErrorCode::None);
            if reply.error == ErrorCode::None {
                response.error_code = of_member.code();
            }
            return response;
        }
        let members = request.members.into_iter().zip(reply.members);
        let members = members.map(|(member, code)| {
            MemberResponse::default()
                .with_member_id(member.member_id)
                .with_group_instance_id(member.group_instance_id)
                .with_error_code(code.code())
        });
        response.members = members.collect();
        response
    }
}

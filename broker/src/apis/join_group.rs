//! JoinGroup (11), 0-9.
//!
//! v1: rebalance timeout. v4: a new member is told its id and comes back with it. v5: static
//! membership. v6: flexible. v7: protocol type in the answer. v8: reason. v9: a returning static
//! leader may skip the assignment.

use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};

use super::ctx::{name, opt_name, opt_text, text};
use super::{Ctx, Handler};
use crate::groups::{JoinReply, JoinRequest, Protocol};

pub struct JoinGroup;

impl Handler for JoinGroup {
    type Request = JoinGroupRequest;

    async fn handle(ctx: Ctx, version: i16, request: JoinGroupRequest) -> JoinGroupResponse {
        let rebalance_timeout_ms =
            if version == 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms };
        let protocols = request.protocols.into_iter().map(|protocol| Protocol {
            name: name(&protocol.name),
            metadata: super::ctx::owned(&protocol.metadata),
        });
        let input = JoinRequest {
            group: name(&request.group_id),
            member_id: name(&request.member_id),
            instance_id: opt_name(request.group_instance_id.as_ref()),
            client_id: name(ctx.client_id()),
            client_host: name(&ctx.client_host()),
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms,
            protocol_type: name(&request.protocol_type),
            protocols: protocols.collect(),
            requires_member_id: version >= 4,
            can_skip_assignment: version >= 9,
            reason: opt_name(request.reason.as_ref()),
            fresh_uuid: ctx.node.env.rng.uuid(),
        };
        let now_ms = ctx.node.env.clock.steady_ms();
        response(version, ctx.node.groups.join(now_ms, input).await)
    }
}

fn response(version: i16, reply: JoinReply) -> JoinGroupResponse {
    let mut response = JoinGroupResponse::default();
    response.error_code = reply.error.code();
    response.generation_id = reply.generation;
    response.leader = text(&reply.leader);
    response.member_id = text(&reply.member_id);
    if version >= 7 {
        response.protocol_type = opt_text(reply.protocol_type.as_deref());
        response.protocol_name = opt_text(reply.protocol.as_deref());
    } else {
        // Null came with v7.
        response.protocol_name = Some(text(reply.protocol.as_deref().unwrap_or("")));
    }
    response.skip_assignment = version >= 9 && reply.skip_assignment;
    let members = reply.members.into_iter().map(|member| {
        let mut out = JoinGroupResponseMember::default();
        out.member_id = text(&member.member_id);
        if version >= 5 {
            out.group_instance_id = opt_text(member.instance_id.as_deref());
        }
        out.metadata = member.metadata;
        out
    });
    response.members = members.collect();
    response
}

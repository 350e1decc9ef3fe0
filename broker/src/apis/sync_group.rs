//! SyncGroup (14), 0-5.
//!
//! v3: static membership. v4: flexible. v5: protocol type and name, asked and answered.

use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::ctx::{name, opt_name, opt_text, owned};
use super::{Ctx, Handler};
use crate::groups::SyncRequest;

pub struct SyncGroup;

impl Handler for SyncGroup {
    type Request = SyncGroupRequest;

    async fn handle(ctx: Ctx, version: i16, request: SyncGroupRequest) -> SyncGroupResponse {
        let assignments = request.assignments.iter();
        let input = SyncRequest {
            group: name(&request.group_id),
            generation: request.generation_id,
            member_id: name(&request.member_id),
            instance_id: opt_name(request.group_instance_id.as_ref()),
            protocol_type: opt_name(request.protocol_type.as_ref()),
            protocol: opt_name(request.protocol_name.as_ref()),
            requires_protocol: version >= 5,
            assignments: assignments
                .map(|to| (name(&to.member_id), owned(&to.assignment)))
                .collect(),
        };
        let reply = ctx.node.groups.sync(ctx.node.env.clock.steady_ms(), input).await;
        let mut response = SyncGroupResponse::default();
        response.error_code = reply.error.code();
        if version >= 5 {
            response.protocol_type = opt_text(reply.protocol_type.as_deref());
            response.protocol_name = opt_text(reply.protocol.as_deref());
        }
        response.assignment = reply.assignment;
        response
    }
}

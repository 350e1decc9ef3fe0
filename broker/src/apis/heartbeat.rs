//! Heartbeat (12), 0-4. v3: static membership. v4: flexible.

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::ctx::{name, opt_name};
use super::{Ctx, Handler};
use crate::groups;

pub struct Heartbeat;

impl Handler for Heartbeat {
    type Request = HeartbeatRequest;

    async fn handle(ctx: Ctx, _version: i16, request: HeartbeatRequest) -> HeartbeatResponse {
        let input = groups::HeartbeatRequest {
            group: name(&request.group_id),
            generation: request.generation_id,
            member_id: name(&request.member_id),
            instance_id: opt_name(request.group_instance_id.as_ref()),
        };
        let code = ctx.node.groups.heartbeat(ctx.node.env.clock.steady_ms(), input).await;
        HeartbeatResponse::default().with_error_code(code.code())
    }
}

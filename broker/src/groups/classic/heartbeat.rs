//! Heartbeat: the member lives; is its generation still the one?

use protocol_compat::error::ErrorCode;

use super::Cx;
use super::state::{Group, State};
use crate::groups::messages::HeartbeatRequest;

/// Answers a member of a group that exists. A right heartbeat counts in every state, but in a join
/// phase it is told to come and join.
///
/// Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
pub fn heartbeat(group: &Group, cx: &mut Cx, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
    group.check_member(&request.member_id, request.instance_id.as_deref())?;
    if request.generation != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    cx.arm_session(group, &request.member_id);
    match group.state {
        State::Preparing(_) => Err(ErrorCode::RebalanceInProgress),
        State::Empty | State::Completing | State::Stable => Ok(()),
    }
}

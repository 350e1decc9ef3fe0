//! LeaveGroup: members go, or are taken out by an administrator.

use protocol_compat::error::ErrorCode;
use tracing::info;

use super::Cx;
use super::rebalance::{remove, start_or_finish};
use super::state::{Group, State};
use crate::groups::messages::{Leaving, Name};

/// Takes each of them out; the rest of the group is rebalanced once. One error code per member.
pub fn leave(group: &mut Group, cx: &mut Cx, members: &[Leaving]) -> Vec<ErrorCode> {
    let outcomes: Vec<ErrorCode> = members.iter().map(|leaving| one(group, cx, leaving)).collect();
    if outcomes.contains(&ErrorCode::None) && group.state != State::Empty {
        start_or_finish(group, cx, "members leave");
    }
    outcomes
}

fn one(group: &mut Group, cx: &mut Cx, leaving: &Leaving) -> ErrorCode {
    match find(group, leaving) {
        Ok(member_id) => {
            let reason = leaving.reason.as_deref().unwrap_or("not given");
            info!(group = %group.id, member = %member_id, reason, "member leaves");
            remove(group, cx, &member_id);
            ErrorCode::None
        }
        Err(error) => error,
    }
}

/// Whom a line of the request means. An instance id alone means whoever has it now.
fn find(group: &Group, leaving: &Leaving) -> Result<Name, ErrorCode> {
    let instance_id = leaving.instance_id.as_deref();
    if leaving.member_id.is_empty() {
        let owner = instance_id.and_then(|instance_id| group.static_member(instance_id));
        return owner.cloned().ok_or(ErrorCode::UnknownMemberId);
    }
    if !group.pending_joins.contains(&leaving.member_id) {
        group.check_member(&leaving.member_id, instance_id)?;
    }
    Ok(leaving.member_id.clone())
}

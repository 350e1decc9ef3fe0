//! SyncGroup: members ask for their part, the leader brings everybody's.

use std::collections::BTreeMap;

use bytes::Bytes;
use kraft::machine::Token;
use protocol_compat::error::ErrorCode;

use super::Cx;
use super::state::{Group, Parked, State};
use crate::groups::hard::Record;
use crate::groups::machine::Timer;
use crate::groups::messages::{Name, SyncReply, SyncRequest};

/// Answers a member of a group that exists, or parks it until the leader has assigned.
pub fn sync(group: &mut Group, cx: &mut Cx, token: Token, request: SyncRequest) {
    if let Err(error) = check(group, &request) {
        cx.synced(token, SyncReply::refused(error));
        return;
    }
    let member_id = &request.member_id;
    match group.state {
        State::Empty => cx.synced(token, SyncReply::refused(ErrorCode::UnknownMemberId)),
        State::Preparing(_) => {
            cx.synced(token, SyncReply::refused(ErrorCode::RebalanceInProgress));
        }
        State::Completing => {
            if let Some(earlier) = group.park_sync(member_id, token) {
                cx.refuse(Parked::Sync(earlier), ErrorCode::RebalanceInProgress, member_id);
            }
            heard(group, cx, member_id);
            if group.is_leader(member_id) {
                assign(group, cx, request.assignments);
            }
        }
        State::Stable => {
            heard(group, cx, member_id);
            let reply = part(group, member_id);
            cx.synced(token, reply);
        }
    }
}

/// Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL.
fn check(group: &Group, request: &SyncRequest) -> Result<(), ErrorCode> {
    group.check_member(&request.member_id, request.instance_id.as_deref())?;
    if request.generation != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    match differs(&request.protocol_type, &group.protocol_type)
        || differs(&request.protocol, &group.protocol)
    {
        true => Err(ErrorCode::InconsistentGroupProtocol),
        false => Ok(()),
    }
}

fn differs(said: &Option<Name>, is: &Option<Name>) -> bool {
    matches!((said, is), (Some(said), Some(is)) if said != is)
}

/// The member synced in this generation; when all have, their deadline is met.
fn heard(group: &mut Group, cx: &mut Cx, member_id: &Name) {
    if group.pending_syncs.remove(member_id) && group.pending_syncs.is_empty() {
        cx.out.cancel(Timer::Sync(group.id.clone()));
    }
}

/// The leader's assignment: written, then told to all who wait. Members it forgot get empty bytes,
/// strangers in it are dropped.
fn assign(group: &mut Group, cx: &mut Cx, assignments: Vec<(Name, Bytes)>) {
    let assignments: BTreeMap<Name, Bytes> = assignments.into_iter().collect();
    let copy = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
    group.assign(|member_id| assignments.get(member_id).map(copy).unwrap_or_default());
    cx.out.record(Record::Group { group: group.id.clone(), value: Some(group.value()) });
    for member_id in group.member_ids() {
        if let Some(token) = group.take_sync(&member_id) {
            let reply = part(group, &member_id);
            cx.synced(token, reply);
            // A session that ran out while its member waited was let pass; it counts again from
            // here.
            cx.arm_session(group, &member_id);
        }
    }
    group.enter(State::Stable, cx.now_ms);
}

fn part(group: &Group, member_id: &str) -> SyncReply {
    SyncReply {
        error: ErrorCode::None,
        protocol_type: group.protocol_type.clone(),
        protocol: group.protocol.clone(),
        assignment: group.member(member_id).map(|m| m.assignment.clone()).unwrap_or_default(),
    }
}

//! JoinGroup: new members, members that come back, static members that take their place again.
//!
//! Kafka's `classicGroupJoinToClassicGroup`.

use kraft::machine::Token;
use protocol_compat::error::ErrorCode;

use super::rebalance::{current, finish_if_all_joined, prepare, remove, start_or_finish};
use super::state::{Gathering, Group, Member, Parked, State};
use super::{Cx, subscription};
use crate::groups::hard::Record;
use crate::groups::messages::{JoinReply, JoinRequest, Name};

/// A new member cannot send heartbeats before its first join is answered; if that takes longer than
/// this, its client is taken for gone (Kafka: 5 minutes, not configurable).
pub const NEW_MEMBER_TIMEOUT_MS: i32 = 300_000;

/// Ids handed out and not yet used, per group; at the bound newcomers get GROUP_MAX_SIZE_REACHED.
/// Kafka has no bound; they die with their session timeouts.
pub const PENDING_MAX: usize = 10_000;

/// Takes a join to a group that exists, or that is about to with this member. False if it was
/// refused and left no trace.
pub fn join(group: &mut Group, cx: &mut Cx, token: Token, request: JoinRequest) -> bool {
    if let Err(error) = admit(group, cx, &request) {
        let member_id = match error {
            // Its id, if it had one, is worth nothing any more.
            ErrorCode::GroupMaxSizeReached => Name::from(""),
            _ => request.member_id,
        };
        cx.joined(token, JoinReply::refused(error, member_id));
        return false;
    }
    if request.member_id.is_empty() {
        join_new(group, cx, token, request);
    } else if group.pending_joins.contains(&request.member_id) {
        let member_id = request.member_id.clone();
        add(group, cx, token, member_id, &request);
    } else {
        rejoin(group, cx, token, &request);
    }
    true
}

/// Whether the one who asks may be in the group at all.
///
/// Errors: GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
/// FENCED_INSTANCE_ID.
fn admit(group: &mut Group, cx: &mut Cx, request: &JoinRequest) -> Result<(), ErrorCode> {
    let member_id = &request.member_id;
    if !has_room(group, cx.settings.max_size, member_id) {
        if !member_id.is_empty() {
            remove(group, cx, member_id);
            finish_if_all_joined(group, cx);
        }
        return Err(ErrorCode::GroupMaxSizeReached);
    }
    if !group.supports(&request.protocol_type, &request.protocols) {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    let instance_id = request.instance_id.as_deref();
    if member_id.is_empty() {
        let pending_full = group.pending_joins.len() >= PENDING_MAX;
        let pends = request.requires_member_id && instance_id.is_none();
        return match pends && pending_full {
            true => Err(ErrorCode::GroupMaxSizeReached),
            false => Ok(()),
        };
    }
    if group.pending_joins.contains(member_id) {
        // Only dynamic members are made to wait, so an instance id is not theirs.
        return match instance_id {
            None => Ok(()),
            Some(_) => Err(ErrorCode::UnknownMemberId),
        };
    }
    group.check_member(member_id, instance_id)
}

/// In a join phase those who wait count, not the members: the last to come back are the ones left
/// out.
fn has_room(group: &Group, max_size: usize, member_id: &str) -> bool {
    let member = group.member(member_id);
    match group.state {
        State::Empty => true,
        State::Preparing(_) => {
            member.is_some_and(Member::awaits_join) || group.awaiting_joins() < max_size
        }
        State::Completing | State::Stable => member.is_some() || group.members().len() < max_size,
    }
}

fn join_new(group: &mut Group, cx: &mut Cx, token: Token, request: JoinRequest) {
    let stem = request.instance_id.as_ref().unwrap_or(&request.client_id);
    let member_id = Name::from(format!("{stem}-{}", request.fresh_uuid));
    let Some(instance_id) = &request.instance_id else {
        if request.requires_member_id {
            group.pending_joins.insert(member_id.clone());
            cx.arm_member(group, &member_id, request.session_timeout_ms);
            cx.joined(token, JoinReply::refused(ErrorCode::MemberIdRequired, member_id));
        } else {
            add(group, cx, token, member_id, &request);
        }
        return;
    };
    match group.static_member(instance_id).cloned() {
        Some(old_id) => replace_static(group, cx, token, &request, &old_id, member_id),
        None => add(group, cx, token, member_id, &request),
    }
}

/// A member more.
fn add(group: &mut Group, cx: &mut Cx, token: Token, member_id: Name, request: &JoinRequest) {
    if let State::Preparing(Gathering::Initial { grew, .. }) = &mut group.state {
        *grew = true;
    }
    group.add(member_id.clone(), Member::joining(request), &request.protocol_type);
    group.park_join(&member_id, token);
    cx.arm_member(group, &member_id, NEW_MEMBER_TIMEOUT_MS);
    start_or_finish(group, cx, request.reason.as_deref().unwrap_or("a member joins"));
}

/// A known member joins again.
fn rejoin(group: &mut Group, cx: &mut Cx, token: Token, request: &JoinRequest) {
    let member_id = &request.member_id;
    let Some(member) = group.member(member_id) else { return };
    let changed = !member.same_protocols(&request.protocols);
    let rebalances = match group.state {
        State::Preparing(_) => true,
        // Unchanged: it did not get the answer to its last join.
        State::Completing => changed,
        // The leader may see a reason that the coordinator cannot, such as new partitions.
        State::Stable => changed || group.is_leader(member_id),
        State::Empty => unreachable!("an empty group has no members"),
    };
    if rebalances {
        update(group, cx, token, member_id, request);
        start_or_finish(group, cx, request.reason.as_deref().unwrap_or("a member joins again"));
        return;
    }
    let reply = current(group, member_id);
    cx.joined(token, reply);
}

/// Notes what the member asks for now and parks its join.
fn update(group: &mut Group, cx: &mut Cx, token: Token, member_id: &Name, request: &JoinRequest) {
    group.update(member_id, request);
    if let Some(earlier) = group.park_join(member_id, token) {
        // The client gave up on that connection; nobody may be left to hear this.
        cx.refuse(Parked::Join(earlier), ErrorCode::RebalanceInProgress, member_id);
    }
}

/// A static member starts anew without its id: it gets a new one, and the old one is fenced off. In
/// a stable group whose protocol stays the same nobody else needs to know.
fn replace_static(
    group: &mut Group,
    cx: &mut Cx,
    token: Token,
    request: &JoinRequest,
    old_id: &Name,
    new_id: Name,
) {
    let leader_before = group.leader.clone().unwrap_or_default();
    cx.disarm_member(group, old_id);
    for parked in group.replace(old_id, new_id.clone()) {
        cx.refuse(parked, ErrorCode::FencedInstanceId, old_id);
    }
    if group.state == State::Stable {
        group.update(&new_id, request);
        if group.elect_protocol() == group.protocol {
            cx.arm_session(group, &new_id);
            group.subscribed = subscription::of_group(group);
            cx.out.record(Record::Group { group: group.id.clone(), value: Some(group.value()) });
            let reply = replaced(group, request.can_skip_assignment, new_id, leader_before);
            cx.joined(token, reply);
            return;
        }
    }
    update(group, cx, token, &new_id, request);
    cx.arm_session(group, &new_id);
    match group.state {
        State::Preparing(_) => finish_if_all_joined(group, cx),
        // In Completing too: the leader may already assign to the old id.
        _ => prepare(group, cx, "a static member was replaced"),
    }
}

/// The answer to a static member that took its place again without a rebalance. A leader is told
/// not to assign where it can be told; an old client must not take itself for the leader, so it is
/// shown the old id as leader and will just ask for its part.
fn replaced(group: &Group, can_skip: bool, new_id: Name, leader_before: Name) -> JoinReply {
    let reply = current(group, &new_id);
    match can_skip {
        true => JoinReply { skip_assignment: group.is_leader(&new_id), ..reply },
        false => JoinReply { leader: leader_before, members: Vec::new(), ..reply },
    }
}

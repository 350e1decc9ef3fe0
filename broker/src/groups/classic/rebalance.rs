//! The phases of a round: call everybody to join, close the join phase, start the next generation.
//!
//! Kafka's `prepareRebalance`, `completeClassicGroupJoin` and their kin in `GroupMetadataManager`.

use protocol_compat::error::ErrorCode;
use tracing::info;

use super::state::{Gathering, Group, Member, Parked, State};
use super::{Cx, subscription};
use crate::groups::hard::Record;
use crate::groups::machine::Timer;
use crate::groups::messages::{JoinReply, JoinedMember, Name};

/// A join phase in which nobody came is tried again no sooner than this, however short the members'
/// rebalance timeouts are.
const POSTPONE_MIN_MS: i32 = 500;

/// Somebody joined, changed or went: starts a join phase, or ends the one that runs if that was all
/// it waited for.
pub fn start_or_finish(group: &mut Group, cx: &mut Cx, reason: &str) {
    match group.state {
        State::Preparing(_) => finish_if_all_joined(group, cx),
        State::Empty | State::Completing | State::Stable => prepare(group, cx, reason),
    }
}

/// Ends a join phase in which everybody is back. The first one of a group ends by time alone.
pub fn finish_if_all_joined(group: &mut Group, cx: &mut Cx) {
    if group.state == State::Preparing(Gathering::Rejoin) && group.all_joined() {
        complete(group, cx);
    }
}

/// Starts a join phase.
pub fn prepare(group: &mut Group, cx: &mut Cx, reason: &str) {
    if group.state == State::Completing {
        cancel_syncs(group, cx);
    }
    group.pending_syncs.clear();
    cx.out.cancel(Timer::Sync(group.id.clone()));
    info!(group = %group.id, generation = group.generation, reason, "rebalance");
    if group.state == State::Empty {
        let delay_ms = cx.settings.initial_rebalance_delay_ms;
        let remaining_ms = (group.rebalance_timeout_ms() - delay_ms).max(0);
        let gathering = Gathering::Initial { delay_ms, remaining_ms, grew: false };
        group.enter(State::Preparing(gathering), cx.now_ms);
        cx.out.arm(Timer::Join(group.id.clone()), cx.after(delay_ms));
        return;
    }
    group.enter(State::Preparing(Gathering::Rejoin), cx.now_ms);
    match group.all_joined() {
        true => complete(group, cx),
        false => {
            let deadline_ms = cx.after(group.rebalance_timeout_ms());
            cx.out.arm(Timer::Join(group.id.clone()), deadline_ms);
        }
    }
}

/// The assignment that was awaited will not come: whoever waits for it has to join again.
fn cancel_syncs(group: &mut Group, cx: &mut Cx) {
    group.assign(|_| Default::default());
    for member_id in group.member_ids() {
        if let Some(token) = group.take_sync(&member_id) {
            cx.refuse(Parked::Sync(token), ErrorCode::RebalanceInProgress, &member_id);
            cx.arm_session(group, &member_id);
        }
    }
}

/// Ends the join phase: dynamic members that did not join again are out, the rest gets a
/// generation. Static ones keep their place until their session ends.
pub fn complete(group: &mut Group, cx: &mut Cx) {
    cx.out.cancel(Timer::Join(group.id.clone()));
    let silent = |member: &Member| !member.awaits_join() && member.instance_id.is_none();
    let silent = group.members().filter(|(_, member)| silent(member));
    let silent: Vec<Name> = silent.map(|(member_id, _)| member_id.clone()).collect();
    for member_id in &silent {
        info!(group = %group.id, member = %member_id, "member did not join again and is out");
        remove(group, cx, member_id);
    }
    if group.members().len() == 0 {
        become_empty(group, cx);
    } else if group.elect_leader() {
        next_generation(group, cx);
    } else {
        // Only static members, none of them back: wait for them, or for their sessions to end.
        let wait_ms = group.rebalance_timeout_ms().max(POSTPONE_MIN_MS);
        cx.out.arm(Timer::Join(group.id.clone()), cx.after(wait_ms));
    }
}

fn become_empty(group: &mut Group, cx: &mut Cx) {
    group.generation = following(group.generation);
    group.protocol = None;
    group.pending_syncs.clear();
    group.subscribed = subscription::of_group(group);
    group.enter(State::Empty, cx.now_ms);
    info!(group = %group.id, generation = group.generation, "group is empty");
    cx.out.record(Record::Group { group: group.id.clone(), value: Some(group.value()) });
}

fn next_generation(group: &mut Group, cx: &mut Cx) {
    group.generation = following(group.generation);
    group.protocol = group.elect_protocol();
    group.subscribed = subscription::of_group(group);
    group.enter(State::Completing, cx.now_ms);
    info!(group = %group.id, generation = group.generation, members = group.members().len(),
        "generation formed");
    for member_id in group.member_ids() {
        if let Some(token) = group.take_join(&member_id) {
            let reply = current(group, &member_id);
            cx.joined(token, reply);
        }
        cx.arm_session(group, &member_id);
        group.pending_syncs.insert(member_id);
    }
    let deadline_ms = cx.after(group.rebalance_timeout_ms());
    cx.out.arm(Timer::Sync(group.id.clone()), deadline_ms);
}

fn following(generation: i32) -> i32 {
    generation.checked_add(1).unwrap_or(1)
}

/// The answer to a member's JoinGroup in the present generation; the leader is told of everybody.
pub fn current(group: &Group, member_id: &Name) -> JoinReply {
    let members = match group.is_leader(member_id) {
        true => group.joined_members(),
        false => Vec::<JoinedMember>::new(),
    };
    JoinReply {
        error: ErrorCode::None,
        generation: group.generation,
        protocol_type: group.protocol_type.clone(),
        protocol: group.protocol.clone(),
        leader: group.leader.clone().unwrap_or_default(),
        skip_assignment: false,
        member_id: member_id.clone(),
        members,
    }
}

/// Takes a member (or pending id) out of the group. What it had parked is answered
/// UNKNOWN_MEMBER_ID, so that a client that is still there joins anew.
pub fn remove(group: &mut Group, cx: &mut Cx, member_id: &Name) {
    for parked in group.remove(member_id) {
        cx.refuse(parked, ErrorCode::UnknownMemberId, "");
    }
    cx.disarm_member(group, member_id);
}

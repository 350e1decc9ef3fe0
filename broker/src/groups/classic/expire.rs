//! What time does to a group: sessions end, join phases close, members that never sync are out.
//!
//! A timer that is late or in vain finds the group in another state and does nothing.

use tracing::info;

use super::Cx;
use super::rebalance::{complete, finish_if_all_joined, prepare, remove, start_or_finish};
use super::state::{Gathering, Group, State};
use crate::groups::machine::Timer;
use crate::groups::messages::Name;

/// Nothing was heard of a member, or of an id that was handed out, for its session timeout.
pub fn session(group: &mut Group, cx: &mut Cx, member_id: &Name) {
    if group.pending_joins.contains(member_id) {
        remove(group, cx, member_id);
        finish_if_all_joined(group, cx);
        return;
    }
    match group.member(member_id) {
        None => {}
        // A client that waits for an answer of ours cannot be blamed for its silence. Its session
        // starts again when it gets that answer.
        Some(member) if member.may_be_silent() => {}
        Some(_) => {
            info!(group = %group.id, member = %member_id, "session ended");
            remove(group, cx, member_id);
            start_or_finish(group, cx, "a member's session ended");
        }
    }
}

/// The time of the join phase is over, unless newcomers gave the first one of the group more.
pub fn join(group: &mut Group, cx: &mut Cx) {
    let State::Preparing(gathering) = &mut group.state else { return };
    if let Gathering::Initial { delay_ms, remaining_ms, grew: true } = gathering
        && *remaining_ms > 0
    {
        let next_ms = cx.settings.initial_rebalance_delay_ms.min(*remaining_ms);
        let left_ms = (*remaining_ms - *delay_ms).max(0);
        *gathering = Gathering::Initial { delay_ms: next_ms, remaining_ms: left_ms, grew: false };
        cx.out.arm(Timer::Join(group.id.clone()), cx.after(next_ms));
        return;
    }
    complete(group, cx);
}

/// Who has the generation and did not ask for its part in time is out, and the others join again.
pub fn sync(group: &mut Group, cx: &mut Cx) {
    let waits = matches!(group.state, State::Completing | State::Stable);
    if !waits || group.pending_syncs.is_empty() {
        return;
    }
    for member_id in group.pending_syncs.clone() {
        info!(group = %group.id, member = %member_id, "member did not sync and is out");
        remove(group, cx, &member_id);
    }
    prepare(group, cx, "members did not sync");
}

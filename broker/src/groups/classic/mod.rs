//! The classic rebalance protocol: join, sync, heartbeat, leave, and what time does to them.
//!
//! `state` is the group as data, `rebalance` the phases, the other files one request (or timer)
//! each. All of them work on one live group and an outbox; finding the group, records and undo are
//! the machine's business.

pub mod expire;
pub mod heartbeat;
pub mod join;
pub mod leave;
pub mod rebalance;
pub mod state;
mod subscription;
pub mod sync;

use kraft::machine::{Outbox, Token};
use protocol_compat::error::ErrorCode;

use self::state::{Group, Parked};
use super::machine::{GroupMachine, Timer};
use super::messages::{JoinReply, Name, Reply, SyncReply};
use super::settings::GroupSettings;

/// What a step needs besides the group.
pub struct Cx<'a> {
    pub settings: &'a GroupSettings,
    pub now_ms: i64,
    pub out: &'a mut Outbox<GroupMachine>,
}

impl Cx<'_> {
    /// The time `timeout_ms` from now.
    pub fn after(&self, timeout_ms: i32) -> i64 {
        self.now_ms.saturating_add(i64::from(timeout_ms.max(0)))
    }

    /// The member must be heard of within its session timeout.
    pub fn arm_session(&mut self, group: &Group, member_id: &Name) {
        let timeout_ms = group.member(member_id).map_or(0, |member| member.session_timeout_ms);
        self.arm_member(group, member_id, timeout_ms);
    }

    /// The member (or pending id) must be heard of within this time.
    pub fn arm_member(&mut self, group: &Group, member_id: &Name, timeout_ms: i32) {
        let deadline_ms = self.after(timeout_ms);
        self.out.arm(session(group, member_id), deadline_ms);
    }

    /// The member is gone.
    pub fn disarm_member(&mut self, group: &Group, member_id: &Name) {
        self.out.cancel(session(group, member_id));
    }

    /// Answers JoinGroup.
    pub fn joined(&mut self, token: Token, reply: JoinReply) {
        self.out.reply(token, Reply::Join(reply));
    }

    /// Answers SyncGroup.
    pub fn synced(&mut self, token: Token, reply: SyncReply) {
        self.out.reply(token, Reply::Sync(reply));
    }

    /// Answers what was parked with an error.
    pub fn refuse(&mut self, parked: Parked, error: ErrorCode, member_id: &str) {
        match parked {
            Parked::Join(token) => self.joined(token, JoinReply::refused(error, member_id.into())),
            Parked::Sync(token) => self.synced(token, SyncReply::refused(error)),
        }
    }
}

fn session(group: &Group, member_id: &Name) -> Timer {
    Timer::Session { group: group.id.clone(), member: member_id.clone() }
}

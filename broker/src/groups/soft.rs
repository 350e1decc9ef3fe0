//! What the log does not say: the groups in motion, their parked requests, and where background
//! work stands. Lost on failover; rebuilt by [`Soft::load`] as far as the log allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kraft::machine::{Outbox, Token};

use super::classic::rebalance;
use super::classic::state::{Group, Parked};
use super::classic::{Cx, state::State};
use super::hard::Hard;
use super::machine::{GroupMachine, Timer};
use super::messages::{DeletedTopic, GroupState, Name};
use super::settings::GroupSettings;

/// The soft state of one shard.
///
/// After each step `groups` holds exactly the groups that have members or pending ids. A group that
/// is missing here is Empty if the log knows it, and does not exist if not.
#[derive(Default)]
pub struct Soft {
    /// May be replaced while the shard runs.
    pub settings: Arc<GroupSettings>,
    pub(super) groups: BTreeMap<Name, Group>,
    /// What this step would have to restore if its records cannot be written.
    undo: Option<Undo>,
    /// The last group that the running search for expired offsets has looked at.
    pub(super) sweep_after: Option<Name>,
    pub(super) purge: Purge,
}

/// Offsets of deleted topics on their way out.
#[derive(Default)]
pub(super) struct Purge {
    pub topics: BTreeSet<DeletedTopic>,
    /// The last group looked at in this pass.
    pub after: Option<Name>,
    /// This pass found something, so another one has to confirm that it is gone.
    pub found: bool,
}

/// What became of the parked requests of a group that was put back.
#[derive(Default)]
pub(super) struct Restored {
    /// Parked again, or still.
    pub kept: BTreeSet<Token>,
    /// Parked by the step that failed; nobody holds them now.
    pub orphans: Vec<Parked>,
}

struct Undo {
    group: Name,
    /// The group as it was; `None` if it did not live.
    before: Option<Group>,
}

impl Soft {
    /// Soft state for a shard that runs with these settings.
    pub fn new(settings: Arc<GroupSettings>) -> Self {
        Soft { settings, ..Soft::default() }
    }

    /// A group in motion. One that the log does not know any more was deleted, with its pending
    /// ids.
    pub(super) fn live(&self, hard: &Hard, group: &str) -> Option<&Group> {
        self.groups.get(group).filter(|_| hard.has(group))
    }

    /// The same, to be changed.
    pub(super) fn live_mut(&mut self, hard: &Hard, group: &str) -> Option<&mut Group> {
        self.groups.get_mut(group).filter(|_| hard.has(group))
    }

    /// A group that is live, or was made so by [`Soft::open`].
    pub(super) fn opened(&mut self, group: &str) -> &mut Group {
        self.groups.get_mut(group).expect("opened before")
    }

    /// Makes the group live, as the log left it, or as a new one.
    pub(super) fn open(&mut self, hard: &Hard, group: &Name) {
        if self.live(hard, group).is_none() {
            self.groups.insert(group.clone(), Group::stored(group, hard.group(group)));
        }
    }

    /// A step begins that may change this group and write a record about it.
    pub(super) fn remember(&mut self, hard: &Hard, group: &Name) {
        let before = self.live(hard, group).cloned();
        self.undo = Some(Undo { group: group.clone(), before });
    }

    /// A step begins.
    pub(super) fn begin(&mut self) {
        self.undo = None;
    }

    /// The step is over: a group of which the log says everything need not live.
    pub(super) fn settle(&mut self, group: &str) {
        if self.groups.get(group).is_some_and(Group::is_idle) {
            self.groups.remove(group);
        }
    }

    /// The records of the step were not written: the group is again what it was.
    pub(super) fn restore(&mut self) -> Restored {
        self.sweep_after = None;
        self.purge.after = None;
        let mut restored = Restored::default();
        let Some(Undo { group, before }) = self.undo.take() else { return restored };
        let after = self.groups.remove(&group);
        restored.kept.extend(before.iter().flat_map(Group::parked).map(Parked::token));
        restored.orphans.extend(after.iter().flat_map(Group::parked));
        restored.orphans.retain(|parked| !restored.kept.contains(&parked.token()));
        if let Some(before) = before {
            self.groups.insert(group, before);
        }
        restored
    }

    /// The log is replayed: groups with members live, and each member has its session timeout to be
    /// heard of. A group above the size limit is rebalanced, which is when the limit bites.
    pub(super) fn load(&mut self, hard: &Hard, now_ms: i64, out: &mut Outbox<GroupMachine>) {
        let settings = self.settings.clone();
        for (id, stored) in hard.groups().filter(|(_, stored)| !stored.is_empty_group()) {
            let mut group = Group::stored(id, Some(stored));
            let mut cx = Cx { settings: &settings, now_ms, out };
            for member_id in group.member_ids() {
                cx.arm_session(&group, &member_id);
            }
            if group.members().len() > settings.max_size {
                rebalance::prepare(&mut group, &mut cx, "loaded above the size limit");
            }
            self.groups.insert(id.clone(), group);
        }
        out.arm(Timer::Sweep, now_ms.saturating_add(settings.offsets_check_interval_ms));
    }

    /// The state of a group that may or may not live.
    pub(super) fn state(&self, hard: &Hard, group: &str) -> GroupState {
        match self.live(hard, group) {
            Some(live) => live.state_name(),
            None if hard.has(group) => GroupState::Empty,
            None => GroupState::Dead,
        }
    }

    /// Panics where soft state contradicts itself or the log. For tests, after every step.
    pub fn check(&self, hard: &Hard) {
        for (id, group) in self.groups.iter().filter(|(id, _)| hard.has(id)) {
            group.check();
            assert!(!group.is_idle(), "{id} lives without need");
            let stored = hard.group(id).and_then(|stored| stored.value.as_ref());
            if group.state == State::Stable {
                let stored = stored.expect("a stable group is stored");
                let live = group.value();
                assert_eq!((&stored.members, stored.generation), (&live.members, live.generation));
                assert_eq!((&stored.leader, &stored.protocol), (&live.leader, &live.protocol));
            }
        }
        for (id, _) in hard.groups().filter(|(_, stored)| !stored.is_empty_group()) {
            assert!(self.groups.contains_key(id), "{id} has members in the log alone");
        }
    }
}

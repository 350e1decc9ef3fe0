//! DescribeGroups, ListGroups and DeleteGroups.

use kraft::machine::Outbox;
use protocol_compat::error::ErrorCode;

use super::classic::state::{Group, State};
use super::hard::{Hard, Record};
use super::machine::GroupMachine;
use super::messages::*;
use super::offsets::tombstone;
use super::soft::Soft;

/// The type of every group of this protocol, on the wire.
pub const CLASSIC: &str = "classic";

/// One group. What members said is shown of a Stable group only; in a rebalance each still has
/// the work that it had.
pub fn describe(hard: &Hard, soft: &Soft, group: &Name) -> Description {
    let Some(stored) = hard.group(group) else {
        return Description::refused(ErrorCode::GroupIdNotFound);
    };
    match soft.live(hard, group) {
        Some(live) => describe_live(live),
        None => Description {
            error: ErrorCode::None,
            state: GroupState::Empty,
            protocol_type: stored.protocol_type().cloned().unwrap_or_default(),
            protocol: Name::default(),
            members: Vec::new(),
        },
    }
}

fn describe_live(live: &Group) -> Description {
    let stable = live.state == State::Stable;
    let protocol = live.protocol.clone().filter(|_| stable).unwrap_or_default();
    let members = live.members().map(|(member_id, member)| DescribedMember {
        member_id: member_id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: if stable { member.metadata(&protocol) } else { Default::default() },
        assignment: member.assignment.clone(),
    });
    Description {
        error: ErrorCode::None,
        state: live.state_name(),
        protocol_type: live.protocol_type.clone().unwrap_or_default(),
        members: members.collect(),
        protocol,
    }
}

/// The groups that pass the filter, by name.
pub fn list(hard: &Hard, soft: &Soft, filter: &ListFilter) -> Vec<ListedGroup> {
    if !passes(&filter.types, CLASSIC) {
        return Vec::new();
    }
    let rows = hard.groups().map(|(group, stored)| {
        let live = soft.live(hard, group);
        let protocol_type = match live {
            Some(live) => live.protocol_type.as_ref(),
            None => stored.protocol_type(),
        };
        ListedGroup {
            group: group.clone(),
            protocol_type: protocol_type.cloned().unwrap_or_default(),
            state: live.map_or(GroupState::Empty, Group::state_name),
            group_type: CLASSIC,
        }
    });
    rows.filter(|row| passes(&filter.states, row.state.name())).collect()
}

fn passes(filter: &[String], name: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.trim().eq_ignore_ascii_case(name))
}

/// Deletes a group without members, its offsets with it, in one write.
///
/// Errors: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; `ErrorCode::None` if it is deleted.
pub fn delete(hard: &Hard, soft: &Soft, group: &Name, out: &mut Outbox<GroupMachine>) -> ErrorCode {
    match (hard.group(group), soft.state(hard, group)) {
        (None, _) => ErrorCode::GroupIdNotFound,
        (Some(stored), GroupState::Empty) => {
            for (topic, partitions) in &stored.offsets {
                for partition in partitions.keys() {
                    out.record(tombstone(group, topic, *partition));
                }
            }
            // Ids that were handed out are forgotten with the group: the soft state of a group that
            // the log does not know counts for nothing.
            out.record(Record::Group { group: group.clone(), value: None });
            ErrorCode::None
        }
        (Some(_), _) => ErrorCode::NonEmptyGroup,
    }
}

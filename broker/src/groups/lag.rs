//! What metrics and the console want to know of all groups at once. Copies under each shard's lock,
//! one shard after the other; uncommitted records are in it.

use super::Groups;
use super::messages::{GroupState, Name};

/// One committed offset of one group. The lag is the log's end minus this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    pub group: Name,
    pub topic: Name,
    pub partition: i32,
    pub offset: i64,
}

/// One group in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSummary {
    pub group: Name,
    pub state: GroupState,
    pub members: usize,
}

impl Groups {
    /// Every committed offset, by shard, group, topic and partition.
    pub fn committed_offsets(&self) -> Vec<CommittedOffset> {
        let mut rows = Vec::new();
        for slot in self.slots() {
            slot.look(|hard, _| {
                for (group, stored) in hard.groups() {
                    for (topic, partitions) in &stored.offsets {
                        rows.extend(partitions.iter().map(|(partition, value)| CommittedOffset {
                            group: group.clone(),
                            topic: topic.clone(),
                            partition: *partition,
                            offset: value.offset,
                        }));
                    }
                }
            });
        }
        rows
    }

    /// Every group, by shard and name.
    pub fn summaries(&self) -> Vec<GroupSummary> {
        let mut rows = Vec::new();
        for slot in self.slots() {
            slot.look(|hard, soft| {
                rows.extend(hard.groups().map(|(group, _)| GroupSummary {
                    group: group.clone(),
                    state: soft.state(hard, group),
                    members: soft.live(hard, group).map_or(0, |live| live.members().len()),
                }));
            });
        }
        rows
    }
}

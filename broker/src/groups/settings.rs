//! What the operator sets about groups. Reading it from the configuration is left to the shell's
//! owner.

/// A plain copy of the group settings; Kafka's names are given with each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long the first rebalance of a group waits for more
    /// members; each newcomer extends it, up to the rebalance timeout.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members of one group.
    pub max_size: usize,
    /// `offset.metadata.max.bytes`; Kafka counts UTF-16 units, and so do we.
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`: how often expired offsets and groups are looked for.
    pub offsets_check_interval_ms: i64,
}

impl Default for GroupSettings {
    fn default() -> Self {
        GroupSettings {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            max_size: i32::MAX as usize,
            offset_metadata_max: 4_096,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            offsets_check_interval_ms: 600_000,
        }
    }
}

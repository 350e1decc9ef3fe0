//! What a topic's configs mean to its log.

/// One value per topic config that the log acts on. Defaults are Kafka's, but for the units they
/// are named after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `segment.ms`; for compacted topics at most `max.compaction.lag.ms` (the caller's minimum).
    pub segment_ms: i64,
    /// Taken off `segment_ms`: drawn by the caller from `0..segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u32,
    /// `retention.ms`; negative for unlimited.
    pub retention_ms: i64,
    /// `retention.bytes`; negative for unlimited.
    pub retention_bytes: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
    /// Whether `cleanup.policy` holds `delete`.
    pub delete: bool,
    /// Whether `cleanup.policy` holds `compact`.
    pub compact: bool,
    /// `preallocate`.
    pub preallocate: bool,
    /// `producer.id.expiration.ms`, a config of the broker.
    pub producer_id_expiration_ms: i64,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3600 * 1000,
            segment_jitter_ms: 0,
            index_interval_bytes: 4096,
            segment_index_bytes: 10 << 20,
            retention_ms: 7 * 24 * 3600 * 1000,
            retention_bytes: -1,
            file_delete_delay_ms: 60_000,
            delete: true,
            compact: false,
            preallocate: false,
            producer_id_expiration_ms: 24 * 3600 * 1000,
        }
    }
}

impl LogConfig {
    /// Entries an offset index may hold.
    pub(crate) fn index_entries_max(&self) -> usize {
        self.segment_index_bytes as usize / 8
    }

    /// Entries a time index may hold before the roll, which adds one.
    pub(crate) fn time_entries_max(&self) -> usize {
        (self.segment_index_bytes as usize / 12).saturating_sub(1)
    }
}

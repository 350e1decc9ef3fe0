//! What a topic's settings mean to the log and to the check of produced records: plain structs,
//! so that the hot path looks up no names.

use kraft::image::Configs;
use protocol_compat::compression::Codec;

use super::dynamic::{DynamicConfig, ResourceConfig};
use super::keys::{self, topic};

/// All that holds for one topic, in the units of the setting names.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSettings {
    /// `segment.bytes`, or `internal.segment.bytes` where a test sets it.
    pub segment_bytes: i32,
    pub segment_ms: i64,
    pub segment_jitter_ms: i64,
    pub segment_index_bytes: i32,
    pub index_interval_bytes: i32,
    pub preallocate: bool,
    /// 1: a record is on disk before it is acknowledged. `i64::MAX`: never for its own sake.
    pub flush_messages: i64,
    pub flush_ms: i64,
    /// -1: no limit.
    pub retention_bytes: i64,
    /// -1: for ever.
    pub retention_ms: i64,
    /// `cleanup.policy` has `delete`.
    pub delete: bool,
    /// `cleanup.policy` has `compact`.
    pub compact: bool,
    pub delete_retention_ms: i64,
    pub min_compaction_lag_ms: i64,
    pub max_compaction_lag_ms: i64,
    pub min_cleanable_dirty_ratio: f64,
    pub file_delete_delay_ms: i64,
    pub max_message_bytes: i32,
    pub max_decompressed_message_bytes: i32,
    /// `None`: as the producer sent it. The level is the codec's own.
    pub compression: Option<(Codec, i32)>,
    /// `message.timestamp.type` is `LogAppendTime`.
    pub log_append_time: bool,
    pub timestamp_before_max_ms: i64,
    pub timestamp_after_max_ms: i64,
    pub min_insync_replicas: i32,
    pub unclean_leader_election: bool,
    /// The broker's `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i32,
}

impl DynamicConfig {
    /// What holds for a topic with these overrides.
    pub fn topic(&self, overrides: &Configs) -> TopicSettings {
        let config = self.topic_config(overrides);
        let policies = config.list(topic::CLEANUP_POLICY);
        let segment_bytes = config.opt_int(topic::INTERNAL_SEGMENT_BYTES);
        TopicSettings {
            segment_bytes: segment_bytes.unwrap_or_else(|| config.int(topic::SEGMENT_BYTES)),
            segment_ms: config.long(topic::SEGMENT_MS),
            segment_jitter_ms: config.long(topic::SEGMENT_JITTER_MS),
            segment_index_bytes: config.int(topic::SEGMENT_INDEX_BYTES),
            index_interval_bytes: config.int(topic::INDEX_INTERVAL_BYTES),
            preallocate: config.bool(topic::PREALLOCATE),
            flush_messages: config.long(topic::FLUSH_MESSAGES),
            flush_ms: config.long(topic::FLUSH_MS),
            retention_bytes: config.long(topic::RETENTION_BYTES),
            retention_ms: config.long(topic::RETENTION_MS),
            delete: policies.contains(&"delete"),
            compact: policies.contains(&"compact"),
            delete_retention_ms: config.long(topic::DELETE_RETENTION_MS),
            min_compaction_lag_ms: config.long(topic::MIN_COMPACTION_LAG_MS),
            max_compaction_lag_ms: config.long(topic::MAX_COMPACTION_LAG_MS),
            min_cleanable_dirty_ratio: config.double(topic::MIN_CLEANABLE_DIRTY_RATIO),
            file_delete_delay_ms: config.long(topic::FILE_DELETE_DELAY_MS),
            max_message_bytes: config.int(topic::MAX_MESSAGE_BYTES),
            max_decompressed_message_bytes: config.int(topic::MAX_DECOMPRESSED_MESSAGE_BYTES),
            compression: compression(&config),
            log_append_time: config.string(topic::MESSAGE_TIMESTAMP_TYPE) == "LogAppendTime",
            timestamp_before_max_ms: config.long(topic::MESSAGE_TIMESTAMP_BEFORE_MAX_MS),
            timestamp_after_max_ms: config.long(topic::MESSAGE_TIMESTAMP_AFTER_MAX_MS),
            min_insync_replicas: config.int(topic::MIN_INSYNC_REPLICAS),
            unclean_leader_election: config.bool(topic::UNCLEAN_LEADER_ELECTION_ENABLE),
            producer_id_expiration_ms: self.int(keys::PRODUCER_ID_EXPIRATION_MS),
        }
    }
}

fn compression(config: &ResourceConfig) -> Option<(Codec, i32)> {
    match config.string(topic::COMPRESSION_TYPE) {
        "uncompressed" => Some((Codec::None, 0)),
        "gzip" => Some((Codec::Gzip, config.int(topic::COMPRESSION_GZIP_LEVEL))),
        "snappy" => Some((Codec::Snappy, 0)),
        "lz4" => Some((Codec::Lz4, config.int(topic::COMPRESSION_LZ4_LEVEL))),
        "zstd" => Some((Codec::Zstd, config.int(topic::COMPRESSION_ZSTD_LEVEL))),
        _ => None,
    }
}

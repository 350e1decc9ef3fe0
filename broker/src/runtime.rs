//! The configuration as it is now, with what the request paths need looked up beforehand. Replaced
//! as a whole when a dynamic setting changes.

use std::sync::Arc;

use kraft::controller::Settings;
use protocol_compat::batch::ProduceRules;
use protocol_compat::ids::TopicPartition;
use storage::log::LogConfig;

use crate::config::{DynamicConfig, TopicSettings, keys};
use crate::groups::GroupSettings;

/// See the head of this module.
pub struct Runtime {
    pub config: DynamicConfig,
    pub request_bytes_max: usize,
    pub idle_ms_max: i64,
    pub fetch_bytes_max: i32,
    pub connections_max: usize,
    pub connections_per_ip_max: usize,
    pub auto_create_topics: bool,
    pub fetch_sessions_max: usize,
}

impl Runtime {
    pub fn new(config: DynamicConfig) -> Runtime {
        let count = |number: i32| usize::try_from(number).unwrap_or(0);
        let idle_ms_max = match config.long(keys::CONNECTIONS_MAX_IDLE_MS) {
            ms if ms < 0 => i64::MAX / 4,
            ms => ms,
        };
        Runtime {
            request_bytes_max: count(config.int(keys::SOCKET_REQUEST_MAX_BYTES)),
            idle_ms_max,
            fetch_bytes_max: config.int(keys::FETCH_MAX_BYTES),
            connections_max: count(config.int(keys::MAX_CONNECTIONS)),
            connections_per_ip_max: count(config.int(keys::MAX_CONNECTIONS_PER_IP)),
            auto_create_topics: config.bool(keys::AUTO_CREATE_TOPICS_ENABLE),
            fetch_sessions_max: count(config.int(keys::MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS)),
            config,
        }
    }

    /// What the group coordinator needs to know.
    pub fn group_settings(&self) -> GroupSettings {
        let config = &self.config;
        let minutes = i64::from(config.int(keys::OFFSETS_RETENTION_MINUTES));
        let max_size = config.int(keys::GROUP_MAX_SIZE);
        let metadata_max = config.int(keys::OFFSET_METADATA_MAX_BYTES);
        GroupSettings {
            min_session_timeout_ms: config.int(keys::GROUP_MIN_SESSION_TIMEOUT_MS),
            max_session_timeout_ms: config.int(keys::GROUP_MAX_SESSION_TIMEOUT_MS),
            initial_rebalance_delay_ms: config.int(keys::GROUP_INITIAL_REBALANCE_DELAY_MS),
            max_size: usize::try_from(max_size).unwrap_or(usize::MAX),
            offset_metadata_max: usize::try_from(metadata_max).unwrap_or(0),
            offsets_retention_ms: minutes * 60_000,
            offsets_check_interval_ms: config.long(keys::OFFSETS_RETENTION_CHECK_INTERVAL_MS),
        }
    }

    /// What the controller needs to know.
    pub fn controller_settings(&self, node_id: i32, cluster_id: &str) -> Settings {
        let config = &self.config;
        let rules = Arc::new(config.clone());
        let rebalance_seconds = config.long(keys::LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS);
        let min_isr = config.int(keys::MIN_INSYNC_REPLICAS);
        Settings {
            default_partitions: config.int(keys::NUM_PARTITIONS),
            default_replication_factor: i16::try_from(config.int(keys::DEFAULT_REPLICATION_FACTOR))
                .unwrap_or(1),
            min_isr: usize::try_from(min_isr).unwrap_or(1),
            unclean_election: config.bool(keys::UNCLEAN_LEADER_ELECTION_ENABLE),
            delete_topics: config.bool(keys::DELETE_TOPIC_ENABLE),
            session_timeout_ms: i64::from(config.int(keys::BROKER_SESSION_TIMEOUT_MS)),
            rebalance_interval_ms: config
                .bool(keys::AUTO_LEADER_REBALANCE_ENABLE)
                .then_some(rebalance_seconds * 1000),
            inter_broker_listener: config.fixed().inter_broker_listener().to_owned(),
            features: crate::features::table(),
            ..Settings::new(node_id, cluster_id, rules)
        }
    }
}

impl TopicSettings {
    /// What the log needs to know.
    pub fn log_config(&self) -> LogConfig {
        LogConfig {
            segment_bytes: u32::try_from(self.segment_bytes).unwrap_or(1),
            segment_ms: self.segment_ms,
            segment_jitter_ms: self.segment_jitter_ms,
            index_interval_bytes: u32::try_from(self.index_interval_bytes).unwrap_or(0),
            segment_index_bytes: u32::try_from(self.segment_index_bytes).unwrap_or(8),
            retention_ms: self.retention_ms,
            retention_bytes: self.retention_bytes,
            file_delete_delay_ms: self.file_delete_delay_ms,
            delete: self.delete,
            compact: self.compact,
            preallocate: self.preallocate,
            producer_id_expiration_ms: i64::from(self.producer_id_expiration_ms),
        }
    }

    /// What a produced batch must be like.
    pub fn produce_rules<'a>(
        &self,
        partition: &'a TopicPartition,
        now_ms: i64,
        request_version: i16,
    ) -> ProduceRules<'a> {
        ProduceRules {
            partition,
            max_message_bytes: self.max_message_bytes,
            log_append_time: self.log_append_time,
            before_max_ms: self.timestamp_before_max_ms,
            after_max_ms: self.timestamp_after_max_ms,
            compacted: self.compact,
            compression: self.compression,
            max_decompressed: self.max_decompressed_message_bytes,
            now_ms,
            request_version,
        }
    }

    /// `min.insync.replicas`, but never more than there are replicas.
    pub fn effective_min_isr(&self, replicas: usize) -> usize {
        usize::try_from(self.min_insync_replicas).unwrap_or(1).min(replicas)
    }

    /// Whether an acknowledgement may leave before its records are on disk.
    pub fn is_relaxed(&self) -> bool {
        self.flush_messages > 1
    }
}

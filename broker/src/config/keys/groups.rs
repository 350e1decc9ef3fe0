//! Group coordination: classic, consumer, share and streams groups, and their internal topics.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { GROUPS_ROWS;
    /// Which group protocols are offered; `group.version` and its sisters decide since Kafka 4.
    GROUP_COORDINATOR_REBALANCE_PROTOCOLS "group.coordinator.rebalance.protocols" List =
        "classic,consumer,streams", ListOf(&["classic", "consumer", "streams", "share"]), Medium
        ReadOnly Later;

    /// Number of coordinator threads; groups in Gracchus run on the threads that read their
    /// requests.
    GROUP_COORDINATOR_THREADS "group.coordinator.threads" Int = 4, AtLeast(1), High ReadOnly Never;

    /// Size of a coordinator's helper pool, which Gracchus does not have.
    GROUP_COORDINATOR_BACKGROUND_THREADS "group.coordinator.background.threads" Int = 2,
        AtLeast(1), High ReadOnly Never;

    /// How long a coordinator gathers writes; Gracchus gathers exactly while the write before
    /// is being flushed.
    GROUP_COORDINATOR_APPEND_LINGER_MS "group.coordinator.append.linger.ms" Int = -1, AtLeast(-1),
        Medium ReadOnly Never;

    /// How long an offset commit may wait to become durable before it fails.
    OFFSETS_COMMIT_TIMEOUT_MS "offsets.commit.timeout.ms" Int = 5000, AtLeast(1), High ReadOnly
        Later;

    /// How many bytes are read at a time while the offsets topic is loaded.
    OFFSETS_LOAD_BUFFER_SIZE "offsets.load.buffer.size" Int = 5_242_880, AtLeast(1), High ReadOnly
        Later;

    /// Replicas of the offsets topic; when not set, the smaller of 3 and the number of brokers.
    OFFSETS_TOPIC_REPLICATION_FACTOR "offsets.topic.replication.factor" Short = 3, AtLeast(1), High
        ReadOnly Acts;

    /// Partitions of the offsets topic; must not change once the topic exists.
    OFFSETS_TOPIC_NUM_PARTITIONS "offsets.topic.num.partitions" Int = 50, AtLeast(1), High ReadOnly
        Acts;

    /// Segment size of the offsets topic, kept small so that it compacts and loads quickly.
    OFFSETS_TOPIC_SEGMENT_BYTES "offsets.topic.segment.bytes" Int = 104_857_600, AtLeast(1), High
        ReadOnly Acts;

    /// Codec of the records in the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    OFFSETS_TOPIC_COMPRESSION_CODEC "offsets.topic.compression.codec" Int = 0, Any, High ReadOnly
        Later;

    /// How much of a coordinator's write buffer Kafka keeps for reuse; Gracchus sizes it by
    /// itself.
    GROUP_COORDINATOR_CACHED_BUFFER_MAX_BYTES "group.coordinator.cached.buffer.max.bytes" Int =
        1_048_588, AtLeast(524_288), Medium Cluster Never;

    /// The longest note that may accompany a committed offset.
    OFFSET_METADATA_MAX_BYTES "offset.metadata.max.bytes" Int = 4096, Any, High ReadOnly Acts;

    /// How long the offsets of a group without members are kept.
    OFFSETS_RETENTION_MINUTES "offsets.retention.minutes" Int = 10_080, AtLeast(1), High ReadOnly
        Acts;

    /// How often expired offsets are looked for.
    OFFSETS_RETENTION_CHECK_INTERVAL_MS "offsets.retention.check.interval.ms" Long = 600_000,
        AtLeast(1), High ReadOnly Acts;

    /// The shortest session time-out a member of a classic group may ask for.
    GROUP_MIN_SESSION_TIMEOUT_MS "group.min.session.timeout.ms" Int = 6000, Any, Medium ReadOnly
        Acts;

    /// The longest session time-out a member of a classic group may ask for.
    GROUP_MAX_SESSION_TIMEOUT_MS "group.max.session.timeout.ms" Int = 1_800_000, Any, Medium
        ReadOnly Acts;

    /// How long an empty classic group waits for further members before its first rebalance.
    GROUP_INITIAL_REBALANCE_DELAY_MS "group.initial.rebalance.delay.ms" Int = 3000, Any, Medium
        ReadOnly Acts;

    /// How many members a classic group may have.
    GROUP_MAX_SIZE "group.max.size" Int = i32::MAX, AtLeast(1), Medium ReadOnly Acts;

    /// After how long without a heartbeat a consumer-group member is removed.
    GROUP_CONSUMER_SESSION_TIMEOUT_MS "group.consumer.session.timeout.ms" Int = 45_000, AtLeast(1),
        Medium ReadOnly Later;

    /// The least value a group may set for its consumer session time-out.
    GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS "group.consumer.min.session.timeout.ms" Int = 45_000,
        AtLeast(1), Medium ReadOnly Later;

    /// The greatest value a group may set for its consumer session time-out.
    GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS "group.consumer.max.session.timeout.ms" Int = 60_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How often consumer-group members are told to send heartbeats.
    GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS "group.consumer.heartbeat.interval.ms" Int = 5000,
        AtLeast(1), Medium ReadOnly Later;

    /// The least value a group may set for its consumer heartbeat interval.
    GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS "group.consumer.min.heartbeat.interval.ms" Int = 5000,
        AtLeast(1), Medium ReadOnly Later;

    /// The greatest value a group may set for its consumer heartbeat interval.
    GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS "group.consumer.max.heartbeat.interval.ms" Int =
        15_000, AtLeast(1), Medium ReadOnly Later;

    /// How many members a consumer group may have.
    GROUP_CONSUMER_MAX_SIZE "group.consumer.max.size" Int = i32::MAX, AtLeast(1), Medium ReadOnly
        Later;

    /// The assignors that a consumer group may use; the first is the default.
    GROUP_CONSUMER_ASSIGNORS "group.consumer.assignors" List = "uniform,range", NonEmptyList,
        Medium ReadOnly Later;

    /// Which way a group may move between the classic and the consumer protocol while it has
    /// members.
    GROUP_CONSUMER_MIGRATION_POLICY "group.consumer.migration.policy" Text = "bidirectional",
        OneOfAnyCase(&["upgrade", "downgrade", "bidirectional", "disabled"]), Medium ReadOnly
        Later;

    /// The least time between two assignments of one consumer group.
    GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS "group.consumer.assignment.interval.ms" Int = 1000,
        AtLeast(0), Medium Cluster Later;

    /// The least value a group may set for its consumer assignment interval.
    GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS "group.consumer.min.assignment.interval.ms" Int = 0,
        AtLeast(0), Medium ReadOnly Later;

    /// The greatest value a group may set for its consumer assignment interval.
    GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS "group.consumer.max.assignment.interval.ms" Int =
        15_000, AtLeast(0), Medium ReadOnly Later;

    /// Moves assignment to a helper pool, which Gracchus does not have.
    GROUP_CONSUMER_ASSIGNOR_OFFLOAD_ENABLE "group.consumer.assignor.offload.enable" Bool = true,
        Any, Medium Cluster Never internal;

    /// How often subscriptions by pattern are matched against the topics again.
    GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS "group.consumer.regex.refresh.interval.ms" Int =
        600_000, AtLeast(10_000), Medium ReadOnly Later internal;

    /// After how long without a heartbeat a share-group member is removed.
    GROUP_SHARE_SESSION_TIMEOUT_MS "group.share.session.timeout.ms" Int = 45_000, AtLeast(1),
        Medium ReadOnly Later;

    /// The least value a group may set for its share session time-out.
    GROUP_SHARE_MIN_SESSION_TIMEOUT_MS "group.share.min.session.timeout.ms" Int = 45_000,
        AtLeast(1), Medium ReadOnly Later;

    /// The greatest value a group may set for its share session time-out.
    GROUP_SHARE_MAX_SESSION_TIMEOUT_MS "group.share.max.session.timeout.ms" Int = 60_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How often share-group members are told to send heartbeats.
    GROUP_SHARE_HEARTBEAT_INTERVAL_MS "group.share.heartbeat.interval.ms" Int = 5000, AtLeast(1),
        Medium ReadOnly Later;

    /// The least value a group may set for its share heartbeat interval.
    GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS "group.share.min.heartbeat.interval.ms" Int = 5000,
        AtLeast(1), Medium ReadOnly Later;

    /// The greatest value a group may set for its share heartbeat interval.
    GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS "group.share.max.heartbeat.interval.ms" Int = 15_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How many members a share group may have.
    GROUP_SHARE_MAX_SIZE "group.share.max.size" Int = 200, Between(1, 1000), Medium ReadOnly Later;

    /// The assignor that share groups use.
    GROUP_SHARE_ASSIGNORS "group.share.assignors" List = "simple", NonEmptyList, Medium ReadOnly
        Later;

    /// The least time between two assignments of one share group.
    GROUP_SHARE_ASSIGNMENT_INTERVAL_MS "group.share.assignment.interval.ms" Int = 1000, AtLeast(0),
        Medium Cluster Later;

    /// The least value a group may set for its share assignment interval.
    GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS "group.share.min.assignment.interval.ms" Int = 0,
        AtLeast(0), Medium ReadOnly Later;

    /// The greatest value a group may set for its share assignment interval.
    GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS "group.share.max.assignment.interval.ms" Int = 15_000,
        AtLeast(0), Medium ReadOnly Later;

    /// Moves assignment to a helper pool, which Gracchus does not have.
    GROUP_SHARE_ASSIGNOR_OFFLOAD_ENABLE "group.share.assignor.offload.enable" Bool = true, Any,
        Medium Cluster Never internal;

    /// The pause before the state of a share partition is initialised again after a failure.
    GROUP_SHARE_INITIALIZE_RETRY_INTERVAL_MS "group.share.initialize.retry.interval.ms" Int =
        30_000, AtLeast(1), Low ReadOnly Later internal;

    /// Whether a share group's dead-letter topic is created when it is missing.
    ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE
        "errors.deadletterqueue.auto.create.topics.enable" Bool = false, Any, Medium Cluster Later;

    /// How the names of dead-letter topics that are created by themselves begin.
    ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX "errors.deadletterqueue.topic.name.prefix" Text =
        "dlq.", Any, Medium Cluster Later;

    /// After how long without a heartbeat a streams-group member is removed.
    GROUP_STREAMS_SESSION_TIMEOUT_MS "group.streams.session.timeout.ms" Int = 45_000, AtLeast(1),
        Medium ReadOnly Later;

    /// The least value a group may set for its streams session time-out.
    GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS "group.streams.min.session.timeout.ms" Int = 45_000,
        AtLeast(1), Medium ReadOnly Later;

    /// The greatest value a group may set for its streams session time-out.
    GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS "group.streams.max.session.timeout.ms" Int = 60_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How often streams-group members are told to send heartbeats.
    GROUP_STREAMS_HEARTBEAT_INTERVAL_MS "group.streams.heartbeat.interval.ms" Int = 5000,
        AtLeast(1), Medium ReadOnly Later;

    /// The least value a group may set for its streams heartbeat interval.
    GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS "group.streams.min.heartbeat.interval.ms" Int = 5000,
        AtLeast(1), Medium ReadOnly Later;

    /// The greatest value a group may set for its streams heartbeat interval.
    GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS "group.streams.max.heartbeat.interval.ms" Int = 15_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How many members a streams group may have.
    GROUP_STREAMS_MAX_SIZE "group.streams.max.size" Int = i32::MAX, AtLeast(1), Medium ReadOnly
        Later;

    /// How many standby copies of each stateful task a streams group keeps.
    GROUP_STREAMS_NUM_STANDBY_REPLICAS "group.streams.num.standby.replicas" Int = 0, AtLeast(0),
        Medium ReadOnly Later;

    /// The greatest number of standby copies a group may set.
    GROUP_STREAMS_MAX_STANDBY_REPLICAS "group.streams.max.standby.replicas" Int = 2, AtLeast(0),
        Medium ReadOnly Later;

    /// How long an empty streams group waits for further members before its first assignment.
    GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS "group.streams.initial.rebalance.delay.ms" Int = 3000,
        AtLeast(0), Medium ReadOnly Later;

    /// The least time between two assignments of one streams group.
    GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS "group.streams.assignment.interval.ms" Int = 1000,
        AtLeast(0), Medium Cluster Later;

    /// The least value a group may set for its streams assignment interval.
    GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS "group.streams.min.assignment.interval.ms" Int = 0,
        AtLeast(0), Medium ReadOnly Later;

    /// The greatest value a group may set for its streams assignment interval.
    GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS "group.streams.max.assignment.interval.ms" Int =
        15_000, AtLeast(0), Medium ReadOnly Later;

    /// The assignors that a streams group may use; the first is the default.
    GROUP_STREAMS_ASSIGNORS "group.streams.assignors" List = "sticky", NonEmptyList, Medium
        ReadOnly Later;

    /// Moves assignment to a helper pool, which Gracchus does not have.
    GROUP_STREAMS_ASSIGNOR_OFFLOAD_ENABLE "group.streams.assignor.offload.enable" Bool = true, Any,
        Medium Cluster Never internal;

    /// How often streams members are told to report how far their tasks are.
    GROUP_STREAMS_TASK_OFFSET_INTERVAL_MS "group.streams.task.offset.interval.ms" Int = 60_000,
        AtLeast(1), Medium ReadOnly Later internal;

    /// The least value a group may set for that report interval.
    GROUP_STREAMS_MIN_TASK_OFFSET_INTERVAL_MS "group.streams.min.task.offset.interval.ms" Int =
        15_000, AtLeast(1), Medium ReadOnly Later internal;

    /// How many tasks of a streams group may warm up on new members at a time.
    GROUP_STREAMS_NUM_WARMUP_REPLICAS "group.streams.num.warmup.replicas" Int = 2, AtLeast(0),
        Medium ReadOnly Later internal;

    /// The greatest number of warm-up tasks a group may set.
    GROUP_STREAMS_MAX_WARMUP_REPLICAS "group.streams.max.warmup.replicas" Int = 20, AtLeast(0),
        Medium ReadOnly Later internal;

    /// Client tags over which a streams group spreads its standby copies.
    GROUP_STREAMS_RACK_AWARE_ASSIGNMENT_TAGS "group.streams.rack.aware.assignment.tags" List = "",
        List, Low ReadOnly Later;

    /// Java class that describes topologies; Gracchus loads no Java classes.
    GROUP_STREAMS_TOPOLOGY_DESCRIPTION_PLUGIN_CLASS
        "group.streams.topology.description.plugin.class" OptClass = None, Any, Medium ReadOnly
        Never;

    /// How far a standby copy may lag behind and still take over its task.
    GROUP_STREAMS_ACCEPTABLE_RECOVERY_LAG "group.streams.acceptable.recovery.lag" Long = 10_000,
        AtLeast(0), Medium ReadOnly Later internal;

    /// How often a record of a share group is delivered before it is given up.
    GROUP_SHARE_DELIVERY_COUNT_LIMIT "group.share.delivery.count.limit" Int = 5, Between(2, 10),
        Medium ReadOnly Later;

    /// The greatest delivery limit a group may set.
    GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT "group.share.max.delivery.count.limit" Int = 10,
        Between(5, 25), Medium ReadOnly Later;

    /// The least delivery limit a group may set.
    GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT "group.share.min.delivery.count.limit" Int = 2, Between(2,
        5), Medium ReadOnly Later;

    /// How long a share-group member may hold a record before it goes to another.
    GROUP_SHARE_RECORD_LOCK_DURATION_MS "group.share.record.lock.duration.ms" Int = 30_000,
        Between(1000, 3_600_000), Medium ReadOnly Later;

    /// The least lock duration a group may set.
    GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS "group.share.min.record.lock.duration.ms" Int = 15_000,
        Between(1000, 30_000), Medium ReadOnly Later;

    /// The greatest lock duration a group may set.
    GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS "group.share.max.record.lock.duration.ms" Int = 60_000,
        Between(30_000, 3_600_000), Medium ReadOnly Later;

    /// How many records of one share partition may be held at a time.
    GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS "group.share.partition.max.record.locks" Int = 2000,
        Between(100, 10_000), Medium ReadOnly Later;

    /// The greatest such number a group may set.
    GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS "group.share.max.partition.max.record.locks" Int =
        4000, Between(2000, 10_000), Medium ReadOnly Later;

    /// The least such number a group may set.
    GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS "group.share.min.partition.max.record.locks" Int =
        100, Between(100, 2000), Medium ReadOnly Later;

    /// Clean-up of Kafka's list of waiting share fetches; Gracchus drops a finished wait at
    /// once.
    SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS "share.fetch.purgatory.purge.interval.requests"
        Int = 1000, Any, Medium ReadOnly Never;

    /// How many share sessions a broker keeps.
    GROUP_SHARE_MAX_SHARE_SESSIONS "group.share.max.share.sessions" Int = 2000, AtLeast(1), Medium
        ReadOnly Later;

    /// Java class that keeps the state of share groups; Gracchus has its own only.
    GROUP_SHARE_PERSISTER_CLASS_NAME "group.share.persister.class.name" Text =
        "org.apache.kafka.server.share.persister.DefaultStatePersister", Any, Medium ReadOnly Never
        internal;

    /// Java class that writes dead letters; Gracchus has its own only.
    GROUP_SHARE_DLQ_MANAGER_CLASS_NAME "group.share.dlq.manager.class.name" Text =
        "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", Any, Medium ReadOnly Never
        internal;

    /// Partitions of the share-state topic; must not change once the topic exists.
    SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS "share.coordinator.state.topic.num.partitions" Int
        = 50, AtLeast(1), High ReadOnly Later;

    /// Replicas of the share-state topic; when not set, the smaller of 3 and the number of
    /// brokers.
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR
        "share.coordinator.state.topic.replication.factor" Short = 3, AtLeast(1), High ReadOnly
        Later;

    /// In-sync replicas that the share-state topic needs; when not set, never more than its
    /// replicas.
    SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR "share.coordinator.state.topic.min.isr" Short = 2,
        AtLeast(1), High ReadOnly Later;

    /// Segment size of the share-state topic.
    SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES "share.coordinator.state.topic.segment.bytes" Int =
        104_857_600, AtLeast(1), High ReadOnly Later;

    /// Number of share coordinator threads; coordinators in Gracchus have no threads of their
    /// own.
    SHARE_COORDINATOR_THREADS "share.coordinator.threads" Int = 1, AtLeast(1), Medium ReadOnly
        Never;

    /// How many changes of a share partition are written before its whole state is written
    /// again.
    SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT
        "share.coordinator.snapshot.update.records.per.snapshot" Int = 500, Between(0, 500), Medium
        ReadOnly Later;

    /// How many bytes are read at a time while the share-state topic is loaded.
    SHARE_COORDINATOR_LOAD_BUFFER_SIZE "share.coordinator.load.buffer.size" Int = 5_242_880,
        AtLeast(1), High ReadOnly Later;

    /// Codec of the records in the share-state topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC
        "share.coordinator.state.topic.compression.codec" Int = 0, Any, High ReadOnly Later;

    /// How long a coordinator gathers writes; Gracchus gathers exactly while the write before
    /// is being flushed.
    SHARE_COORDINATOR_APPEND_LINGER_MS "share.coordinator.append.linger.ms" Int = -1, AtLeast(-1),
        Medium ReadOnly Never;

    /// How long a write of share state may wait to become durable before it fails.
    SHARE_COORDINATOR_WRITE_TIMEOUT_MS "share.coordinator.write.timeout.ms" Int = 5000, AtLeast(1),
        High ReadOnly Later;

    /// How often share state that nobody needs is cut from its topic.
    SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS
        "share.coordinator.state.topic.prune.interval.ms" Int = 300_000, AtLeast(1), Low ReadOnly
        Later internal;

    /// How often the state of quiet share partitions is written again, so that old records can
    /// go.
    SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS
        "share.coordinator.cold.partition.snapshot.interval.ms" Int = 300_000, AtLeast(1), Low
        ReadOnly Later internal;

    /// How much of a coordinator's write buffer Kafka keeps for reuse; Gracchus sizes it by
    /// itself.
    SHARE_COORDINATOR_CACHED_BUFFER_MAX_BYTES "share.coordinator.cached.buffer.max.bytes" Int =
        1_048_588, AtLeast(524_288), Medium Cluster Never;
}

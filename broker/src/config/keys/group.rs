//! Settings of a group.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { ROWS;
    /// After how long without a heartbeat a member of this consumer group is removed.
    CONSUMER_SESSION_TIMEOUT_MS "consumer.session.timeout.ms" Int = 45_000, AtLeast(1), Medium
        Resource Later <- "group.consumer.session.timeout.ms";

    /// How often members of this consumer group are told to send heartbeats.
    CONSUMER_HEARTBEAT_INTERVAL_MS "consumer.heartbeat.interval.ms" Int = 5000, AtLeast(1), Medium
        Resource Later <- "group.consumer.heartbeat.interval.ms";

    /// The least time between two assignments of this consumer group.
    CONSUMER_ASSIGNMENT_INTERVAL_MS "consumer.assignment.interval.ms" Int = 1000, AtLeast(0),
        Medium Resource Later <- "group.consumer.assignment.interval.ms";

    /// Moves assignment to a helper pool, which Gracchus does not have.
    CONSUMER_ASSIGNOR_OFFLOAD_ENABLE "consumer.assignor.offload.enable" Bool = true, Any, Medium
        Resource Never internal;

    /// After how long without a heartbeat a member of this share group is removed.
    SHARE_SESSION_TIMEOUT_MS "share.session.timeout.ms" Int = 45_000, AtLeast(1), Medium Resource
        Later <- "group.share.session.timeout.ms";

    /// How often members of this share group are told to send heartbeats.
    SHARE_HEARTBEAT_INTERVAL_MS "share.heartbeat.interval.ms" Int = 5000, AtLeast(1), Medium
        Resource Later <- "group.share.heartbeat.interval.ms";

    /// How long a member of this share group may hold a record before it goes to another.
    SHARE_RECORD_LOCK_DURATION_MS "share.record.lock.duration.ms" Int = 30_000, AtLeast(1000),
        Medium Resource Later <- "group.share.record.lock.duration.ms";

    /// How often a record is delivered to this share group before it is given up.
    SHARE_DELIVERY_COUNT_LIMIT "share.delivery.count.limit" Int = 5, AtLeast(2), Medium Resource
        Later <- "group.share.delivery.count.limit";

    /// How many records of one partition this share group may hold at a time.
    SHARE_PARTITION_MAX_RECORD_LOCKS "share.partition.max.record.locks" Int = 2000, AtLeast(100),
        Medium Resource Later <- "group.share.partition.max.record.locks";

    /// Where this share group starts in a partition it never read: `latest`, `earliest`, or
    /// `by_duration:` and an ISO 8601 duration back.
    SHARE_AUTO_OFFSET_RESET "share.auto.offset.reset" Text = "latest", OffsetReset, Medium Resource
        Later <- "share.auto.offset.reset";

    /// Whether this share group sees records of transactions still open or aborted.
    SHARE_ISOLATION_LEVEL "share.isolation.level" Text = "read_uncommitted",
        OneOf(&["read_committed", "read_uncommitted"]), Medium Resource Later <-
        "share.isolation.level";

    /// Whether members of this share group may prolong their hold on a record.
    SHARE_RENEW_ACKNOWLEDGE_ENABLE "share.renew.acknowledge.enable" Bool = true, Any, Medium
        Resource Later <- "share.renew.acknowledge.enable";

    /// The least time between two assignments of this share group.
    SHARE_ASSIGNMENT_INTERVAL_MS "share.assignment.interval.ms" Int = 1000, AtLeast(0), Medium
        Resource Later <- "group.share.assignment.interval.ms";

    /// Moves assignment to a helper pool, which Gracchus does not have.
    SHARE_ASSIGNOR_OFFLOAD_ENABLE "share.assignor.offload.enable" Bool = true, Any, Medium Resource
        Never internal;

    /// After how long without a heartbeat a member of this streams group is removed.
    STREAMS_SESSION_TIMEOUT_MS "streams.session.timeout.ms" Int = 45_000, AtLeast(1), Medium
        Resource Later <- "group.streams.session.timeout.ms";

    /// How often members of this streams group are told to send heartbeats.
    STREAMS_HEARTBEAT_INTERVAL_MS "streams.heartbeat.interval.ms" Int = 5000, AtLeast(1), Medium
        Resource Later <- "group.streams.heartbeat.interval.ms";

    /// How many standby copies of each stateful task this streams group keeps.
    STREAMS_NUM_STANDBY_REPLICAS "streams.num.standby.replicas" Int = 0, AtLeast(0), Medium
        Resource Later <- "group.streams.num.standby.replicas";

    /// How long this streams group, when empty, waits for further members before its first
    /// assignment.
    STREAMS_INITIAL_REBALANCE_DELAY_MS "streams.initial.rebalance.delay.ms" Int = 3000, AtLeast(0),
        Medium Resource Later <- "group.streams.initial.rebalance.delay.ms";

    /// The least time between two assignments of this streams group.
    STREAMS_ASSIGNMENT_INTERVAL_MS "streams.assignment.interval.ms" Int = 1000, AtLeast(0), Medium
        Resource Later <- "group.streams.assignment.interval.ms";

    /// Moves assignment to a helper pool, which Gracchus does not have.
    STREAMS_ASSIGNOR_OFFLOAD_ENABLE "streams.assignor.offload.enable" Bool = true, Any, Medium
        Resource Never internal;

    /// How often members of this streams group are told to report how far their tasks are.
    STREAMS_TASK_OFFSET_INTERVAL_MS "streams.task.offset.interval.ms" Int = 60_000, AtLeast(1),
        Medium Resource Later internal;

    /// How many tasks of this streams group may warm up on new members at a time.
    STREAMS_NUM_WARMUP_REPLICAS "streams.num.warmup.replicas" Int = 2, AtLeast(0), Medium Resource
        Later internal;

    /// Client tags over which this streams group spreads its standby copies.
    STREAMS_RACK_AWARE_ASSIGNMENT_TAGS "streams.rack.aware.assignment.tags" List = "", List, Medium
        Resource Later <- "group.streams.rack.aware.assignment.tags";

    /// How far a standby copy of this streams group may lag behind and still take over its
    /// task.
    STREAMS_ACCEPTABLE_RECOVERY_LAG "streams.acceptable.recovery.lag" Long = 10_000, AtLeast(0),
        Medium Resource Later internal;

    /// The assignor of this streams group; the first of `group.streams.assignors` when not set.
    STREAMS_ASSIGNOR_NAME "streams.assignor.name" OptText = None, Any, Medium Resource Later <-
        "group.streams.assignors";

    /// The topic to which this share group writes records that could not be processed; empty
    /// means none.
    ERRORS_DEADLETTERQUEUE_TOPIC_NAME "errors.deadletterqueue.topic.name" Text = "", Any, Medium
        Resource Later <- "errors.deadletterqueue.topic.name";

    /// Whether a dead letter carries the record itself or only where it lay.
    ERRORS_DEADLETTERQUEUE_COPY_RECORD_ENABLE "errors.deadletterqueue.copy.record.enable" Bool =
        false, Any, Medium Resource Later <- "errors.deadletterqueue.copy.record.enable";
}

//! Settings of a topic.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { ROWS;
    /// Size at which a segment of this topic is closed and the next one begun.
    SEGMENT_BYTES "segment.bytes" Int = 1_073_741_824, AtLeast(1_048_576), Medium Resource Acts <-
        "log.segment.bytes";

    /// Age at which a segment of this topic is closed even if it is small.
    SEGMENT_MS "segment.ms" Long = 604_800_000, AtLeast(1), Medium Resource Acts <- "log.roll.ms"
        "log.roll.hours";

    /// The most that this age is shortened by chance, so that partitions do not all roll at
    /// once.
    SEGMENT_JITTER_MS "segment.jitter.ms" Long = 0, AtLeast(0), Medium Resource Acts <-
        "log.roll.jitter.ms" "log.roll.jitter.hours";

    /// The largest size of one index file of this topic.
    SEGMENT_INDEX_BYTES "segment.index.bytes" Int = 10_485_760, AtLeast(4), Medium Resource Acts <-
        "log.index.size.max.bytes";

    /// How many records of this topic may wait for a flush to disk; 1 means that an
    /// acknowledged record is on disk.
    FLUSH_MESSAGES "flush.messages" Long = 1, AtLeast(1), Medium Resource Acts <-
        "log.flush.interval.messages";

    /// The longest that a record of this topic may wait for a flush to disk.
    FLUSH_MS "flush.ms" Long = i64::MAX, AtLeast(0), Medium Resource Acts <-
        "log.flush.interval.ms" "log.flush.scheduler.interval.ms";

    /// How large a partition of this topic may grow before its oldest segments go; -1 sets no
    /// limit.
    RETENTION_BYTES "retention.bytes" Long = -1, Any, Medium Resource Acts <-
        "log.retention.bytes";

    /// How long records of this topic are kept; -1 means for ever.
    RETENTION_MS "retention.ms" Long = 604_800_000, AtLeast(-1), Medium Resource Acts <-
        "log.retention.ms" "log.retention.minutes" "log.retention.hours";

    /// The largest record batch accepted for this topic, as it is on the wire.
    MAX_MESSAGE_BYTES "max.message.bytes" Int = 1_048_588, AtLeast(0), Medium Resource Acts <-
        "message.max.bytes";

    /// The largest single record accepted inside a compressed batch, measured after
    /// decompression.
    MAX_DECOMPRESSED_MESSAGE_BYTES "max.decompressed.message.bytes" Int = 2_147_483_639, Between(1,
        2_147_483_639), Medium Resource Acts <- "max.decompressed.message.bytes";

    /// After how many bytes of records the next index entry is written.
    INDEX_INTERVAL_BYTES "index.interval.bytes" Int = 4096, AtLeast(0), Medium Resource Acts <-
        "log.index.interval.bytes";

    /// How long a deletion marker outlives the compaction that met it, so that readers still
    /// see it.
    DELETE_RETENTION_MS "delete.retention.ms" Long = 86_400_000, AtLeast(0), Medium Resource Later
        <- "log.cleaner.delete.retention.ms";

    /// How long a record of this topic is safe from compaction.
    MIN_COMPACTION_LAG_MS "min.compaction.lag.ms" Long = 0, AtLeast(0), Medium Resource Later <-
        "log.cleaner.min.compaction.lag.ms";

    /// How long a record of this topic may wait for compaction at most.
    MAX_COMPACTION_LAG_MS "max.compaction.lag.ms" Long = i64::MAX, AtLeast(1), Medium Resource
        Later <- "log.cleaner.max.compaction.lag.ms";

    /// How long the files of a removed segment stay before they are unlinked.
    FILE_DELETE_DELAY_MS "file.delete.delay.ms" Long = 60_000, AtLeast(0), Medium Resource Acts <-
        "log.segment.delete.delay.ms";

    /// The share of a log that must be new before it is worth compacting.
    MIN_CLEANABLE_DIRTY_RATIO "min.cleanable.dirty.ratio" Double = 0.5, Ratio(0.0, 1.0), Medium
        Resource Later <- "log.cleaner.min.cleanable.ratio";

    /// What happens to old records: `delete` by age and size, `compact` down to the last one
    /// per key (not carried out yet), both, or nothing when empty.
    CLEANUP_POLICY "cleanup.policy" List = "delete", ListOf(&["compact", "delete"]), Medium
        Resource Acts <- "log.cleanup.policy";

    /// Whether a replica that may lack acknowledged records can become leader when no other is
    /// left.
    UNCLEAN_LEADER_ELECTION_ENABLE "unclean.leader.election.enable" Bool = false, Any, Medium
        Resource Acts <- "unclean.leader.election.enable";

    /// How many in-sync replicas must have a record before acks=all is answered.
    MIN_INSYNC_REPLICAS "min.insync.replicas" Int = 1, AtLeast(1), Medium Resource Acts <-
        "min.insync.replicas";

    /// The codec in which this topic is stored; `producer` keeps what the producer chose.
    COMPRESSION_TYPE "compression.type" Text = "producer", OneOf(&["uncompressed", "zstd", "lz4",
        "snappy", "gzip", "producer"]), Medium Resource Acts <- "compression.type";

    /// Effort of gzip when the broker compresses; -1 is the codec's own default.
    COMPRESSION_GZIP_LEVEL "compression.gzip.level" Int = -1, GzipLevel, Medium Resource Acts <-
        "compression.gzip.level";

    /// Effort of LZ4 when the broker compresses.
    COMPRESSION_LZ4_LEVEL "compression.lz4.level" Int = 9, Between(1, 17), Medium Resource Acts <-
        "compression.lz4.level";

    /// Effort of Zstandard when the broker compresses.
    COMPRESSION_ZSTD_LEVEL "compression.zstd.level" Int = 3, Between(-131_072, 22), Medium Resource
        Acts <- "compression.zstd.level";

    /// Whether a new segment reserves its full size on disk at once.
    PREALLOCATE "preallocate" Bool = false, Any, Medium Resource Acts <- "log.preallocate";

    /// Whose clock stamps records: `CreateTime` the producer's, `LogAppendTime` the broker's.
    MESSAGE_TIMESTAMP_TYPE "message.timestamp.type" Text = "CreateTime", OneOf(&["CreateTime",
        "LogAppendTime"]), Medium Resource Acts <- "log.message.timestamp.type";

    /// How far a producer's time stamp may lie in the past.
    MESSAGE_TIMESTAMP_BEFORE_MAX_MS "message.timestamp.before.max.ms" Long = i64::MAX, AtLeast(0),
        Medium Resource Acts <- "log.message.timestamp.before.max.ms";

    /// How far a producer's time stamp may lie in the future.
    MESSAGE_TIMESTAMP_AFTER_MAX_MS "message.timestamp.after.max.ms" Long = 3_600_000, AtLeast(0),
        Medium Resource Acts <- "log.message.timestamp.after.max.ms";

    /// Replicas whose leader sends at the throttled rate, as `partition:broker` pairs, or `*`
    /// for all.
    LEADER_REPLICATION_THROTTLED_REPLICAS "leader.replication.throttled.replicas" List = "",
        ThrottledReplicas, Medium Resource Later;

    /// Replicas that fetch at the throttled rate, as `partition:broker` pairs, or `*` for all.
    FOLLOWER_REPLICATION_THROTTLED_REPLICAS "follower.replication.throttled.replicas" List = "",
        ThrottledReplicas, Medium Resource Later;

    /// Tiers this topic to remote storage, which Gracchus does not have; `true` is refused.
    REMOTE_STORAGE_ENABLE "remote.storage.enable" Bool = false, Any, Medium Resource Never;

    /// How long a tiered topic keeps segments locally; Gracchus has no tiered storage.
    LOCAL_RETENTION_MS "local.retention.ms" Long = -2, AtLeast(-2), Medium Resource Never <-
        "log.local.retention.ms";

    /// How much a tiered topic keeps locally; Gracchus has no tiered storage.
    LOCAL_RETENTION_BYTES "local.retention.bytes" Long = -2, AtLeast(-2), Medium Resource Never <-
        "log.local.retention.bytes";

    /// Stops copying segments out; Gracchus has no tiered storage.
    REMOTE_LOG_COPY_DISABLE "remote.log.copy.disable" Bool = false, Any, Medium Resource Never;

    /// How long a tiered topic waits before it copies a segment out; Gracchus has no tiered
    /// storage.
    REMOTE_COPY_LAG_MS "remote.copy.lag.ms" Long = 0, AtLeast(-1), Medium Resource Never <-
        "log.remote.copy.lag.ms";

    /// How many bytes a tiered topic waits for before it copies a segment out; Gracchus has no
    /// tiered storage.
    REMOTE_COPY_LAG_BYTES "remote.copy.lag.bytes" Long = -1, AtLeast(-1), Medium Resource Never <-
        "log.remote.copy.lag.bytes";

    /// Whether remote copies go when tiering is switched off; Gracchus has no tiered storage.
    REMOTE_LOG_DELETE_ON_DISABLE "remote.log.delete.on.disable" Bool = false, Any, Medium Resource
        Never;

    /// Whether share groups may write records that could not be processed to this topic.
    ERRORS_DEADLETTERQUEUE_GROUP_ENABLE "errors.deadletterqueue.group.enable" Bool = false, Any,
        Medium Resource Later;

    /// Segment size without the lower limit of `segment.bytes`, for tests.
    INTERNAL_SEGMENT_BYTES "internal.segment.bytes" OptInt = None, Any, Medium Resource Acts
        internal;
}

//! Data directories, segments, retention, flushing and compaction.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { LOG_ROWS;
    /// How many partitions a new topic gets when the request leaves it open.
    NUM_PARTITIONS "num.partitions" Int = 1, AtLeast(1), Medium ReadOnly Acts;

    /// The data directory, used when `log.dirs` is not given.
    LOG_DIR "log.dir" List = "./gracchus-data", NonEmptyList, High ReadOnly Acts;

    /// The data directories, separated by commas; partitions are spread over them.
    LOG_DIRS "log.dirs" OptList = None, NonEmptyList, High ReadOnly Acts;

    /// Data directories that get no new partitions.
    CORDONED_LOG_DIRS "cordoned.log.dirs" List = "", List, Medium PerBroker Later;

    /// Size at which a log segment is closed and the next one begun.
    LOG_SEGMENT_BYTES "log.segment.bytes" Int = 1_073_741_824, AtLeast(1_048_576), High Cluster
        Acts;

    /// Age at which a log segment is closed even if it is small; overrides the setting in
    /// hours.
    LOG_ROLL_MS "log.roll.ms" OptLong = None, Any, High Cluster Acts;

    /// Age in hours at which a log segment is closed even if it is small.
    LOG_ROLL_HOURS "log.roll.hours" Int = 168, AtLeast(1), High ReadOnly Acts;

    /// The most that the age limit of a segment is shortened by chance, so that logs do not all
    /// roll at once.
    LOG_ROLL_JITTER_MS "log.roll.jitter.ms" OptLong = None, Any, High Cluster Acts;

    /// The same in hours, used when the setting in milliseconds is not given.
    LOG_ROLL_JITTER_HOURS "log.roll.jitter.hours" Int = 0, AtLeast(0), High ReadOnly Acts;

    /// How long records are kept, in milliseconds; -1 means for ever; overrides minutes and
    /// hours.
    LOG_RETENTION_MS "log.retention.ms" OptLong = None, Any, High Cluster Acts;

    /// How long records are kept, in minutes; overrides hours.
    LOG_RETENTION_MINUTES "log.retention.minutes" OptInt = None, Any, High ReadOnly Acts;

    /// How long records are kept, in hours.
    LOG_RETENTION_HOURS "log.retention.hours" Int = 168, Any, High ReadOnly Acts;

    /// How large a partition may grow before its oldest segments go; -1 sets no limit.
    LOG_RETENTION_BYTES "log.retention.bytes" Long = -1, Any, High Cluster Acts;

    /// How often logs are looked through for segments that may go.
    LOG_RETENTION_CHECK_INTERVAL_MS "log.retention.check.interval.ms" Long = 300_000, AtLeast(1),
        Medium ReadOnly Acts;

    /// What happens to old records: `delete` by age and size, `compact` down to the last one
    /// per key (not carried out yet), both, or nothing when empty.
    LOG_CLEANUP_POLICY "log.cleanup.policy" List = "delete", ListOf(&["compact", "delete"]), Medium
        Cluster Acts;

    /// The largest size of one index file.
    LOG_INDEX_SIZE_MAX_BYTES "log.index.size.max.bytes" Int = 10_485_760, AtLeast(4), Medium
        Cluster Acts;

    /// After how many bytes of records the next index entry is written.
    LOG_INDEX_INTERVAL_BYTES "log.index.interval.bytes" Int = 4096, AtLeast(0), Medium Cluster
        Acts;

    /// How many records may wait for a flush to disk; 1, our default, means that an
    /// acknowledged record is on disk.
    LOG_FLUSH_INTERVAL_MESSAGES "log.flush.interval.messages" Long = 1, AtLeast(1), High
        Cluster Acts;

    /// How long the files of a removed segment stay before they are unlinked.
    LOG_SEGMENT_DELETE_DELAY_MS "log.segment.delete.delay.ms" Long = 60_000, AtLeast(0), High
        Cluster Acts;

    /// Stands in for `log.flush.interval.ms` when that is not given.
    LOG_FLUSH_SCHEDULER_INTERVAL_MS "log.flush.scheduler.interval.ms" Long = i64::MAX, Any, High
        ReadOnly Acts;

    /// The longest that a record may wait for a flush to disk.
    LOG_FLUSH_INTERVAL_MS "log.flush.interval.ms" OptLong = None, Any, High Cluster Acts;

    /// How often the offsets from which recovery would start are written down.
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS "log.flush.offset.checkpoint.interval.ms" Int = 60_000,
        AtLeast(0), High ReadOnly Acts;

    /// How often the first offsets of the logs are written down.
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS "log.flush.start.offset.checkpoint.interval.ms"
        Int = 60_000, AtLeast(0), High ReadOnly Later;

    /// Whether a new segment reserves its full size on disk at once.
    LOG_PREALLOCATE "log.preallocate" Bool = false, Any, Medium Cluster Acts;

    /// How many threads per data directory load and recover logs at start.
    NUM_RECOVERY_THREADS_PER_DATA_DIR "num.recovery.threads.per.data.dir" Int = 2, AtLeast(1), High
        Cluster Later;

    /// Whether a metadata request for a missing topic creates it, if the client agrees.
    AUTO_CREATE_TOPICS_ENABLE "auto.create.topics.enable" Bool = true, Any, High ReadOnly Acts;

    /// How many in-sync replicas must have a record before acks=all is answered.
    MIN_INSYNC_REPLICAS "min.insync.replicas" Int = 1, AtLeast(1), High Cluster Acts;

    /// Whose clock stamps records: `CreateTime` the producer's, `LogAppendTime` the broker's.
    LOG_MESSAGE_TIMESTAMP_TYPE "log.message.timestamp.type" Text = "CreateTime",
        OneOf(&["CreateTime", "LogAppendTime"]), Medium Cluster Acts;

    /// How far a producer's time stamp may lie in the past.
    LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS "log.message.timestamp.before.max.ms" Long = i64::MAX,
        AtLeast(0), Medium Cluster Acts;

    /// How far a producer's time stamp may lie in the future.
    LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS "log.message.timestamp.after.max.ms" Long = 3_600_000,
        AtLeast(0), Medium Cluster Acts;

    /// Java class that vets new topics; Gracchus loads no Java classes.
    CREATE_TOPIC_POLICY_CLASS_NAME "create.topic.policy.class.name" OptClass = None, Any, Low
        ReadOnly Never;

    /// Java class that vets changes of settings; Gracchus loads no Java classes.
    ALTER_CONFIG_POLICY_CLASS_NAME "alter.config.policy.class.name" OptClass = None, Any, Low
        ReadOnly Never;

    /// How long a broker tries to report a failed directory; a failed flush ends Gracchus at
    /// once.
    LOG_DIR_FAILURE_TIMEOUT_MS "log.dir.failure.timeout.ms" Long = 30_000, AtLeast(1), Low ReadOnly
        Never;

    /// How long after the start the first round of housekeeping begins.
    LOG_INITIAL_TASK_DELAY_MS "log.initial.task.delay.ms" Long = 30_000, AtLeast(0), Low ReadOnly
        Acts internal;

    /// Number of compaction threads; Gracchus compacts on its housekeeping thread.
    LOG_CLEANER_THREADS "log.cleaner.threads" Int = 1, AtLeast(0), Medium Cluster Never;

    /// How many bytes per second compaction may read and write together.
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND "log.cleaner.io.max.bytes.per.second" Double = f64::MAX,
        Any, Medium Cluster Later;

    /// How much memory compaction may use to remember keys.
    LOG_CLEANER_DEDUPE_BUFFER_SIZE "log.cleaner.dedupe.buffer.size" Long = 134_217_728, Any, Medium
        Cluster Later;

    /// Size of the buffers through which compaction reads and writes.
    LOG_CLEANER_IO_BUFFER_SIZE "log.cleaner.io.buffer.size" Int = 524_288, AtLeast(0), Medium
        Cluster Later;

    /// How full the key table of Kafka's cleaner may get; ours grows within its memory bound.
    LOG_CLEANER_IO_BUFFER_LOAD_FACTOR "log.cleaner.io.buffer.load.factor" Double = 0.9, Any, Medium
        Cluster Never;

    /// The pause after a round that found nothing to compact.
    LOG_CLEANER_BACKOFF_MS "log.cleaner.backoff.ms" Long = 15_000, AtLeast(0), Medium Cluster
        Later;

    /// Whether compaction runs at all; switching it off lets compacted topics grow for ever.
    LOG_CLEANER_ENABLE "log.cleaner.enable" Bool = true, Any, Medium ReadOnly Later;

    /// The share of a log that must be new before it is worth compacting.
    LOG_CLEANER_MIN_CLEANABLE_RATIO "log.cleaner.min.cleanable.ratio" Double = 0.5, Ratio(0.0,
        1.0), Medium Cluster Later;

    /// How long a deletion marker outlives the compaction that met it, so that readers still
    /// see it.
    LOG_CLEANER_DELETE_RETENTION_MS "log.cleaner.delete.retention.ms" Long = 86_400_000,
        AtLeast(0), Medium Cluster Later;

    /// How long a record is safe from compaction.
    LOG_CLEANER_MIN_COMPACTION_LAG_MS "log.cleaner.min.compaction.lag.ms" Long = 0, AtLeast(0),
        Medium Cluster Later;

    /// How long a record may wait for compaction at most.
    LOG_CLEANER_MAX_COMPACTION_LAG_MS "log.cleaner.max.compaction.lag.ms" Long = i64::MAX,
        AtLeast(1), Medium Cluster Later;
}

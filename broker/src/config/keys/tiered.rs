//! Tiered storage, which Gracchus does not have: accepted so that files and tools work.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { TIERED_ROWS;
    /// Switches on tiered storage, which Gracchus does not have.
    REMOTE_LOG_STORAGE_SYSTEM_ENABLE "remote.log.storage.system.enable" Bool = false, Any, Medium
        ReadOnly Never;

    /// How the settings of a tiered-storage plug-in begin; Gracchus has no tiered storage.
    REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX "remote.log.storage.manager.impl.prefix" Text =
        "rsm.config.", NonEmpty, Medium ReadOnly Never;

    /// How the settings of a tiered-metadata plug-in begin; Gracchus has no tiered storage.
    REMOTE_LOG_METADATA_MANAGER_IMPL_PREFIX "remote.log.metadata.manager.impl.prefix" Text =
        "rlmm.config.", NonEmpty, Medium ReadOnly Never;

    /// Java class that stores tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_STORAGE_MANAGER_CLASS_NAME "remote.log.storage.manager.class.name" OptText = None,
        NonEmpty, Medium ReadOnly Never;

    /// Where that Java class is found; Gracchus has no tiered storage.
    REMOTE_LOG_STORAGE_MANAGER_CLASS_PATH "remote.log.storage.manager.class.path" OptText = None,
        Any, Medium ReadOnly Never;

    /// Java class that keeps track of tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_METADATA_MANAGER_CLASS_NAME "remote.log.metadata.manager.class.name" Text =
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NonEmpty, Medium ReadOnly Never;

    /// Where that Java class is found; Gracchus has no tiered storage.
    REMOTE_LOG_METADATA_MANAGER_CLASS_PATH "remote.log.metadata.manager.class.path" OptText = None,
        Any, Medium ReadOnly Never;

    /// The listener on which tiered metadata is exchanged; Gracchus has no tiered storage.
    REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME "remote.log.metadata.manager.listener.name" OptText =
        None, NonEmpty, Medium ReadOnly Never;

    /// The largest note a tiered-storage plug-in may add to a segment; Gracchus has no tiered
    /// storage.
    REMOTE_LOG_METADATA_CUSTOM_METADATA_MAX_BYTES "remote.log.metadata.custom.metadata.max.bytes"
        Int = 128, AtLeast(0), Low ReadOnly Never;

    /// Disk space for indexes of tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_INDEX_FILE_CACHE_TOTAL_SIZE_BYTES "remote.log.index.file.cache.total.size.bytes"
        Long = 1_073_741_824, AtLeast(1), Low Cluster Never;

    /// How long such an index stays; Gracchus has no tiered storage.
    REMOTE_LOG_INDEX_FILE_CACHE_TTL_MS "remote.log.index.file.cache.ttl.ms" Long = 900_000,
        AtLeast(-1), Low ReadOnly Never internal;

    /// Threads of tiered storage; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_THREAD_POOL_SIZE "remote.log.manager.thread.pool.size" Int = 2, AtLeast(1),
        Medium ReadOnly Never;

    /// Threads that copy segments out; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE "remote.log.manager.copier.thread.pool.size" Int =
        10, AtLeast(1), Medium Cluster Never;

    /// Threads that expire tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE "remote.log.manager.expiration.thread.pool.size"
        Int = 10, AtLeast(1), Medium Cluster Never;

    /// Threads that follow tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_FOLLOWER_THREAD_POOL_SIZE "remote.log.manager.follower.thread.pool.size" Int
        = 2, AtLeast(1), Medium Cluster Never;

    /// How often tiered storage does its rounds; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_TASK_INTERVAL_MS "remote.log.manager.task.interval.ms" Long = 30_000,
        AtLeast(1), Low ReadOnly Never;

    /// Pause after a failed round; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MS "remote.log.manager.task.retry.backoff.ms" Long = 500,
        AtLeast(1), Low ReadOnly Never internal;

    /// Longest pause after failed rounds; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MAX_MS "remote.log.manager.task.retry.backoff.max.ms"
        Long = 30_000, AtLeast(1), Low ReadOnly Never internal;

    /// Random share of that pause; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_TASK_RETRY_JITTER "remote.log.manager.task.retry.jitter" Double = 0.2,
        Ratio(0.0, 0.5), Low ReadOnly Never internal;

    /// Threads that read tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_READER_THREADS "remote.log.reader.threads" Int = 10, AtLeast(1), Medium Cluster
        Never;

    /// How many reads of tiered segments may wait; Gracchus has no tiered storage.
    REMOTE_LOG_READER_MAX_PENDING_TASKS "remote.log.reader.max.pending.tasks" Int = 100,
        AtLeast(1), Medium ReadOnly Never;

    /// How long a tiered topic keeps segments locally; Gracchus has no tiered storage.
    LOG_LOCAL_RETENTION_MS "log.local.retention.ms" Long = -2, AtLeast(-2), Medium Cluster Never;

    /// How much a tiered topic keeps locally; Gracchus has no tiered storage.
    LOG_LOCAL_RETENTION_BYTES "log.local.retention.bytes" Long = -2, AtLeast(-2), Medium Cluster
        Never;

    /// How long a tiered topic waits before it copies a segment out; Gracchus has no tiered
    /// storage.
    LOG_REMOTE_COPY_LAG_MS "log.remote.copy.lag.ms" Long = 0, AtLeast(-1), Medium Cluster Never;

    /// How many bytes a tiered topic waits for before it copies a segment out; Gracchus has no
    /// tiered storage.
    LOG_REMOTE_COPY_LAG_BYTES "log.remote.copy.lag.bytes" Long = -1, AtLeast(-1), Medium Cluster
        Never;

    /// Throttle on copying segments out; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_COPY_MAX_BYTES_PER_SECOND "remote.log.manager.copy.max.bytes.per.second"
        Long = i64::MAX, AtLeast(1), Medium Cluster Never;

    /// Windows of that throttle; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_NUM "remote.log.manager.copy.quota.window.num" Int = 11,
        AtLeast(1), Medium ReadOnly Never;

    /// Window length of that throttle; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_SIZE_SECONDS
        "remote.log.manager.copy.quota.window.size.seconds" Int = 1, AtLeast(1), Medium ReadOnly
        Never;

    /// Throttle on reading tiered segments; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_FETCH_MAX_BYTES_PER_SECOND "remote.log.manager.fetch.max.bytes.per.second"
        Long = i64::MAX, AtLeast(1), Medium Cluster Never;

    /// Windows of that throttle; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_NUM "remote.log.manager.fetch.quota.window.num" Int = 11,
        AtLeast(1), Medium ReadOnly Never;

    /// Window length of that throttle; Gracchus has no tiered storage.
    REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_SIZE_SECONDS
        "remote.log.manager.fetch.quota.window.size.seconds" Int = 1, AtLeast(1), Medium ReadOnly
        Never;

    /// How long a fetch waits for tiered segments; Gracchus has no tiered storage.
    REMOTE_FETCH_MAX_WAIT_MS "remote.fetch.max.wait.ms" Int = 500, AtLeast(1), Medium Cluster
        Never;

    /// How long an offset look-up waits for tiered segments; Gracchus has no tiered storage.
    REMOTE_LIST_OFFSETS_REQUEST_TIMEOUT_MS "remote.list.offsets.request.timeout.ms" Long = 30_000,
        AtLeast(1), Medium Cluster Never;
}

//! Quota windows and replication throttles.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { QUOTAS_ROWS;
    /// How many windows client quotas are averaged over.
    QUOTA_WINDOW_NUM "quota.window.num" Int = 11, AtLeast(1), Low ReadOnly Later;

    /// How many windows replication throttles are averaged over.
    REPLICATION_QUOTA_WINDOW_NUM "replication.quota.window.num" Int = 11, AtLeast(1), Low ReadOnly
        Later;

    /// How many windows the throttle on moves between directories is averaged over.
    ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM "alter.log.dirs.replication.quota.window.num" Int =
        11, AtLeast(1), Low ReadOnly Later;

    /// How many windows quotas on topic changes are averaged over.
    CONTROLLER_QUOTA_WINDOW_NUM "controller.quota.window.num" Int = 11, AtLeast(1), Low ReadOnly
        Later;

    /// Length of a window of the client quotas.
    QUOTA_WINDOW_SIZE_SECONDS "quota.window.size.seconds" Int = 1, AtLeast(1), Low ReadOnly Later;

    /// Length of a window of the replication throttles.
    REPLICATION_QUOTA_WINDOW_SIZE_SECONDS "replication.quota.window.size.seconds" Int = 1,
        AtLeast(1), Low ReadOnly Later;

    /// Length of a window of the throttle on moves between directories.
    ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS
        "alter.log.dirs.replication.quota.window.size.seconds" Int = 1, AtLeast(1), Low ReadOnly
        Later;

    /// Length of a window of the quotas on topic changes.
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS "controller.quota.window.size.seconds" Int = 1,
        AtLeast(1), Low ReadOnly Later;

    /// Java class that decides quotas; Gracchus loads no Java classes.
    CLIENT_QUOTA_CALLBACK_CLASS "client.quota.callback.class" OptClass = None, Any, Low ReadOnly
        Never;

    /// How many bytes per second a leader sends to followers of throttled replicas.
    LEADER_REPLICATION_THROTTLED_RATE "leader.replication.throttled.rate" Long = i64::MAX,
        AtLeast(0), Medium DynamicOnly Later;

    /// How many bytes per second a follower fetches for throttled replicas.
    FOLLOWER_REPLICATION_THROTTLED_RATE "follower.replication.throttled.rate" Long = i64::MAX,
        AtLeast(0), Medium DynamicOnly Later;

    /// How many bytes per second a replica's move to another directory may take.
    REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND "replica.alter.log.dirs.io.max.bytes.per.second"
        Long = i64::MAX, AtLeast(0), Medium DynamicOnly Later;
}

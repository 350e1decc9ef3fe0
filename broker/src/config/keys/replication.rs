//! Followers, in-sync sets and elections.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { REPLICATION_ROWS;
    /// Socket time-out towards the controller in Kafka's older design; `request.timeout.ms`
    /// serves here.
    CONTROLLER_SOCKET_TIMEOUT_MS "controller.socket.timeout.ms" Int = 30_000, Any, Medium ReadOnly
        Never;

    /// How many replicas a new topic gets when the request leaves it open.
    DEFAULT_REPLICATION_FACTOR "default.replication.factor" Int = 1, Any, Medium ReadOnly Acts;

    /// How long a follower may lag behind before it leaves the in-sync set.
    REPLICA_LAG_TIME_MAX_MS "replica.lag.time.max.ms" Long = 30_000, Any, High ReadOnly Later;

    /// How long a follower waits for the answer to a fetch.
    REPLICA_SOCKET_TIMEOUT_MS "replica.socket.timeout.ms" Int = 30_000, Any, High ReadOnly Later;

    /// Size of the kernel's receive buffer on connections between brokers.
    REPLICA_SOCKET_RECEIVE_BUFFER_BYTES "replica.socket.receive.buffer.bytes" Int = 65_536, Any,
        High ReadOnly Later;

    /// How many bytes a follower asks for per partition; a larger first batch is sent all the
    /// same.
    REPLICA_FETCH_MAX_BYTES "replica.fetch.max.bytes" Int = 1_048_576, AtLeast(0), Medium ReadOnly
        Later;

    /// How long a leader may hold a follower's fetch while there is nothing new.
    REPLICA_FETCH_WAIT_MAX_MS "replica.fetch.wait.max.ms" Int = 500, Any, High ReadOnly Later;

    /// The pause after a failed fetch from a leader.
    REPLICA_FETCH_BACKOFF_MS "replica.fetch.backoff.ms" Int = 1000, AtLeast(0), Medium ReadOnly
        Later;

    /// How many new bytes answer a follower's fetch before its wait is over.
    REPLICA_FETCH_MIN_BYTES "replica.fetch.min.bytes" Int = 1, Any, High ReadOnly Later;

    /// How many bytes a follower asks for in one fetch over all partitions.
    REPLICA_FETCH_RESPONSE_MAX_BYTES "replica.fetch.response.max.bytes" Int = 10_485_760,
        AtLeast(0), Medium ReadOnly Later;

    /// How many connections a follower opens to each leader.
    NUM_REPLICA_FETCHERS "num.replica.fetchers" Int = 1, AtLeast(1), High Cluster Later;

    /// How often high watermarks are written down.
    REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS "replica.high.watermark.checkpoint.interval.ms"
        Long = 5000, Any, High ReadOnly Later;

    /// Clean-up of Kafka's list of waiting fetches; Gracchus drops a finished wait at once.
    FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS "fetch.purgatory.purge.interval.requests" Int = 1000,
        Any, Medium ReadOnly Never;

    /// Clean-up of Kafka's list of waiting produce requests; Gracchus drops a finished wait at
    /// once.
    PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS "producer.purgatory.purge.interval.requests" Int =
        1000, Any, Medium ReadOnly Never;

    /// Clean-up of Kafka's list of waiting deletions; Gracchus drops a finished wait at once.
    DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS
        "delete.records.purgatory.purge.interval.requests" Int = 1, Any, Medium ReadOnly Never;

    /// Whether leadership returns by itself to the first replica of each partition.
    AUTO_LEADER_REBALANCE_ENABLE "auto.leader.rebalance.enable" Bool = true, Any, High ReadOnly
        Acts;

    /// How often the controller looks for partitions led by another than the first replica.
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS "leader.imbalance.check.interval.seconds" Long = 300,
        AtLeast(1), High ReadOnly Acts;

    /// How often the controller looks for partitions that only an unclean election can help.
    UNCLEAN_LEADER_ELECTION_INTERVAL_MS "unclean.leader.election.interval.ms" Long = 300_000,
        AtLeast(1), Medium ReadOnly Later internal;

    /// Whether a replica that may lack acknowledged records can become leader when no other is
    /// left.
    UNCLEAN_LEADER_ELECTION_ENABLE "unclean.leader.election.enable" Bool = false, Any, High Cluster
        Acts;

    /// The security protocol between brokers, when no `inter.broker.listener.name` is given.
    SECURITY_INTER_BROKER_PROTOCOL "security.inter.broker.protocol" Text = "PLAINTEXT",
        OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), Medium ReadOnly Acts;

    /// The listener on which brokers talk to each other.
    INTER_BROKER_LISTENER_NAME "inter.broker.listener.name" OptText = None, Any, Medium ReadOnly
        Acts;

    /// How a consumer's nearest replica is chosen; the name of Kafka's rack-aware selector
    /// picks the built-in one.
    REPLICA_SELECTOR_CLASS "replica.selector.class" OptText = None, Any, Medium ReadOnly Later;

    /// Lets a new follower start behind tiered data; Gracchus has no tiered storage.
    FOLLOWER_FETCH_LAST_TIERED_OFFSET_ENABLE "follower.fetch.last.tiered.offset.enable" Bool =
        false, Any, Medium Cluster Never;
}

//! Identity, roles and the metadata quorum.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { IDENTITY_ROWS;
    /// Which parts this process plays: `broker` serves clients, `controller` votes in the
    /// metadata quorum, both together is the default.
    PROCESS_ROLES "process.roles" List = "broker,controller", ListOf(&["broker", "controller"]),
        High ReadOnly Later;

    /// The number that names this node in the cluster; every node needs its own.
    NODE_ID "node.id" Int = 0, AtLeast(0), High ReadOnly Acts;

    /// How long a starting broker may take to register with the controller before it gives up.
    INITIAL_BROKER_REGISTRATION_TIMEOUT_MS "initial.broker.registration.timeout.ms" Int = 60_000,
        Any, Medium ReadOnly Later;

    /// How often a broker tells the controller that it is alive; at most half of
    /// `broker.session.timeout.ms`.
    BROKER_HEARTBEAT_INTERVAL_MS "broker.heartbeat.interval.ms" Int = 2000, Any, Medium ReadOnly
        Later;

    /// How long a broker may stay silent before the controller takes its leaderships away.
    BROKER_SESSION_TIMEOUT_MS "broker.session.timeout.ms" Int = 9000, Any, Medium ReadOnly Acts;

    /// Names of the listeners on which controllers talk to each other and to brokers.
    CONTROLLER_LISTENER_NAMES "controller.listener.names" List = "CONTROLLER", NonEmptyList, High
        ReadOnly Acts;

    /// The SASL mechanism used on connections to a controller.
    SASL_MECHANISM_CONTROLLER_PROTOCOL "sasl.mechanism.controller.protocol" Text = "GSSAPI", Any,
        High ReadOnly Later;

    /// Sampling period of a controller performance report that Gracchus does not write.
    CONTROLLER_PERFORMANCE_SAMPLE_PERIOD_MS "controller.performance.sample.period.ms" Long =
        60_000, AtLeast(100), Medium ReadOnly Never internal;

    /// Threshold of a controller performance report that Gracchus does not write.
    CONTROLLER_PERFORMANCE_ALWAYS_LOG_THRESHOLD_MS "controller.performance.always.log.threshold.ms"
        Long = 2000, AtLeast(0), Medium ReadOnly Never internal;

    /// Upper limit on start-up time; Gracchus reports start-up progress and has no such limit.
    SERVER_MAX_STARTUP_TIME_MS "server.max.startup.time.ms" Long = i64::MAX, AtLeast(0), Medium
        ReadOnly Never internal;

    /// The voters of the metadata quorum as `id@host:port`, fixed at start; empty means that
    /// the node is alone or that bootstrap servers are given.
    CONTROLLER_QUORUM_VOTERS "controller.quorum.voters" List = "", List, High ReadOnly Later;

    /// Addresses as `host:port` at which a node first asks for the metadata quorum, instead of
    /// a fixed list of voters.
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS "controller.quorum.bootstrap.servers" List = "", List, High
        ReadOnly Later;

    /// How long a candidate waits for votes before it starts another election.
    CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS "controller.quorum.election.timeout.ms" Int = 1000,
        AtLeast(0), High ReadOnly Later;

    /// How long a voter goes without word from the quorum leader before it asks for an
    /// election.
    CONTROLLER_QUORUM_FETCH_TIMEOUT_MS "controller.quorum.fetch.timeout.ms" Int = 2000, AtLeast(0),
        High ReadOnly Later;

    /// The longest random wait between two elections that found no winner.
    CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS "controller.quorum.election.backoff.max.ms" Int =
        1000, AtLeast(0), High ReadOnly Later;

    /// How long a leader gathers metadata writes; Gracchus gathers exactly while the write
    /// before is being flushed.
    CONTROLLER_QUORUM_APPEND_LINGER_MS "controller.quorum.append.linger.ms" Int = 25, AtLeast(0),
        Medium ReadOnly Never;

    /// How long a request to another quorum member may stay unanswered.
    CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS "controller.quorum.request.timeout.ms" Int = 2000,
        AtLeast(0), Medium ReadOnly Later;

    /// The pause before a failed request to a quorum member is sent again.
    CONTROLLER_QUORUM_RETRY_BACKOFF_MS "controller.quorum.retry.backoff.ms" Int = 20, AtLeast(0),
        Low ReadOnly Later;

    /// Whether a controller that is no voter yet adds itself to the voters when it starts.
    CONTROLLER_QUORUM_AUTO_JOIN_ENABLE "controller.quorum.auto.join.enable" Bool = false, Any, Low
        ReadOnly Later;

    /// The largest piece of a metadata snapshot sent in one message.
    CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES "controller.quorum.fetch.snapshot.max.bytes" Int =
        1_048_576, AtLeast(1), Low ReadOnly Later;

    /// The most bytes of the metadata log sent in one message.
    CONTROLLER_QUORUM_FETCH_MAX_BYTES "controller.quorum.fetch.max.bytes" Int = 1_048_576,
        AtLeast(1), Low ReadOnly Later;

    /// After how many bytes of new metadata the next snapshot is written.
    METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS
        "metadata.log.max.record.bytes.between.snapshots" Long = 20_971_520, AtLeast(1), High
        ReadOnly Later;

    /// After how much time with new metadata the next snapshot is written; 0 leaves it to size
    /// alone.
    METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS "metadata.log.max.snapshot.interval.ms" Long = 3_600_000,
        AtLeast(0), High ReadOnly Later;

    /// The directory of the metadata log; when unset, the first of `log.dirs`.
    METADATA_LOG_DIR "metadata.log.dir" OptText = None, Any, High ReadOnly Acts;

    /// Segment size of a metadata log in files; Gracchus keeps that log in an embedded store.
    METADATA_LOG_SEGMENT_BYTES "metadata.log.segment.bytes" Int = 1_073_741_824, AtLeast(8_388_608),
        High ReadOnly Never;

    /// Segment age of a metadata log in files; Gracchus keeps that log in an embedded store.
    METADATA_LOG_SEGMENT_MS "metadata.log.segment.ms" Long = 604_800_000, Any, High ReadOnly Never;

    /// Size limit for old metadata; Gracchus drops log entries as soon as a snapshot covers
    /// them.
    METADATA_MAX_RETENTION_BYTES "metadata.max.retention.bytes" Long = 104_857_600, Any, High
        ReadOnly Never;

    /// Age limit for old metadata; Gracchus drops log entries as soon as a snapshot covers
    /// them.
    METADATA_MAX_RETENTION_MS "metadata.max.retention.ms" Long = 604_800_000, Any, High ReadOnly
        Never;

    /// How often an idle controller writes an empty record; the quorum of Gracchus uses its own
    /// heartbeats.
    METADATA_MAX_IDLE_INTERVAL_MS "metadata.max.idle.interval.ms" Int = 500, AtLeast(0), Low
        ReadOnly Never;

    /// Test setting for the segments of a metadata log in files, which Gracchus does not have.
    INTERNAL_METADATA_LOG_SEGMENT_BYTES "internal.metadata.log.segment.bytes" OptInt = None, Any,
        Low ReadOnly Never internal;

    /// Test setting for batches of a metadata log in files, which Gracchus does not have.
    INTERNAL_METADATA_MAX_BATCH_SIZE_IN_BYTES "internal.metadata.max.batch.size.in.bytes" Int =
        8_388_608, Any, Low ReadOnly Never internal;

    /// Test setting for the clean-up of a metadata log in files, which Gracchus does not have.
    INTERNAL_METADATA_DELETE_DELAY_MILLIS "internal.metadata.delete.delay.millis" Long = 60_000,
        Any, Low ReadOnly Never internal;
}

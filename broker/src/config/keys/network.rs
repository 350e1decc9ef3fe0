//! Listeners, connections, limits on requests, and compression.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { NETWORK_ROWS;
    /// The addresses to listen on, as `NAME://host:port`, separated by commas; an empty host
    /// stands for every interface.
    LISTENERS "listeners" List = "PLAINTEXT://127.0.0.1:9092", NonEmptyList, High PerBroker
        Acts;

    /// The addresses that clients are told to connect to; when unset, those of `listeners`.
    ADVERTISED_LISTENERS "advertised.listeners" OptList = None, NonEmptyList, High ReadOnly Acts;

    /// Which security protocol each listener name speaks, as `NAME:PROTOCOL` pairs.
    LISTENER_SECURITY_PROTOCOL_MAP "listener.security.protocol.map" Text =
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Any, Low
        PerBroker Acts;

    /// Size of the kernel's send buffer per client connection; -1 leaves the choice to the
    /// kernel.
    SOCKET_SEND_BUFFER_BYTES "socket.send.buffer.bytes" Int = 102_400, Any, High ReadOnly Later;

    /// Size of the kernel's receive buffer per client connection; -1 leaves the choice to the
    /// kernel.
    SOCKET_RECEIVE_BUFFER_BYTES "socket.receive.buffer.bytes" Int = 102_400, Any, High ReadOnly
        Later;

    /// The largest request accepted; a larger one ends the connection.
    SOCKET_REQUEST_MAX_BYTES "socket.request.max.bytes" Int = 104_857_600, AtLeast(1), High
        ReadOnly Acts;

    /// How many connections may wait to be accepted on a listener.
    SOCKET_LISTEN_BACKLOG_SIZE "socket.listen.backlog.size" Int = 50, AtLeast(1), Medium ReadOnly
        Later;

    /// How many connections one client address may hold.
    MAX_CONNECTIONS_PER_IP "max.connections.per.ip" Int = i32::MAX, AtLeast(0), Medium Cluster
        Acts;

    /// Other limits for chosen addresses, as `host:count` pairs.
    MAX_CONNECTIONS_PER_IP_OVERRIDES "max.connections.per.ip.overrides" Text = "", Any, Medium
        Cluster Later;

    /// How many client connections this broker holds at most.
    MAX_CONNECTIONS "max.connections" Int = i32::MAX, AtLeast(0), Medium Cluster Acts;

    /// How many new connections per second this broker accepts.
    MAX_CONNECTION_CREATION_RATE "max.connection.creation.rate" Int = i32::MAX, AtLeast(0), Medium
        Cluster Later;

    /// After how long without a request a client connection is closed; negative means never.
    CONNECTIONS_MAX_IDLE_MS "connections.max.idle.ms" Long = 600_000, Any, Medium ReadOnly Acts;

    /// How long the refusal of bad credentials is held back, to slow down guessing.
    CONNECTION_FAILED_AUTHENTICATION_DELAY_MS "connection.failed.authentication.delay.ms" Int =
        100, AtLeast(0), Low ReadOnly Later;

    /// Length of a queue between network and worker threads; in Gracchus a request runs on the
    /// thread that read it.
    QUEUED_MAX_REQUESTS "queued.max.requests" Int = 500, AtLeast(1), High ReadOnly Never;

    /// How many bytes of requests may be in progress before sockets are no longer read; -1 is
    /// the built-in bound.
    QUEUED_MAX_REQUEST_BYTES "queued.max.request.bytes" Long = -1, Any, Medium ReadOnly Later;

    /// How many threads serve connections; never more than there are cores.
    NUM_NETWORK_THREADS "num.network.threads" Int = 3, AtLeast(1), High Cluster Later;

    /// Old name of `node.id`; when both are given they must agree.
    BROKER_ID "broker.id" Int = -1, Any, High ReadOnly Acts;

    /// The largest record batch accepted, as it is on the wire, unless the topic sets
    /// `max.message.bytes`.
    MESSAGE_MAX_BYTES "message.max.bytes" Int = 1_048_588, AtLeast(0), High Cluster Acts;

    /// The largest single record accepted inside a compressed batch, measured after
    /// decompression.
    MAX_DECOMPRESSED_MESSAGE_BYTES "max.decompressed.message.bytes" Int = 2_147_483_639, Between(1,
        2_147_483_639), Medium Cluster Acts;

    /// Size of a worker pool; in Gracchus a request runs on the thread that read it.
    NUM_IO_THREADS "num.io.threads" Int = 8, AtLeast(1), High Cluster Never;

    /// Threads that move replicas between directories; Gracchus uses its housekeeping thread.
    NUM_REPLICA_ALTER_LOG_DIRS_THREADS "num.replica.alter.log.dirs.threads" OptInt = None, Any,
        High ReadOnly Never;

    /// Size of a pool for background work; Gracchus has one housekeeping thread.
    BACKGROUND_THREADS "background.threads" Int = 10, AtLeast(1), High Cluster Never;

    /// How long this node waits for the answer to a request that it sent to another node.
    REQUEST_TIMEOUT_MS "request.timeout.ms" Int = 30_000, Any, High ReadOnly Later;

    /// How long this node waits for a connection to another node to open.
    SOCKET_CONNECTION_SETUP_TIMEOUT_MS "socket.connection.setup.timeout.ms" Long = 10_000, Any,
        Medium ReadOnly Later;

    /// The longest such wait after repeated failures.
    SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS "socket.connection.setup.timeout.max.ms" Long = 30_000,
        Any, Medium ReadOnly Later;

    /// Plug-ins that resolve `${...}` in values; Gracchus loads no Java classes and takes
    /// values as written.
    CONFIG_PROVIDERS "config.providers" List = "", List, Low Cluster Never;

    /// Switches on the checking of ACLs; the name of Kafka's standard authorizer selects the
    /// built-in one.
    AUTHORIZER_CLASS_NAME "authorizer.class.name" Text = "", Any, Low ReadOnly Later;

    /// Listeners that open before authorization is ready; Gracchus opens all of them when it is
    /// ready to serve.
    EARLY_START_LISTENERS "early.start.listeners" OptList = None, List, High ReadOnly Never;

    /// The rack or zone of this broker, used to spread replicas and to find a near one.
    BROKER_RACK "broker.rack" OptText = None, Any, Medium ReadOnly Acts;

    /// Whether a stopping broker hands its leaderships over before it goes.
    CONTROLLED_SHUTDOWN_ENABLE "controlled.shutdown.enable" Bool = true, Any, Medium ReadOnly
        Later;

    /// Whether topics may be deleted.
    DELETE_TOPIC_ENABLE "delete.topic.enable" Bool = true, Any, High ReadOnly Acts;

    /// The codec in which a topic is stored; `producer` keeps what the producer chose.
    COMPRESSION_TYPE "compression.type" Text = "producer", OneOf(&["uncompressed", "zstd", "lz4",
        "snappy", "gzip", "producer"]), High Cluster Acts;

    /// Effort of gzip when the broker compresses; -1 is the codec's own default.
    COMPRESSION_GZIP_LEVEL "compression.gzip.level" Int = -1, GzipLevel, Medium Cluster Acts;

    /// Effort of LZ4 when the broker compresses.
    COMPRESSION_LZ4_LEVEL "compression.lz4.level" Int = 9, Between(1, 17), Medium Cluster Acts;

    /// Effort of Zstandard when the broker compresses.
    COMPRESSION_ZSTD_LEVEL "compression.zstd.level" Int = 3, Between(-131_072, 22), Medium Cluster
        Acts;

    /// How many incremental fetch sessions are kept at once.
    MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS "max.incremental.fetch.session.cache.slots" Int =
        1000, AtLeast(0), Medium ReadOnly Acts;

    /// The most bytes returned for one fetch request, whatever the client asks for.
    FETCH_MAX_BYTES "fetch.max.bytes" Int = 57_671_680, AtLeast(1024), Medium ReadOnly Acts;

    /// The most partitions described in one DescribeTopicPartitions answer.
    MAX_REQUEST_PARTITION_SIZE_LIMIT "max.request.partition.size.limit" Int = 2000, AtLeast(1),
        Medium ReadOnly Acts;

    /// Shows API versions still in development; Gracchus offers finished ones only.
    UNSTABLE_API_VERSIONS_ENABLE "unstable.api.versions.enable" Bool = false, Any, High ReadOnly
        Never internal;

    /// Allows feature levels still in development; Gracchus offers finished ones only.
    UNSTABLE_FEATURE_VERSIONS_ENABLE "unstable.feature.versions.enable" Bool = false, Any, High
        ReadOnly Never internal;
}

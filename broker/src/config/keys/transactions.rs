//! Transactions and the memory of producers.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { TRANSACTIONS_ROWS;
    /// In-sync replicas that the transaction topic needs; when not set, never more than its
    /// replicas.
    TRANSACTION_STATE_LOG_MIN_ISR "transaction.state.log.min.isr" Int = 2, AtLeast(1), High
        ReadOnly Later;

    /// How many bytes are read at a time while the transaction topic is loaded.
    TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE "transaction.state.log.load.buffer.size" Int =
        5_242_880, AtLeast(1), High ReadOnly Later;

    /// Replicas of the transaction topic; when not set, the smaller of 3 and the number of
    /// brokers.
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR "transaction.state.log.replication.factor" Short = 3,
        AtLeast(1), High ReadOnly Later;

    /// Partitions of the transaction topic; must not change once the topic exists.
    TRANSACTION_STATE_LOG_NUM_PARTITIONS "transaction.state.log.num.partitions" Int = 50,
        AtLeast(1), High ReadOnly Later;

    /// Segment size of the transaction topic.
    TRANSACTION_STATE_LOG_SEGMENT_BYTES "transaction.state.log.segment.bytes" Int = 104_857_600,
        AtLeast(1), High ReadOnly Later;

    /// Whether a transactional write is checked against the coordinator's list of partitions.
    TRANSACTION_PARTITION_VERIFICATION_ENABLE "transaction.partition.verification.enable" Bool =
        true, Any, Low Cluster Later;

    /// How long an idle producer is remembered per partition, for duplicate detection.
    PRODUCER_ID_EXPIRATION_MS "producer.id.expiration.ms" Int = 86_400_000, AtLeast(1), Low Cluster
        Acts;

    /// How often idle producers are looked for.
    PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS "producer.id.expiration.check.interval.ms" Int =
        600_000, AtLeast(1), Low ReadOnly Later internal;

    /// How long the state of an idle transactional id is kept.
    TRANSACTIONAL_ID_EXPIRATION_MS "transactional.id.expiration.ms" Int = 604_800_000, AtLeast(1),
        High ReadOnly Later;

    /// The longest transaction time-out a producer may ask for.
    TRANSACTION_MAX_TIMEOUT_MS "transaction.max.timeout.ms" Int = 900_000, AtLeast(1), High
        ReadOnly Later;

    /// How often transactions past their time-out are looked for and aborted.
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS
        "transaction.abort.timed.out.transaction.cleanup.interval.ms" Int = 10_000, AtLeast(1), Low
        ReadOnly Later;

    /// How often expired transactional ids are looked for and forgotten.
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS
        "transaction.remove.expired.transaction.cleanup.interval.ms" Int = 3_600_000, AtLeast(1),
        Low ReadOnly Later;

    /// Whether transactions without a time-out, prepared and decided from outside, are allowed.
    TRANSACTION_TWO_PHASE_COMMIT_ENABLE "transaction.two.phase.commit.enable" Bool = false, Any,
        Low ReadOnly Later;

    /// The longest that a broker itself retries to add a partition to a transaction.
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS "add.partitions.to.txn.retry.backoff.max.ms" Int =
        100, AtLeast(0), High ReadOnly Later;

    /// The pause between such retries.
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS "add.partitions.to.txn.retry.backoff.ms" Int = 20,
        AtLeast(1), High ReadOnly Later;
}

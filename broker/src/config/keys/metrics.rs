//! Metrics of the process and of its clients.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { METRICS_ROWS;
    /// How many samples Kafka's metrics keep; Gracchus counts and leaves rates to the
    /// collector.
    METRICS_NUM_SAMPLES "metrics.num.samples" Int = 2, AtLeast(1), Low ReadOnly Never;

    /// How long a sample of Kafka's metrics lasts; Gracchus counts and leaves rates to the
    /// collector.
    METRICS_SAMPLE_WINDOW_MS "metrics.sample.window.ms" Long = 30_000, AtLeast(1), Low ReadOnly
        Never;

    /// Java classes that receive metrics; Gracchus serves Prometheus text over HTTP.
    METRIC_REPORTERS "metric.reporters" List = "org.apache.kafka.common.metrics.JmxReporter", List,
        Low Cluster Never;

    /// Which of Kafka's metrics are recorded; Gracchus records all of its own.
    METRICS_RECORDING_LEVEL "metrics.recording.level" Text = "INFO", Any, Low ReadOnly Never;

    /// Java classes that receive metrics of Kafka's older library; Gracchus serves Prometheus
    /// text over HTTP.
    KAFKA_METRICS_REPORTERS "kafka.metrics.reporters" List = "", List, Low ReadOnly Never;

    /// How often those reporters are called.
    KAFKA_METRICS_POLLING_INTERVAL_SECS "kafka.metrics.polling.interval.secs" Int = 10, AtLeast(1),
        Low ReadOnly Never;

    /// The largest report of client metrics accepted.
    TELEMETRY_MAX_BYTES "telemetry.max.bytes" Int = 1_048_576, AtLeast(1), Low ReadOnly Later;
}

//! Counters on the request paths, as handles that are made once. What is only looked at when
//! somebody scrapes is gathered then, by `http/`.
//!
//! Names are those that Kafka's dashboards graph (the Strimzi spelling of the JMX names).

use metrics::{Counter, counter};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use protocol_compat::schema;

/// Topics beyond this many share the label `__other__`, so that the scrape stays bounded.
pub const TOPIC_LABELS_MAX: u64 = 2000;

/// Rates of one topic.
pub struct TopicMetrics {
    bytes_in: Counter,
    bytes_out: Counter,
    messages_in: Counter,
}

impl TopicMetrics {
    pub fn new(topic: &str) -> TopicMetrics {
        use std::sync::atomic::{AtomicU64, Ordering};
        static LABELS: AtomicU64 = AtomicU64::new(0);
        let free = LABELS.fetch_add(1, Ordering::Relaxed) < TOPIC_LABELS_MAX;
        let topic = if free { topic } else { "__other__" }.to_owned();
        TopicMetrics {
            bytes_in: counter!(
                "kafka_server_brokertopicmetrics_bytesin_total", "topic" => topic.clone()
            ),
            bytes_out: counter!(
                "kafka_server_brokertopicmetrics_bytesout_total", "topic" => topic.clone()
            ),
            messages_in: counter!(
                "kafka_server_brokertopicmetrics_messagesin_total", "topic" => topic
            ),
        }
    }

    pub fn produced(&self, records: i64, bytes: usize) {
        self.messages_in.increment(records.unsigned_abs());
        self.bytes_in.increment(bytes as u64);
    }

    pub fn fetched(&self, bytes: usize) {
        self.bytes_out.increment(bytes as u64);
    }
}

/// Counters of the whole node.
pub struct NodeMetrics {
    /// By API key.
    requests: Vec<Counter>,
    recorder: Option<PrometheusHandle>,
}

/// Makes this process count; the handle renders what was counted. Once for each process.
pub fn install() -> Option<PrometheusHandle> {
    PrometheusBuilder::new().install_recorder().ok()
}

impl NodeMetrics {
    /// `recorder` is what [`install`] gave; without one nothing can be rendered.
    pub fn new(recorder: Option<PrometheusHandle>) -> NodeMetrics {
        let keys = 0..=schema::APIS.iter().map(|api| api.key).max().unwrap_or(0);
        let requests = keys
            .map(|key| {
                let name = schema::api(key).map_or("unknown", |api| api.name);
                counter!("kafka_network_requestmetrics_requests_total", "request" => name)
            })
            .collect();
        NodeMetrics { requests, recorder }
    }

    /// Everything that was counted, as Prometheus reads it.
    pub fn render(&self) -> String {
        self.recorder.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }

    /// A request of this API begins.
    pub fn request(&self, key: i16) {
        if let Some(counter) = usize::try_from(key).ok().and_then(|key| self.requests.get(key)) {
            counter.increment(1);
        }
    }
}

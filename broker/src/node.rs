//! One node: what it is made of, where its parts meet. Starting and stopping is `start.rs`.

use std::sync::Arc;

use arc_swap::ArcSwap;
use kraft::image::Image;
use parking_lot::Mutex;

use crate::auto_topics::Creating;
use crate::budget::Budget;
use crate::cold::ColdReads;
use crate::env::Env;
use crate::fetch::session::Sessions;
use crate::groups::Groups;
use crate::log_dirs::LogDirs;
use crate::log_starts::LogStarts;
use crate::loggers::Loggers;
use crate::metrics::NodeMetrics;
use crate::net::ConnInfo;
use crate::net::listener::Connections;
use crate::partition::Partition;
use crate::partition::table::PartitionTable;
use crate::producer_ids::ProducerIds;
use crate::progress::Progress;
use crate::quorum::Quorum;
use crate::runtime::Runtime;
use crate::stop::Stop;

/// Topics that the broker itself writes.
pub const INTERNAL_TOPICS: [&str; 3] =
    ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// The topic of committed offsets and groups.
pub const OFFSETS_TOPIC: &str = INTERNAL_TOPICS[0];

/// Whether a topic is the broker's own.
pub fn is_internal(topic: &str) -> bool {
    INTERNAL_TOPICS.contains(&topic)
}

/// Everything that handlers reach.
pub struct Node {
    pub env: Env,
    pub id: i32,
    pub cluster_id: Arc<str>,
    /// The configuration as it is now, dynamic changes included.
    pub config: Arc<ArcSwap<Runtime>>,
    pub quorum: Arc<Quorum>,
    pub partitions: Arc<PartitionTable>,
    pub dirs: Arc<LogDirs>,
    pub groups: Arc<Groups>,
    pub sessions: Mutex<Sessions>,
    pub producer_ids: ProducerIds,
    pub creating: Creating,
    pub budget: Budget,
    pub cold: ColdReads,
    pub connections: Connections,
    pub metrics: NodeMetrics,
    pub loggers: Loggers,
    pub progress: Arc<Progress>,
    /// Where clients wait until a log's start that they moved is written down.
    pub log_starts: LogStarts,
    pub stop: Stop,
}

/// A broker as one client sees it.
pub struct BrokerAddress {
    pub id: i32,
    pub host: String,
    pub port: u16,
    pub rack: Option<String>,
    pub fenced: bool,
}

impl Node {
    pub fn runtime(&self) -> Arc<Runtime> {
        self.config.load_full()
    }

    /// `socket.request.max.bytes`.
    pub fn request_bytes_max(&self) -> usize {
        self.config.load().request_bytes_max
    }

    /// `connections.max.idle.ms`.
    pub fn idle_ms_max(&self) -> i64 {
        self.config.load().idle_ms_max
    }

    /// `fetch.max.bytes`.
    pub fn fetch_bytes_max(&self) -> i32 {
        self.config.load().fetch_bytes_max
    }

    /// `max.connections` and `max.connections.per.ip`.
    pub fn connection_limits(&self) -> (usize, usize) {
        let config = self.config.load();
        (config.connections_max, config.connections_per_ip_max)
    }

    /// `auto.create.topics.enable`.
    pub fn auto_create_topics(&self) -> bool {
        self.config.load().auto_create_topics
    }

    /// How long an acknowledgement of our own disk is waited for, whatever the client says: Kafka
    /// writes before it looks at the clock.
    pub fn own_ack_ms(&self) -> i64 {
        const OWN_ACK_MS: i64 = 10_000;
        OWN_ACK_MS
    }

    /// The broker that clients are told to send admin requests to.
    pub fn controller_id(&self) -> i32 {
        self.quorum.leader().unwrap_or(-1)
    }

    /// Records of `partition` go out to a consumer.
    pub fn fetched(&self, partition: &Partition, bytes: usize) {
        if let Some(topic) = self.partitions.load().by_id(&partition.topic_id) {
            topic.metrics.fetched(bytes);
        }
    }

    /// The live brokers with an address on the client's listener. Without `advertised.listeners`
    /// this node is where the client found it.
    pub fn brokers_for(&self, conn: &ConnInfo, image: &Image) -> Vec<BrokerAddress> {
        let live = image.brokers().filter(|broker| broker.is_active());
        live.filter_map(|broker| self.address_of(broker, conn)).collect()
    }

    /// The address of one broker for this client.
    pub fn address_of(
        &self,
        broker: &kraft::image::Broker,
        conn: &ConnInfo,
    ) -> Option<BrokerAddress> {
        let rack = broker.rack.as_ref().map(|rack| rack.to_string());
        let (id, fenced) = (broker.id, broker.fenced);
        if id == self.id {
            let (host, port) = conn.endpoint();
            return Some(BrokerAddress { id, host, port, rack, fenced });
        }
        let endpoint = broker.endpoint(&conn.listener)?;
        Some(BrokerAddress {
            id,
            host: endpoint.host.to_string(),
            port: endpoint.port,
            rack,
            fenced,
        })
    }
}

//! Topics that come into being by being asked for: by a client's Metadata, or the broker's own.

use std::collections::BTreeSet;
use std::sync::Arc;

use kraft::controller::{
    ControllerReply, ControllerRequest, CreateTopics, CreatedTopic, NewTopic, Refusal,
};
use parking_lot::Mutex;
use protocol_compat::error::ErrorCode;

use crate::config::keys;
use crate::env::BoxFuture;
use crate::loggers::Seldom;
use crate::node::{INTERNAL_TOPICS, Node};
use crate::runtime::Runtime;

/// Names whose creation is under way, so that a thousand clients make one request.
#[derive(Default)]
pub struct Creating {
    names: Mutex<BTreeSet<String>>,
    /// Clients ask again, several times a second.
    failures: Mutex<Seldom>,
}

impl Creating {
    fn failed(&self, now_ms: i64, topic: &str, code: ErrorCode, why: Option<&str>) {
        if let Some(more) = self.failures.lock().say(now_ms) {
            tracing::warn!(topic, code = code.name(), why, more, "topic was not created");
        }
    }
}

impl Node {
    /// Starts the creation of topics that are not there; does not wait for it.
    pub fn create_missing(self: &Arc<Self>, names: Vec<String>) {
        let brokers = self.quorum.image().brokers().count();
        let mut topics = Vec::new();
        {
            let mut creating = self.creating.names.lock();
            for name in names {
                if creating.insert(name.clone()) {
                    topics.push(new_topic(&self.runtime(), name, brokers));
                }
            }
        }
        if topics.is_empty() {
            return;
        }
        let node = Arc::clone(self);
        let task = move || Box::pin(create(node, topics)) as BoxFuture<()>;
        self.env.tasks.spawn_on(0, "auto-create", Box::new(task));
    }
}

async fn create(node: Arc<Node>, topics: Vec<NewTopic>) {
    let names: BTreeSet<String> = topics.iter().map(|topic| topic.name.clone()).collect();
    let request = ControllerRequest::CreateTopics(CreateTopics { topics, validate_only: false });
    match node.quorum.submit(request).await {
        Ok(ControllerReply::CreateTopics(results)) => {
            results.iter().for_each(|result| tell(&node, result));
        }
        Ok(other) => unreachable!("the answer to a creation is one: {other:?}"),
        Err(code) => {
            let first = names.first().map_or("", String::as_str);
            node.creating.failed(node.env.clock.mono_ms(), first, code, None);
        }
    }
    node.creating.names.lock().retain(|name| !names.contains(name));
}

fn tell(node: &Node, (topic, result): &(String, Result<CreatedTopic, Refusal>)) {
    match result {
        Ok(_) => tracing::info!(topic, "topic created because it was asked for"),
        // Another request was quicker.
        Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {}
        Err(refusal) => {
            let now_ms = node.env.clock.mono_ms();
            node.creating.failed(now_ms, topic, refusal.code, refusal.message.as_deref());
        }
    }
}

/// A topic with the defaults of its kind.
fn new_topic(runtime: &Runtime, name: String, brokers: usize) -> NewTopic {
    let config = &runtime.config;
    let own = |key, value: &str| (String::from(key), Some(value.to_owned()));
    let segment_bytes = |bytes: i32| own("segment.bytes", &bytes.to_string());
    let fixed = config.fixed();
    let (partitions, replication_factor, configs) = match name.as_str() {
        name if name == INTERNAL_TOPICS[0] => (
            config.int(keys::OFFSETS_TOPIC_NUM_PARTITIONS),
            fixed.internal_replication(keys::OFFSETS_TOPIC_REPLICATION_FACTOR, brokers),
            vec![
                own("cleanup.policy", "compact"),
                own("compression.type", "producer"),
                segment_bytes(config.int(keys::OFFSETS_TOPIC_SEGMENT_BYTES)),
            ],
        ),
        name if name == INTERNAL_TOPICS[1] => (
            config.int(keys::TRANSACTION_STATE_LOG_NUM_PARTITIONS),
            fixed.internal_replication(keys::TRANSACTION_STATE_LOG_REPLICATION_FACTOR, brokers),
            vec![
                own("cleanup.policy", "compact"),
                own("compression.type", "uncompressed"),
                own("unclean.leader.election.enable", "false"),
                segment_bytes(config.int(keys::TRANSACTION_STATE_LOG_SEGMENT_BYTES)),
            ],
        ),
        name if name == INTERNAL_TOPICS[2] => (
            config.int(keys::SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS),
            fixed.internal_replication(
                keys::SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
                brokers,
            ),
            vec![
                own("cleanup.policy", "delete"),
                own("compression.type", "producer"),
                own("retention.ms", "-1"),
                segment_bytes(config.int(keys::SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES)),
            ],
        ),
        _ => (-1, -1, Vec::new()),
    };
    NewTopic { name, partitions, replication_factor, assignments: Vec::new(), configs }
}

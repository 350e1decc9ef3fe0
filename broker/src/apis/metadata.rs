//! Metadata (3), 0-13.
//!
//! v0: an empty list asks for all topics. v1: null asks for all, empty for none. v4: the client
//! says whether topics may be created. v5: offline replicas. v7: leader epochs. v8: authorized
//! operations. v9: flexible. v10: topic ids. v12: topics by id. v13: an error for the whole answer.

use std::collections::BTreeSet;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use kraft::image::{Image, Topic};
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::valid_topic_name;
use uuid::Uuid;

use super::ctx::text;
use super::{Ctx, Handler};
use crate::node::is_internal;

/// "Not asked for" in a field of authorized operations.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
/// What everybody may do to a topic while there is no authorizer: read, write, create, delete,
/// alter, describe, describe and alter configs.
pub const TOPIC_OPERATIONS: i32 =
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;
/// The same for the cluster: create, alter, describe, cluster action, describe and alter configs,
/// idempotent write, create and describe tokens.
pub const CLUSTER_OPERATIONS: i32 = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;

pub struct Metadata;

impl Handler for Metadata {
    type Request = MetadataRequest;

    async fn handle(ctx: Ctx, version: i16, request: MetadataRequest) -> MetadataResponse {
        if let Some(refusal) = refuse(version, &request) {
            return refusal;
        }
        let image = ctx.node.quorum.image();
        let answer = Answering { ctx: &ctx, version, request: &request, image: &image };
        let (topics, missing) = answer.topics();
        let create = request.allow_auto_topic_creation || version < 4;
        if create && ctx.node.auto_create_topics() {
            ctx.node.create_missing(missing);
        }
        answer.response(topics)
    }
}

/// The cluster as one request sees it.
struct Answering<'a> {
    ctx: &'a Ctx,
    version: i16,
    request: &'a MetadataRequest,
    image: &'a Image,
}

impl Answering<'_> {
    fn response(&self, topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
        let mut response = MetadataResponse::default();
        response.brokers = self.brokers();
        response.cluster_id = Some(StrBytes::from_string(self.ctx.node.cluster_id.to_string()));
        response.controller_id = BrokerId(self.ctx.node.controller_id());
        response.topics = topics;
        if (8..=10).contains(&self.version) {
            response.cluster_authorized_operations =
                operations(self.request.include_cluster_authorized_operations, CLUSTER_OPERATIONS);
        }
        response
    }

    fn brokers(&self) -> Vec<MetadataResponseBroker> {
        let brokers = self.ctx.node.brokers_for(&self.ctx.conn, self.image);
        let listed = brokers.into_iter().map(|broker| {
            let mut listed = MetadataResponseBroker::default();
            listed.node_id = BrokerId(broker.id);
            listed.host = StrBytes::from_string(broker.host);
            listed.port = i32::from(broker.port);
            listed.rack = broker.rack.map(StrBytes::from_string);
            listed
        });
        listed.collect()
    }

    /// The topics of the answer, and the names that could be created.
    fn topics(&self) -> (Vec<MetadataResponseTopic>, Vec<String>) {
        let asked = match &self.request.topics {
            None => return (self.all(), Vec::new()),
            Some(asked) if asked.is_empty() && self.version == 0 => {
                return (self.all(), Vec::new());
            }
            Some(asked) => asked,
        };
        let mut seen = BTreeSet::new();
        let (mut topics, mut missing) = (Vec::new(), Vec::new());
        // Kafka looks at names only when no topic is asked for by its id.
        let ids_only = asked.iter().any(|topic| topic.topic_id != Uuid::nil());
        for topic in asked {
            if ids_only && topic.topic_id == Uuid::nil() {
                continue;
            }
            let name = topic.name.as_ref().map(|name| name.to_string());
            if !seen.insert((topic.topic_id, name)) {
                continue;
            }
            if topic.topic_id != Uuid::nil() {
                topics.push(self.by_id(topic));
            } else if let Some(name) = &topic.name {
                topics.push(self.by_name(name, &mut missing));
            }
        }
        (topics, missing)
    }

    fn all(&self) -> Vec<MetadataResponseTopic> {
        self.image.topics().map(|topic| self.known(topic)).collect()
    }

    fn by_id(&self, asked: &MetadataRequestTopic) -> MetadataResponseTopic {
        match self.image.topic_by_id(asked.topic_id) {
            Some(topic) => self.known(topic),
            None => {
                let mut answer = MetadataResponseTopic::default();
                answer.error_code = ErrorCode::UnknownTopicId.code();
                answer.name = None;
                answer.topic_id = asked.topic_id;
                answer.topic_authorized_operations = self.topic_operations();
                answer
            }
        }
    }

    fn by_name(&self, name: &TopicName, missing: &mut Vec<String>) -> MetadataResponseTopic {
        if let Some(topic) = self.image.topic(name.as_str()) {
            return self.known(topic);
        }
        let mut answer = MetadataResponseTopic::default();
        answer.name = Some(name.clone());
        answer.is_internal = is_internal(name.as_str());
        answer.topic_authorized_operations = self.topic_operations();
        answer.error_code = match valid_topic_name(name.as_str()) {
            Ok(()) => {
                missing.push(name.to_string());
                ErrorCode::UnknownTopicOrPartition.code()
            }
            Err(_) => ErrorCode::InvalidTopicException.code(),
        };
        answer
    }

    fn known(&self, topic: &Topic) -> MetadataResponseTopic {
        let mut answer = MetadataResponseTopic::default();
        answer.name = Some(TopicName(text(&topic.name)));
        answer.is_internal = is_internal(&topic.name);
        answer.topic_authorized_operations = self.topic_operations();
        if self.version >= 10 {
            answer.topic_id = topic.id;
        }
        answer.partitions = (0..)
            .zip(&topic.partitions)
            .map(|(index, partition)| self.partition(index, partition))
            .collect();
        answer
    }

    fn partition(
        &self,
        index: i32,
        partition: &kraft::image::Partition,
    ) -> MetadataResponsePartition {
        let mut answer = MetadataResponsePartition::default();
        answer.partition_index = index;
        let leader = partition.leader().filter(|leader| self.image.is_active(*leader));
        answer.leader_id = BrokerId(leader.unwrap_or(-1));
        if leader.is_none() {
            answer.error_code = ErrorCode::LeaderNotAvailable.code();
        }
        if self.version >= 7 {
            answer.leader_epoch = partition.leader_epoch;
        }
        answer.replica_nodes = partition.replicas.iter().map(|id| BrokerId(*id)).collect();
        answer.isr_nodes = partition.isr.iter().map(|id| BrokerId(*id)).collect();
        if self.version >= 5 {
            let offline = partition.replicas.iter().filter(|id| !self.image.is_active(**id));
            answer.offline_replicas = offline.map(|id| BrokerId(*id)).collect();
        }
        answer
    }

    fn topic_operations(&self) -> i32 {
        let asked = self.request.include_topic_authorized_operations && self.version >= 8;
        operations(asked, TOPIC_OPERATIONS)
    }
}

/// The bits of authorized operations, if they were asked for (KIP-430).
pub fn operations(asked: bool, allowed: i32) -> i32 {
    if asked { allowed } else { OPERATIONS_NOT_ASKED }
}

/// Refuses a request as a whole, in Kafka's form: topics by id came with v12, and neither a name
/// nor an id names nothing.
fn refuse(version: i16, request: &MetadataRequest) -> Option<MetadataResponse> {
    let asked = request.topics.as_ref()?;
    let is_bad = |topic: &MetadataRequestTopic| {
        let by_id = topic.topic_id != Uuid::nil();
        topic.name.is_none() && !by_id || version < 12 && (by_id || topic.name.is_none())
    };
    if !asked.iter().any(is_bad) {
        return None;
    }
    let mut response = MetadataResponse::default();
    let topics = asked.iter().map(|topic| {
        let mut answer = MetadataResponseTopic::default();
        answer.error_code = ErrorCode::InvalidRequest.code();
        answer.name = Some(topic.name.clone().unwrap_or_default());
        answer.topic_id = topic.topic_id;
        answer
    });
    response.topics = topics.collect();
    if version >= 13 {
        response.error_code = ErrorCode::InvalidRequest.code();
    }
    Some(response)
}

//! CreateTopics (19), 2-7.
//!
//! v4: -1 asks for the defaults. v5: flexible, the configs in the answer. v6: refused by quota. v7:
//! topic ids.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use kraft::controller::{
    ControllerReply, ControllerRequest, CreateTopics as Ask, CreatedTopic, NewTopic, Refusal,
};
use kraft::image::Configs;
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};
use crate::config::Wanted;

pub struct CreateTopics;

impl Handler for CreateTopics {
    type Request = CreateTopicsRequest;

    async fn handle(ctx: Ctx, version: i16, request: CreateTopicsRequest) -> CreateTopicsResponse {
        let topics: Vec<NewTopic> = request.topics.iter().map(new_topic).collect();
        if request.timeout_ms <= 0 && any_is_named_once(&topics) {
            // Kafka looks at the clock before anything is done, but at names before that.
            let timed_out = || Err(Refusal::bare(ErrorCode::RequestTimedOut));
            let results = topics.into_iter().map(|topic| (topic, timed_out()));
            return response(&ctx, version, results);
        }
        let ask = Ask { topics: topics.clone(), validate_only: request.validate_only };
        let reply = ctx.node.quorum.submit(ControllerRequest::CreateTopics(ask)).await;
        let results = match reply {
            Ok(ControllerReply::CreateTopics(results)) => results,
            Ok(other) => unreachable!("the answer to a creation is one: {other:?}"),
            Err(code) => {
                let refused = topics.iter();
                refused.map(|topic| (topic.name.clone(), Err(Refusal::bare(code)))).collect()
            }
        };
        // A duplicate name has one result; its configs do not matter.
        let by_name: BTreeMap<&str, &NewTopic> =
            topics.iter().rev().map(|topic| (topic.name.as_str(), topic)).collect();
        let with_topic = results.into_iter().map(|(name, result)| {
            let asked = by_name.get(name.as_str()).copied().cloned();
            let asked = asked.unwrap_or_else(|| NewTopic {
                name,
                partitions: -1,
                replication_factor: -1,
                assignments: Vec::new(),
                configs: Vec::new(),
            });
            (asked, result)
        });
        response(&ctx, version, with_topic)
    }
}

/// Names given twice are refused without a look at the clock.
fn any_is_named_once(topics: &[NewTopic]) -> bool {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in topics {
        *counts.entry(&topic.name).or_default() += 1;
    }
    counts.values().any(|count| *count == 1)
}

fn new_topic(asked: &CreatableTopic) -> NewTopic {
    let assignments = asked.assignments.iter().map(|assignment| {
        let brokers = assignment.broker_ids.iter().map(|id| id.0).collect();
        (assignment.partition_index, brokers)
    });
    let configs = asked.configs.iter();
    NewTopic {
        name: asked.name.to_string(),
        partitions: asked.num_partitions,
        replication_factor: asked.replication_factor,
        assignments: assignments.collect(),
        configs: configs
            .map(|config| (config.name.to_string(), config.value.as_ref().map(|v| v.to_string())))
            .collect(),
    }
}

fn response(
    ctx: &Ctx,
    version: i16,
    results: impl Iterator<Item = (NewTopic, Result<CreatedTopic, Refusal>)>,
) -> CreateTopicsResponse {
    let topics = results.map(|(asked, result)| topic_result(ctx, version, &asked, result));
    CreateTopicsResponse::default().with_topics(topics.collect())
}

fn topic_result(
    ctx: &Ctx,
    version: i16,
    asked: &NewTopic,
    result: Result<CreatedTopic, Refusal>,
) -> CreatableTopicResult {
    let mut answer = CreatableTopicResult::default();
    answer.name = TopicName(text(&asked.name));
    answer.error_message = None;
    match result {
        Ok(created) => {
            if version >= 5 {
                answer.num_partitions = created.partitions;
                answer.replication_factor = created.replication_factor;
                answer.configs = Some(configs(ctx, asked));
            }
            if version >= 7 {
                answer.topic_id = created.topic_id;
            }
        }
        Err(refusal) => {
            answer.error_code = refusal.code.code();
            answer.error_message = opt_text(refusal.message.as_deref());
            if version >= 5 {
                answer.configs = Some(Vec::new());
            }
        }
    }
    answer
}

/// The same configs that DescribeConfigs shows of the topic.
fn configs(ctx: &Ctx, asked: &NewTopic) -> Vec<CreatableTopicConfigs> {
    let overrides: Configs = asked
        .configs
        .iter()
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_deref()?.into())))
        .collect();
    let runtime = ctx.node.runtime();
    let wanted = Wanted { names: &[], synonyms: false, docs: false };
    let entries = runtime.config.describe_topic(&overrides, wanted).into_iter();
    let configs = entries.map(|entry| {
        let mut out = CreatableTopicConfigs::default();
        out.name = text(&entry.name);
        // What was asked for is given back as it came, with its spaces.
        let given = overrides.get(entry.name.as_str()).map(|value| &**value);
        out.value = opt_text(given.or(entry.value.as_deref()));
        out.read_only = entry.read_only;
        out.config_source = entry.source.code();
        out.is_sensitive = entry.sensitive;
        out
    });
    configs.collect()
}

//! Administration: the run's topic, and deletions from its front.

use anyhow::{Context, anyhow};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::{CreateTopicsRequest, DeleteRecordsRequest};
use protocol_compat::error::ErrorCode;

use super::calls::{self, LATEST};
use super::{Run, back_off};
use crate::client::Client;
use crate::clock::pause_ms;
use crate::history::Event;

/// Short segments, in virtual time, so that rolls happen in every run.
const SEGMENT_MS: &str = "2000";

/// Creates the run's topic; goes on until it is there.
pub async fn create_topic(run: Run, partitions: i32) {
    let (mut client, dice) = (run.client(3_000), run.dice("create", 0));
    loop {
        match try_create(&mut client, partitions).await {
            Ok(ErrorCode::None | ErrorCode::TopicAlreadyExists) => return,
            Ok(error) if !error.is_retriable() => {
                run.odd(format!("the topic was refused: {}", error.name()));
                return;
            }
            _ => back_off(&dice).await,
        }
    }
}

async fn try_create(client: &mut Client, partitions: i32) -> anyhow::Result<ErrorCode> {
    let config = CreatableTopicConfig::default()
        .with_name(calls::text("segment.ms"))
        .with_value(Some(calls::text(SEGMENT_MS)));
    let topic = CreatableTopic::default()
        .with_name(calls::topic())
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(vec![config]);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(5_000);
    let response = client.call(7, &request).await?;
    let answer = response.topics.first().context("an answer without a topic")?;
    Ok(calls::code(answer.error_code))
}

/// Deletes from the front of a partition now and then, until the run stops.
pub async fn delete_records(run: Run, partition: i32) {
    let (mut client, dice) = (run.client(3_001), run.dice("delete", partition.unsigned_abs()));
    while !run.stopping() {
        pause_ms(dice.between(500, 4_000)).await;
        let end = match calls::list_offset(&mut client, partition, LATEST).await {
            Ok(end) => end,
            Err(_) => continue,
        };
        let offset = dice.below(end.unsigned_abs() + 1) as i64;
        run.record(Event::Delete { partition, offset });
        // Whether it was done or not: from here on it may be.
        if let Err(error) = try_delete(&mut client, partition, offset).await
            && error.to_string().starts_with("DeleteRecords")
        {
            run.odd(error.to_string());
        }
    }
}

async fn try_delete(client: &mut Client, partition: i32, offset: i64) -> anyhow::Result<()> {
    let at = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(offset);
    let topic = DeleteRecordsTopic::default().with_name(calls::topic()).with_partitions(vec![at]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(3_000);
    let response = client.call(2, &request).await?;
    let answer = response.topics.first().and_then(|topic| topic.partitions.first());
    match answer.map(|answer| calls::code(answer.error_code)) {
        // Below the log start: another deletion, whose answer was lost, went further.
        None | Some(ErrorCode::None | ErrorCode::OffsetOutOfRange) => Ok(()),
        Some(error) if error.is_retriable() => Ok(()),
        Some(error) => Err(anyhow!("DeleteRecords was told {}", error.name())),
    }
}

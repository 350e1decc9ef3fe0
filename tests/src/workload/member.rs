//! A member of a classic group: joins, commits ever higher offsets, asks for what is committed.

use anyhow::{Context, anyhow};
use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest,
    OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;
use protocol_compat::error::ErrorCode;

use super::{Run, back_off, calls};
use crate::client::Client;
use crate::clock::pause_ms;
use crate::dice::Dice;
use crate::history::{Event, Outcome};

#[derive(Clone, Copy, Debug)]
pub struct MemberPlan {
    pub group: u32,
    pub partition: i32,
    pub commits: u32,
}

struct Member {
    run: Run,
    plan: MemberPlan,
    client: Client,
    dice: Dice,
    member_id: StrBytes,
    /// Whether the node said that it coordinates the group.
    found: bool,
    /// Of the group; `None` when the member must join.
    generation: Option<i32>,
}

/// Commits as often as the plan says, and asks once more at the end.
pub async fn member(run: Run, plan: MemberPlan) {
    let (client, dice) = (run.client(4_000 + plan.group), run.dice("member", plan.group));
    let member_id = StrBytes::default();
    let (found, generation) = (false, None);
    let mut member = Member { run, plan, client, dice, member_id, found, generation };
    let mut done = 0;
    while done < plan.commits {
        let step = match member.generation {
            _ if !member.found => member.find().await,
            None => member.join().await,
            Some(generation) => {
                done += 1;
                member.commit(generation, i64::from(done)).await
            }
        };
        if let Err(error) = step {
            member.run.trouble("member", plan.group, format!("{error:#}"));
            back_off(&member.dice).await;
        }
        if member.dice.chance(200) {
            member.ask().await;
        }
        pause_ms(member.dice.between(0, 400)).await;
    }
    while !member.ask().await {
        back_off(&member.dice).await;
    }
}

impl Member {
    fn group(&self) -> GroupId {
        GroupId(calls::text(&format!("group-{}", self.plan.group)))
    }

    /// Asks for the coordinator: this is what makes the topic of committed offsets, too.
    async fn find(&mut self) -> anyhow::Result<()> {
        let request = FindCoordinatorRequest::default().with_key(self.group().0);
        match calls::code(self.client.call(3, &request).await?.error_code) {
            ErrorCode::None => self.found = true,
            error => return Err(self.refused("FindCoordinator", error)),
        }
        Ok(())
    }

    async fn join(&mut self) -> anyhow::Result<()> {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(calls::text("range"))
            .with_metadata(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        let request = JoinGroupRequest::default()
            .with_group_id(self.group())
            .with_session_timeout_ms(10_000)
            .with_rebalance_timeout_ms(10_000)
            .with_member_id(self.member_id.clone())
            .with_protocol_type(calls::text("consumer"))
            .with_protocols(vec![protocol]);
        let joined = self.client.call(5, &request).await?;
        match calls::code(joined.error_code) {
            ErrorCode::None => {}
            ErrorCode::MemberIdRequired => {
                self.member_id = joined.member_id;
                return Ok(());
            }
            error => return Err(self.refused("JoinGroup", error)),
        }
        self.member_id = joined.member_id.clone();
        let assignment = SyncGroupRequestAssignment::default()
            .with_member_id(self.member_id.clone())
            .with_assignment(Bytes::from_static(b"mine"));
        let request = SyncGroupRequest::default()
            .with_group_id(self.group())
            .with_generation_id(joined.generation_id)
            .with_member_id(self.member_id.clone())
            .with_assignments(vec![assignment]);
        let synced = self.client.call(3, &request).await?;
        match calls::code(synced.error_code) {
            ErrorCode::None => self.generation = Some(joined.generation_id),
            error => return Err(self.refused("SyncGroup", error)),
        }
        Ok(())
    }

    /// What a refusal means for the membership.
    fn refused(&mut self, what: &str, error: ErrorCode) -> anyhow::Error {
        match error {
            ErrorCode::UnknownMemberId => {
                (self.member_id, self.generation) = (StrBytes::default(), None);
            }
            ErrorCode::IllegalGeneration | ErrorCode::RebalanceInProgress => {
                self.generation = None;
            }
            ErrorCode::NotCoordinator => self.found = false,
            error if error.is_retriable() => {}
            error => self.run.odd(format!("{what} was told {}", error.name())),
        }
        anyhow!("{what} was told {}", error.name())
    }

    async fn commit(&mut self, generation: i32, offset: i64) -> anyhow::Result<()> {
        let MemberPlan { group, partition, .. } = self.plan;
        self.run.record(Event::CommitInvoke { group, partition, offset });
        let answer = self.try_commit(generation, offset).await;
        let outcome = match &answer {
            Ok(ErrorCode::None) => Outcome::Ok,
            Ok(
                ErrorCode::UnknownMemberId
                | ErrorCode::IllegalGeneration
                | ErrorCode::RebalanceInProgress,
            ) => Outcome::Failed,
            Ok(_) | Err(_) => Outcome::Unknown,
        };
        self.run.record(Event::CommitAnswer { group, partition, offset, outcome });
        match answer? {
            ErrorCode::None => {}
            error => return Err(self.refused("OffsetCommit", error)),
        }
        let request = HeartbeatRequest::default()
            .with_group_id(self.group())
            .with_generation_id(generation)
            .with_member_id(self.member_id.clone());
        match calls::code(self.client.call(3, &request).await?.error_code) {
            ErrorCode::None => Ok(()),
            error => Err(self.refused("Heartbeat", error)),
        }
    }

    async fn try_commit(&mut self, generation: i32, offset: i64) -> anyhow::Result<ErrorCode> {
        let at = OffsetCommitRequestPartition::default()
            .with_partition_index(self.plan.partition)
            .with_committed_offset(offset)
            .with_committed_metadata(Some(StrBytes::default()));
        let topic =
            OffsetCommitRequestTopic::default().with_name(calls::topic()).with_partitions(vec![at]);
        let request = OffsetCommitRequest::default()
            .with_group_id(self.group())
            .with_generation_id_or_member_epoch(generation)
            .with_member_id(self.member_id.clone())
            .with_topics(vec![topic]);
        let response = self.client.call(7, &request).await?;
        let answer = response.topics.first().and_then(|topic| topic.partitions.first());
        Ok(calls::code(answer.context("an answer without a partition")?.error_code))
    }

    /// Asks what is committed; whether there was an answer.
    async fn ask(&mut self) -> bool {
        match self.try_ask().await {
            Ok(offset) => {
                let MemberPlan { group, partition, .. } = self.plan;
                self.run.record(Event::Committed { group, partition, offset });
                true
            }
            Err(_) => false,
        }
    }

    async fn try_ask(&mut self) -> anyhow::Result<i64> {
        let topic = OffsetFetchRequestTopic::default()
            .with_name(calls::topic())
            .with_partition_indexes(vec![self.plan.partition]);
        let request = OffsetFetchRequest::default()
            .with_group_id(self.group())
            .with_topics(Some(vec![topic]));
        let response = self.client.call(6, &request).await?;
        let answer = response.topics.first().and_then(|topic| topic.partitions.first());
        let answer = answer.context("an answer without a partition")?;
        for error in [response.error_code, answer.error_code].map(calls::code) {
            if error != ErrorCode::None {
                return Err(anyhow!("OffsetFetch was told {}", error.name()));
            }
        }
        Ok(answer.committed_offset)
    }
}

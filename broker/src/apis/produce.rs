//! Produce (0), advertised 0-13, decoded 3-13.
//!
//! v3: record batches of magic 2. v7: zstd. v8: record errors and a message. v9: flexible. v10: the
//! current leader. v13: topics by id. Each partition carries exactly one batch.
//!
//! The body is parsed in place, batches are checked and patched where the socket put them, and
//! written from there: no copy, no decode of records beyond the walk that finds liars.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;

use protocol_compat::batch::{ProduceRefusal, check_shape, first_batch, validate_produce};
use protocol_compat::error::ErrorCode;
use protocol_compat::hot::produce::{
    self as wire, ProducePartition, ProducePartitionResponse, ProduceRequest, ProduceResponse,
    ProduceTopic, ProduceTopicResponse,
};
use storage::producers::Origin;
use uuid::Uuid;

use super::{Answer, Ctx, Head, Started, dispatch};
use crate::errors;
use crate::net::out::Reply;
use crate::partition::table::TopicHandle;
use crate::partition::{Append, Partition, Written};

/// Clients whose id is this may write to internal topics (Kafka `Topic.isInternal` rule).
const ADMIN_CLIENT: &str = "__admin_client";

/// A produce whose records are written and not yet durable.
pub struct PendingProduce {
    head: Head,
    acks: i16,
    deadline_ms: i64,
    response: ProduceResponse,
    waits: Vec<Wait>,
}

struct Wait {
    partition: Arc<Partition>,
    end_offset: i64,
    /// Where its entry is in the response.
    topic: usize,
    entry: usize,
}

impl PendingProduce {
    /// The moment (monotonic) at which REQUEST_TIMED_OUT is answered.
    pub fn deadline_ms(&self) -> i64 {
        self.deadline_ms
    }

    /// The answer, once everything is durable or the time is up.
    pub fn try_finish(&mut self, now_ms: i64) -> Option<Reply> {
        let (acks, response) = (self.acks, &mut self.response);
        let mut fail = |wait: &Wait, code| {
            let entry = &mut response.topics[wait.topic].partitions[wait.entry];
            *entry = failed(entry.index, code);
        };
        self.waits.retain(|wait| {
            if wait.partition.is_acked(acks, wait.end_offset) {
                return false;
            }
            // Deleted meanwhile: nobody knows any more what became of the records.
            let is_gone = wait.partition.is_offline();
            if is_gone {
                fail(wait, ErrorCode::NotLeaderOrFollower);
            }
            !is_gone
        });
        if !self.waits.is_empty() && now_ms < self.deadline_ms {
            return None;
        }
        for wait in self.waits.drain(..) {
            fail(&wait, ErrorCode::RequestTimedOut);
        }
        Some(encode(&self.head, &self.response))
    }
}

/// Runs one Produce up to the point where only the disk is missing.
pub fn start(ctx: &Ctx, body: &mut [u8], waker: &Waker) -> Started {
    let request = match wire::parse(ctx.head.version, body) {
        Ok(request) => request,
        Err(error) => return Started::close(format!("a Produce request is broken: {error}")),
    };
    let repeats = Repeats::find(&request, body);
    let mut run = Run {
        ctx,
        acks: request.acks,
        now_ms: ctx.node.env.clock.wall_ms(),
        waker,
        response: ProduceResponse::default(),
        waits: Vec::new(),
        failed: false,
        places: repeats.any.then(Places::default),
    };
    if let Err(refusal) = look_first(&request, body) {
        return run.refuse_all(&request, body, &refusal);
    }
    let mut at = 0;
    for topic in &request.topics {
        run.topic(topic, body, &repeats.superseded, at);
        at += topic.partitions.len();
    }
    run.finish(request.timeout_ms)
}

fn encode(head: &Head, response: &ProduceResponse) -> Reply {
    let mut out = dispatch::begin(head);
    response.encode(head.version, &mut out);
    dispatch::finish(out)
}

/// One request at work.
struct Run<'a> {
    ctx: &'a Ctx,
    acks: i16,
    now_ms: i64,
    waker: &'a Waker,
    response: ProduceResponse,
    waits: Vec<Wait>,
    failed: bool,
    /// For a request that names something twice.
    places: Option<Places>,
}

/// Where topics and partitions have their entries in the answer: a request may name a million.
#[derive(Default)]
struct Places {
    topics: BTreeMap<(Arc<str>, Uuid), usize>,
    partitions: BTreeMap<(usize, i32), usize>,
}

impl Run<'_> {
    /// `first` is the place of its first partition among all of the request.
    fn topic(
        &mut self,
        topic: &ProduceTopic,
        body: &mut [u8],
        superseded: &BTreeSet<usize>,
        first: usize,
    ) {
        let by_id = self.ctx.head.version >= 13;
        let tables = self.ctx.node.partitions.load();
        let handle = if by_id {
            tables.by_id(&topic.topic_id).cloned()
        } else {
            let name = body.get(topic.name.clone()).unwrap_or_default();
            std::str::from_utf8(name).ok().and_then(|name| tables.by_name(name)).cloned()
        };
        drop(tables);
        if topic.partitions.is_empty() {
            return;
        }
        let name = String::from_utf8_lossy(body.get(topic.name.clone()).unwrap_or_default());
        let at = self.response_topic(&name, topic);
        for (place, partition) in (first..).zip(&topic.partitions) {
            if superseded.contains(&place) {
                continue;
            }
            let records = partition.records.clone().map_or(0..0, |range| range);
            let payload = body.get_mut(records).unwrap_or_default();
            let answer = match &handle {
                None if by_id => Err(failed(partition.index, ErrorCode::UnknownTopicId)),
                None => Err(unknown(partition)),
                Some(handle) => self.partition(handle, partition, payload),
            };
            self.note(at, partition.index, answer);
        }
    }

    /// The same topic twice in a request has one entry in the answer.
    fn response_topic(&mut self, name: &str, topic: &ProduceTopic) -> usize {
        let name: Arc<str> = Arc::from(name);
        let topics = &mut self.response.topics;
        let next = topics.len();
        let at = self.places.as_mut().map_or(next, |places| {
            *places.topics.entry((Arc::clone(&name), topic.topic_id)).or_insert(next)
        });
        if at == next {
            topics.push(ProduceTopicResponse {
                name,
                topic_id: topic.topic_id,
                partitions: Vec::with_capacity(topic.partitions.len()),
            });
        }
        at
    }

    fn note(
        &mut self,
        topic: usize,
        index: i32,
        answer: Result<(ProducePartitionResponse, Arc<Partition>, i64), ProducePartitionResponse>,
    ) {
        let partitions = &mut self.response.topics[topic].partitions;
        let (response, wait) = match answer {
            Ok((response, partition, end)) => (response, Some((partition, end))),
            Err(response) => (response, None),
        };
        self.failed |= response.error_code != ErrorCode::None.code();
        let next = partitions.len();
        let entry = self
            .places
            .as_mut()
            .map_or(next, |places| *places.partitions.entry((topic, index)).or_insert(next));
        match partitions.get_mut(entry) {
            Some(known) => *known = response,
            None => partitions.push(response),
        }
        if let Some((partition, end_offset)) = wait {
            self.waits.push(Wait { partition, end_offset, topic, entry });
        }
    }

    fn partition(
        &mut self,
        handle: &Arc<TopicHandle>,
        asked: &ProducePartition,
        payload: &mut [u8],
    ) -> Result<(ProducePartitionResponse, Arc<Partition>, i64), ProducePartitionResponse> {
        let fail = |code| failed(asked.index, code);
        let Some(partition) = handle.partition(asked.index) else {
            return Err(self.absent(handle, asked));
        };
        let settings = partition.settings();
        let rules = settings.produce_rules(&partition.tp, self.now_ms, self.ctx.head.version);
        if !matches!(self.acks, -1..=1) {
            let shape = check_shape(payload, self.ctx.head.version);
            return Err(match shape {
                Ok(_) => fail(ErrorCode::InvalidRequiredAcks),
                Err(refusal) => refused(asked.index, &partition, refusal),
            });
        }
        let validated = match validate_produce(payload, &rules) {
            Ok(validated) => validated,
            Err(refusal) => return Err(refused(asked.index, &partition, refusal)),
        };
        if crate::node::is_internal(&handle.name) && self.ctx.client_id() != ADMIN_CLIENT {
            return Err(fail(ErrorCode::InvalidTopicException));
        }
        if self.acks == -1 && partition.isr_len() < settings.effective_min_isr(1) {
            return Err(fail(ErrorCode::NotEnoughReplicas));
        }
        let records = i64::from(validated.header.record_count);
        let mut replaced = validated.replaced;
        let batch = match &mut replaced {
            Some(batch) => batch.as_mut_slice(),
            None => &mut payload[..validated.len],
        };
        let append =
            Append { now_ms: self.now_ms, origin: Origin::Client, waker: Some(self.waker) };
        let written = partition.append(batch, records, &append).map_err(|error| {
            errors::produce_answer(asked.index, &error, partition.log_start_offset())
        })?;
        handle.metrics.produced(records, batch.len());
        let response = answer(asked.index, &written, settings.log_append_time, self.now_ms);
        Ok((response, partition, written.end_offset))
    }

    /// The topic is known, the partition is not open here: is it at all?
    fn absent(&self, handle: &TopicHandle, asked: &ProducePartition) -> ProducePartitionResponse {
        let image = self.ctx.node.quorum.image();
        let exists = image
            .topic_by_id(handle.id)
            .is_some_and(|topic| topic.partition(asked.index).is_some());
        if exists {
            return failed(asked.index, ErrorCode::NotLeaderOrFollower);
        }
        unknown(asked)
    }

    /// An error that Kafka answers for every partition of the request, before it appends anything.
    fn refuse_all(
        mut self,
        request: &ProduceRequest,
        body: &[u8],
        refusal: &ProduceRefusal,
    ) -> Started {
        self.failed = true;
        for topic in request.topics.iter().filter(|topic| !topic.partitions.is_empty()) {
            let name = String::from_utf8_lossy(body.get(topic.name.clone()).unwrap_or_default());
            let at = self.response_topic(&name, topic);
            for partition in &topic.partitions {
                let mut response = failed(partition.index, refusal.error);
                response.error_message.clone_from(&refusal.message);
                self.note(at, partition.index, Err(response));
            }
        }
        self.finish(request.timeout_ms)
    }

    fn finish(self, timeout_ms: i32) -> Started {
        if self.acks == 0 {
            // There is no answer to put an error in: Kafka closes the connection instead.
            return Started::Done(if self.failed {
                Answer::Close("a Produce with acks=0 failed".into())
            } else {
                Answer::Silence
            });
        }
        let head = self.ctx.head.clone();
        let now_ms = self.ctx.node.env.clock.mono_ms();
        // A replica of one answers even with no time given, as Kafka does: its own disk is quick.
        let patience_ms = i64::from(timeout_ms).max(self.ctx.node.own_ack_ms());
        let mut pending = PendingProduce {
            head,
            acks: self.acks,
            deadline_ms: now_ms + patience_ms,
            response: self.response,
            waits: self.waits,
        };
        match pending.try_finish(now_ms) {
            Some(reply) => Started::Done(Answer::Reply(reply)),
            None => Started::Acks(Box::new(pending)),
        }
    }
}

/// What Kafka looks for in all partitions before it begins: batches that cannot be batches, and
/// transactional ones, for which there is no coordinator yet.
fn look_first(request: &ProduceRequest, body: &[u8]) -> Result<(), ProduceRefusal> {
    for partition in request.topics.iter().flat_map(|topic| &topic.partitions) {
        let payload = partition.records.clone().and_then(|range| body.get(range));
        let first = first_batch(payload.unwrap_or_default())?;
        if first.is_some_and(|first| first.transactional) {
            return Err(ProduceRefusal {
                error: ErrorCode::TransactionalIdAuthorizationFailed,
                record_errors: Vec::new(),
                message: None,
                with_log_start: false,
                whole_request: true,
            });
        }
    }
    Ok(())
}

/// What a request names more than once.
#[derive(Default)]
struct Repeats {
    /// The places of partitions that it names again further on: the last one counts, the others
    /// are not written.
    superseded: BTreeSet<usize>,
    /// Whether it names any topic or partition twice.
    any: bool,
}

impl Repeats {
    fn find(request: &ProduceRequest, body: &[u8]) -> Repeats {
        /// Name and id, partition, its place, and that of the topic.
        type Named<'a> = ((&'a [u8], Uuid), i32, usize, usize);
        if let [topic] = &*request.topics
            && topic.partitions.len() == 1
        {
            return Repeats::default();
        }
        let mut named: Vec<Named> = Vec::new();
        for (at, topic) in request.topics.iter().enumerate() {
            let name = body.get(topic.name.clone()).unwrap_or_default();
            for partition in &topic.partitions {
                named.push(((name, topic.topic_id), partition.index, named.len(), at));
            }
        }
        named.sort_unstable();
        let mut repeats = Repeats::default();
        for pair in named.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            if pair[0].1 == pair[1].1 {
                repeats.superseded.insert(pair[0].2);
            }
            repeats.any |= pair[0].1 == pair[1].1 || pair[0].3 != pair[1].3;
        }
        repeats
    }
}

fn refused(index: i32, partition: &Partition, refusal: ProduceRefusal) -> ProducePartitionResponse {
    let mut response = failed(index, refusal.error);
    if refusal.with_log_start {
        response.log_start_offset = partition.log_start_offset();
    }
    let errors = refusal.record_errors.into_iter();
    response.record_errors = errors.map(|(index, text)| (index, Some(text))).collect();
    response.error_message = refusal.message;
    response
}

fn failed(index: i32, code: ErrorCode) -> ProducePartitionResponse {
    ProducePartitionResponse::error(index, code.code())
}

fn unknown(asked: &ProducePartition) -> ProducePartitionResponse {
    failed(asked.index, ErrorCode::UnknownTopicOrPartition)
}

fn answer(
    index: i32,
    written: &Written,
    append_time: bool,
    now_ms: i64,
) -> ProducePartitionResponse {
    let time = written.duplicate_ms.or(append_time.then_some(now_ms));
    ProducePartitionResponse {
        index,
        error_code: ErrorCode::None.code(),
        base_offset: written.base_offset,
        log_append_time_ms: time.unwrap_or(-1),
        log_start_offset: written.log_start_offset,
        record_errors: Vec::new(),
        error_message: None,
        current_leader: None,
    }
}

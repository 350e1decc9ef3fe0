//! Fetch (1), 4-18.
//!
//! v7: sessions. v9: leader epochs. v11: rack. v12: flexible, diverging epochs. v13: topics by id.
//! v15: replica state in a tag. v16: node endpoints. v17: replica directory. v18: the follower's
//! high watermark.
//!
//! Small answers are one buffer and one write; large ones go from the page cache to the socket.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use protocol_compat::error::ErrorCode;
use protocol_compat::hot::fetch::{
    self as wire, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse,
};
use storage::disk::File;
use storage::errors::ReadError;
use storage::log::{LogView, Slice};
use uuid::Uuid;

use super::{Answer, Ctx, Started};
use crate::cold;
use crate::errors;
use crate::fetch::session::{Ask, Key, Kind, Outcome, Scope, Want};
use crate::net::out::{FileSlice, Reply};
use crate::partition::waits::FetchWait;
use crate::partition::{NO_EPOCH, Partition};

/// Answers with at most this many bytes of records are gathered into one buffer.
const INLINE_BYTES_MAX: usize = 32 << 10;

/// What the request asks of all its partitions.
#[derive(Clone, Copy)]
struct Terms {
    version: i16,
    replica_id: i32,
    max_wait_ms: i64,
    min_bytes: i64,
    max_bytes: usize,
    /// The client asked for less than nothing.
    is_negative: bool,
    committed: bool,
}

/// One partition to read.
struct Item {
    key: Key,
    want: Want,
    target: Target,
}

enum Target {
    Here(Arc<Partition>),
    /// Refused before the log was asked: does not end a wait.
    Refused(ErrorCode),
    /// Its place is here, and it cannot answer: ends a wait.
    Failed(ErrorCode),
}

/// What reading all partitions once gave.
struct Attempt {
    parts: Vec<Part>,
    record_bytes: i64,
    /// There is news that cannot wait.
    urgent: bool,
}

/// Some of it is on the disk only.
struct Cold;

struct Part {
    response: FetchPartitionResponse,
    slice: Option<FileSlice>,
}

pub fn start(ctx: Ctx, body: &[u8]) -> Started {
    let request = match wire::parse(ctx.head.version, body) {
        Ok(request) => request,
        Err(error) => return Started::close(format!("a Fetch request is broken: {error}")),
    };
    let Some(terms) = terms(&ctx, &request) else {
        return Started::Done(Answer::Reply(bad_isolation(&ctx, &request)));
    };
    let ask = ask(&ctx, &request);
    let now_ms = ctx.node.env.clock.mono_ms();
    let by_id = ask.by_id;
    let scope = match ctx.node.sessions.lock().open(now_ms, ask) {
        Ok(scope) => scope,
        Err(code) => {
            let response = FetchResponse { error_code: code.code(), ..FetchResponse::default() };
            return Started::Done(Answer::Reply(frame(&ctx, &response, Vec::new())));
        }
    };
    let mut fetch = Fetch::new(ctx, terms, scope, by_id);
    if let Ok(attempt) = fetch.attempt(true)
        && fetch.is_enough(&attempt)
    {
        return Started::Done(Answer::Reply(fetch.answer(attempt)));
    }
    Started::Running(Box::pin(fetch.wait(now_ms)))
}

fn terms(ctx: &Ctx, request: &FetchRequest<'_>) -> Option<Terms> {
    let max_bytes = request.max_bytes.min(ctx.node.fetch_bytes_max()).max(0);
    let min_bytes = request.min_bytes.min(max_bytes);
    if !matches!(request.isolation_level, 0 | 1) {
        return None;
    }
    Some(Terms {
        version: ctx.head.version,
        replica_id: request.replica_id,
        max_wait_ms: i64::from(request.max_wait_ms),
        min_bytes: i64::from(min_bytes),
        max_bytes: usize::try_from(max_bytes).unwrap_or(0),
        is_negative: request.max_bytes < 0,
        committed: request.isolation_level == 1,
    })
}

/// An isolation level that does not exist: Kafka answers -1, we say what is wrong.
fn bad_isolation(ctx: &Ctx, request: &FetchRequest<'_>) -> Reply {
    let code = ErrorCode::InvalidRequest.code();
    let mut response = FetchResponse { error_code: code, ..FetchResponse::default() };
    // From v13 on an error of the whole request stands alone.
    let topics = request.topics.iter().filter(|_| ctx.head.version < 13);
    for topic in topics {
        let partitions = topic.partitions.iter();
        response.topics.push(FetchTopicResponse {
            name: Arc::from(&*topic.name),
            topic_id: topic.topic_id,
            partitions: partitions
                .map(|asked| Part::of(asked.partition, code, Some(Vec::new())).response)
                .collect(),
        });
    }
    frame(ctx, &response, Vec::new())
}

/// The session part of the request; a partition named twice counts as it is named last.
fn ask(ctx: &Ctx, request: &FetchRequest<'_>) -> Ask {
    let by_id = ctx.head.version >= 13;
    let tables = ctx.node.partitions.load();
    let name_of = |name: &str, id: &Uuid| -> Arc<str> {
        if by_id {
            tables.by_id(id).map_or_else(|| Arc::from(""), |topic| Arc::clone(&topic.name))
        } else {
            tables.by_name(name).map_or_else(|| Arc::from(name), |topic| Arc::clone(&topic.name))
        }
    };
    let mut partitions: Vec<(Key, Want)> = Vec::new();
    for topic in &request.topics {
        let name = name_of(&topic.name, &topic.topic_id);
        for asked in &topic.partitions {
            let key =
                Key { topic_id: topic.topic_id, topic: name.clone(), partition: asked.partition };
            let want = Want {
                fetch_offset: asked.fetch_offset,
                max_bytes: asked.partition_max_bytes,
                // Here, and only here, Kafka takes any negative epoch for none.
                current_leader_epoch: asked.current_leader_epoch.max(NO_EPOCH),
                last_fetched_epoch: asked.last_fetched_epoch,
            };
            partitions.push((key, want));
        }
    }
    last_wins(&mut partitions);
    let mut forgotten = Vec::new();
    for topic in &request.forgotten {
        let name = name_of(&topic.name, &topic.topic_id);
        let keys = topic.partitions.iter().map(|&partition| Key {
            topic_id: topic.topic_id,
            topic: name.clone(),
            partition,
        });
        forgotten.extend(keys);
    }
    Ask {
        session_id: request.session_id,
        epoch: request.session_epoch,
        by_id,
        sessions: ctx.head.version >= 7,
        partitions,
        forgotten,
    }
}

/// Keeps the last of equal keys, in the place of the first.
fn last_wins(partitions: &mut Vec<(Key, Want)>) {
    if partitions.is_sorted_by(|(one, _), (next, _)| one < next) {
        return;
    }
    let mut keys: Vec<&Key> = partitions.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    if keys.is_sorted_by(|one, next| one < next) {
        return;
    }
    let mut places = std::collections::BTreeMap::new();
    let mut kept: Vec<(Key, Want)> = Vec::with_capacity(partitions.len());
    for (key, want) in partitions.drain(..) {
        match places.get(&key) {
            Some(&at) => {
                let slot: &mut (Key, Want) = &mut kept[at];
                slot.1 = want;
            }
            None => {
                places.insert(key.clone(), kept.len());
                kept.push((key, want));
            }
        }
    }
    *partitions = kept;
}

/// One Fetch at work.
struct Fetch {
    ctx: Ctx,
    terms: Terms,
    kind: Kind,
    by_id: bool,
    items: Vec<Item>,
}

impl Fetch {
    fn new(ctx: Ctx, terms: Terms, scope: Scope, by_id: bool) -> Fetch {
        let items = scope
            .partitions
            .into_iter()
            .map(|(key, want)| Item {
                target: resolve(&ctx, &terms, &key, &want, by_id),
                key,
                want,
            })
            .collect();
        Fetch { ctx, terms, kind: scope.kind, by_id, items }
    }

    /// Reads every partition once, within the limits.
    fn attempt(&self, from_memory: bool) -> Result<Attempt, Cold> {
        let mut left = self.terms.max_bytes;
        let mut at_least_one = true;
        let mut attempt =
            Attempt { parts: Vec::with_capacity(self.items.len()), record_bytes: 0, urgent: false };
        for item in &self.items {
            let part = match &item.target {
                Target::Refused(code) => Part::refused(item.key.partition, *code),
                Target::Failed(code) => {
                    attempt.urgent = true;
                    Part::failed(item.key.partition, *code)
                }
                Target::Here(partition) => {
                    let limit = usize::try_from(item.want.max_bytes).unwrap_or(0).min(left);
                    self.read(partition, item, limit, at_least_one, from_memory)?
                }
            };
            let len = part.slice.as_ref().map_or(0, |slice| slice.len);
            if len > 0 {
                at_least_one = false;
                left = left.saturating_sub(len);
            }
            let refused = matches!(item.target, Target::Refused(_));
            attempt.urgent |= (part.response.error_code != 0 && !refused)
                || part.response.diverging_epoch.is_some();
            attempt.record_bytes += i64::try_from(len).unwrap_or(i64::MAX);
            attempt.parts.push(part);
        }
        Ok(attempt)
    }

    /// Reads as `attempt` does, waits for the disk, and leaves the records in memory.
    fn attempt_patiently(self) -> (Fetch, Option<Attempt>) {
        let attempt = self.attempt(false).ok();
        let mut scratch = Vec::new();
        let slices = attempt.iter().flat_map(|attempt| &attempt.parts);
        for slice in slices.filter_map(|part| part.slice.as_ref()) {
            cold::warm(&*slice.file, slice.position, slice.len, &mut scratch);
        }
        (self, attempt)
    }

    fn read(
        &self,
        partition: &Partition,
        item: &Item,
        limit: usize,
        at_least_one: bool,
        from_memory: bool,
    ) -> Result<Part, Cold> {
        let (index, want) = (item.key.partition, &item.want);
        if partition.is_offline() {
            return Ok(Part::failed(index, self.offline_code()));
        }
        match partition.check_epoch(want.current_leader_epoch) {
            ErrorCode::None => {}
            code => return Ok(Part::failed(index, code)),
        }
        if !partition.is_leader() {
            return Ok(Part::failed(index, ErrorCode::NotLeaderOrFollower));
        }
        let mut view = partition.view();
        if from_memory {
            view = view.from_memory();
        }
        let high_watermark = partition.high_watermark();
        let last_stable_offset = partition.last_stable_offset();
        let upper = match (self.terms.replica_id >= 0, self.terms.committed) {
            (true, _) => view.log_end_offset(),
            (false, true) => last_stable_offset,
            (false, false) => high_watermark,
        };
        let mut response = FetchPartitionResponse {
            high_watermark,
            last_stable_offset,
            log_start_offset: view.log_start_offset(),
            aborted: self.terms.committed.then(Vec::new),
            ..FetchPartitionResponse::error(index, ErrorCode::None.code())
        };
        if want.last_fetched_epoch >= 0 {
            match partition.with_log(|log| diverging(log, want)) {
                Ok(None) => {}
                Ok(Some(at)) => {
                    response.diverging_epoch = Some(at);
                    return Ok(Part { response, slice: None });
                }
                Err(code) => return Ok(Part::failed(index, code)),
            }
        }
        // Kafka stumbles over a size below zero, but only where there is something to read.
        let is_negative = want.max_bytes < 0 || self.terms.is_negative;
        if is_negative && (view.log_start_offset()..upper).contains(&want.fetch_offset) {
            return Ok(Part::failed(index, ErrorCode::UnknownServerError));
        }
        match view.read(want.fetch_offset, limit, upper, at_least_one) {
            Ok(None) => Ok(Part { response, slice: None }),
            Ok(Some(slice)) => {
                if self.terms.committed {
                    response.aborted = Some(aborted(&view, want.fetch_offset, upper));
                }
                Ok(with_slice(response, slice, limit, at_least_one))
            }
            Err(error) if error.is_cold() => Err(Cold),
            Err(error) => Ok(Part::failed(index, self.read_code(partition, &error))),
        }
    }

    fn offline_code(&self) -> ErrorCode {
        // Older clients do not know KAFKA_STORAGE_ERROR.
        match self.terms.version {
            ..=5 => ErrorCode::NotLeaderOrFollower,
            _ => ErrorCode::KafkaStorageError,
        }
    }

    fn read_code(&self, partition: &Partition, error: &ReadError) -> ErrorCode {
        match errors::read_code(error) {
            ErrorCode::KafkaStorageError => {
                let tp = &partition.tp;
                tracing::error!(partition = %tp, ?error, "a read failed");
                self.offline_code()
            }
            code => code,
        }
    }

    fn is_enough(&self, attempt: &Attempt) -> bool {
        let readable = self.items.iter().any(|item| !matches!(item.target, Target::Refused(_)));
        self.terms.max_wait_ms <= 0
            || !readable
            || attempt.urgent
            || attempt.record_bytes >= self.terms.min_bytes
    }

    /// Waits for bytes, news or the end of patience, and reads again.
    async fn wait(mut self, since_ms: i64) -> Answer {
        let clock = Arc::clone(&self.ctx.node.env.clock);
        let deadline_ms = since_ms + self.terms.max_wait_ms;
        let mut timeout = clock.sleep_until(deadline_ms);
        loop {
            let registration = Registration::new(&self);
            // What became visible before the registration is seen by this reading.
            let attempt = match self.attempt(true) {
                Ok(attempt) => attempt,
                Err(Cold) => {
                    let node = Arc::clone(&self.ctx.node);
                    let Some((fetch, Some(attempt))) =
                        node.cold.run(move || self.attempt_patiently()).await
                    else {
                        return Answer::Close("the node stops".to_owned());
                    };
                    self = fetch;
                    attempt
                }
            };
            if self.is_enough(&attempt) || clock.mono_ms() >= deadline_ms {
                drop(registration);
                return Answer::Reply(self.answer(attempt));
            }
            registration.expect(self.terms.min_bytes - attempt.record_bytes);
            drop(attempt);
            poll_fn(|cx| {
                if registration.wait.poll_fired(cx).is_ready() {
                    return Poll::Ready(());
                }
                timeout.as_mut().poll(cx)
            })
            .await;
            drop(registration);
            self.resolve_again();
        }
    }

    /// Topics may have come and gone while the fetch waited.
    fn resolve_again(&mut self) {
        for item in &mut self.items {
            let was_there = !matches!(item.target, Target::Refused(_));
            item.target = resolve(&self.ctx, &self.terms, &item.key, &item.want, self.by_id);
            // For Kafka it is the log that misses the partition then, not the handler.
            if let Target::Refused(code) = item.target
                && was_there
            {
                item.target = Target::Failed(code);
            }
        }
    }

    /// Builds the answer; opens or updates the session.
    fn answer(&mut self, attempt: Attempt) -> Reply {
        let mut response = FetchResponse::default();
        let mut slices = Vec::new();
        let mut record_bytes = 0;
        let mut sessions = self.ctx.node.sessions.lock();
        if self.kind == Kind::Full && self.terms.version >= 7 {
            let node = &self.ctx.node;
            let wants = self.items.iter().map(|item| (item.key.clone(), item.want.clone()));
            let fresh = || i32::from_be_bytes(first_four(node.env.rng.next_u64()));
            let now_ms = node.env.clock.mono_ms();
            response.session_id = sessions.create(now_ms, self.by_id, wants.collect(), fresh);
        }
        let (id, incremental) = match self.kind {
            Kind::Incremental { session_id } => {
                response.session_id = session_id;
                (session_id, true)
            }
            Kind::Full | Kind::Sessionless => (response.session_id, false),
        };
        // What was refused before the log was asked comes last, as in Kafka.
        let mut parts: Vec<(&Item, Part)> = self.items.iter().zip(attempt.parts).collect();
        parts.sort_by_key(|(item, _)| matches!(item.target, Target::Refused(_)));
        for (item, part) in parts {
            let news = id == 0 || sessions.note(id, &item.key, &part.outcome());
            if incremental {
                if !news {
                    continue;
                }
                if part.slice.is_some() {
                    sessions.move_to_end(id, &item.key);
                }
            }
            let Part { response: partition, slice } = part;
            add(&mut response, &item.key, partition, self.by_id);
            if let Some(slice) = slice {
                record_bytes += slice.len;
                if let Target::Here(here) = &item.target {
                    self.ctx.node.fetched(here, slice.len);
                }
                slices.push(slice);
            }
        }
        drop(sessions);
        if record_bytes <= INLINE_BYTES_MAX {
            return inline_frame(&self.ctx, &response, &slices);
        }
        frame(&self.ctx, &response, slices)
    }
}

fn first_four(bits: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = bits.to_be_bytes();
    [a, b, c, d]
}

/// Registered with every partition of a fetch; forgotten when dropped.
struct Registration {
    wait: Arc<FetchWait>,
    partitions: Vec<Arc<Partition>>,
}

impl Registration {
    fn new(fetch: &Fetch) -> Registration {
        let wait = FetchWait::new(fetch.terms.min_bytes);
        let mut partitions = Vec::with_capacity(fetch.items.len());
        for item in &fetch.items {
            if let Target::Here(partition) = &item.target {
                partition.waits.register(&wait);
                partitions.push(Arc::clone(partition));
            }
        }
        Registration { wait, partitions }
    }

    /// Lowers what is missing by what was there at the registration.
    fn expect(&self, missing_bytes: i64) {
        self.wait.lower_to(missing_bytes);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for partition in &self.partitions {
            partition.waits.forget(&self.wait);
        }
    }
}

impl Part {
    /// Refused by the handler: the aborted list is empty, not null (seen on Kafka 4.4.0).
    fn refused(index: i32, code: ErrorCode) -> Part {
        Part::of(index, code.code(), Some(Vec::new()))
    }

    fn of(index: i32, code: i16, aborted: Option<Vec<(i64, i64)>>) -> Part {
        let mut response = FetchPartitionResponse::error(index, code);
        response.aborted = aborted;
        Part { response, slice: None }
    }

    /// Refused by the log: the aborted list is null.
    fn failed(index: i32, code: ErrorCode) -> Part {
        Part::of(index, code.code(), None)
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            error: self.response.error_code != 0,
            has_records: self.slice.is_some(),
            diverging: self.response.diverging_epoch.is_some(),
            high_watermark: self.response.high_watermark,
            log_start_offset: self.response.log_start_offset,
        }
    }
}

/// Finds the partition that a key names.
fn resolve(ctx: &Ctx, terms: &Terms, key: &Key, want: &Want, by_id: bool) -> Target {
    if terms.replica_id >= 0 {
        // Nobody else holds replicas here yet, and the leader does not follow itself.
        return Target::Failed(match want.current_leader_epoch {
            NO_EPOCH => ErrorCode::NotLeaderOrFollower,
            _ => ErrorCode::UnknownLeaderEpoch,
        });
    }
    if by_id && key.topic.is_empty() {
        return Target::Refused(ErrorCode::UnknownTopicId);
    }
    let tables = ctx.node.partitions.load();
    let Some(topic) = tables.by_name(&key.topic) else {
        return Target::Refused(ErrorCode::UnknownTopicOrPartition);
    };
    if by_id && topic.id != key.topic_id {
        return Target::Failed(ErrorCode::InconsistentTopicId);
    }
    if let Some(partition) = topic.partition(key.partition) {
        return Target::Here(partition);
    }
    let image = ctx.node.quorum.image();
    let exists =
        image.topic_by_id(topic.id).is_some_and(|topic| topic.partition(key.partition).is_some());
    if exists {
        return Target::Failed(ErrorCode::NotLeaderOrFollower);
    }
    Target::Refused(ErrorCode::UnknownTopicOrPartition)
}

fn with_slice(
    mut response: FetchPartitionResponse,
    slice: Slice,
    limit: usize,
    at_least_one: bool,
) -> Part {
    // A later partition's slice without one whole batch says nothing to a client.
    let torn = !at_least_one && slice.first_batch > limit;
    if slice.len == 0 || torn {
        return Part { response, slice: None };
    }
    response.records_len = slice.len;
    let slice = FileSlice { file: slice.file, position: slice.position, len: slice.len };
    Part { response, slice: Some(slice) }
}

/// The aborted transactions that a reader of committed records must skip.
fn aborted(view: &LogView, from: i64, upper: i64) -> Vec<(i64, i64)> {
    match view.aborted_transactions(from, upper) {
        Ok(list) => list.iter().map(|txn| (txn.producer_id, txn.first_offset)).collect(),
        Err(error) => {
            tracing::error!(?error, "an index of aborted transactions could not be read");
            Vec::new()
        }
    }
}

/// Whether the client's log has left ours (KIP-595's truncation check inside Fetch).
fn diverging(log: &storage::log::Log, want: &Want) -> Result<Option<(i32, i64)>, ErrorCode> {
    let end = log.log_end_offset();
    let (epoch, end_offset) = log.leader_epochs().end_offset(want.last_fetched_epoch, end);
    if epoch < 0 {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    let left = epoch < want.last_fetched_epoch || end_offset < want.fetch_offset;
    Ok(left.then_some((epoch, end_offset)))
}

fn add(response: &mut FetchResponse, key: &Key, partition: FetchPartitionResponse, by_id: bool) {
    let last = response.topics.last_mut();
    if let Some(last) = last
        && last.topic_id == key.topic_id
        && (by_id || *last.name == *key.topic)
    {
        last.partitions.push(partition);
        return;
    }
    response.topics.push(FetchTopicResponse {
        name: Arc::clone(&key.topic),
        topic_id: key.topic_id,
        partitions: vec![partition],
    });
}

/// A frame whose records go from their files to the socket.
fn frame(ctx: &Ctx, response: &FetchResponse, slices: Vec<FileSlice>) -> Reply {
    let mut bytes = BytesMut::with_capacity(1024);
    let head = &ctx.head;
    let places = response.encode_frame(head.version, head.correlation_id, &mut bytes);
    assert_eq!(places.len(), slices.len(), "one place for each slice");
    Reply { bytes, files: places.into_iter().zip(slices).collect() }
}

/// A frame with its records in it; a file that cannot be read is left to the socket's path, which
/// ends the connection rather than send bytes that are not there.
fn inline_frame(ctx: &Ctx, response: &FetchResponse, slices: &[FileSlice]) -> Reply {
    let reply = frame(ctx, response, slices.to_vec());
    let record_bytes: usize = slices.iter().map(|slice| slice.len).sum();
    let mut whole = BytesMut::with_capacity(reply.bytes.len() + record_bytes);
    let mut taken = 0;
    for (at, slice) in &reply.files {
        whole.extend_from_slice(&reply.bytes[taken..*at]);
        taken = *at;
        let filled = whole.len();
        whole.resize(filled + slice.len, 0);
        if let Err(error) = read_exact(&*slice.file, &mut whole[filled..], slice.position) {
            tracing::error!(%error, "records could not be read");
            return reply;
        }
    }
    whole.extend_from_slice(&reply.bytes[taken..]);
    Reply::from(whole)
}

fn read_exact(file: &dyn File, mut into: &mut [u8], mut position: u64) -> io::Result<()> {
    while !into.is_empty() {
        let len = file.read_at(into, position)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        into = &mut into[len..];
        position += len as u64;
    }
    Ok(())
}

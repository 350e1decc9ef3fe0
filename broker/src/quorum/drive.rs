//! The quorum thread: owns raft and the controller, turns waiting requests into one entry at a
//! time, applies what is committed, publishes, answers.
//!
//! One batch is in flight; requests that arrive meanwhile form the next. That is group commit with
//! no further state.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use kraft::controller::{
    BrokerHeartbeat, Controller, ControllerReply, ControllerRequest, RegisterBroker, Settings,
    bootstrap_records, default_levels,
};
use kraft::image::Image;
use kraft::raft::{Entry, Outputs, RaftConfig, RaftError, RaftNode};
use kraft::record::{MetadataRecord, decode_batch, encode_batch};
use protocol_compat::error::ErrorCode;
use storage::disk::Space;
use storage::kv::Kv;
use tokio::sync::{mpsc, oneshot};

use super::publish::Publisher;
use super::{Job, Quorum, QuorumError};
use crate::config::Config;
use crate::env::Env;
use crate::node::Node;
use crate::partition::room;
use crate::progress::Phase;

/// Requests that go into one entry.
const BATCH_REQUESTS_MAX: usize = 256;
/// Records of a batch after which no more requests are added to it.
const BATCH_RECORDS_MAX: usize = 10_000;
/// A snapshot is taken after this many entries, or this many bytes of them.
const SNAPSHOT_ENTRIES: u64 = 4096;
const SNAPSHOT_BYTES: usize = 8 << 20;
/// With less room than this on its disk, or a quarter of a small one, nothing new is made: a write
/// of the metadata log that fails for lack of room ends the process.
const ROOM_TO_GROW_BYTES: u64 = 32 << 20;
const ROOM_TO_GROW_PART: u64 = 4;
/// What keeps a node going (settings, producer ids) may use half of what clients' records leave.
const ROOM_TO_GO_ON_BYTES: u64 = room::RESERVE_BYTES / 2;
const ROOM_TO_GO_ON_PART: u64 = room::RESERVE_PART * 2;
/// A deletion makes room.
const ROOM_TO_DELETE_BYTES: u64 = 1 << 20;
const ROOM_TO_DELETE_PART: u64 = room::RESERVE_PART * 16;
/// How often an idle node tells the controller that it is alive.
const HEARTBEAT_MS: i64 = 2_000;

/// An entry that was proposed here, and who waits for it.
struct Batch {
    index: u64,
    term: u64,
    answers: Vec<(oneshot::Sender<Result<ControllerReply, ErrorCode>>, ControllerReply)>,
}

pub(super) struct Driver {
    env: Env,
    node: Arc<Node>,
    quorum: Arc<Quorum>,
    publisher: Arc<Publisher>,
    raft: RaftNode,
    settings: Settings,
    /// All entries applied, on a leader also those in `controller`.
    image: Image,
    controller: Option<Controller>,
    in_flight: VecDeque<Batch>,
    /// What the rest of the broker has acted on.
    published: Image,
    entries_since_snapshot: u64,
    bytes_since_snapshot: usize,
    broker_epoch: i64,
    /// The disk of the metadata log had too little room when it was looked at last.
    is_short: bool,
}

/// Where the quorum keeps its log. Kafka skips a directory of this name when it loads partitions.
pub(super) fn store_path(config: &Config) -> PathBuf {
    config.metadata_dir().join("__cluster_metadata-0").join("gracchus")
}

/// Reads the log, makes the first records of a new cluster, registers this broker.
pub(super) fn open(
    node: &Arc<Node>,
    kv: Box<dyn Kv>,
    publisher: Arc<Publisher>,
    registration: RegisterBroker,
) -> Result<Driver, QuorumError> {
    let directory_id = node.dirs.dirs().first().map(|dir| dir.log_dir.directory_id());
    let seed = node.env.rng.next_u64();
    let config = RaftConfig::new(node.id, directory_id.unwrap_or_default(), vec![node.id], seed);
    let mut driver = Driver {
        env: node.env.clone(),
        quorum: Arc::clone(&node.quorum),
        publisher,
        raft: RaftNode::new(config, kv)?,
        settings: node.runtime().controller_settings(node.id, &node.cluster_id),
        node: Arc::clone(node),
        image: Image::default(),
        controller: None,
        in_flight: VecDeque::new(),
        published: Image::default(),
        entries_since_snapshot: 0,
        bytes_since_snapshot: 0,
        broker_epoch: -1,
        is_short: false,
    };
    driver.process_ready()?;
    driver.take_office(registration)?;
    Ok(driver)
}

impl Driver {
    /// Serves until the node stops.
    pub(super) async fn drive(mut self, mut waiting: mpsc::Receiver<Job>) {
        let (clock, node) = (Arc::clone(&self.env.clock), Arc::clone(&self.node));
        self.recover(clock.mono_ms());
        let mut heartbeat_at = clock.mono_ms() + HEARTBEAT_MS;
        loop {
            let mut jobs = Vec::new();
            tokio::select! {
                biased;
                () = node.stop.asked() => break,
                count = waiting.recv_many(&mut jobs, BATCH_REQUESTS_MAX) => {
                    if count == 0 {
                        break;
                    }
                }
                () = clock.sleep_until(heartbeat_at) => {
                    heartbeat_at = clock.mono_ms() + HEARTBEAT_MS;
                    jobs.push(self.heartbeat().0);
                    self.publisher.make_again();
                }
            }
            let served = self.serve(jobs).and_then(|()| self.tick());
            if let Err(error) = served {
                tracing::error!(%error, "the metadata log failed, stopping");
                self.env.tasks.abort();
            }
        }
        if let Err(error) = self.raft.close() {
            tracing::error!(%error, "the metadata log was not closed cleanly");
        }
    }

    /// Opens every partition, each serving as soon as it is open.
    fn recover(&mut self, begin_ms: i64) {
        self.node.progress.enter(Phase::Recovering);
        self.publish();
        self.publisher.tell_strays(&self.image);
        self.node.progress.enter(Phase::Ready);
        let (opened, wanted) = self.node.progress.partitions();
        let took_ms = self.env.clock.mono_ms() - begin_ms;
        match wanted - opened.min(wanted) {
            0 => tracing::info!(partitions = opened, took_ms, "all partitions are open"),
            offline => {
                tracing::error!(
                    partitions = opened,
                    offline,
                    took_ms,
                    "some partitions are offline"
                );
            }
        }
    }

    /// Leads from here on: first records, registration.
    fn take_office(&mut self, registration: RegisterBroker) -> Result<(), QuorumError> {
        let now_ms = self.env.clock.mono_ms();
        let image = self.image.clone();
        self.controller = Some(Controller::new(image, self.settings.clone(), now_ms));
        let mut first = Vec::new();
        if self.image.features().next().is_none() {
            let levels = default_levels(&self.settings.features);
            first = bootstrap_records(&levels, self.settings.min_isr);
            if let Some(controller) = &mut self.controller {
                controller.apply_pending(&first);
            }
        }
        // In one entry: each costs a sync.
        let reply = self.ask(first, ControllerRequest::RegisterBroker(registration))?;
        match reply {
            ControllerReply::RegisterBroker(Ok(epoch)) => self.broker_epoch = epoch,
            ControllerReply::RegisterBroker(Err(refusal)) => {
                let code = refusal.code.name();
                let text = refusal.message.unwrap_or_else(|| code.to_owned());
                return Err(QuorumError::Register(text));
            }
            other => return Err(QuorumError::Register(format!("an odd answer: {other:?}"))),
        }
        // The first heartbeat lifts the fence.
        let (job, _answer) = self.heartbeat();
        self.serve(vec![job])
    }

    fn heartbeat(&self) -> (Job, oneshot::Receiver<Result<ControllerReply, ErrorCode>>) {
        let (reply, answer) = oneshot::channel();
        let request = ControllerRequest::BrokerHeartbeat(BrokerHeartbeat {
            broker_id: self.node.id,
            broker_epoch: self.broker_epoch,
            applied_index: self.image.last_applied(),
            want_fence: false,
            want_shut_down: false,
            offline_directories: Vec::new(),
        });
        (Job { request, reply }, answer)
    }

    /// One request of our own, answered before anything else happens; `before` are records that are
    /// decided and not proposed yet.
    fn ask(
        &mut self,
        before: Vec<MetadataRecord>,
        request: ControllerRequest,
    ) -> Result<ControllerReply, QuorumError> {
        let (reply, mut answer) = oneshot::channel();
        self.serve_after(before, vec![Job { request, reply }])?;
        match answer.try_recv() {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(code)) => Err(QuorumError::Register(code.name().to_owned())),
            Err(_) => Err(QuorumError::Register("the quorum has no leader".to_owned())),
        }
    }

    /// Decides waiting requests and sees them committed.
    fn serve(&mut self, jobs: Vec<Job>) -> Result<(), QuorumError> {
        self.serve_after(Vec::new(), jobs)
    }

    /// The same, with records in front that are decided already.
    fn serve_after(
        &mut self,
        mut records: Vec<MetadataRecord>,
        jobs: Vec<Job>,
    ) -> Result<(), QuorumError> {
        let mut answers = Vec::new();
        let room = self.room();
        for job in jobs {
            let now_ms = self.env.clock.mono_ms();
            let rng = Arc::clone(&self.env.rng);
            let mut random = move || rng.uuid().as_u128();
            let Some(controller) = &mut self.controller else {
                // The caller may be gone.
                let _ = job.reply.send(Err(ErrorCode::NotController));
                continue;
            };
            let decision = controller.decide(now_ms, &mut random, &job.request);
            if !decision.records.is_empty() && room.usable < room_needed(&job.request, room.total) {
                // The caller may be gone.
                let _ = job.reply.send(Err(ErrorCode::KafkaStorageError));
                continue;
            }
            controller.apply_pending(&decision.records);
            records.extend(decision.records);
            answers.push((job.reply, decision.reply));
            if records.len() >= BATCH_RECORDS_MAX {
                self.decided(std::mem::take(&mut records), std::mem::take(&mut answers))?;
            }
        }
        self.decided(records, answers)
    }

    /// How much room the disk of the metadata log has; tells when it becomes too little, and
    /// enough.
    /// The start does not ask: it needs its two entries, and fails clearly without.
    fn room(&mut self) -> Space {
        let plenty = Space { total: u64::MAX, usable: u64::MAX };
        if self.node.progress.phase() < Phase::Ready {
            return plenty;
        }
        let dir = self.node.runtime().config.fixed().metadata_dir();
        let room = self.env.disk.space(&dir).unwrap_or(plenty);
        let is_short = room.usable < room_to_grow(room.total);
        if is_short != self.is_short {
            let (dir, usable) = (dir.display(), room.usable);
            match is_short {
                true => tracing::error!(%dir, usable, "disk full: no topics are created"),
                false => tracing::info!(%dir, usable, "room again: topics may be created"),
            }
            self.is_short = is_short;
        }
        room
    }

    /// Fencing, preferred leaders: what the controller does unasked.
    fn tick(&mut self) -> Result<(), QuorumError> {
        loop {
            let now_ms = self.env.clock.mono_ms();
            let Some(controller) = &mut self.controller else { return Ok(()) };
            if controller.next_deadline() > now_ms || self.is_short {
                return Ok(());
            }
            let records = controller.tick(now_ms);
            controller.apply_pending(&records);
            self.decided(records, Vec::new())?;
        }
    }

    /// Proposes records as one entry; their answers leave when it is committed.
    fn decided(
        &mut self,
        records: Vec<MetadataRecord>,
        answers: Vec<(oneshot::Sender<Result<ControllerReply, ErrorCode>>, ControllerReply)>,
    ) -> Result<(), QuorumError> {
        if records.is_empty() {
            // Nothing is in flight between two batches, so these rest on committed records.
            answer_all(answers);
            return Ok(());
        }
        match self.raft.propose(Bytes::from(encode_batch(&records))) {
            Ok(at) => {
                self.in_flight.push_back(Batch { index: at.index, term: at.term, answers });
                self.process_ready()
            }
            Err(error) if error.is_fatal() => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "the quorum did not take an entry");
                if let Some(controller) = &mut self.controller {
                    controller.rollback();
                }
                let code = match error {
                    RaftError::TooLarge { .. } => ErrorCode::PolicyViolation,
                    _ => ErrorCode::NotController,
                };
                for (reply, _) in answers {
                    // The caller may be gone.
                    let _ = reply.send(Err(code));
                }
                Ok(())
            }
        }
    }

    /// Lets raft persist and commit; applies what it hands out.
    fn process_ready(&mut self) -> Result<(), QuorumError> {
        while self.raft.has_ready() {
            let outputs = self.raft.ready()?;
            self.act(outputs)?;
        }
        self.quorum.status.store(Arc::new(Some(self.raft.status())));
        Ok(())
    }

    fn act(&mut self, outputs: Outputs) -> Result<(), QuorumError> {
        if let Some(snapshot) = outputs.snapshot {
            let records = decode(&snapshot.data)?;
            let index = i64::try_from(snapshot.index).unwrap_or(i64::MAX);
            self.image = Image::from_records(index, &records)?;
            self.raft.applied(snapshot.index);
        }
        for entry in outputs.committed {
            self.apply(&entry)?;
            self.raft.applied(entry.index);
        }
        if outputs.snapshot_wanted || self.snapshot_is_due() {
            self.snapshot()?;
        }
        Ok(())
    }

    fn apply(&mut self, entry: &Entry) -> Result<(), QuorumError> {
        let records = if entry.data.is_empty() { Vec::new() } else { decode(&entry.data)? };
        let index = i64::try_from(entry.index).unwrap_or(i64::MAX);
        self.entries_since_snapshot += 1;
        self.bytes_since_snapshot += entry.data.len();
        if let Some(controller) = &mut self.controller {
            controller.commit(index, &records)?;
            self.image = controller.image().clone();
        } else {
            self.image.apply_all(index, &records)?;
        }
        while let Some(batch) = self.in_flight.front() {
            if batch.index > entry.index {
                break;
            }
            let ours = batch.index == entry.index && batch.term == entry.term;
            let Some(batch) = self.in_flight.pop_front() else { break };
            if ours {
                self.publish();
                answer_all(batch.answers);
            } else {
                for (reply, _) in batch.answers {
                    // The caller may be gone.
                    let _ = reply.send(Err(ErrorCode::NotController));
                }
            }
        }
        Ok(())
    }

    /// Lets the rest of the broker act on the image; while the start reads the log, only at its
    /// end. Clients see it when it is acted on, so that what they hear of serves. At the start they
    /// see it first: opening everything takes its time.
    fn publish(&mut self) {
        let phase = self.node.progress.phase();
        let image = Arc::new(self.image.clone());
        if phase <= Phase::Recovering {
            self.quorum.image.store(Arc::clone(&image));
        }
        if phase >= Phase::Recovering {
            self.publisher.publish(&self.published, &self.image);
            self.published = self.image.clone();
        }
        self.quorum.image.store(image);
    }

    fn snapshot_is_due(&self) -> bool {
        self.entries_since_snapshot >= SNAPSHOT_ENTRIES
            || self.bytes_since_snapshot >= SNAPSHOT_BYTES
    }

    fn snapshot(&mut self) -> Result<(), QuorumError> {
        let index = u64::try_from(self.image.last_applied()).unwrap_or(0);
        self.raft.create_snapshot(index, Bytes::from(encode_batch(&self.image.to_records())))?;
        (self.entries_since_snapshot, self.bytes_since_snapshot) = (0, 0);
        Ok(())
    }
}

/// How much room must be left, on a disk of `total` bytes, for a request that changes something.
fn room_needed(request: &ControllerRequest, total: u64) -> u64 {
    use ControllerRequest as Request;
    match request {
        Request::CreateTopics(_)
        | Request::CreatePartitions(_)
        | Request::AlterReassignments(_)
        | Request::UpdateFeatures(_) => room_to_grow(total),
        Request::DeleteTopics(_) => ROOM_TO_DELETE_BYTES.min(total / ROOM_TO_DELETE_PART),
        _ => ROOM_TO_GO_ON_BYTES.min(total / ROOM_TO_GO_ON_PART),
    }
}

fn room_to_grow(total: u64) -> u64 {
    ROOM_TO_GROW_BYTES.min(total / ROOM_TO_GROW_PART)
}

fn decode(data: &Bytes) -> Result<Vec<MetadataRecord>, QuorumError> {
    decode_batch(data).map_err(|error| QuorumError::Entry(error.to_string()))
}

fn answer_all(
    answers: Vec<(oneshot::Sender<Result<ControllerReply, ErrorCode>>, ControllerReply)>,
) {
    for (reply, answer) in answers {
        // The caller may be gone: its connection closed.
        let _ = reply.send(Ok(answer));
    }
}

#[cfg(test)]
mod tests {
    use kraft::controller::{AllocateProducerIds, ControllerRequest, CreateTopics, DeleteTopics};

    use super::room_needed;
    use crate::partition::room::{RESERVE_BYTES, RESERVE_PART};

    #[test]
    fn the_last_room_is_kept_for_what_makes_room() {
        let ids = AllocateProducerIds { broker_id: 0, broker_epoch: 1 };
        let ids = ControllerRequest::AllocateProducerIds(ids);
        let creation = CreateTopics { topics: Vec::new(), validate_only: false };
        let creation = ControllerRequest::CreateTopics(creation);
        let deletion = ControllerRequest::DeleteTopics(DeleteTopics { topics: Vec::new() });
        for total in [1 << 20, 64 << 20, 1 << 40] {
            let left_by_records = RESERVE_BYTES.min(total / RESERVE_PART);
            assert!(room_needed(&creation, total) > left_by_records);
            assert!(room_needed(&ids, total) < left_by_records);
            assert!(room_needed(&deletion, total) < room_needed(&ids, total));
        }
    }
}

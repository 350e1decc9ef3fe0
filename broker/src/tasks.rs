//! Background work: retention, checkpoints, timed flushes, timers of the coordinators.

use std::sync::Arc;

use storage::log::Log;
use tokio::sync::oneshot;

use crate::config::keys;
use crate::env::{BoxFuture, Clock};
use crate::node::{Node, OFFSETS_TOPIC};
use crate::partition::Partition;
use crate::partition::flush::Progress;

/// How often relaxed topics are looked at for records older than `flush.ms`.
const FLUSH_CHECK_MS: i64 = 250;

/// Starts everything that runs beside the requests. What it returns fires when nothing works on the
/// logs any more, after the node began to stop.
pub fn start(node: &Arc<Node>) -> oneshot::Receiver<()> {
    let config = node.runtime().config.fixed().clone();
    let retention_ms = config.long(keys::LOG_RETENTION_CHECK_INTERVAL_MS);
    let checkpoint_ms = i64::from(config.int(keys::LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS));
    let first_ms = config.long(keys::LOG_INITIAL_TASK_DELAY_MS);
    let producers_ms = i64::from(config.int(keys::PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS));
    let every = Every { first_ms, retention_ms, checkpoint_ms, producers_ms };
    let (ended, has_ended) = oneshot::channel();
    spawn(node, "housekeeper", move |node| async move {
        housekeeper(node, every).await;
        // Nobody waits when the start failed half-way.
        let _ = ended.send(());
    });
    spawn_on_shard(node, "group-timers", group_timers);
    has_ended
}

/// What happens after each flushed group: coordinators release what waited for it.
pub fn flush_progress(node: &Arc<Node>) -> Arc<dyn Progress> {
    Arc::new(Coordinators { node: Arc::downgrade(node) })
}

struct Coordinators {
    node: std::sync::Weak<Node>,
}

impl Progress for Coordinators {
    fn flushed(&self, partitions: &[Arc<Partition>]) {
        let Some(node) = self.node.upgrade() else { return };
        for partition in partitions {
            if &*partition.tp.topic == OFFSETS_TOPIC {
                let watermark = partition.high_watermark();
                node.groups.on_high_watermark(partition.tp.partition, watermark);
            }
        }
    }
}

fn spawn<F>(
    node: &Arc<Node>,
    name: &'static str,
    task: impl FnOnce(Arc<Node>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let at = Arc::clone(node);
    let task = move || Box::pin(task(at)) as BoxFuture<()>;
    node.env.tasks.thread(name, Box::new(task));
}

fn spawn_on_shard<F>(
    node: &Arc<Node>,
    name: &'static str,
    task: impl FnOnce(Arc<Node>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let at = Arc::clone(node);
    let task = move || Box::pin(task(at)) as BoxFuture<()>;
    node.env.tasks.spawn_on(0, name, Box::new(task));
}

/// How often each thing is done.
#[derive(Clone, Copy)]
struct Every {
    /// Before anything is done for the first time.
    first_ms: i64,
    retention_ms: i64,
    checkpoint_ms: i64,
    producers_ms: i64,
}

/// Retention, expired producers, deleted files, checkpoints: one after another, on one thread.
async fn housekeeper(node: Arc<Node>, every: Every) {
    let Every { first_ms, retention_ms, checkpoint_ms, producers_ms } = every;
    let clock = Arc::clone(&node.env.clock);
    let begin = clock.mono_ms();
    let after = |now: i64, every_ms: i64| now.saturating_add(every_ms.max(1));
    let (mut retention_at, mut checkpoint_at) =
        (after(begin, first_ms), after(begin, checkpoint_ms));
    let (mut purge_at, mut producers_at) = (after(begin, first_ms), after(begin, producers_ms));
    let mut room_at = after(begin, ROOM_CHECK_MS);
    let mut noted_bytes = 0;
    loop {
        let relaxed =
            node.partitions.load().topics().any(|topic| topic.settings.load().is_relaxed());
        let now = clock.mono_ms();
        let flush_at = if relaxed { now + FLUSH_CHECK_MS } else { i64::MAX };
        let next = [retention_at, checkpoint_at, flush_at, purge_at, producers_at, room_at];
        let next = next.into_iter().min().unwrap_or(retention_at);
        tokio::select! {
            biased;
            () = node.stop.asked() => {
                // The clean stop writes the rest.
                node.log_starts.finish(u64::MAX);
                return;
            }
            asked = node.log_starts.asked() => {
                node.dirs.note_log_starts(&node.partitions.all());
                node.log_starts.finish(asked);
            }
            () = clock.sleep_until(next) => {}
        }
        let now = clock.mono_ms();
        if now >= flush_at {
            let wall_ms = clock.wall_ms();
            for partition in node.partitions.all() {
                partition.flush_if_due(wall_ms);
            }
        }
        if now >= retention_at {
            retain(&node, clock.wall_ms());
            retention_at = after(now, retention_ms);
        }
        if now >= purge_at {
            node.dirs.purge_deleted(clock.wall_ms(), false);
            purge_at = after(now, retention_ms.min(PURGE_CHECK_MS));
        }
        if now >= room_at {
            if node.dirs.is_short() {
                make_room(&node);
            }
            if node.dirs.flushed_bytes() - noted_bytes >= CHECKPOINT_BYTES {
                checkpoint_at = now;
            }
            room_at = after(now, ROOM_CHECK_MS);
        }
        if now >= producers_at {
            let wall_ms = clock.wall_ms();
            for partition in node.partitions.all() {
                partition.with_log(|log| log.expire_producers(wall_ms));
            }
            producers_at = after(now, producers_ms);
        }
        if now >= checkpoint_at {
            noted_bytes = node.dirs.flushed_bytes();
            node.dirs.checkpoint(&node.partitions.all());
            checkpoint_at = after(now, checkpoint_ms);
        }
    }
}

/// How often deleted partitions are looked at; their files go after `file.delete.delay.ms`.
const PURGE_CHECK_MS: i64 = 30_000;

/// After so many bytes the flush marks are written down early: a start after a kill checks what
/// lies above them.
const CHECKPOINT_BYTES: u64 = 256 << 20;

/// How often it is seen whether a disk is full: then nothing waits for `file.delete.delay.ms`.
const ROOM_CHECK_MS: i64 = 1_000;

/// All that is to go goes now.
fn make_room(node: &Node) {
    retain(node, i64::MAX);
    for partition in node.partitions.all() {
        partition.with_log(Log::give_back_room);
    }
    node.dirs.purge_deleted(node.env.clock.wall_ms(), true);
}

/// Applies retention; files that were to be removed by `purge_ms` go.
fn retain(node: &Node, purge_ms: i64) {
    let now_ms = node.env.clock.wall_ms();
    for partition in node.partitions.all() {
        let watermark = partition.high_watermark();
        let tp = &partition.tp;
        let outcome = partition.with_log(|log| {
            log.purge_deleted(purge_ms);
            log.retain(watermark, now_ms)
        });
        match outcome {
            Ok(retained) if retained.segments > 0 => {
                let (segments, bytes) = (retained.segments, retained.bytes);
                let start = partition.log_start_offset();
                tracing::info!(partition = %tp, segments, bytes, start, "old segments deleted");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(partition = %tp, %error, "retention failed, tried again later")
            }
        }
    }
}

/// Deadlines of groups are in steady time.
async fn sleep_until_steady(clock: &dyn Clock, deadline_ms: Option<i64>) {
    match deadline_ms {
        Some(at_ms) => {
            let wait_ms = (at_ms - clock.steady_ms()).max(0);
            clock.sleep_until(clock.mono_ms() + wait_ms).await;
        }
        None => std::future::pending().await,
    }
}

/// Session and rebalance timeouts, expiry of offsets.
async fn group_timers(node: Arc<Node>) {
    let clock = Arc::clone(&node.env.clock);
    loop {
        let deadline = node.groups.next_deadline();
        tokio::select! {
            biased;
            () = node.stop.asked() => return,
            () = node.groups.deadline_moved() => continue,
            () = sleep_until_steady(&*clock, deadline) => {}
        }
        node.groups.fire(clock.steady_ms());
    }
}

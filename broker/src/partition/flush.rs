//! Group commit: one thread per log directory that makes appended records durable.
//!
//! There is no timer. While group N is being synced, group N+1 gathers; its size follows the disk.
//! No partition lock is held over a sync. A failed sync ends the process: what the page cache holds
//! after it is not what the disk holds.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::Mutex;
use storage::flush::{Dirty, FlushError, Flusher as Engine};
use tokio::sync::Notify;

use super::Partition;
use super::room::Room;
use crate::env::Env;

/// Told which partitions moved their watermark, after every group.
pub trait Progress: Send + Sync {
    fn flushed(&self, partitions: &[Arc<Partition>]);
}

thread_local! {
    /// Flushers to wake at the end of the drain that runs on this thread; none runs without it.
    static DEFERRED: RefCell<Option<Vec<Arc<Flusher>>>> = const { RefCell::new(None) };
}

/// While this lives, appends of this thread gather: their flusher is woken once, at the end. Woken
/// by the first of several appends it would sync that one alone.
pub struct Drain(());

impl Drain {
    pub fn begin() -> Drain {
        DEFERRED.set(Some(Vec::new()));
        Drain(())
    }

    /// Whether `flusher` will be woken later.
    fn defer(flusher: &Arc<Flusher>) -> bool {
        DEFERRED.with_borrow_mut(|deferred| match deferred {
            Some(flushers) => {
                if !flushers.iter().any(|known| Arc::ptr_eq(known, flusher)) {
                    flushers.push(Arc::clone(flusher));
                }
                true
            }
            None => false,
        })
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        for flusher in DEFERRED.take().into_iter().flatten() {
            flusher.wake.notify_one();
        }
    }
}

/// The flusher of one log directory.
pub struct Flusher {
    group: Mutex<Group>,
    wake: Notify,
    pub room: Room,
    flushed_bytes: AtomicU64,
}

#[derive(Default)]
struct Group {
    partitions: Vec<Arc<Partition>>,
    wakers: Vec<Waker>,
    stop: bool,
}

impl Group {
    fn add_waker(&mut self, waker: Option<&Waker>) {
        if let Some(waker) = waker
            && !self.wakers.iter().rev().take(8).any(|known| known.will_wake(waker))
        {
            self.wakers.push(waker.clone());
        }
    }
}

impl Flusher {
    pub fn new(room: Room) -> Flusher {
        Flusher {
            group: Mutex::new(Group::default()),
            wake: Notify::new(),
            room,
            flushed_bytes: AtomicU64::new(0),
        }
    }

    /// Bytes made durable since the start.
    pub fn flushed_bytes(&self) -> u64 {
        self.flushed_bytes.load(Ordering::Relaxed)
    }

    /// Puts a partition into the open group. It must not be in it already.
    pub fn submit(self: &Arc<Self>, partition: &Arc<Partition>, waker: Option<&Waker>) {
        let mut group = self.group.lock();
        let first = group.partitions.is_empty();
        group.partitions.push(Arc::clone(partition));
        group.add_waker(waker);
        drop(group);
        if first && !Drain::defer(self) {
            self.wake.notify_one();
        }
    }

    /// Wakes `waker` after the open group, too; its partition is in it already.
    pub fn join(&self, waker: Option<&Waker>) {
        let mut group = self.group.lock();
        group.add_waker(waker);
        let empty = group.partitions.is_empty();
        drop(group);
        if empty {
            // The partition's group is being synced right now; look again after it.
            self.wake.notify_one();
        }
    }

    /// Ends `run` after the open group.
    pub fn stop(&self) {
        self.group.lock().stop = true;
        self.wake.notify_one();
    }

    /// Syncs group after group until stopped; gives the engine back for a clean end.
    pub async fn run(&self, mut engine: Engine, env: Env, progress: Arc<dyn Progress>) -> Engine {
        let clock = Arc::clone(&env.clock);
        loop {
            let group = std::mem::take(&mut *self.group.lock());
            let stop = group.stop;
            if !group.partitions.is_empty() {
                match sync_group(&mut engine, &group.partitions, clock.wall_ms()) {
                    Ok(bytes) => _ = self.flushed_bytes.fetch_add(bytes, Ordering::Relaxed),
                    Err(error) => self.fail(&env, &error),
                }
                self.room.look(clock.wall_ms());
                progress.flushed(&group.partitions);
            }
            group.wakers.into_iter().for_each(Waker::wake);
            if stop {
                return engine;
            }
            self.idle(&mut engine, &env).await;
        }
    }

    /// What the page cache holds after a failed sync is not what the disk holds: nothing more may
    /// be acknowledged by this process.
    fn fail(&self, env: &Env, error: &FlushError) -> ! {
        tracing::error!(%error, "a sync failed: what was written cannot be vouched for, stopping");
        self.room.note_failed_sync();
        env.tasks.abort();
    }

    /// Waits for the next group; sees to it that what was journalled is synced meanwhile.
    async fn idle(&self, engine: &mut Engine, env: &Env) {
        let clock = &*env.clock;
        loop {
            let due = match engine.tick(clock.wall_ms()) {
                Ok(due) => due,
                Err(error) => self.fail(env, &error),
            };
            if !self.group.lock().partitions.is_empty() {
                return;
            }
            let Some(due_ms) = due else {
                return self.wake.notified().await;
            };
            let wait_ms = (due_ms - clock.wall_ms()).max(0);
            if wait_ms == 0 {
                continue;
            }
            tokio::select! {
                biased;
                () = self.wake.notified() => return,
                () = clock.sleep_until(clock.mono_ms() + wait_ms) => {}
            }
        }
    }
}

/// Makes the group durable, then publishes how far each partition got; gives the bytes of it.
///
/// # Errors
/// Nobody knows what is on the disk; nothing was published.
pub(super) fn sync_group(
    engine: &mut Engine,
    partitions: &[Arc<Partition>],
    now_ms: i64,
) -> Result<u64, FlushError> {
    let mut dirty: Vec<Dirty> = Vec::with_capacity(partitions.len());
    let mut owners: Vec<&Arc<Partition>> = Vec::with_capacity(partitions.len());
    for partition in partitions {
        if let Some(work) = partition.begin_flush() {
            owners.push(partition);
            dirty.push(work);
        }
    }
    engine.flush(&dirty, now_ms)?;
    for (partition, work) in owners.into_iter().zip(&dirty) {
        partition.end_flush(work);
    }
    let files = dirty.iter().flat_map(|work| &work.files);
    Ok(files.map(|file| file.to.saturating_sub(file.from)).sum())
}

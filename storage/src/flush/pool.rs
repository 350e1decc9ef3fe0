//! Syncing several files and directories at once. A device with a queue takes many flushes in
//! little more time than one; a simulator wants them in turn.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::disk::{Disk, File};

/// What is to be synced.
#[derive(Clone)]
pub enum Target {
    File(Arc<dyn File>),
    Dir(Arc<DirNames>),
}

impl Target {
    fn sync(&self) -> io::Result<()> {
        match self {
            Target::File(file) => file.sync_data(),
            Target::Dir(dir) => dir.sync(),
        }
    }
}

/// The names in a directory.
pub struct DirNames {
    pub disk: Arc<dyn Disk>,
    pub path: PathBuf,
    is_missing: AtomicBool,
}

impl DirNames {
    pub fn new(disk: &Arc<dyn Disk>, path: &Path) -> DirNames {
        DirNames { disk: disk.clone(), path: path.to_owned(), is_missing: AtomicBool::new(false) }
    }

    /// Whether there was no such directory. That is no failed sync: the caller knows whether it was
    /// deleted.
    pub fn is_missing(&self) -> bool {
        self.is_missing.load(Ordering::Acquire)
    }

    fn sync(&self) -> io::Result<()> {
        match self.disk.sync_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.is_missing.store(true, Ordering::Release);
                Ok(())
            }
            synced => synced,
        }
    }
}

/// All are durable, or one that failed (by index) and its error.
pub type Synced = Result<(), (usize, io::Error)>;

/// Syncs all targets, in any order.
pub trait Syncer: Send {
    fn sync(&self, targets: &[Target]) -> Synced;

    /// Begins to sync all targets beside whatever else goes on. One such run at a time.
    fn begin(&mut self, targets: Vec<Target>);

    /// How the run that was begun ended; `None` as long as it goes on.
    fn poll(&mut self) -> Option<Synced>;

    /// Waits for the end of the run that was begun.
    fn wait(&mut self) -> Synced;
}

/// One after the other, on the caller's thread.
#[derive(Default)]
pub struct InTurn {
    begun: Vec<Target>,
    polled: bool,
}

impl Syncer for InTurn {
    fn sync(&self, targets: &[Target]) -> Synced {
        in_turn(targets)
    }

    fn begin(&mut self, targets: Vec<Target>) {
        self.begun = targets;
        self.polled = false;
    }

    /// As late as possible: what comes before the second look finds nothing synced.
    fn poll(&mut self) -> Option<Synced> {
        std::mem::replace(&mut self.polled, true).then(|| self.wait())
    }

    fn wait(&mut self) -> Synced {
        in_turn(&std::mem::take(&mut self.begun))
    }
}

fn in_turn(targets: &[Target]) -> Synced {
    targets.iter().enumerate().try_for_each(|(at, target)| target.sync().map_err(|e| (at, e)))
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<(usize, Target)>,
    running: usize,
    failed: Option<(usize, io::Error)>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    done: Condvar,
}

impl Shared {
    /// Takes one job and runs it; `false` when there was none.
    fn run_one(&self) -> bool {
        let mut queue = self.queue.lock();
        let Some((at, target)) = queue.jobs.pop_front() else { return false };
        queue.running += 1;
        drop(queue);
        let result = target.sync();
        let mut queue = self.queue.lock();
        queue.running -= 1;
        if let Err(error) = result {
            queue.failed = Some((at, error));
            queue.jobs.clear();
        }
        if queue.running == 0 && queue.jobs.is_empty() {
            self.done.notify_all();
        }
        true
    }

    fn serve(&self) {
        loop {
            while self.run_one() {}
            let mut queue = self.queue.lock();
            if queue.stop {
                return;
            }
            if queue.jobs.is_empty() {
                self.work.wait(&mut queue);
            }
        }
    }
}

/// A few threads that sync beside the calling one. They end when the pool is dropped.
pub struct SyncPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// One batch at a time.
    calls: Mutex<()>,
    /// Made when it is needed first.
    background: Option<Background>,
    /// Takes the place of that where the machine refuses a thread.
    alone: InTurn,
}

/// A thread for runs that nobody waits for, with helpers of its own: a group never queues behind
/// them.
struct Background {
    work: SyncSender<Vec<Target>>,
    ends: Receiver<Synced>,
    thread: JoinHandle<()>,
}

impl Background {
    /// `None` where the machine refuses a thread.
    fn start(helpers: usize) -> Option<Background> {
        let (work, targets) = sync_channel::<Vec<Target>>(1);
        let (end, ends) = sync_channel(1);
        let body = move || {
            let pool = SyncPool::new(helpers);
            // It ends with the sender, or when nobody wants the result.
            while let Ok(targets) = targets.recv() {
                if end.send(pool.sync(&targets)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("settle".into()).spawn(body).ok()?;
        Some(Background { work, ends, thread })
    }
}

impl SyncPool {
    /// A pool of `helpers` threads; fewer where the machine refuses one, and with none the caller
    /// syncs alone.
    pub fn new(helpers: usize) -> SyncPool {
        let shared = Arc::<Shared>::default();
        let spawn = |n| {
            let shared = shared.clone();
            let name = format!("sync-{n}");
            std::thread::Builder::new().name(name).spawn(move || shared.serve()).ok()
        };
        let threads = (0..helpers).filter_map(spawn).collect();
        SyncPool {
            shared,
            threads,
            calls: Mutex::new(()),
            background: None,
            alone: InTurn::default(),
        }
    }
}

/// What became of a run whose thread is not there any more.
fn lost() -> Synced {
    Err((0, io::Error::other("the thread that syncs in the background is gone")))
}

impl Syncer for SyncPool {
    fn sync(&self, targets: &[Target]) -> Synced {
        if targets.len() < 2 || self.threads.is_empty() {
            return in_turn(targets);
        }
        let _call = self.calls.lock();
        let mut queue = self.shared.queue.lock();
        queue.jobs = targets.iter().cloned().enumerate().collect();
        drop(queue);
        self.shared.work.notify_all();
        while self.shared.run_one() {}
        let mut queue = self.shared.queue.lock();
        while queue.running > 0 {
            self.shared.done.wait(&mut queue);
        }
        queue.failed.take().map_or(Ok(()), Err)
    }

    fn begin(&mut self, targets: Vec<Target>) {
        if self.background.is_none() {
            self.background = Background::start(self.threads.len());
        }
        match &self.background {
            // Its thread waits for work, or is gone, which the next look finds out.
            Some(background) => _ = background.work.send(targets),
            None => self.alone.begin(targets),
        }
    }

    fn poll(&mut self) -> Option<Synced> {
        let Some(background) = &self.background else { return self.alone.poll() };
        match background.ends.try_recv() {
            Ok(end) => Some(end),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(lost()),
        }
    }

    fn wait(&mut self) -> Synced {
        let Some(background) = &self.background else { return self.alone.wait() };
        background.ends.recv().unwrap_or_else(|_| lost())
    }
}

impl Drop for SyncPool {
    fn drop(&mut self) {
        if let Some(Background { work, ends, thread }) = self.background.take() {
            drop((work, ends));
            let _ = thread.join();
        }
        self.shared.queue.lock().stop = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A helper that panicked has already said so.
            let _ = thread.join();
        }
    }
}

//! One simulated node: its disk and stores, which outlive its process, and the life of a process.
//!
//! Owns starting, crashing and stopping; every task of a life is counted here, so that a crash ends
//! them all between two of their steps.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use broker::config::Config;
use broker::env::{BoxFuture, Env, KvOpener, TaskFactory, Tasks};
use broker::start::{self, Observers, Running};
use parking_lot::Mutex;
use storage::disk::sim::Fault;
use storage::disk::{SimConfig, SimDisk};
use storage::flush::{InTurn, Syncer};
use storage::kv::{Kv, KvError, MemStore};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use crate::clock::{SimClock, pause_ms};
use crate::dice::Dice;
use crate::net::{Network, node_ip};

/// Where every node keeps its logs.
pub const DATA_DIR: &str = "/data";

/// Where every node listens.
pub const PORT: u16 = 9092;

/// One read in so many finds its bytes on the disk only.
const COLD_ONE_IN: u64 = 3;

/// How far a thread may lag behind its wake-up, in virtual ms: a slow disk under a flusher.
#[derive(Clone, Copy, Debug)]
pub struct Lag {
    pub per_mille: u64,
    pub max_ms: u64,
}

/// What a node is made of.
pub struct NodePlan {
    pub seed: u64,
    pub index: usize,
    pub lag: Lag,
    /// Settings beside the usual ones.
    pub overrides: Vec<(String, String)>,
}

/// A machine with its disk; a process may run on it.
pub struct SimNode {
    plan: NodePlan,
    clock: SimClock,
    network: Network,
    disk: SimDisk,
    stores: Stores,
    life: Option<Life>,
    lives: u64,
    /// Faults of the disk itself, there in every life.
    planted: Vec<Fault>,
    /// Spoils the disk while no process runs.
    spoil: Option<Spoil>,
}

/// What somebody does to a disk behind the broker's back.
type Spoil = Box<dyn FnMut(&SimDisk)>;

struct Life {
    tasks: Arc<SimTasks>,
    started: Option<oneshot::Receiver<Result<Running, String>>>,
    running: Option<Running>,
    start_failed: bool,
}

impl SimNode {
    pub fn new(plan: NodePlan, clock: SimClock, network: Network) -> SimNode {
        let disk_seed = Dice::of(plan.seed, "disk", plan.index as u64).below(u64::MAX);
        let disk = SimDisk::new(SimConfig::seeded(disk_seed));
        disk.set_cold(COLD_ONE_IN);
        let (stores, planted, spoil) = (Stores::default(), Vec::new(), None);
        SimNode { plan, clock, network, disk, stores, life: None, lives: 0, planted, spoil }
    }

    pub fn ip(&self) -> IpAddr {
        node_ip(self.plan.index)
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip(), PORT)
    }

    /// The disk of the running process, or of the next one.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// Plants a fault that every process on this machine meets.
    pub fn plant(&mut self, fault: Fault) {
        self.planted.push(fault);
    }

    /// Spoils the disk before each start of a process.
    pub fn plant_before_start(&mut self, spoil: impl FnMut(&SimDisk) + 'static) {
        self.spoil = Some(Box::new(spoil));
    }

    /// Sets a configuration key of every process.
    pub fn set(&mut self, key: &str, value: &str) {
        self.plan.overrides.push((key.to_owned(), value.to_owned()));
    }

    /// Ends all faults of the disk, but for the planted ones.
    pub fn mend_disk(&self) {
        self.disk.clear_faults();
        self.planted.iter().for_each(|fault| self.disk.inject(fault.clone()));
    }

    /// Whether a process runs that has started.
    pub fn serves(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.running.is_some())
    }

    /// Whether the process ended itself.
    pub fn gave_up(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.tasks.end.gave_up.load(Ordering::Relaxed))
    }

    /// Whether `look` saw that the process ended at its start.
    pub fn start_failed(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.start_failed)
    }

    /// Whether partitions could not be opened: they stay offline until somebody restarts the node.
    pub fn has_offline(&self) -> bool {
        let running = self.life.as_ref().and_then(|life| life.running.as_ref());
        running.is_some_and(|running| running.node.progress.failed() > 0)
    }

    /// Starts a process; it serves some time later.
    ///
    /// # Panics
    /// When one runs already.
    pub fn start(&mut self) {
        assert!(self.life.is_none(), "node {} runs already", self.plan.index);
        self.lives += 1;
        self.mend_disk();
        if let Some(spoil) = &mut self.spoil {
            spoil(&self.disk);
        }
        let tasks = Arc::new(SimTasks {
            handles: Mutex::default(),
            end: Arc::default(),
            lag: self.plan.lag,
            dice: self.dice("lag").below(u64::MAX),
        });
        let (env, config) = (self.env(&tasks), self.config());
        let (tell, started) = oneshot::channel();
        tasks.run(async move {
            let observers = Observers { recorder: None, apply_levels: Box::new(|_| ()) };
            let running = start::start(env, config, observers).await;
            // Nobody waits when the node crashed meanwhile.
            let _ = tell.send(running.map_err(|error| chain(&error)));
        });
        let (started, start_failed) = (Some(started), false);
        self.life = Some(Life { tasks, started, running: None, start_failed });
    }

    /// Notices a finished start and a task that panicked.
    ///
    /// # Errors
    /// The start failed, the process ended itself, or a task of it panicked.
    pub fn look(&mut self) -> Result<(), String> {
        if self.gave_up() {
            return Err(String::from("the process ended itself"));
        }
        let Some(life) = &mut self.life else { return Ok(()) };
        if life.tasks.end.panicked.load(Ordering::Relaxed) {
            return Err(String::from("a task of the node panicked"));
        }
        let Some(started) = &mut life.started else { return Ok(()) };
        match started.try_recv() {
            Ok(Ok(running)) => {
                (life.running, life.started) = (Some(running), None);
                Ok(())
            }
            Ok(Err(error)) => {
                life.start_failed = true;
                Err(format!("the node did not start: {error}"))
            }
            Err(_) => Ok(()),
        }
    }

    /// The process dies. With `power`, what was not synced is lost as well.
    pub async fn crash(&mut self, power: bool) {
        let Some(life) = self.life.take() else { return };
        life.tasks.end_all();
        self.network.reset_node(self.ip());
        if power {
            self.lose_power();
        } else {
            self.disk = self.disk.kill();
        }
        drop(life.running);
        life.tasks.ended().await;
    }

    /// Stops the process in order.
    ///
    /// # Errors
    /// It was not serving.
    pub async fn stop(&mut self) -> Result<(), String> {
        let life = self.life.take().ok_or("the node is down")?;
        life.running.ok_or("the node did not serve yet")?.stop().await;
        life.tasks.end_all();
        self.network.reset_node(self.ip());
        self.disk = self.disk.kill();
        life.tasks.ended().await;
        Ok(())
    }

    /// Stops the process in order, unless it ends itself over that; then the power fails.
    pub async fn stop_and_cut_power(&mut self) {
        let Some(Life { tasks, running: Some(running), .. }) = self.life.take() else { return };
        let end = Arc::clone(&tasks.end);
        let gave_up = async {
            while !end.gave_up.load(Ordering::Relaxed) {
                pause_ms(1).await;
            }
        };
        tokio::select! {
            biased;
            () = gave_up => {}
            _ = running.stop() => {}
        }
        tasks.end_all();
        self.network.reset_node(self.ip());
        self.lose_power();
        tasks.ended().await;
    }

    fn lose_power(&mut self) {
        self.disk = self.disk.crash();
        let dice = self.dice("stores");
        self.stores.crash(&dice);
    }

    fn dice(&self, part: &str) -> Dice {
        Dice::of(self.plan.seed, part, self.plan.index as u64 * 1_000 + self.lives)
    }

    fn env(&self, tasks: &Arc<SimTasks>) -> Env {
        Env {
            clock: Arc::new(self.clock.of_new_process()),
            net: self.network.at(self.ip()),
            disk: self.disk.shared(),
            kv: Arc::new(self.stores.clone()),
            tasks: Arc::clone(tasks) as Arc<dyn Tasks>,
            rng: Arc::new(self.dice("node")),
            home: PathBuf::from("/"),
        }
    }

    fn config(&self) -> Config {
        let ip = self.ip();
        let mut settings = vec![
            ("log.dirs".to_owned(), DATA_DIR.to_owned()),
            ("listeners".to_owned(), format!("PLAINTEXT://{ip}:{PORT}")),
            ("http.listen".to_owned(), String::new()),
            ("offsets.topic.num.partitions".to_owned(), "3".to_owned()),
            ("group.initial.rebalance.delay.ms".to_owned(), "300".to_owned()),
            ("log.flush.offset.checkpoint.interval.ms".to_owned(), "5000".to_owned()),
        ];
        settings.extend(self.plan.overrides.iter().cloned());
        match Config::load(None, &settings) {
            Ok(loaded) => loaded.config,
            Err(error) => panic!("the settings of a simulated node: {error}"),
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(source) = at {
        text = format!("{text}: {source}");
        at = source.source();
    }
    text
}

/// The stores of a node by path; they outlive its processes.
#[derive(Clone, Default)]
struct Stores(Arc<Mutex<BTreeMap<PathBuf, MemStore>>>);

impl Stores {
    fn crash(&self, dice: &Dice) {
        for store in self.0.lock().values() {
            store.crash(dice.below(store.unsynced() as u64 + 1) as usize);
        }
    }
}

impl KvOpener for Stores {
    fn open(&self, path: &Path) -> Result<Box<dyn Kv>, KvError> {
        let store = self.0.lock().entry(path.to_owned()).or_default().clone();
        Ok(Box::new(store.open()))
    }
}

/// Runs everything of one process as tasks of the one runtime.
struct SimTasks {
    handles: Mutex<Vec<JoinHandle<()>>>,
    end: Arc<End>,
    lag: Lag,
    /// The seed of the threads' dice.
    dice: u64,
}

impl SimTasks {
    fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let witness = Witness(Arc::clone(&self.end));
        let handle = tokio::spawn(async move {
            let _witness = witness;
            task.await;
        });
        let mut handles = self.handles.lock();
        handles.retain(|handle| !handle.is_finished());
        handles.push(handle);
    }

    fn end_all(&self) {
        self.handles.lock().iter().for_each(JoinHandle::abort);
    }

    async fn ended(&self) {
        loop {
            let Some(handle) = ({ self.handles.lock().pop() }) else { return };
            // A cancelled task is what was asked for; a panic is seen by its witness.
            let _ = handle.await;
        }
    }
}

/// How a process ended that nobody stopped.
#[derive(Default)]
struct End {
    panicked: AtomicBool,
    gave_up: AtomicBool,
}

/// Notes that the task which owns it panicked.
struct Witness(Arc<End>);

impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.0.gave_up.load(Ordering::Relaxed) {
            self.0.panicked.store(true, Ordering::Relaxed);
        }
    }
}

impl Tasks for SimTasks {
    fn shards(&self) -> usize {
        2
    }

    fn spawn_on(&self, _shard: usize, _name: &'static str, task: TaskFactory) {
        self.run(async move { task().await });
    }

    fn thread(&self, name: &'static str, task: TaskFactory) {
        let (lag, dice) = (self.lag, Dice::of(self.dice, name, 0));
        self.run(async move { Lagging { task: task(), lag, dice, wait: None }.await });
    }

    fn syncer(&self) -> Box<dyn Syncer> {
        Box::new(InTurn::default())
    }

    fn parallel(&self, jobs: Vec<Box<dyn FnOnce() + Send>>) {
        jobs.into_iter().for_each(|job| job());
    }

    /// No task of the process runs again; the caller's own is unwound.
    fn abort(&self) -> ! {
        self.end.gave_up.store(true, Ordering::Relaxed);
        self.end_all();
        std::panic::resume_unwind(Box::new("the process ended itself"))
    }
}

/// A thread that does not always run at once when it could.
struct Lagging {
    task: BoxFuture<()>,
    lag: Lag,
    dice: Dice,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Future for Lagging {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.wait.is_none() && self.dice.chance(self.lag.per_mille) {
            let wait_ms = self.dice.between(1, self.lag.max_ms);
            self.wait = Some(Box::pin(tokio::time::sleep(Duration::from_millis(wait_ms))));
        }
        if let Some(wait) = &mut self.wait {
            if wait.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.wait = None;
        }
        self.task.as_mut().poll(cx)
    }
}

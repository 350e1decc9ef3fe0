//! Starting and stopping a node, in order.
//!
//! Sockets are bound first, so that a port in use is found before anything is touched and clients
//! can queue while the metadata is read; partitions are opened while others serve already.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arc_swap::ArcSwap;
use kraft::controller::RegisterBroker;
use kraft::record::Endpoint;
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use protocol_compat::ids::topic_id_text;
use storage::dirs::{DirError, Owner, read_meta};
use storage::flush::{FlushConfig, FlushError, Flusher as Engine, Replayed};
use tokio::sync::oneshot;

use crate::auto_topics::Creating;
use crate::budget::Budget;
use crate::cold::{self, ColdReads};
use crate::config::{Config, DynamicConfig, keys};
use crate::env::{BoxFuture, Env};
use crate::fetch::session::Sessions;
use crate::groups::Groups;
use crate::log_dirs::{Dir, LogDirs};
use crate::log_starts::LogStarts;
use crate::loggers::{Apply, Loggers};
use crate::metrics::NodeMetrics;
use crate::net::listener::{Bound, Connections, accept};
use crate::node::Node;
use crate::partition::Partition;
use crate::partition::table::PartitionTable;
use crate::producer_ids::ProducerIds;
use crate::progress::{Phase, Progress};
use crate::quorum::publish::Publisher;
use crate::quorum::{self, Quorum, QuorumError};
use crate::runtime::Runtime;
use crate::stop::Stop;
use crate::topics::GroupTopics;
use crate::{features, http, tasks};

/// Why a node did not start: one clear line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}")]
    Listen { address: String, source: std::io::Error },
    #[error(transparent)]
    Directory(#[from] DirError),
    #[error("the metadata log cannot be used")]
    Quorum(#[from] QuorumError),
    #[error(transparent)]
    Journal(#[from] FlushError),
    #[error("{0}")]
    Unsupported(String),
}

/// How the world looks at the node.
pub struct Observers {
    /// What `metrics::install` gave.
    pub recorder: Option<PrometheusHandle>,
    /// Changes the levels of the log.
    pub apply_levels: Apply,
}

/// A node that serves.
pub struct Running {
    pub node: Arc<Node>,
    /// The addresses that were bound, with their listeners' names.
    pub addresses: Vec<(Arc<str>, std::net::SocketAddr)>,
    pub http: Option<std::net::SocketAddr>,
    quorum_done: oneshot::Receiver<()>,
    housekeeper_done: oneshot::Receiver<()>,
    flushers_done: Vec<oneshot::Receiver<Engine>>,
}

/// Starts a node; returns when it takes connections.
///
/// # Errors
/// See [`StartError`]; nothing keeps running then.
pub async fn start(env: Env, config: Config, observers: Observers) -> Result<Running, StartError> {
    check_alone(&config)?;
    let bound = bind(&env, &config)?;
    let http_listener = bind_http(&env, &config)?;
    let progress = Arc::new(Progress::default());
    let (node_id, cluster_id) = identity(&env, &config)?;
    let owner =
        Owner { cluster_id: Some(cluster_id.clone()), node_id, new_directory_id: env.rng.uuid() };
    let claims = LogDirs::claim(&env, &config.log_dirs(), &owner)?;
    let store = quorum::open_store(&env, &config);
    let dirs = LogDirs::open(&env, claims);
    // Whatever became of the directories: the process does not end while a store is opened.
    let store = store.await.unwrap_or(Err(QuorumError::Gone));
    let node = build(&env, config, (node_id, cluster_id), Arc::new(dirs?), &progress, observers);
    let store = store?;
    let flushers_done = run_flushers(&node)?;
    progress.enter(Phase::Metadata);
    let publisher = publisher(&node);
    let addresses: Vec<_> =
        bound.iter().map(|bound| (Arc::clone(&bound.name), bound.listener.local_addr())).collect();
    let registration = registration(&node, &addresses);
    let quorum_done = quorum::run(&node, store, publisher, registration).await?;
    let http_address = http_listener.as_ref().map(|listener| listener.local_addr());
    if let Some(listener) = http_listener {
        http::serve(&node, listener);
    }
    for bound in bound {
        let at = Arc::clone(&node);
        let task = move || Box::pin(accept(bound, at)) as BoxFuture<()>;
        env.tasks.spawn_on(0, "acceptor", Box::new(task));
    }
    cold::start(&node);
    let housekeeper_done = tasks::start(&node);
    let http = http_address;
    Ok(Running { node, addresses, http, quorum_done, housekeeper_done, flushers_done })
}

impl Running {
    /// Stops in order: no more connections, everything flushed and written down, the marker of a
    /// clean stop. False when something did not go well: then there is no marker.
    pub async fn stop(self) -> bool {
        let Running { node, quorum_done, housekeeper_done, flushers_done, .. } = self;
        node.progress.enter(Phase::Stopping);
        node.stop.ask();
        for dir in node.dirs.dirs() {
            dir.flusher.stop();
        }
        let mut engines = Vec::new();
        for done in flushers_done {
            engines.extend(done.await.ok());
        }
        // Errors mean that they are gone already. After this nobody else writes to the logs, but a
        // request that is at work: closing a partition ends that.
        let _ = quorum_done.await;
        let _ = housekeeper_done.await;
        let partitions = node.partitions.all();
        let mut clean = engines.len() == node.dirs.dirs().len();
        clean &= close_all(&node.env, &partitions);
        for engine in engines {
            if let Err(error) = engine.close() {
                tracing::error!(%error, "not stopped cleanly");
                // Which directory's it was does not matter: more is checked, nothing is missed.
                node.dirs.dirs().iter().for_each(|dir| dir.flusher.room.note_failed_sync());
                clean = false;
            }
        }
        // After a failure nothing is vouched for that was not before: the error of a log's sync may
        // have been told to the one in the background.
        if !clean || !node.dirs.checkpoint(&partitions) {
            return false;
        }
        let epoch = node.quorum.image().broker(node.id).map_or(-1, |broker| broker.epoch);
        if let Err(error) = node.dirs.leave_clean_markers(epoch) {
            tracing::error!(%error, "not stopped cleanly");
            return false;
        }
        tracing::info!(partitions = partitions.len(), "stopped");
        true
    }
}

/// Closes the partitions side by side: each waits for several syncs, and whoever stops a broker has
/// little patience (containers are killed after ten seconds). False if one did not close cleanly.
fn close_all(env: &Env, partitions: &[Arc<Partition>]) -> bool {
    let clean = Arc::new(AtomicBool::new(true));
    let close = |partition: &Arc<Partition>| {
        let (partition, clean) = (Arc::clone(partition), Arc::clone(&clean));
        let job = move || {
            if let Err(error) = partition.close() {
                tracing::error!(partition = %partition.tp, %error, "not closed cleanly");
                partition.note_failed_sync();
                clean.store(false, Ordering::Release);
            }
        };
        Box::new(job) as Box<dyn FnOnce() + Send>
    };
    env.tasks.parallel(partitions.iter().map(close).collect());
    clean.load(Ordering::Acquire)
}

/// What this version cannot do is refused, rather than done half.
fn check_alone(config: &Config) -> Result<(), StartError> {
    let (voters, servers) = (config.voters().len(), config.bootstrap_servers().len());
    let text = if voters > 1 || servers > 1 {
        let key = match voters {
            0 | 1 => "controller.quorum.bootstrap.servers",
            _ => "controller.quorum.voters",
        };
        let count = voters.max(servers);
        format!("{key} names {count} nodes: this version runs as a single node, name only this one")
    } else if !(config.roles().broker && config.roles().controller) {
        "process.roles must be broker,controller: this version runs as a single node".to_owned()
    } else {
        return Ok(());
    };
    Err(StartError::Unsupported(text))
}

fn bind(env: &Env, config: &Config) -> Result<Vec<Bound>, StartError> {
    let mut bound = Vec::new();
    for listener in config.broker_listeners() {
        let address = listener.address().to_string();
        if listener.protocol != crate::config::Protocol::Plaintext {
            let (name, protocol) = (&listener.name, listener.protocol.name());
            let text = format!("listener {name}: {protocol} is not available yet, use PLAINTEXT");
            return Err(StartError::Unsupported(text));
        }
        let socket = env
            .net
            .listen(&listener.host, listener.port)
            .map_err(|source| StartError::Listen { address, source })?;
        let advertised = config
            .advertised_listeners()
            .find(|advertised| advertised.name == listener.name)
            .filter(|advertised| !advertised.host.is_empty());
        let port = socket.local_addr().port();
        let advertised = advertised
            .map(|at| (Arc::from(at.host.as_str()), if at.port == 0 { port } else { at.port }));
        bound.push(Bound { listener: socket, name: Arc::from(listener.name.as_str()), advertised });
    }
    Ok(bound)
}

fn bind_http(
    env: &Env,
    config: &Config,
) -> Result<Option<Box<dyn crate::env::Listener>>, StartError> {
    let Some(at) = config.http_listen() else {
        return Ok(None);
    };
    let address = at.to_string();
    let listener = env.net.listen(&at.host, at.port).map_err(|source| StartError::Listen {
        address: format!("{address} (http.listen)"),
        source,
    })?;
    Ok(Some(listener))
}

/// Who this node is: what its first directory says, else the configuration, else something fresh.
fn identity(env: &Env, config: &Config) -> Result<(i32, String), StartError> {
    let mut known = None;
    for dir in config.log_dirs() {
        if let Some(meta) = read_meta(&*env.disk, &dir)? {
            known = Some(meta);
            break;
        }
    }
    let configured = config.is_set(keys::NODE_ID.row) || config.is_set(keys::BROKER_ID.row);
    let node_id = match &known {
        Some(meta) if !configured => meta.node_id,
        _ => config.node_id(),
    };
    let cluster_id = known.and_then(|meta| meta.cluster_id);
    Ok((node_id, cluster_id.unwrap_or_else(|| topic_id_text(env.rng.uuid()))))
}

fn build(
    env: &Env,
    config: Config,
    (id, cluster_id): (i32, String),
    dirs: Arc<LogDirs>,
    progress: &Arc<Progress>,
    observers: Observers,
) -> Arc<Node> {
    let runtime = Runtime::new(DynamicConfig::of(Arc::new(config)));
    let slots = runtime.fetch_sessions_max;
    let partitions = Arc::new(PartitionTable::default());
    let topics = GroupTopics { partitions: Arc::clone(&partitions) };
    let offsets_partitions = runtime.config.int(keys::OFFSETS_TOPIC_NUM_PARTITIONS);
    let groups = Groups::new(Arc::new(topics), runtime.group_settings(), offsets_partitions);
    Arc::new(Node {
        env: env.clone(),
        id,
        cluster_id: Arc::from(cluster_id),
        config: Arc::new(ArcSwap::from_pointee(runtime)),
        quorum: Arc::new(Quorum::default()),
        partitions,
        dirs,
        groups: Arc::new(groups),
        sessions: Mutex::new(Sessions::new(slots)),
        producer_ids: ProducerIds::default(),
        creating: Creating::default(),
        budget: Budget::default(),
        cold: ColdReads::default(),
        connections: Connections::default(),
        metrics: NodeMetrics::new(observers.recorder),
        loggers: Loggers::new(observers.apply_levels),
        progress: Arc::clone(progress),
        log_starts: LogStarts::default(),
        stop: Stop::default(),
    })
}

fn publisher(node: &Arc<Node>) -> Arc<Publisher> {
    Arc::new(Publisher {
        env: node.env.clone(),
        node_id: node.id,
        partitions: Arc::clone(&node.partitions),
        dirs: Arc::clone(&node.dirs),
        runtime: Arc::clone(&node.config),
        groups: Arc::clone(&node.groups),
        progress: Arc::clone(&node.progress),
        unmade: Mutex::default(),
        told_ms: AtomicI64::new(0),
    })
}

/// One flusher thread per log directory; its journal is replayed before any log is opened.
fn run_flushers(node: &Arc<Node>) -> Result<Vec<oneshot::Receiver<Engine>>, StartError> {
    let mut done = Vec::new();
    for dir in node.dirs.dirs() {
        let engine = engine(node, dir)?;
        let env = node.env.clone();
        let flusher = Arc::clone(&dir.flusher);
        let progress = tasks::flush_progress(node);
        let (ended, wait) = oneshot::channel();
        done.push(wait);
        let task = move || {
            Box::pin(async move {
                let engine = flusher.run(engine, env, progress).await;
                // Nobody waits when the start failed half-way.
                let _ = ended.send(engine);
            }) as BoxFuture<()>
        };
        node.env.tasks.thread("flusher", Box::new(task));
    }
    Ok(done)
}

/// Opens the group commit of one directory; what its journal holds goes back into the segments.
fn engine(node: &Node, dir: &Dir) -> Result<Engine, FlushError> {
    let clean = dir.log_dir.clean_stop().is_some();
    let secret = node.env.rng.uuid().as_u128();
    let path = dir.log_dir.path();
    let disk = Arc::clone(&node.env.disk);
    let syncer = node.env.tasks.syncer();
    let opened = Engine::open(disk, path, FlushConfig::default(), syncer, secret, clean)?;
    let (engine, replayed) = opened;
    if replayed != Replayed::default() {
        tracing::info!(dir = %path.display(), ?replayed, "flush journal replayed");
    }
    Ok(engine)
}

fn registration(
    node: &Arc<Node>,
    addresses: &[(Arc<str>, std::net::SocketAddr)],
) -> RegisterBroker {
    let endpoints = addresses.iter().map(|(name, address)| Endpoint {
        name: Arc::clone(name),
        host: Arc::from(address.ip().to_string()),
        port: address.port(),
        security_protocol: 0,
    });
    let rack = node.runtime().config.fixed().opt_string(keys::BROKER_RACK).map(Arc::from);
    let dirs = node.dirs.dirs().iter();
    RegisterBroker {
        broker_id: node.id,
        cluster_id: node.cluster_id.to_string(),
        incarnation_id: node.env.rng.uuid(),
        endpoints: endpoints.collect(),
        features: features::ranges(),
        rack,
        directories: dirs.map(|dir| dir.log_dir.directory_id()).collect(),
        previous_epoch: node.dirs.previous_epoch().unwrap_or(-1),
    }
}

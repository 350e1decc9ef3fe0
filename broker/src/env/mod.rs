//! The outside world as a value: clock, network, disk, tasks and chance come through [`Env`].
//!
//! `real.rs` is production; the simulator (package `tests`) brings its own. Nothing else in this
//! crate may ask the machine for time, sockets, files, threads or randomness: clippy and the tidy
//! test hold that line.

pub mod real;
mod sys;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use storage::disk::{Disk, File};
use storage::flush::Syncer;
use storage::kv::{Kv, KvError};

pub use sys::AlignedBuf;

/// A boxed future that may move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes a task's future on the thread that will run it.
pub type TaskFactory = Box<dyn FnOnce() -> BoxFuture<()> + Send>;

/// Everything outside the process, by reference.
#[derive(Clone)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub net: Arc<dyn Net>,
    pub disk: Arc<dyn Disk>,
    pub kv: Arc<dyn KvOpener>,
    pub tasks: Arc<dyn Tasks>,
    pub rng: Arc<dyn Rng>,
    /// Where relative paths begin.
    pub home: PathBuf,
}

impl Env {
    /// A path that does not depend on where the process was started.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.home.join(path.strip_prefix(".").unwrap_or(path))
    }
}

/// Wall time for records and retention, monotonic time for every timeout.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970. May jump.
    fn wall_ms(&self) -> i64;
    /// Milliseconds since some fixed moment. Never falls.
    fn mono_ms(&self) -> i64;
    /// Milliseconds since 1970 as the start saw it, moved on by monotonic time: for deadlines that
    /// are written down as well.
    fn steady_ms(&self) -> i64;
    /// Ends when `mono_ms` has reached `deadline_ms`.
    fn sleep_until(&self, deadline_ms: i64) -> BoxFuture<()>;
}

/// Random bits; a seed in the simulator.
pub trait Rng: Send + Sync {
    fn next_u64(&self) -> u64;

    /// A version 4 uuid that does not start with `-` in Kafka's text form.
    fn uuid(&self) -> uuid::Uuid {
        loop {
            let bits = u128::from(self.next_u64()) << 64 | u128::from(self.next_u64());
            let id = uuid::Builder::from_u128(bits)
                .with_version(uuid::Version::Random)
                .with_variant(uuid::Variant::RFC4122)
                .into_uuid();
            // 62 is the value of '-' in the URL-safe base64 alphabet.
            if id.as_bytes()[0] >> 2 != 62 {
                return id;
            }
        }
    }
}

/// Opens the store of the metadata quorum.
pub trait KvOpener: Send + Sync {
    fn open(&self, path: &Path) -> Result<Box<dyn Kv>, KvError>;
}

/// The name of the tasks that serve one connection each. A panic in one of them ends it alone; in
/// any other task it ends the process.
pub const CONNECTION: &str = "connection";

/// Runs tasks: on the network shards, or on a thread of their own.
pub trait Tasks: Send + Sync {
    /// How many network shards there are, at least one.
    fn shards(&self) -> usize;
    /// Starts a task on shard `shard % shards()`.
    fn spawn_on(&self, shard: usize, name: &'static str, task: TaskFactory);
    /// Starts a task on a thread of its own; it may block that thread.
    fn thread(&self, name: &'static str, task: TaskFactory);
    /// Syncs several files at once, where the machine gains by it.
    fn syncer(&self) -> Box<dyn Syncer>;
    /// Runs jobs side by side, and waits for all of them.
    fn parallel(&self, jobs: Vec<Box<dyn FnOnce() + Send>>);
    /// Ends the process at once, whatever is under way.
    fn abort(&self) -> !;
}

/// Listening sockets.
pub trait Net: Send + Sync {
    /// Binds `host:port`; port 0 takes a free one.
    ///
    /// # Errors
    /// The machine's own: address in use, no such address, no permission.
    fn listen(&self, host: &str, port: u16) -> io::Result<Box<dyn Listener>>;
}

/// One bound address.
pub trait Listener: Send {
    fn local_addr(&self) -> SocketAddr;
    /// The next connection, not yet tied to a shard.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Box<dyn Accepted>>>;
}

/// A connection on its way to the shard that will own it.
pub trait Accepted: Send {
    /// Ties the connection to the shard that calls this.
    ///
    /// # Errors
    /// The peer went away, or the machine is out of descriptors.
    fn open(self: Box<Self>) -> io::Result<Box<dyn Conn>>;
    fn peer_addr(&self) -> SocketAddr;
}

/// A byte stream. One task owns it and polls both directions.
pub trait Conn: Send + Sync {
    /// Ready when `try_read` may bring bytes; registers the waker otherwise.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Reads what is there; `Ok(0)` is the end of the stream.
    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize>;
    /// Ready when `try_write` may take bytes; registers the waker otherwise.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Writes what the stream takes of these bytes.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Moves bytes from a file to the stream without a copy where the machine can.
    fn try_send_file(&self, file: &dyn File, position: u64, len: usize) -> io::Result<usize>;
    fn peer_addr(&self) -> SocketAddr;
    fn local_addr(&self) -> SocketAddr;
}

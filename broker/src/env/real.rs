//! The real world: tokio sockets and timers, OS threads, the machine's clock and entropy.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use storage::disk::{File, RealDisk};
use storage::flush::{SyncPool, Syncer};
use storage::kv::{Kv, KvError, RocksKv};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};

use super::{
    Accepted, BoxFuture, CONNECTION, Clock, Conn, Env, KvOpener, Listener, Net, Rng, TaskFactory,
    Tasks,
};

/// Threads that sync files beside each flusher.
const SYNC_THREADS: usize = 3;

/// Jobs of a start and of a stop wait for the disk more than they compute.
const WORKERS_MIN: usize = 8;

/// How many connections the kernel may hold before they are accepted.
const BACKLOG: i32 = 1024;

/// Builds the production world with `shards` network threads.
///
/// # Errors
/// A thread or its runtime could not be made.
pub fn env(shards: usize) -> io::Result<Env> {
    Ok(Env {
        clock: Arc::new(RealClock::new()),
        net: Arc::new(RealNet),
        disk: Arc::new(RealDisk),
        kv: Arc::new(RocksOpener),
        tasks: Arc::new(RealTasks::start(shards.max(1))?),
        rng: Arc::new(RealRng::seeded()),
        home: std::env::current_dir()?,
    })
}

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Reads a configuration file, at most 4 MiB.
///
/// # Errors
/// The file is not there, not readable, too large, or not UTF-8.
pub fn read_config(path: &Path) -> io::Result<String> {
    const CONFIG_BYTES_MAX: u64 = 4 << 20;
    if std::fs::metadata(path)?.len() > CONFIG_BYTES_MAX {
        return Err(io::Error::other("larger than 4 MiB: not a configuration file"));
    }
    std::fs::read_to_string(path)
}

/// Ends when the process is asked to stop (SIGTERM or SIGINT).
pub async fn stop_requested() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::select! {
        biased;
        _ = term.recv() => Ok(()),
        _ = int.recv() => Ok(()),
    }
}

struct RealClock {
    start: Instant,
    start_wall_ms: i64,
}

impl RealClock {
    fn new() -> RealClock {
        RealClock { start: Instant::now(), start_wall_ms: wall_ms() }
    }
}

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Clock for RealClock {
    fn wall_ms(&self) -> i64 {
        wall_ms()
    }

    fn steady_ms(&self) -> i64 {
        self.start_wall_ms + self.mono_ms()
    }

    fn mono_ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn sleep_until(&self, deadline_ms: i64) -> BoxFuture<()> {
        let at = self.start + Duration::from_millis(u64::try_from(deadline_ms).unwrap_or(0));
        Box::pin(tokio::time::sleep_until(at.into()))
    }
}

/// SplitMix64 over an OS seed: good for ids and jitter, not for secrets.
struct RealRng {
    state: AtomicU64,
}

impl RealRng {
    fn seeded() -> RealRng {
        let mut seed = [0u8; 8];
        let filled = rustix::rand::getrandom(&mut seed[..], rustix::rand::GetRandomFlags::empty());
        let bits = match filled {
            Ok(8) => u64::from_ne_bytes(seed),
            _ => wall_ms().unsigned_abs() ^ 0x9e37_79b9,
        };
        RealRng { state: AtomicU64::new(bits ^ u64::from(std::process::id())) }
    }
}

impl Rng for RealRng {
    fn next_u64(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

struct RocksOpener;

impl KvOpener for RocksOpener {
    fn open(&self, path: &Path) -> Result<Box<dyn Kv>, KvError> {
        Ok(Box::new(RocksKv::open(path)?))
    }
}

/// Ends the process when its holder panics: without the flusher, say, nothing would ever be
/// acknowledged again, and nobody would know why.
struct AbortOnPanic(&'static str);

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(name = self.0, "a part that nothing works without failed, stopping");
            std::process::abort();
        }
    }
}

struct RealTasks {
    shards: Vec<Handle>,
}

impl RealTasks {
    fn start(count: usize) -> io::Result<RealTasks> {
        let mut shards = Vec::with_capacity(count);
        for index in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            shards.push(runtime.handle().clone());
            std::thread::Builder::new()
                .name(format!("shard-{index}"))
                .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        }
        Ok(RealTasks { shards })
    }
}

impl Tasks for RealTasks {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn spawn_on(&self, shard: usize, name: &'static str, task: TaskFactory) {
        // The future is made on the shard, where its sockets and timers belong.
        self.shards[shard % self.shards.len()].spawn(async move {
            // Connections end alone.
            let _guard = (name != CONNECTION).then_some(AbortOnPanic(name));
            task().await;
        });
    }

    fn thread(&self, name: &'static str, task: TaskFactory) {
        let guard = AbortOnPanic(name);
        let body = move || match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime.block_on(async move {
                let _guard = guard;
                task().await;
            }),
            Err(error) => {
                tracing::error!(name, %error, "a runtime could not be made");
                std::process::abort();
            }
        };
        if let Err(error) = std::thread::Builder::new().name(name.to_owned()).spawn(body) {
            tracing::error!(name, %error, "a thread could not be started");
            std::process::abort();
        }
    }

    fn abort(&self) -> ! {
        std::process::abort();
    }

    fn syncer(&self) -> Box<dyn Syncer> {
        Box::new(SyncPool::new(SYNC_THREADS))
    }

    fn parallel(&self, jobs: Vec<Box<dyn FnOnce() + Send>>) {
        let workers = cores().max(WORKERS_MIN).min(jobs.len());
        let queue = parking_lot::Mutex::new(jobs.into_iter());
        let work = || {
            while let Some(job) = { queue.lock().next() } {
                job();
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(work);
            }
            work();
        });
    }
}

struct RealNet;

impl Net for RealNet {
    fn listen(&self, host: &str, port: u16) -> io::Result<Box<dyn Listener>> {
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        let mut last = io::Error::other("the host has no address");
        for addr in (host, port).to_socket_addrs()? {
            match bind(addr) {
                Ok(listener) => return Ok(Box::new(listener)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn bind(addr: SocketAddr) -> io::Result<RealListener> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    let inner: std::net::TcpListener = socket.into();
    let addr = inner.local_addr()?;
    Ok(RealListener { state: ListenerState::Bound(Some(inner)), addr })
}

/// Bound at once, tied to a shard's reactor at the first poll.
struct RealListener {
    state: ListenerState,
    addr: SocketAddr,
}

enum ListenerState {
    Bound(Option<std::net::TcpListener>),
    Polled(TcpListener),
}

impl Listener for RealListener {
    fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Box<dyn Accepted>>> {
        if let ListenerState::Bound(inner) = &mut self.state {
            let inner = inner.take().ok_or_else(|| io::Error::other("the listener is gone"))?;
            self.state = ListenerState::Polled(TcpListener::from_std(inner)?);
        }
        let ListenerState::Polled(listener) = &self.state else {
            return Poll::Ready(Err(io::Error::other("the listener is gone")));
        };
        match listener.poll_accept(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok((stream, peer))) => {
                let stream = stream.into_std()?;
                Poll::Ready(Ok(Box::new(RealAccepted { stream, peer })))
            }
        }
    }
}

struct RealAccepted {
    stream: std::net::TcpStream,
    peer: SocketAddr,
}

impl Accepted for RealAccepted {
    fn open(self: Box<Self>) -> io::Result<Box<dyn Conn>> {
        self.stream.set_nodelay(true)?;
        let local = self.stream.local_addr()?;
        socket2::SockRef::from(&self.stream).set_keepalive(true)?;
        let stream = TcpStream::from_std(self.stream)?;
        Ok(Box::new(RealConn { stream, peer: self.peer, local }))
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }
}

struct RealConn {
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
}

impl Conn for RealConn {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_read_ready(cx)
    }

    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(buf)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_write_ready(cx)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.try_write(bytes)
    }

    fn try_send_file(&self, file: &dyn File, position: u64, len: usize) -> io::Result<usize> {
        let Some(fd) = file.raw_fd() else {
            return Err(io::Error::other("not a file of this machine"));
        };
        self.stream.try_io(tokio::io::Interest::WRITABLE, || {
            // SAFETY: the file is borrowed for the whole call, so its descriptor stays open.
            let from = unsafe { BorrowedFd::borrow_raw(fd) };
            // SAFETY: as above for the stream.
            let to = unsafe { BorrowedFd::borrow_raw(self.stream.as_raw_fd()) };
            let mut offset = position;
            Ok(rustix::fs::sendfile(to, from, Some(&mut offset), len)?)
        })
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

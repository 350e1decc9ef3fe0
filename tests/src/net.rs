//! A network in memory: addresses, streams with latency, and cuts.
//!
//! Owns the order and the time at which bytes arrive. A stream keeps its order, as TCP does; bytes
//! under way when it is cut are lost. Who cuts what, when, is `faults.rs`.

mod pipe;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use broker::env::{Accepted, Conn, Listener, Net};
use parking_lot::Mutex;
use storage::disk::File;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::trace::Trace;
use pipe::Pipe;

/// The address of a node.
pub fn node_ip(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, u8::try_from(node + 1).unwrap_or(u8::MAX)))
}

/// How slow streams are, in virtual milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    pub low_ms: u64,
    pub high_ms: u64,
}

#[derive(Default)]
struct State {
    listeners: BTreeMap<SocketAddr, Arc<Mutex<Backlog>>>,
    /// Streams that were not dropped at both ends when last looked at.
    streams: BTreeMap<u64, Stream>,
    next_stream: u64,
}

struct Stream {
    server: IpAddr,
    to_server: Pipe,
    to_client: Pipe,
}

#[derive(Default)]
struct Backlog {
    waiting: Vec<SimConn>,
    waker: Option<Waker>,
}

/// The network of a run. Clones share it.
#[derive(Clone)]
pub struct Network {
    state: Arc<Mutex<State>>,
    dice: Arc<Dice>,
    latency: Latency,
    trace: Trace,
    stalled_until: Arc<Mutex<Instant>>,
}

impl Network {
    pub fn new(seed: u64, latency: Latency, trace: Trace) -> Network {
        let dice = Arc::new(Dice::of(seed, "net", 0));
        let stalled_until = Arc::new(Mutex::new(Instant::now()));
        Network { state: Arc::default(), dice, latency, trace, stalled_until }
    }

    /// What is sent from now on arrives when so much time has passed, and not before.
    pub fn stall(&self, ms: u64) {
        *self.stalled_until.lock() = Instant::now() + Duration::from_millis(ms);
    }

    /// The network as one node sees it.
    pub fn at(&self, ip: IpAddr) -> Arc<dyn Net> {
        Arc::new(NodeNet { network: self.clone(), ip })
    }

    /// Connects a client.
    ///
    /// # Errors
    /// `ConnectionRefused` when nobody listens there.
    pub fn connect(&self, from: IpAddr, to: SocketAddr) -> io::Result<SimConn> {
        let mut state = self.state.lock();
        let backlog = state.listeners.get(&to).cloned();
        let backlog = backlog.ok_or(io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let id = state.next_stream;
        state.next_stream += 1;
        let peer = SocketAddr::new(from, 40_000 + (id % 20_000) as u16);
        let pipe = |what| Pipe::new(id, what, self);
        let (to_server, to_client) = (pipe("to server"), pipe("to client"));
        let client =
            SimConn { input: to_client.clone(), output: to_server.clone(), local: peer, peer: to };
        let server =
            SimConn { input: to_server.clone(), output: to_client.clone(), local: to, peer };
        state.streams.retain(|_, stream| !stream.to_server.is_over());
        state.streams.insert(id, Stream { server: to.ip(), to_server, to_client });
        self.trace.number("connect", id, 0);
        let mut backlog = backlog.lock();
        backlog.waiting.push(server);
        backlog.waker.take().into_iter().for_each(Waker::wake);
        Ok(client)
    }

    /// Cuts one stream, chosen by `choice`; false when there is none.
    pub fn cut_one(&self, choice: u64) -> bool {
        let state = self.state.lock();
        let open: Vec<_> =
            state.streams.iter().filter(|(_, stream)| !stream.to_server.is_over()).collect();
        let Some((id, stream)) = open.get((choice % open.len().max(1) as u64) as usize) else {
            return false;
        };
        self.trace.number("cut", **id, 0);
        stream.to_server.cut();
        stream.to_client.cut();
        true
    }

    /// The node at this address is gone: its streams are reset, its ports are free.
    pub fn reset_node(&self, ip: IpAddr) {
        let mut state = self.state.lock();
        state.listeners.retain(|address, _| address.ip() != ip);
        for stream in state.streams.values().filter(|stream| stream.server == ip) {
            stream.to_server.cut();
            stream.to_client.cut();
        }
        state.streams.retain(|_, stream| stream.server != ip);
    }
}

struct NodeNet {
    network: Network,
    ip: IpAddr,
}

impl Net for NodeNet {
    fn listen(&self, _host: &str, port: u16) -> io::Result<Box<dyn Listener>> {
        let mut state = self.network.state.lock();
        let address = SocketAddr::new(self.ip, port);
        if state.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = Arc::<Mutex<Backlog>>::default();
        state.listeners.insert(address, Arc::clone(&backlog));
        Ok(Box::new(SimListener { network: self.network.clone(), address, backlog }))
    }
}

struct SimListener {
    network: Network,
    address: SocketAddr,
    backlog: Arc<Mutex<Backlog>>,
}

impl Listener for SimListener {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Box<dyn Accepted>>> {
        let mut backlog = self.backlog.lock();
        if backlog.waiting.is_empty() {
            backlog.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(Box::new(SimAccepted(backlog.waiting.remove(0)))))
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let mut state = self.network.state.lock();
        let ours = |known: &Arc<Mutex<Backlog>>| Arc::ptr_eq(known, &self.backlog);
        // A restarted node may listen there already.
        if state.listeners.get(&self.address).is_some_and(ours) {
            state.listeners.remove(&self.address);
        }
    }
}

struct SimAccepted(SimConn);

impl Accepted for SimAccepted {
    fn open(self: Box<Self>) -> io::Result<Box<dyn Conn>> {
        Ok(Box::new(self.0))
    }

    fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }
}

/// One end of a stream.
pub struct SimConn {
    input: Pipe,
    output: Pipe,
    local: SocketAddr,
    peer: SocketAddr,
}

impl Drop for SimConn {
    fn drop(&mut self) {
        self.output.finish();
        self.input.refuse();
    }
}

impl Conn for SimConn {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.poll_readable(cx)
    }

    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.input.read(buf)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_writable(cx)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn try_send_file(&self, file: &dyn File, position: u64, len: usize) -> io::Result<usize> {
        let mut bytes = vec![0; len.min(self.output.room()?)];
        let read = file.read_at(&mut bytes, position)?;
        if read == 0 { Ok(0) } else { self.output.write(&bytes[..read]) }
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

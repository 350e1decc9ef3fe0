//! Accepting connections and handing them to the shards, one after another.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::connection::{self, Closed};
use super::{ConnInfo, connection::serve};
use crate::env::{Accepted, Listener};
use crate::node::Node;

/// How long accepting pauses when the machine refuses (out of descriptors, for example).
const PAUSE_MS: i64 = 50;

/// One listener of the configuration, bound.
pub struct Bound {
    pub listener: Box<dyn Listener>,
    pub name: Arc<str>,
    pub advertised: Option<(Arc<str>, u16)>,
}

/// Counts connections against `max.connections` and `max.connections.per.ip`.
#[derive(Default)]
pub struct Connections {
    total: AtomicUsize,
    by_ip: Mutex<BTreeMap<IpAddr, usize>>,
}

impl Connections {
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes a place, unless the limits are reached.
    fn enter(&self, ip: IpAddr, total_max: usize, per_ip_max: usize) -> bool {
        let mut by_ip = self.by_ip.lock();
        let here = by_ip.get(&ip).copied().unwrap_or(0);
        if self.total() >= total_max || here >= per_ip_max {
            return false;
        }
        by_ip.insert(ip, here + 1);
        self.total.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn leave(&self, ip: IpAddr) {
        let mut by_ip = self.by_ip.lock();
        if let Some(here) = by_ip.get_mut(&ip) {
            *here -= 1;
            if *here == 0 {
                by_ip.remove(&ip);
            }
        }
        self.total.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts until the node stops.
pub async fn accept(mut bound: Bound, node: Arc<Node>) {
    let mut next_shard = 0;
    let mut stop = node.stopping();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stopping| *stopping) => return,
            accepted = poll_fn(|cx| bound.listener.poll_accept(cx)) => accepted,
        };
        match accepted {
            Ok(accepted) => {
                hand_over(accepted, &bound, &node, next_shard);
                next_shard += 1;
            }
            Err(error) => {
                tracing::warn!(listener = %bound.name, %error, "a connection was not accepted");
                let clock = &node.env.clock;
                clock.sleep_until(clock.mono_ms() + PAUSE_MS).await;
            }
        }
    }
}

fn hand_over(accepted: Box<dyn Accepted>, bound: &Bound, node: &Arc<Node>, shard: usize) {
    let ip = accepted.peer_addr().ip();
    let (total_max, per_ip_max) = node.connection_limits();
    if !node.connections.enter(ip, total_max, per_ip_max) {
        tracing::debug!(%ip, "too many connections: dropped");
        return;
    }
    let node = Arc::clone(node);
    let (name, advertised) = (Arc::clone(&bound.name), bound.advertised.clone());
    let tasks = Arc::clone(&node.env.tasks);
    let task = move || {
        let opened = accepted.open();
        Box::pin(async move {
            match opened {
                Ok(conn) => {
                    let info = ConnInfo {
                        peer: conn.peer_addr(),
                        local: conn.local_addr(),
                        listener: name,
                        advertised,
                    };
                    run(conn, Arc::new(info), &node).await;
                }
                Err(error) => tracing::debug!(%ip, %error, "a connection was gone at once"),
            }
            node.connections.leave(ip);
        }) as crate::env::BoxFuture<()>
    };
    tasks.spawn_on(shard, "connection", Box::new(task));
}

async fn run(conn: Box<dyn crate::env::Conn>, info: Arc<ConnInfo>, node: &Arc<Node>) {
    let peer = info.peer;
    let mut stop = node.stopping();
    let ended = tokio::select! {
        biased;
        _ = stop.wait_for(|stopping| *stopping) => Ok(()),
        ended = serve(conn, info, Arc::clone(node)) => ended,
    };
    match ended {
        Ok(()) => {}
        Err(Closed::Request(reason)) => tracing::info!(%peer, reason, "connection closed"),
        Err(error @ (Closed::Frame(_) | Closed::Idle)) => {
            tracing::info!(%peer, %error, "connection closed");
        }
        Err(connection::Closed::Io(error)) => tracing::debug!(%peer, %error, "connection lost"),
    }
}

//! Accepting connections and handing them to the shards, one after another.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::connection::{self, Closed};
use super::{ConnInfo, connection::serve};
use crate::env::{Accepted, CONNECTION, Listener};
use crate::loggers::Seldom;
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

/// A connection's place among the counted ones, given back whatever becomes of it.
struct Place {
    node: Arc<Node>,
    ip: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.node.connections.leave(self.ip);
    }
}

/// Accepts until the node stops.
pub async fn accept(mut bound: Bound, node: Arc<Node>) {
    let mut next_shard = 0;
    let (mut failures, mut refusals) = (Seldom::default(), Seldom::default());
    loop {
        let accepted = tokio::select! {
            biased;
            () = node.stop.asked() => return,
            accepted = poll_fn(|cx| bound.listener.poll_accept(cx)) => accepted,
        };
        match accepted {
            Ok(accepted) => {
                hand_over(accepted, &bound, &node, next_shard, &mut refusals);
                next_shard += 1;
            }
            Err(error) => {
                let clock = &node.env.clock;
                if let Some(more) = failures.say(clock.mono_ms()) {
                    let listener = &bound.name;
                    tracing::warn!(%listener, %error, more, "a connection was not accepted");
                }
                clock.sleep_until(clock.mono_ms() + PAUSE_MS).await;
            }
        }
    }
}

fn hand_over(
    accepted: Box<dyn Accepted>,
    bound: &Bound,
    node: &Arc<Node>,
    shard: usize,
    refusals: &mut Seldom,
) {
    let ip = accepted.peer_addr().ip();
    let (total_max, per_ip_max) = node.connection_limits();
    if !node.connections.enter(ip, total_max, per_ip_max) {
        if let Some(more) = refusals.say(node.env.clock.mono_ms()) {
            tracing::warn!(%ip, more, "too many connections: one was dropped");
        }
        return;
    }
    let place = Place { node: Arc::clone(node), ip };
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
                    run(conn, Arc::new(info), &place.node).await;
                }
                Err(error) => tracing::debug!(%ip, %error, "a connection was gone at once"),
            }
            drop(place);
        }) as crate::env::BoxFuture<()>
    };
    tasks.spawn_on(shard, CONNECTION, Box::new(task));
}

async fn run(conn: Box<dyn crate::env::Conn>, info: Arc<ConnInfo>, node: &Arc<Node>) {
    let peer = info.peer;
    let ended = tokio::select! {
        biased;
        () = node.stop.asked() => Ok(()),
        ended = serve(conn, info, Arc::clone(node)) => ended,
    };
    match ended {
        Ok(()) => {}
        Err(Closed::Request(reason)) => tracing::info!(%peer, reason, "connection closed"),
        Err(error @ Closed::Frame(_)) => tracing::info!(%peer, %error, "connection closed"),
        Err(error @ Closed::Idle) => tracing::debug!(%peer, %error, "connection closed"),
        Err(connection::Closed::Io(error)) => tracing::debug!(%peer, %error, "connection lost"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::Connections;

    #[test]
    fn limits_hold_for_all_and_for_each_address() {
        let ip = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let connections = Connections::default();
        assert!(connections.enter(ip(1), 3, 2));
        assert!(connections.enter(ip(1), 3, 2));
        assert!(!connections.enter(ip(1), 3, 2));
        assert!(connections.enter(ip(2), 3, 2));
        assert!(!connections.enter(ip(3), 3, 2));
        connections.leave(ip(1));
        assert!(connections.enter(ip(3), 3, 2));
        assert_eq!(connections.total(), 3);
    }
}

//! Sockets: accepting, reading frames, answering in order, pushing back.
//!
//! What a request means is `apis/`; this module moves bytes.

pub mod buffer;
pub mod connection;
pub mod listener;
pub mod out;

use std::net::SocketAddr;
use std::sync::Arc;

/// What is known of a connection.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    pub peer: SocketAddr,
    /// The address that the client used to reach us.
    pub local: SocketAddr,
    /// The name of the listener it came through.
    pub listener: Arc<str>,
    /// The host and port to hand out, when the listener advertises one.
    pub advertised: Option<(Arc<str>, u16)>,
}

impl ConnInfo {
    /// Where a client that came this way finds this node: what is advertised, else what it used.
    pub fn endpoint(&self) -> (String, u16) {
        match &self.advertised {
            Some((host, port)) => (host.to_string(), *port),
            None => (self.local.ip().to_canonical().to_string(), self.local.port()),
        }
    }
}

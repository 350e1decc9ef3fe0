//! `Env` connections as the streams that the HTTP server wants: few at a time, and none that stands
//! still for long.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::env::{BoxFuture, Clock, Conn, Listener};

/// So many connections at a time; more are dropped. A dashboard needs one.
const CONNECTIONS_MAX: usize = 64;
/// A connection that moved no byte for so long is closed.
const IDLE_MS: i64 = 60_000;
/// How long accepting pauses when the machine refuses (out of descriptors, for example).
const PAUSE_MS: i64 = 100;

pub struct HttpListener {
    inner: Box<dyn Listener>,
    clock: Arc<dyn Clock>,
    /// Connections that live.
    open: Arc<AtomicUsize>,
}

impl HttpListener {
    pub fn new(inner: Box<dyn Listener>, clock: Arc<dyn Clock>) -> HttpListener {
        HttpListener { inner, clock, open: Arc::default() }
    }
}

impl axum::serve::Listener for HttpListener {
    type Io = HttpConn;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (HttpConn, SocketAddr) {
        loop {
            match poll_fn(|cx| self.inner.poll_accept(cx)).await.and_then(|new| new.open()) {
                Ok(_) if self.open.load(Ordering::Relaxed) >= CONNECTIONS_MAX => {
                    tracing::debug!("too many http connections: one was dropped");
                }
                Ok(conn) => {
                    let peer = conn.peer_addr();
                    self.open.fetch_add(1, Ordering::Relaxed);
                    let (open, clock) = (Arc::clone(&self.open), Arc::clone(&self.clock));
                    let idle = Idle { at_ms: clock.mono_ms() + IDLE_MS, timer: None, clock };
                    return (HttpConn { conn, idle, open }, peer);
                }
                Err(error) => {
                    tracing::debug!(%error, "an http connection was not accepted");
                    self.clock.sleep_until(self.clock.mono_ms() + PAUSE_MS).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.inner.local_addr())
    }
}

/// When a connection has stood still for too long.
struct Idle {
    clock: Arc<dyn Clock>,
    at_ms: i64,
    timer: Option<(i64, BoxFuture<()>)>,
}

impl Idle {
    fn moved(&mut self) {
        self.at_ms = self.clock.mono_ms() + IDLE_MS;
    }

    /// Ready with an error when the time is up.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.clock.mono_ms() < self.at_ms {
            let (_, timer) =
                self.timer.get_or_insert_with(|| (self.at_ms, self.clock.sleep_until(self.at_ms)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            // Bytes have moved since it was set, maybe.
            self.timer = None;
        }
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }
}

pub struct HttpConn {
    conn: Box<dyn Conn>,
    idle: Idle,
    open: Arc<AtomicUsize>,
}

impl Drop for HttpConn {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncRead for HttpConn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.conn.poll_readable(cx) {
                Poll::Pending => return self.idle.poll(cx).map(Err),
                Poll::Ready(ready) => ready?,
            }
            match self.conn.try_read(buf.initialize_unfilled()) {
                Ok(len) => {
                    buf.advance(len);
                    self.idle.moved();
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for HttpConn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.conn.poll_writable(cx) {
                Poll::Pending => return self.idle.poll(cx).map(Err),
                Poll::Ready(ready) => ready?,
            }
            match self.conn.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => {
                    self.idle.moved();
                    return Poll::Ready(other);
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

//! `Env` connections as the streams that the HTTP server wants.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::env::{Conn, Listener};

pub struct HttpListener {
    inner: Box<dyn Listener>,
}

impl HttpListener {
    pub fn new(inner: Box<dyn Listener>) -> HttpListener {
        HttpListener { inner }
    }
}

impl axum::serve::Listener for HttpListener {
    type Io = HttpConn;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (HttpConn, SocketAddr) {
        loop {
            match poll_fn(|cx| self.inner.poll_accept(cx)).await.and_then(|new| new.open()) {
                Ok(conn) => {
                    let peer = conn.peer_addr();
                    return (HttpConn { conn }, peer);
                }
                Err(error) => tracing::debug!(%error, "an http connection was not accepted"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.inner.local_addr())
    }
}

pub struct HttpConn {
    conn: Box<dyn Conn>,
}

impl AsyncRead for HttpConn {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.conn.poll_readable(cx))?;
            match self.conn.try_read(buf.initialize_unfilled()) {
                Ok(len) => {
                    buf.advance(len);
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
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.conn.poll_writable(cx))?;
            match self.conn.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
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

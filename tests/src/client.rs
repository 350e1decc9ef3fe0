//! A client of the protocol over the simulated network: one connection, one request at a time.
//!
//! Owns frames, correlation and timeouts. After any failure the connection is gone, and the next
//! call makes another. What is asked, and what an answer means, is the workload's.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use broker::env::Conn;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::time::timeout;

use crate::net::{Network, SimConn};

/// How long a call waits, in virtual time.
const CALL_MS: u64 = 4_000;

/// No answer of a run is larger.
const FRAME_BYTES_MAX: usize = 16 << 20;

pub struct Client {
    network: Network,
    ip: IpAddr,
    server: SocketAddr,
    conn: Option<SimConn>,
    correlation: i32,
}

impl Client {
    pub fn new(network: Network, ip: IpAddr, server: SocketAddr) -> Client {
        Client { network, ip, server, conn: None, correlation: 0 }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// The connection failed or the time was up: the request may have been carried out or not.
    pub async fn call<R: Request>(
        &mut self,
        version: i16,
        request: &R,
    ) -> anyhow::Result<R::Response> {
        let conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.network.connect(self.ip, self.server)?,
        };
        self.correlation += 1;
        let frame = encode(self.correlation, version, request)?;
        let exchange = async {
            write_all(&conn, &frame).await?;
            read_frame(&conn).await
        };
        let answer = timeout(Duration::from_millis(CALL_MS), exchange).await??;
        let response = decode::<R>(self.correlation, version, answer)?;
        self.conn = Some(conn);
        Ok(response)
    }

    /// Closes the connection.
    pub fn hang_up(&mut self) {
        self.conn = None;
    }
}

fn encode<R: Request>(correlation: i32, version: i16, request: &R) -> anyhow::Result<BytesMut> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation)
        .with_client_id(Some(StrBytes::from_static_str("simulated")));
    let mut body = BytesMut::new();
    header.encode(&mut body, R::header_version(version))?;
    request.encode(&mut body, version)?;
    let mut frame = BytesMut::with_capacity(4 + body.len());
    frame.put_u32(u32::try_from(body.len())?);
    frame.extend_from_slice(&body);
    Ok(frame)
}

fn decode<R: Request>(
    correlation: i32,
    version: i16,
    mut answer: Bytes,
) -> anyhow::Result<R::Response> {
    let header = ResponseHeader::decode(&mut answer, R::Response::header_version(version))?;
    if header.correlation_id != correlation {
        bail!("an answer to {} where {correlation} was asked", header.correlation_id);
    }
    let response = R::Response::decode(&mut answer, version)
        .with_context(|| format!("the answer to API {} version {version}", R::KEY))?;
    if answer.has_remaining() {
        bail!("{} bytes behind the answer to API {}", answer.remaining(), R::KEY);
    }
    Ok(response)
}

async fn write_all(conn: &SimConn, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match conn.try_write(rest) {
            Ok(len) => rest = &rest[len..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_fn(|cx| conn.poll_writable(cx)).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn read_frame(conn: &SimConn) -> io::Result<Bytes> {
    let mut size = [0; 4];
    read_exact(conn, &mut size).await?;
    let len = usize::try_from(u32::from_be_bytes(size)).unwrap_or(usize::MAX);
    if len > FRAME_BYTES_MAX {
        return Err(io::Error::other(format!("an answer of {len} bytes")));
    }
    let mut frame = vec![0; len];
    read_exact(conn, &mut frame).await?;
    Ok(Bytes::from(frame))
}

async fn read_exact(conn: &SimConn, buf: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buf.len() {
        poll_fn(|cx| conn.poll_readable(cx)).await?;
        match conn.try_read(&mut buf[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => filled += len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! One connection: frames out and in, with time limits, and what went wrong as a value.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::codec::{self, Header};
use super::table::{self, Api};

/// An answer that takes longer does not come.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const FRAME_MAX: usize = 64 << 20;

/// How an exchange can fail; each is an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Closed,
    Late,
    Undecodable(String),
}

impl Failure {
    pub fn value(&self) -> Value {
        match self {
            Failure::Closed => json!("CLOSED"),
            Failure::Late => json!("NO ANSWER"),
            Failure::Undecodable(why) => json!(format!("UNDECODABLE {why}")),
        }
    }
}

/// A connection that opens itself when it is first used, and again after it broke.
pub struct Conn {
    address: String,
    client_id: Option<String>,
    socket: Option<TcpStream>,
    correlation: i32,
    /// Requests without an answer yet, oldest first.
    open: Vec<(i32, &'static Api, i16)>,
    pub within: Duration,
    header_tags: Value,
}

impl Conn {
    pub fn new(address: &str, client_id: Option<&str>) -> Conn {
        Conn {
            address: address.to_owned(),
            client_id: client_id.map(str::to_owned),
            socket: None,
            correlation: 0,
            open: Vec::new(),
            within: ANSWER_WITHIN,
            header_tags: Value::Null,
        }
    }

    /// From now on headers carry these raw tagged fields.
    pub fn with_header_tags(mut self, tags: Value) -> Conn {
        self.header_tags = tags;
        self
    }

    /// From now on answers are waited for that long.
    pub fn patient(mut self, within_ms: u64) -> Conn {
        self.within = Duration::from_millis(within_ms);
        self
    }

    /// A request and its answer, or what happened instead.
    pub fn ask(&mut self, api: &str, version: i16, body: &Value) -> Value {
        self.try_ask(api, version, body).unwrap_or_else(|failure| failure.value())
    }

    pub fn try_ask(&mut self, api: &str, version: i16, body: &Value) -> Result<Value, Failure> {
        self.start(api, version, body)?;
        self.finish()
    }

    /// Sends a request and does not wait.
    pub fn start(&mut self, api: &str, version: i16, body: &Value) -> Result<(), Failure> {
        let api = table::api(api);
        self.correlation += 1;
        let header = Header {
            correlation: self.correlation,
            client_id: self.client_id.as_deref(),
            tags: &self.header_tags,
        };
        let frame = codec::encode_request(api, version, &header, body);
        self.send_frame(&frame)?;
        self.open.push((self.correlation, api, version));
        Ok(())
    }

    /// The same for a request that is not answered.
    pub fn start_silent(&mut self, api: &str, version: i16, body: &Value) -> Result<(), Failure> {
        self.start(api, version, body)?;
        self.open.pop();
        Ok(())
    }

    /// The answer to the oldest request that is open.
    pub fn finish(&mut self) -> Result<Value, Failure> {
        if self.open.is_empty() {
            return Err(Failure::Closed);
        }
        let (correlation, api, version) = self.open.remove(0);
        let frame = self.receive()?;
        let decoded = match codec::decode_response(api, version, &frame) {
            Ok((got, body)) if got == correlation => Ok(body),
            Ok((got, _)) => Err(format!("correlation id {got} instead of {correlation}")),
            Err(bad) => Err(bad.0),
        };
        decoded.map_err(|why| {
            self.close();
            Failure::Undecodable(why)
        })
    }

    /// Bytes with their length before them.
    pub fn send_frame(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut frame = (bytes.len() as i32).to_be_bytes().to_vec();
        frame.extend_from_slice(bytes);
        self.send_raw(&frame)
    }

    /// Bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = self.socket().and_then(|socket| socket.write_all(bytes));
        sent.map_err(|error| self.failed(&error))
    }

    /// Sends a frame and gives the answer's bytes behind the correlation id, or what happened.
    pub fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        self.send_frame(bytes)?;
        self.receive()
    }

    /// The next frame without its length.
    pub fn receive(&mut self) -> Result<Vec<u8>, Failure> {
        let until = Instant::now() + self.within;
        let size = i32::from_be_bytes(self.take(4, until)?.try_into().expect("four bytes"));
        match usize::try_from(size) {
            Ok(size) if size <= FRAME_MAX => self.take(size, until),
            _ => {
                self.close();
                Err(Failure::Undecodable(format!("a frame of {size} bytes")))
            }
        }
    }

    /// Whether it closes, sends something or stays silent for so long.
    pub fn watch(&mut self, within_ms: u64) -> Value {
        let Some(socket) = &mut self.socket else { return json!("closed") };
        let within = Duration::from_millis(within_ms);
        socket.set_read_timeout(Some(within)).expect("a time limit above zero");
        match socket.peek(&mut [0]) {
            Ok(0) => json!("closed"),
            Ok(_) => json!("data"),
            Err(error) if is_timeout(&error) => json!("open"),
            Err(_) => json!("closed"),
        }
    }

    pub fn close(&mut self) {
        self.socket = None;
        self.open.clear();
    }

    fn socket(&mut self) -> std::io::Result<&mut TcpStream> {
        if self.socket.is_none() {
            let socket = TcpStream::connect(&self.address)?;
            socket.set_nodelay(true)?;
            socket.set_write_timeout(Some(ANSWER_WITHIN))?;
            self.socket = Some(socket);
        }
        Ok(self.socket.as_mut().expect("opened above"))
    }

    fn take(&mut self, count: usize, until: Instant) -> Result<Vec<u8>, Failure> {
        let Some(socket) = &mut self.socket else { return Err(Failure::Closed) };
        let mut out = vec![0; count];
        let mut filled = 0;
        while filled < count {
            let left = until.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            let read = socket.set_read_timeout(Some(left));
            match read.and_then(|()| socket.read(&mut out[filled..])) {
                Ok(0) => {
                    self.close();
                    return Err(Failure::Closed);
                }
                Ok(more) => filled += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(out)
    }

    fn failed(&mut self, error: &std::io::Error) -> Failure {
        self.close();
        if is_timeout(error) { Failure::Late } else { Failure::Closed }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

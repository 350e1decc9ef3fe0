//! The built binary on a port of its own, and a connection that sends any request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{
    CreateTopicsRequest, FindCoordinatorRequest, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tempfile::TempDir;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

/// A broker; killed when dropped.
pub struct Node {
    process: Child,
    address: String,
    home: TempDir,
}

impl Node {
    pub fn start() -> Node {
        let home = tempfile::tempdir().expect("a directory");
        let (process, address) = spawn(home.path());
        Node { process, address, home }
    }

    /// SIGKILL, and a new process on the same data.
    pub fn kill_and_start(&mut self) {
        self.kill();
        (self.process, self.address) = spawn(self.home.path());
    }

    pub fn connect(&self) -> Client {
        let socket = TcpStream::connect(&self.address).expect("connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        Client { socket, correlation_id: 0 }
    }

    /// A file of its log directory, empty if it is not there.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join("data").join(name)).unwrap_or_default()
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(home: &Path) -> (Child, String) {
    let data = format!("log.dirs={}", home.join("data").display());
    let settings = [
        "listeners=PLAINTEXT://127.0.0.1:0",
        "http.listen=",
        "group.initial.rebalance.delay.ms=0",
        "offsets.topic.num.partitions=1",
        &data,
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_gracchus"));
    command.args(settings.iter().flat_map(|setting| ["--override", setting]));
    command.current_dir(home).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("starts");
    let stderr = process.stderr.take().expect("its log");
    let mut lines = BufReader::new(stderr).lines();
    let mut log = String::new();
    let address = loop {
        let Some(Ok(line)) = lines.next() else { panic!("it ended:\n{log}") };
        match line.split_once("listening listener=PLAINTEXT address=") {
            Some((_, address)) => break address.trim().to_owned(),
            None => log.extend([line.as_str(), "\n"]),
        }
    };
    // Whoever logs must be read.
    std::thread::spawn(move || lines.for_each(drop));
    (process, address)
}

/// One connection.
pub struct Client {
    socket: TcpStream,
    correlation_id: i32,
}

impl Client {
    /// Sends one request and reads its answer, which must be read to its end.
    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response
    where
        R::Response: HeaderVersion,
    {
        self.correlation_id += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(text("probe")));
        let mut frame = BytesMut::new();
        header.encode(&mut frame, R::header_version(version)).expect("a header");
        request.encode(&mut frame, version).expect("a request");
        let mut whole = BytesMut::new();
        whole.put_u32(u32::try_from(frame.len()).expect("a size"));
        whole.extend_from_slice(&frame);
        self.socket.write_all(&whole).expect("sent");
        let mut answer = self.frame();
        let header = R::Response::header_version(version);
        let header = ResponseHeader::decode(&mut answer, header).expect("a header");
        assert_eq!(header.correlation_id, self.correlation_id);
        let response = R::Response::decode(&mut answer, version).expect("an answer");
        assert!(!answer.has_remaining(), "bytes are left over");
        response
    }

    fn frame(&mut self) -> Bytes {
        let mut size = [0; 4];
        self.socket.read_exact(&mut size).expect("an answer");
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        self.socket.read_exact(&mut frame).expect("the whole answer");
        Bytes::from(frame)
    }

    /// A new topic; its id.
    pub fn topic(&mut self, topic: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
        let configs = configs.iter().map(|(key, value)| {
            CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
        });
        let new = CreatableTopic::default()
            .with_name(name(topic))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default().with_topics(vec![new]).with_timeout_ms(10_000);
        let made = self.ask(7, &request).topics.remove(0);
        assert_eq!(made.error_code, 0, "{topic}");
        made.topic_id
    }

    /// Waits until groups are served.
    pub fn coordinator(&mut self) {
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
        self.until("a coordinator", |client| {
            client.ask(4, &request).coordinators[0].error_code == 0
        });
    }

    /// Asks until the answer is yes.
    pub fn until(&mut self, what: &str, mut good: impl FnMut(&mut Client) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !good(self) {
            assert!(Instant::now() < deadline, "no {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn name(name: &str) -> TopicName {
    TopicName(text(name))
}

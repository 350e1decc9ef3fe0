//! An Apache Kafka of a test's own, from the directory of jars that `oracle.sh` leaves in
//! KAFKA_JARS: one node that can be stopped and started, and Kafka's tools.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::broker::{Warden, free_ports};

const READY_WITHIN: Duration = Duration::from_secs(300);
const STOP_WITHIN: Duration = Duration::from_secs(60);

const LOG4J: &str = "<Configuration><Appenders><Console name=\"out\" target=\"SYSTEM_ERR\">\
    <PatternLayout pattern=\"%d %p %c{1} %m%n\"/></Console></Appenders>\
    <Loggers><Root level=\"WARN\"><AppenderRef ref=\"out\"/></Root></Loggers></Configuration>";

/// Where the jars are, if there are some.
pub fn jars() -> Option<PathBuf> {
    std::env::var_os("KAFKA_JARS").map(PathBuf::from)
}

/// Runs one of Kafka's classes; what it printed, panics when it fails.
pub fn tool(jars: &Path, class: &str, arguments: &[&str]) -> String {
    let done = java(jars, "512M").arg(class).args(arguments).output().expect("no java");
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{class} failed\n{out}\n{err}");
    out
}

fn java(jars: &Path, heap: &str) -> Command {
    let mut command = Command::new("java");
    command.arg(format!("-Xmx{heap}")).arg("-cp").arg(format!("{}/*", jars.display()));
    command
}

/// One node with a directory of its own; it ends when this is dropped.
pub struct Kafka {
    pub address: String,
    jars: PathBuf,
    process: Option<Child>,
    warden: Warden,
    home: tempfile::TempDir,
}

impl Kafka {
    /// A node that is formatted and does not run yet.
    pub fn new(jars: &Path, settings: &[(&str, &str)]) -> Kafka {
        let home = tempfile::Builder::new().prefix("gracchus-kafka-").tempdir().expect("no /tmp");
        let [port, controller, _] = free_ports();
        let address = format!("127.0.0.1:{port}");
        let mut text = format!(
            "process.roles=broker,controller\ncontroller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}\n\
             controller.quorum.bootstrap.servers=127.0.0.1:{controller}\nlog.dirs={}\n",
            home.path().join("data").display(),
        );
        settings.iter().for_each(|(key, value)| text.push_str(&format!("{key}={value}\n")));
        fs::write(home.path().join("server.properties"), text).expect("a settings file");
        fs::write(home.path().join("log4j2.xml"), LOG4J).expect("a logging file");
        let file = home.path().join("server.properties").display().to_string();
        let format = ["format", "--standalone", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", &file];
        tool(jars, "kafka.tools.StorageTool", &format);
        let warden = Warden::new(home.path());
        Kafka { address, jars: jars.to_owned(), process: None, warden, home }
    }

    /// The directory of `log.dirs`.
    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Starts it and waits until its port is open.
    pub fn start(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let log = self.home.path().join("kafka.log");
        let log = File::options().create(true).append(true).open(log).expect("a log file");
        let mut command = java(&self.jars, "1G");
        let logging = self.home.path().join("log4j2.xml");
        command.arg(format!("-Dlog4j2.configurationFile={}", logging.display()));
        command.arg("kafka.Kafka").arg(self.home.path().join("server.properties"));
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a handle")).stderr(log);
        let process = command.process_group(0).spawn().expect("no java");
        self.warden.guard(Some(process.id()));
        self.process = Some(process);
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect(&self.address).is_err() {
            let ended = self.process.as_mut().expect("just started").try_wait();
            let runs = ended.expect("a child can be asked").is_none() && Instant::now() < deadline;
            assert!(runs, "Kafka does not serve\n{}", self.log_tail(40));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// SIGTERM, then waits.
    pub fn stop(&mut self) {
        let mut process = self.process.take().expect("it does not run");
        kill_process(Pid::from_child(&process), Signal::TERM).expect("cannot signal Kafka");
        let deadline = Instant::now() + STOP_WITHIN;
        while process.try_wait().expect("a child can be asked").is_none() {
            assert!(Instant::now() < deadline, "Kafka does not stop\n{}", self.log_tail(40));
            std::thread::sleep(Duration::from_millis(20));
        }
        self.warden.guard(None);
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = fs::read_to_string(self.home.path().join("kafka.log")).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            self.warden.guard(None);
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

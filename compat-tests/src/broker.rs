//! One broker process: free ports, a directory of its own, waiting for readiness, the ways to stop.
//!
//! With KAFKA_BOOTSTRAP the suites run against that broker instead, whoever made it; what needs
//! to stop and start it is then skipped.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rustix::process::{Pid, Signal, kill_process};

use crate::client;

/// A broker that is not ready by then will not be.
const READY_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// What the suites assume of a broker, beside addresses and directories.
const SETTINGS: [(&str, &str); 5] = [
    ("group.initial.rebalance.delay.ms", "0"),
    ("offsets.topic.num.partitions", "4"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
];

/// A running broker, ours or a foreign one.
pub struct Broker {
    /// What a client's `bootstrap.servers` takes.
    pub bootstrap: String,
    own: Option<Own>,
}

struct Own {
    ports: [u16; 3],
    data: PathBuf,
    overrides: Vec<(String, String)>,
    /// One beside that of `Broker::bootstrap`.
    listener: Option<String>,
    process: Option<Child>,
    warden: Warden,
    log: PathBuf,
    _home: tempfile::TempDir,
}

impl Broker {
    /// A broker for a file of tests: the one of KAFKA_BOOTSTRAP, else a new one of ours.
    pub fn shared() -> Broker {
        match std::env::var("KAFKA_BOOTSTRAP") {
            Ok(bootstrap) => Broker { bootstrap, own: None },
            Err(_) => Broker::start(&[]),
        }
    }

    /// A new broker of ours that the test may stop and start; none with KAFKA_BOOTSTRAP.
    pub fn restartable(overrides: &[(&str, &str)]) -> Option<Broker> {
        if std::env::var_os("KAFKA_BOOTSTRAP").is_some() {
            println!("SKIPPED: KAFKA_BOOTSTRAP is set and this test stops its broker");
            return None;
        }
        Some(Broker::start(overrides))
    }

    /// Starts the built binary on free ports with its data in a temporary directory.
    pub fn start(overrides: &[(&str, &str)]) -> Broker {
        Broker::start_in(None, overrides)
    }

    /// The same with its data in `data`, which must outlive it.
    pub fn start_in(data: Option<&Path>, overrides: &[(&str, &str)]) -> Broker {
        Broker::start_with(data, &[&SETTINGS, overrides].concat(), None)
    }

    /// A broker that nobody configured, but for its addresses and its directory; `listener` is one
    /// more address, without encryption.
    pub fn start_plain(listener: Option<&str>) -> Broker {
        let name = listener.and_then(|listener| listener.split("://").next());
        let map =
            name.map(|name| format!("PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{name}:PLAINTEXT"));
        let overrides = map.iter().map(|map| ("listener.security.protocol.map", map.as_str()));
        Broker::start_with(None, &overrides.collect::<Vec<_>>(), listener)
    }

    fn start_with(
        data: Option<&Path>,
        overrides: &[(&str, &str)],
        listener: Option<&str>,
    ) -> Broker {
        let home = tempfile::Builder::new().prefix("gracchus-test-").tempdir().expect("no /tmp");
        let data = data.map_or_else(|| home.path().join("data"), Path::to_owned);
        let overrides = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let own = Own {
            ports: free_ports(),
            data,
            overrides: overrides.collect(),
            listener: listener.map(str::to_owned),
            process: None,
            warden: Warden::new(home.path()),
            log: home.path().join("broker.log"),
            _home: home,
        };
        let bootstrap = format!("127.0.0.1:{}", own.ports[0]);
        let mut broker = Broker { bootstrap, own: Some(own) };
        broker.resume();
        broker
    }

    /// Whether the test may stop and start it.
    pub fn is_ours(&self) -> bool {
        self.own.is_some()
    }

    /// Starts the process again on the same data and ports; how long until it answered.
    pub fn resume(&mut self) -> Duration {
        let started = Instant::now();
        self.spawn();
        if let Err(reason) = self.wait_ready(READY_WITHIN) {
            panic!("the broker is not ready: {reason}\n{}", self.log_tail(60));
        }
        started.elapsed()
    }

    /// Starts the process and does not wait for it.
    pub fn spawn(&mut self) {
        let own = self.own_mut();
        assert!(own.process.is_none(), "the broker runs already");
        let log = File::options().create(true).append(true).open(&own.log).expect("no log file");
        let process = own.command().stdout(Stdio::null()).stderr(log).spawn();
        let process = process.unwrap_or_else(|e| panic!("{}: {e}", binary().display()));
        own.warden.guard(Some(process.id()));
        own.process = Some(process);
    }

    /// Waits until the broker answers a Metadata request.
    pub fn wait_ready(&mut self, within: Duration) -> Result<(), String> {
        let mut config = client::base(&self.bootstrap);
        config.set("reconnect.backoff.ms", "10").set("reconnect.backoff.max.ms", "50");
        // Connections refused while it starts are expected.
        config.set("log_level", "0");
        let probe: BaseConsumer = config.create().expect("no client");
        let deadline = Instant::now() + within;
        loop {
            match probe.fetch_metadata(None, Duration::from_millis(300)) {
                Ok(metadata) if !metadata.brokers().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) if Instant::now() > deadline => return Err(error.to_string()),
                Err(_) => {}
            }
            if let Some(status) = self.exited() {
                return Err(format!("it ended with {status}"));
            }
        }
    }

    /// SIGKILL: the process does not know.
    pub fn kill(&mut self) {
        let own = self.own_mut();
        let mut process = own.process.take().expect("the broker does not run");
        own.warden.guard(None);
        process.kill().expect("cannot kill the broker");
        process.wait().expect("cannot wait for the broker");
    }

    /// SIGSTOP: on return no thread of it runs, but for calls that are in the kernel already.
    pub fn freeze(&mut self) {
        let process = self.own_mut().process.as_ref().expect("the broker does not run");
        let pid = Pid::from_child(process);
        kill_process(pid, Signal::STOP).expect("cannot signal the broker");
        client::until("every thread stands still", || threads_stand_still(process.id()));
    }

    /// SIGTERM, then waits; panics unless it ends well and in time.
    pub fn stop(&mut self) {
        let own = self.own_mut();
        let process = own.process.as_ref().expect("the broker does not run");
        let pid = Pid::from_child(process);
        kill_process(pid, Signal::TERM).expect("cannot signal the broker");
        let deadline = Instant::now() + STOP_WITHIN;
        let status = loop {
            if let Some(status) = self.exited() {
                break status;
            }
            assert!(Instant::now() < deadline, "no clean stop in time\n{}", self.log_tail(60));
            std::thread::sleep(Duration::from_millis(5));
        };
        self.own_mut().process = None;
        self.own_mut().warden.guard(None);
        assert!(status.success(), "a clean stop ended with {status}\n{}", self.log_tail(60));
    }

    /// How the process ended, if it did.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        let process = self.own.as_mut()?.process.as_mut()?;
        process.try_wait().expect("cannot wait for the broker")
    }

    /// What the process keeps in memory, in bytes.
    ///
    /// # Panics
    /// If it is not ours or does not run.
    pub fn resident_bytes(&self) -> u64 {
        let process = self.own.as_ref().and_then(|own| own.process.as_ref()).expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
        let status = status.expect("the kernel tells");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.expect("a number of kB") * 1024
    }

    /// The last lines of the broker's log.
    pub fn log_tail(&self, lines: usize) -> String {
        let Some(own) = &self.own else { return String::new() };
        let text = std::fs::read(&own.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// The directory of `log.dirs`.
    pub fn data_dir(&self) -> &Path {
        &self.own.as_ref().expect("a foreign broker's directory is not known").data
    }

    fn own_mut(&mut self) -> &mut Own {
        self.own.as_mut().expect("a foreign broker is left alone")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let Some(own) = &mut self.own else { return };
        if let Some(mut process) = own.process.take() {
            own.warden.guard(None);
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- the broker's last lines\n{}\n---", self.log_tail(60));
            return;
        }
        // A panic ends one connection, and clients connect again: no test would see it.
        let log = self.log_tail(usize::MAX);
        assert!(!log.contains("panicked at"), "a part of the broker panicked\n{log}");
    }
}

impl Own {
    fn command(&self) -> Command {
        let [kafka, controller, http] = self.ports;
        let more = self.listener.iter().map(|listener| format!(",{listener}")).collect::<String>();
        let both = format!("PLAINTEXT://127.0.0.1:{kafka},CONTROLLER://127.0.0.1:{controller}");
        let mut settings: Vec<(String, String)> = vec![
            ("listeners".to_owned(), both + &more),
            ("http.listen".to_owned(), format!("127.0.0.1:{http}")),
            ("log.dirs".to_owned(), self.data.display().to_string()),
        ];
        settings.extend(self.overrides.iter().cloned());
        let mut command = Command::new(binary());
        for (key, value) in settings {
            command.arg("--override").arg(format!("{key}={value}"));
        }
        // An interrupt at the terminal is for the tests; the warden sees to the broker.
        command.process_group(0);
        command
    }
}

/// Whether every thread is stopped, or in an uninterruptible call after which it will be.
fn threads_stand_still(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it has threads");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        matches!(state, Some('T' | 'D') | None)
    })
}

/// GRACCHUS_BIN, else the binary in the profile's directory in which this test was built.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("GRACCHUS_BIN") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().expect("this test has no path");
    let profile = test.ancestors().nth(2).expect("tests lie in <target>/<profile>/deps");
    let path = profile.join("gracchus");
    let hint = "build it with `cargo build --bin gracchus` or set GRACCHUS_BIN";
    assert!(path.exists(), "there is no {}: {hint}", path.display());
    path
}

pub(crate) fn free_ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("no free port"));
    sockets.map(|socket| socket.local_addr().expect("a bound socket has an address").port())
}

/// A shell that outlives this process by a moment: it kills the broker and removes the directory
/// when the pipe to it closes, however this process ended. A static broker is never dropped.
pub(crate) struct Warden(ChildStdin);

impl Warden {
    pub(crate) fn new(home: &Path) -> Warden {
        const SCRIPT: &str = "pid=; while read -r line; do pid=$line; done; \
             [ -z \"$pid\" ] || kill -9 \"$pid\"; rm -rf \"$0\"";
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(SCRIPT).arg(home).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[expect(clippy::zombie_processes, reason = "it outlives this process")]
        let mut shell = shell.spawn().expect("no sh");
        Warden(shell.stdin.take().expect("it was piped"))
    }

    /// From now on `pid` is the process to end, or none.
    pub(crate) fn guard(&mut self, pid: Option<u32>) {
        let line = pid.map_or_else(String::new, |pid| pid.to_string());
        writeln!(self.0, "{line}").expect("the warden is gone");
    }
}

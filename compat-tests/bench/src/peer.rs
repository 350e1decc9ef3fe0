//! The brokers that are measured: ours and Apache Kafka, started the same way.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::conn::Conn;
use crate::proc::children;

/// A broker that does not serve by then will not.
const READY_WITHIN: Duration = Duration::from_secs(120);
const STOP_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Gracchus,
    Kafka,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gracchus => "gracchus",
            Kind::Kafka => "kafka",
        }
    }
}

/// Where the programs are.
pub struct Programs {
    pub gracchus: PathBuf,
    /// A directory of Kafka's jars.
    pub kafka_jars: Option<PathBuf>,
    pub kafka_heap: String,
}

/// One broker with a directory of its own. It ends when this is dropped.
pub struct Peer {
    pub kind: Kind,
    pub address: String,
    home: tempfile::TempDir,
    command: Vec<String>,
    child: Option<Child>,
}

impl Peer {
    /// Prepares a new, empty broker; [`Peer::start`] starts it.
    pub fn new(programs: &Programs, kind: Kind) -> Result<Peer> {
        Peer::inside(programs, kind, &[])
    }

    /// The same, run by a tool that watches it.
    pub fn inside(programs: &Programs, kind: Kind, tool: &[&str]) -> Result<Peer> {
        let home = tempfile::Builder::new().prefix("gracchus-bench-").tempdir()?;
        let (port, controller) = (free_port()?, free_port()?);
        let address = format!("127.0.0.1:{port}");
        let data = home.path().join("data").display().to_string();
        let mut command: Vec<String> = tool.iter().map(|word| (*word).to_owned()).collect();
        command.extend(match kind {
            Kind::Gracchus => gracchus(programs, &address, &data),
            Kind::Kafka => kafka(programs, home.path(), &address, controller, &data)?,
        });
        Ok(Peer { kind, address, home, command, child: None })
    }

    /// Starts it; the time from exec until its port is open.
    pub fn start(&mut self) -> Result<Duration> {
        let log = File::options().create(true).append(true).open(self.home.path().join("log"))?;
        let begin = Instant::now();
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        self.child = Some(command.spawn().with_context(|| self.command[0].clone())?);
        while std::net::TcpStream::connect(&self.address).is_err() {
            let child = self.child.as_mut().expect("just started");
            if let Some(status) = child.try_wait()? {
                bail!("{} ended with {status}\n{}", self.kind.name(), self.log());
            }
            ensure!(begin.elapsed() < READY_WITHIN, "not ready\n{}", self.log());
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(begin.elapsed())
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    pub fn connect(&self) -> Result<Conn> {
        Conn::open(&self.address)
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// SIGTERM, and waits. A tool that started the broker as a child ends with it.
    pub fn stop(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let broker = children(child.id()).first().and_then(|pid| Pid::from_raw(*pid as i32));
        kill_process(broker.unwrap_or_else(|| Pid::from_child(child)), Signal::TERM)?;
        let begin = Instant::now();
        while child.try_wait()?.is_none() {
            if begin.elapsed() > STOP_WITHIN {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child = None;
        Ok(())
    }

    /// Waits until its files hold so many bytes; how many they are then.
    pub fn home_bytes_after(&self, wanted: u64, patience: Duration) -> Result<u64> {
        let begin = Instant::now();
        loop {
            let bytes = bytes_below(self.home.path());
            if bytes >= wanted {
                return Ok(bytes);
            }
            ensure!(begin.elapsed() < patience, "only {bytes} bytes were written");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = self.kill();
    }
}

fn gracchus(programs: &Programs, address: &str, data: &str) -> Vec<String> {
    let mut command = vec![programs.gracchus.display().to_string()];
    let settings = [
        format!("listeners=PLAINTEXT://{address}"),
        format!("log.dirs={data}"),
        "http.listen=".to_owned(),
    ];
    for setting in settings {
        command.extend(["--override".to_owned(), setting]);
    }
    command
}

/// Writes Kafka's settings and lets its tool format the directory, which is not measured.
fn kafka(
    programs: &Programs,
    home: &Path,
    address: &str,
    controller: u16,
    data: &str,
) -> Result<Vec<String>> {
    let jars = programs.kafka_jars.as_ref().context("KAFKA_JARS is not set")?;
    let (settings, log4j) = (home.join("server.properties"), home.join("log4j2.xml"));
    let text = format!(
        "process.roles=broker,controller\nnode.id=0\n\
         listeners=PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n\
         log.dirs={data}\noffsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
    );
    fs::write(&settings, text)?;
    fs::write(&log4j, "<Configuration><Loggers><Root level=\"OFF\"/></Loggers></Configuration>")?;
    let java = |heap: &str, class: &str, arguments: &[&str]| {
        let mut command = vec![
            "java".to_owned(),
            format!("-Xms{heap}"),
            format!("-Xmx{heap}"),
            // As Kafka's own start script has it.
            "-XX:+UseG1GC".to_owned(),
            "-XX:MaxGCPauseMillis=20".to_owned(),
            "-XX:InitiatingHeapOccupancyPercent=35".to_owned(),
            "-XX:+ExplicitGCInvokesConcurrent".to_owned(),
            format!("-Dlog4j2.configurationFile={}", log4j.display()),
            "-cp".to_owned(),
            format!("{}/*", jars.display()),
            class.to_owned(),
        ];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        command
    };
    let settings = settings.display().to_string();
    let id = "AAAAAAAAQACAAAAAAAAAAQ";
    let format = ["format", "--standalone", "-t", id, "-c", &settings];
    let format = java("256M", "kafka.tools.StorageTool", &format);
    let done = Command::new(&format[0]).args(&format[1..]).output()?;
    ensure!(done.status.success(), "kafka format: {}", String::from_utf8_lossy(&done.stderr));
    Ok(java(&programs.kafka_heap, "kafka.Kafka", &[&settings]))
}

/// Bytes of segments; indexes are sparse files of any size.
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) if entry.path().extension().is_some_and(|ending| ending == "log") => meta.len(),
        _ => 0,
    };
    entries.map(bytes).sum()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

//! What /proc says: processor time and memory of a process, and what else the machine does.

use std::fs;
use std::time::Instant;

/// Ticks a second in /proc; Linux has never shown another number to user space.
const HZ: f64 = 100.0;

/// Processor seconds of a process and those it started, all their threads.
pub fn cpu_s(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    // utime and stime; utime is field 14, `after_name` begins with field 3.
    let ticks: f64 = fields(after_name, 11, 2);
    ticks / HZ + children(pid).into_iter().map(cpu_s).sum::<f64>()
}

/// The processes that a process started with its first thread.
pub fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Resident megabytes of a process.
pub fn rss_mb(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    fields(line, 0, 1) * 1024.0 / 1e6
}

/// Busy seconds of all processors: user, nice, system, irq, softirq; not waiting for disks.
fn busy_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default().trim_start_matches("cpu");
    (fields(line, 0, 3) + fields(line, 5, 2)) / HZ
}

fn fields(line: &str, from: usize, count: usize) -> f64 {
    let numbers = line.split_whitespace().skip(from).take(count);
    numbers.filter_map(|number| number.parse::<f64>().ok()).sum()
}

/// A moment, to measure from.
pub struct Mark {
    at: Instant,
    broker: u32,
    broker_s: f64,
    own_s: f64,
    busy_s: f64,
}

/// What a stretch of time took.
pub struct Taken {
    pub wall_s: f64,
    pub broker_s: f64,
    pub own_s: f64,
    /// The share of the machine that went to neither.
    pub foreign: f64,
}

impl Mark {
    pub fn now(broker: u32) -> Mark {
        let own_s = cpu_s_of_self();
        Mark { at: Instant::now(), broker, broker_s: cpu_s(broker), own_s, busy_s: busy_s() }
    }

    pub fn taken(&self) -> Taken {
        let wall_s = self.at.elapsed().as_secs_f64();
        let broker_s = cpu_s(self.broker) - self.broker_s;
        let own_s = cpu_s_of_self() - self.own_s;
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let others_s = busy_s() - self.busy_s - broker_s - own_s;
        Taken { wall_s, broker_s, own_s, foreign: (others_s / (wall_s * cores)).max(0.0) }
    }
}

/// With children that have ended, as clients do; without the broker, which is a child that lives.
fn cpu_s_of_self() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    fields(stat.rsplit(") ").next().unwrap_or_default(), 11, 4) / HZ
}

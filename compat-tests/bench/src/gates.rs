//! Counts that do not depend on how busy the machine is, each with the number that it may not grow
//! above: instructions and allocations of a request by callgrind, system calls by strace.
//!
//! A count is the difference between a run with many requests and one with none, so that starting
//! and stopping cancel out. The least of a few attempts counts: what a change costs, it costs
//! always, and a busy machine only adds to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bulk::half_random;
use crate::conn::Conn;
use crate::peer::{Kind, Peer, Programs};
use crate::wire::{self, Codec, FetchLimits};

/// A count may be this many times the recorded one.
const GROWTH_MAX: f64 = 1.15;
/// Below this, counts differ by chance.
const SLACK: f64 = 0.5;
const ATTEMPTS: usize = 3;
/// Frames that one write brings, when requests are pipelined.
const DEPTH: usize = 32;
const TOPIC: &str = "gate";

/// System calls that move bytes or wait for them. Others (locks, clocks) vary with the schedule.
const SYSCALLS: &str = "trace=read,readv,pread64,preadv,preadv2,recvfrom,recvmsg,write,writev,\
     pwrite64,pwritev,pwritev2,sendto,sendmsg,sendfile,epoll_wait,epoll_pwait,fdatasync,fsync";

const ALLOCATORS: [&str; 6] =
    ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

#[derive(Clone, Copy)]
enum Load {
    Nothing,
    Produce,
    Fetch,
}

/// Counts everything, and compares with the file: its entry for this profile of the broker's build,
/// which `record` writes anew.
pub fn run(programs: &Programs, file: &Path, record: bool) -> Result<()> {
    let profile = profile(&programs.gracchus);
    let mut known: Value =
        serde_json::from_slice(&fs::read(file).unwrap_or_default()).unwrap_or_else(|_| json!({}));
    let mut over = Vec::new();
    let mut least = BTreeMap::<String, f64>::new();
    for attempt in 1..=ATTEMPTS {
        let counts = count(programs)?;
        if record {
            known[&profile] = json!(counts);
            fs::write(file, format!("{}\n", serde_json::to_string_pretty(&known)?))?;
            println!("gates: recorded {counts:?}");
            return Ok(());
        }
        over.clear();
        for (name, count) in counts {
            let known_least = least.entry(name.clone()).or_insert(count);
            let count = known_least.min(count);
            *known_least = count;
            let limit = known[&profile][&name].as_f64().with_context(|| {
                format!("{}: nothing is recorded for {name} of a {profile} build", file.display())
            })?;
            let is_over = count > limit * GROWTH_MAX + SLACK;
            let verdict = if is_over { "TOO MANY" } else { "ok" };
            println!("gate: {name:<36} {count:>10.1}, recorded {limit:>10.1}: {verdict}");
            if is_over {
                over.push(name);
            }
        }
        if over.is_empty() {
            return Ok(());
        }
        println!("gates: attempt {attempt} of {ATTEMPTS} is over the limit");
    }
    bail!("more than {GROWTH_MAX} times what is recorded: {}", over.join(", "))
}

/// `debug` or `release`: where the binary lies.
fn profile(binary: &Path) -> String {
    let dir = binary.parent().and_then(Path::file_name).unwrap_or_default();
    dir.to_string_lossy().into_owned()
}

fn count(programs: &Programs) -> Result<BTreeMap<String, f64>> {
    const REQUESTS: usize = 3_000;
    let mut counts = BTreeMap::new();
    let (idle_instructions, idle_allocations) = callgrind(programs, Load::Nothing, 0)?;
    let idle_calls = strace(programs, Load::Nothing, 0)?;
    for (load, name) in [(Load::Produce, "produce"), (Load::Fetch, "fetch")] {
        let requests = REQUESTS as f64;
        let (instructions, allocations) = callgrind(programs, load, REQUESTS)?;
        let per_request = |busy: f64, idle: f64| ((busy - idle) / requests * 10.0).round() / 10.0;
        counts.insert(
            format!("instructions per {name}"),
            per_request(instructions, idle_instructions),
        );
        counts
            .insert(format!("allocations per {name}"), per_request(allocations, idle_allocations));
        let calls = strace(programs, load, REQUESTS)?;
        counts.insert(
            format!("system calls per 1000 x {name}"),
            ((calls - idle_calls) / requests * 1000.0).round(),
        );
    }
    Ok(counts)
}

/// Instructions and allocations of a whole life of the broker.
fn callgrind(programs: &Programs, load: Load, requests: usize) -> Result<(f64, f64)> {
    let out = tempfile::Builder::new().prefix("gracchus-gate-").tempdir()?;
    let file = out.path().join("callgrind.out");
    let option = format!("--callgrind-out-file={}", file.display());
    live(programs, &["valgrind", "--tool=callgrind", &option], load, requests)?;
    let text = fs::read_to_string(&file).context("callgrind left nothing")?;
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|total| total.trim().parse().ok()).context("no totals")?;
    Ok((total, allocations(&text)))
}

/// Calls of allocating functions in callgrind's format, where a name is spelled once and then
/// abbreviated by its number.
fn allocations(text: &str) -> f64 {
    let mut ids = BTreeSet::new();
    let (mut is_allocator, mut calls) = (false, 0.0);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            if ALLOCATORS.contains(&name) {
                ids.insert(id);
            }
            is_allocator = line.starts_with('c') && ids.contains(id);
        } else if let Some(count) = line.strip_prefix("calls=").filter(|_| is_allocator) {
            let count = count.split(' ').next().and_then(|count| count.parse::<f64>().ok());
            calls += count.unwrap_or(0.0);
        }
    }
    calls
}

/// System calls of a whole life of the broker.
fn strace(programs: &Programs, load: Load, requests: usize) -> Result<f64> {
    let out = tempfile::Builder::new().prefix("gracchus-gate-").tempdir()?;
    let file: PathBuf = out.path().join("strace.out");
    let path = file.display().to_string();
    live(programs, &["strace", "-f", "-c", "-e", SYSCALLS, "-o", &path], load, requests)?;
    let text = fs::read_to_string(&file).context("strace left nothing")?;
    // "100.00    0.012345           3      4711        12 total"
    let total = text.lines().rev().find(|line| line.trim_end().ends_with("total"));
    let calls = total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    calls.with_context(|| format!("not strace's table:\n{text}"))
}

/// Starts the broker in a tool, gives it requests, stops it.
fn live(programs: &Programs, tool: &[&str], load: Load, requests: usize) -> Result<()> {
    let mut peer = Peer::inside(programs, Kind::Gracchus, tool)?;
    peer.start()?;
    let mut conn = peer.connect()?;
    // A flush would depend on when it begins, and on what it finds.
    conn.create_topic(TOPIC, 1, &[("flush.messages", "9223372036854775807")])?;
    let values: Vec<_> = (0..10).map(|seed| half_random(100, seed)).collect();
    let batch = wire::batch(values.iter().map(Vec::as_slice), Codec::None, wire::now_ms());
    let produce = wire::produce(0, TOPIC, &[(0, batch)]);
    let limits = FetchLimits { wait_ms: 1, bytes_min: 1, partition_bytes_max: 8 << 10 };
    let fetch = wire::fetch(0, TOPIC, &[(0, 0)], limits);
    pipelined(&mut conn, &produce, DEPTH)?;
    one_by_one(&mut conn, &fetch, 1)?;
    match load {
        Load::Nothing => {}
        Load::Produce => pipelined(&mut conn, &produce, requests)?,
        Load::Fetch => one_by_one(&mut conn, &fetch, requests)?,
    }
    peer.stop()
}

fn pipelined(conn: &mut Conn, produce: &[u8], requests: usize) -> Result<()> {
    for first in (0..requests).step_by(DEPTH) {
        let count = DEPTH.min(requests - first);
        conn.send(&produce.repeat(count))?;
        for _ in 0..count {
            let answers = wire::produced(conn.receive()?.1)?;
            ensure!(matches!(answers.as_slice(), [(0, 0, _)]), "refused: {answers:?}");
        }
    }
    Ok(())
}

fn one_by_one(conn: &mut Conn, fetch: &[u8], requests: usize) -> Result<()> {
    for _ in 0..requests {
        let body = conn.call(fetch)?;
        let answers = wire::fetched(body)?;
        ensure!(matches!(answers.as_slice(), [(0, bytes)] if bytes.len() > 4000), "too little");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_allocators_are_added_up() {
        let text = "fn=(1) main\ncfn=(2) malloc\ncalls=3 0\n0 10\ncfn=(3) free\ncalls=9 0\n\
             fn=(4) other\ncfn=(2)\ncalls=4 0\n0 1\nfn=(2)\n0 7\n";
        assert_eq!(allocations(text), 7.0);
    }
}

//! Scenario 11: starting, resting, and coming back after a kill.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::bulk::{self, Shape};
use crate::conn::Conn;
use crate::peer::{Kind, Peer, Programs};
use crate::proc::{Mark, rss_mb};
use crate::scale::Scale;
use crate::scenarios::Part;
use crate::wire::{self, Codec};

const PATIENCE: Duration = Duration::from_secs(120);
const TOPIC: &str = "first";

pub fn run(programs: &Programs, kind: Kind, scale: &Scale) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for _ in 0..scale.starts {
        let mut peer = Peer::new(programs, kind)?;
        parts.push(first_record(&mut peer)?);
        if parts.len() == scale.starts {
            parts.push(rest(&peer, scale));
        }
        peer.stop()?;
    }
    parts.push(recover(programs, kind, scale)?);
    Ok(parts)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// From exec to the first acknowledged record, in an empty directory.
fn first_record(peer: &mut Peer) -> Result<Part> {
    let begin = Instant::now();
    let mark = Mark::now(std::process::id());
    let port = peer.start()?;
    let mut conn = peer.connect()?;
    conn.create_topic(TOPIC, 1, &[])?;
    until_acknowledged(&mut conn, 0)?;
    let first = begin.elapsed();
    let cpu_s = crate::proc::cpu_s(peer.pid());
    let measures =
        vec![("port open ms", ms(port)), ("first record ms", ms(first)), ("CPU ms", cpu_s * 1e3)];
    let taken = mark.taken();
    // The broker's own time counts as foreign here, since it was not there to be marked.
    let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let foreign = (taken.foreign - cpu_s / (taken.wall_s * cores)).max(0.0);
    Ok(Part { what: "exec to first record".into(), measures, foreign })
}

/// Memory and processor time of a broker that nobody asks anything.
fn rest(peer: &Peer, scale: &Scale) -> Part {
    std::thread::sleep(scale.idle / 5);
    let mark = Mark::now(peer.pid());
    std::thread::sleep(scale.idle);
    let taken = mark.taken();
    let measures = vec![
        ("RSS MB", rss_mb(peer.pid())),
        ("CPU % of a core", taken.broker_s / taken.wall_s * 100.0),
    ];
    Part { what: "idle".into(), measures, foreign: taken.foreign }
}

/// SIGKILL under load, then until every partition takes records again.
fn recover(programs: &Programs, kind: Kind, scale: &Scale) -> Result<Part> {
    let mut peer = Peer::new(programs, kind)?;
    peer.start()?;
    let partitions = scale.recovery_partitions;
    peer.connect()?.create_topic(TOPIC, partitions, &[])?;
    let shape = Shape { partitions, value_bytes: 1024, batch_bytes: 16 << 10, codec: Codec::None };
    let records = scale.recovery_mb * 1_000_000 / 1024;
    let address = peer.address.clone();
    // Written until the broker is gone, so the writer ends with an error.
    let writer = std::thread::spawn(move || bulk::produce(&address, TOPIC, shape, records * 1000));
    let wanted = peer.home_bytes_after(scale.recovery_mb * 1_000_000, PATIENCE)?;
    peer.kill()?;
    ensure!(writer.join().is_ok_and(|ended| ended.is_err()), "the writer ended before the kill");
    let begin = Instant::now();
    let mark = Mark::now(std::process::id());
    let port = peer.start()?;
    let mut conn = peer.connect()?;
    until_acknowledged(&mut conn, 0)?;
    let first = begin.elapsed();
    for partition in 1..partitions {
        until_acknowledged(&mut conn, partition)?;
    }
    let all = begin.elapsed();
    let measures = vec![
        ("port open ms", ms(port)),
        ("first record ms", ms(first)),
        ("all partitions ms", ms(all)),
        ("CPU ms", crate::proc::cpu_s(peer.pid()) * 1e3),
        ("MB on disk", wanted as f64 / 1e6),
    ];
    let foreign = mark.taken().foreign;
    Ok(Part { what: format!("after kill -9, {partitions} partitions"), measures, foreign })
}

/// Writes one record until it is taken.
fn until_acknowledged(conn: &mut Conn, partition: i32) -> Result<()> {
    let batch = wire::batch([&b"first"[..]].into_iter(), Codec::None, wire::now_ms());
    let frame = wire::produce(0, TOPIC, &[(partition, batch)]);
    let begin = Instant::now();
    loop {
        let answers = wire::produced(conn.call(&frame)?)?;
        match answers.as_slice() {
            [(_, 0, _)] => return Ok(()),
            [(_, error, _)] if begin.elapsed() > PATIENCE => bail!("refused with error {error}"),
            [_] => std::thread::sleep(Duration::from_millis(1)),
            _ => bail!("an answer without the partition"),
        }
    }
}

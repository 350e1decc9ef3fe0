//! Measures Gracchus, and Apache Kafka beside it; `make bench` runs it.

mod bulk;
mod conn;
mod gates;
mod paced;
mod peer;
mod proc;
mod report;
mod scale;
mod scenarios;
mod start;
mod stock;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use peer::{Kind, Peer, Programs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scale::Scale;
use scenarios::{Bench, Part};
use serde_json::{Value, json};
use stock::Tools;

const USAGE: &str = "\
bench [--size tiny|quick|full] [--rounds N] [--only 1,2,...] [--peer kafka] [--out FILE]
bench --page FILE
bench --gates FILE
bench --record-gates FILE

GRACCHUS_BIN is the broker, KAFKA_JARS a directory of Kafka's jars, KAFKA_HEAP its heap (1G).";

/// Starting and recovering need processes of their own.
const START: u8 = 11;

struct Options {
    scale: Scale,
    rounds: usize,
    only: Vec<u8>,
    kinds: Vec<Kind>,
    out: PathBuf,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, file] = arguments.as_slice() {
        let file = Path::new(file);
        match flag.as_str() {
            "--page" => {
                print!("{}", report::page(&serde_json::from_slice(&fs::read(file)?)?)?);
                return Ok(());
            }
            "--gates" => return gates::run(&programs()?, file, false),
            "--record-gates" => return gates::run(&programs()?, file, true),
            _ => {}
        }
    }
    let options = options(&arguments)?;
    let programs = programs()?;
    raise_descriptors();
    let mut legs = Vec::new();
    let turns = || {
        (1..=options.rounds).flat_map(|round| options.kinds.iter().map(move |kind| (round, *kind)))
    };
    // First, for ext4 without a journal makes files slowly where many were deleted in the minute
    // before.
    for (round, kind) in turns() {
        run_starts(&options, &programs, kind, round, &mut legs)?;
    }
    for (round, kind) in turns() {
        run_round(&options, &programs, kind, round, &mut legs)?;
    }
    let results = json!({
        "machine": machine(),
        "gracchus": version(&programs),
        "kafka": kafka_version(&programs),
        "scale": options.scale.name,
        "rounds": options.rounds,
        "legs": legs,
    });
    fs::write(&options.out, serde_json::to_vec_pretty(&results)?)?;
    println!("\n{}", report::tables(&results)?);
    let disturbed = legs.iter().filter(|leg| leg["disturbed"] == true).count();
    println!("{} legs, {disturbed} of them disturbed; {}", legs.len(), options.out.display());
    Ok(())
}

fn programs() -> Result<Programs> {
    Ok(Programs {
        gracchus: std::env::var_os("GRACCHUS_BIN").context("GRACCHUS_BIN is not set")?.into(),
        kafka_jars: std::env::var_os("KAFKA_JARS").map(PathBuf::from),
        kafka_heap: std::env::var("KAFKA_HEAP").unwrap_or_else(|_| "1G".into()),
    })
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        scale: scale::FULL,
        rounds: 2,
        only: Vec::new(),
        kinds: vec![Kind::Gracchus],
        out: PathBuf::from("bench-results.json"),
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().with_context(|| USAGE)?.as_str();
        match (flag.as_str(), value) {
            ("--size", "tiny") => options.scale = scale::TINY,
            ("--size", "quick") => options.scale = scale::QUICK,
            ("--size", "full") => options.scale = scale::FULL,
            ("--rounds", count) => options.rounds = count.parse()?,
            ("--peer", "kafka") => options.kinds.push(Kind::Kafka),
            ("--out", file) => options.out = file.into(),
            ("--only", list) => {
                options.only = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            _ => bail!(USAGE),
        }
    }
    if options.only.is_empty() {
        options.only = scenarios::NUMBERS.iter().copied().chain([START]).collect();
    }
    Ok(options)
}

/// Brokers that start, each in an empty directory.
fn run_starts(
    options: &Options,
    programs: &Programs,
    kind: Kind,
    round: usize,
    legs: &mut Vec<Value>,
) -> Result<()> {
    if options.only.contains(&START) {
        let run = || start::run(programs, kind, &options.scale);
        let parts = undisturbed(run).with_context(|| format!("starting {}", kind.name()))?;
        keep(START, kind, round, parts, legs);
    }
    Ok(())
}

/// One broker, from an empty directory through all scenarios that need one that runs.
fn run_round(
    options: &Options,
    programs: &Programs,
    kind: Kind,
    round: usize,
    legs: &mut Vec<Value>,
) -> Result<()> {
    let mut running = scenarios::NUMBERS.to_vec();
    running.retain(|number| options.only.contains(number));
    if running.is_empty() {
        return Ok(());
    }
    std::thread::sleep(options.scale.between);
    let mut peer = Peer::new(programs, kind)?;
    peer.start()?;
    let tools = programs.kafka_jars.clone().map(|jars| Tools { jars });
    let mut bench = Bench { peer: &peer, scale: &options.scale, tools, topics: 0 };
    bench.warm_up()?;
    for number in running {
        let failed = || format!("scenario {number} on {}", kind.name());
        let parts = undisturbed(|| bench.run(number)).with_context(failed)?;
        keep(number, kind, round, parts, legs);
    }
    peer.stop()
}

fn keep(number: u8, kind: Kind, round: usize, parts: Vec<Part>, legs: &mut Vec<Value>) {
    for part in parts {
        say(number, kind, round, &part);
        legs.push(report::leg(number, kind.name(), round, &part));
    }
}

/// Runs a leg, and once more if the machine was busy with something else; the quieter one counts.
fn undisturbed(mut run: impl FnMut() -> Result<Vec<Part>>) -> Result<Vec<Part>> {
    let noise = |parts: &[Part]| parts.iter().map(|part| part.foreign).fold(0.0, f64::max);
    // What earlier legs left in the cache is not written during this one.
    rustix::fs::sync();
    let first = run()?;
    if noise(&first) <= report::FOREIGN_MAX {
        return Ok(first);
    }
    rustix::fs::sync();
    let second = run()?;
    Ok(if noise(&second) < noise(&first) { second } else { first })
}

fn say(number: u8, kind: Kind, round: usize, part: &Part) {
    let measures: Vec<_> =
        part.measures.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
    let (what, foreign) = (&part.what, part.foreign * 100.0);
    let measures = measures.join(", ");
    println!("{number:>2} {:<8} #{round} {what}: {measures} (others {foreign:.0} %)", kind.name());
}

/// Thousands of connections need as many descriptors, here and in the brokers.
fn raise_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Where it is not allowed, the scenario that needs them says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} x {}, Linux {}", model.unwrap_or("unknown"), kernel.trim())
}

fn version(programs: &Programs) -> String {
    let said = Command::new(&programs.gracchus).arg("--version").output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default()
}

fn kafka_version(programs: &Programs) -> String {
    let jars = programs.kafka_jars.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut names = jars.map(|jar| jar.file_name().to_string_lossy().into_owned());
    let jar = names.find(|name| name.starts_with("kafka_2.13-") && name.ends_with(".jar"));
    jar.unwrap_or_else(|| "not measured".into()).trim_end_matches(".jar").to_owned()
}

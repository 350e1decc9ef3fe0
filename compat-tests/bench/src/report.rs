//! Results as JSON, as a table, and as docs/performance.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::scenarios::Part;

/// Above this share of the machine for others, a leg is run again, and then marked.
pub const FOREIGN_MAX: f64 = 0.10;

const TITLES: [(u64, &str); 10] = [
    (1, "Bulk"),
    (2, "Small records"),
    (3, "The everyday load, paced"),
    (4, "Many small producers, keyed"),
    (5, "Acknowledgements after fsync"),
    (6, "Many who read the tail"),
    (7, "Catching up under load"),
    (9, "Many partitions"),
    (10, "Many connections"),
    (11, "Start, rest and recovery"),
];

const BROKERS: [&str; 2] = ["gracchus", "kafka"];

/// One part of one scenario, as it is kept.
pub fn leg(scenario: u8, broker: &str, round: usize, part: &Part) -> Value {
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let measures: BTreeMap<&str, f64> =
        part.measures.iter().map(|(name, value)| (*name, rounded(*value))).collect();
    json!({
        "scenario": scenario,
        "what": part.what,
        "broker": broker,
        "round": round,
        "foreign": rounded(part.foreign),
        "disturbed": part.foreign > FOREIGN_MAX,
        "order": part.measures.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "measures": measures,
    })
}

/// What one broker gave for one measure over all rounds.
#[derive(Default)]
struct Cell {
    values: Vec<f64>,
    disturbed: bool,
}

impl Cell {
    fn median(&self) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        // Of an even number the two in the middle count alike.
        let (upper, lower) = (sorted.len() / 2, sorted.len().checked_sub(1)? / 2);
        Some((sorted.get(lower)? + sorted.get(upper)?) / 2.0)
    }

    fn text(&self) -> String {
        let Some(median) = self.median() else { return "-".into() };
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mark = if self.disturbed { " *" } else { "" };
        format!("{} ({} to {}){mark}", number(median), number(least), number(most))
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Rows in the order in which they were measured.
fn rows(legs: &[Value], scenario: u64) -> Vec<(String, String, [Cell; 2])> {
    let mut rows: Vec<(String, String, [Cell; 2])> = Vec::new();
    for leg in legs.iter().filter(|leg| leg["scenario"] == scenario) {
        let what = leg["what"].as_str().unwrap_or_default();
        let broker = BROKERS.iter().position(|name| leg["broker"] == *name).unwrap_or(0);
        for name in leg["order"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let Some(value) = leg["measures"][name].as_f64() else { continue };
            let known = rows.iter().position(|row| row.0 == what && row.1 == name);
            let at = known.unwrap_or_else(|| {
                rows.push((what.into(), name.into(), <[Cell; 2]>::default()));
                rows.len() - 1
            });
            let cell = &mut rows[at].2[broker];
            cell.values.push(value);
            cell.disturbed |= leg["disturbed"] == true;
        }
    }
    rows
}

/// All tables, in Markdown.
pub fn tables(results: &Value) -> Result<String> {
    let legs = results["legs"].as_array().context("no legs")?;
    let mut text = String::new();
    for (scenario, title) in TITLES {
        let rows = rows(legs, scenario);
        if rows.is_empty() {
            continue;
        }
        writeln!(text, "## {scenario}. {title}\n")?;
        writeln!(text, "| | | Gracchus | Kafka | Gracchus : Kafka |\n|---|---|---|---|---|")?;
        let mut last = String::new();
        for (what, name, [ours, theirs]) in rows {
            let shown = if what == last { "" } else { &what };
            let ratio = match (ours.median(), theirs.median()) {
                (Some(ours), Some(theirs)) if theirs > 0.0 => number(ours / theirs),
                _ => "-".into(),
            };
            let (ours, theirs) = (ours.text(), theirs.text());
            writeln!(text, "| {shown} | {name} | {ours} | {theirs} | {ratio} |")?;
            last = what;
        }
        writeln!(text)?;
    }
    Ok(text)
}

/// The page of the documentation.
pub fn page(results: &Value) -> Result<String> {
    let text = |key: &str| results[key].as_str().unwrap_or("unknown").to_owned();
    let mut page = String::from(PREFACE);
    writeln!(page, "- Machine: {}", text("machine"))?;
    writeln!(page, "- Gracchus: {}; Kafka: {}", text("gracchus"), text("kafka"))?;
    writeln!(page, "- Size: {}, {} rounds\n", text("scale"), results["rounds"])?;
    page.push_str(&tables(results)?);
    Ok(page)
}

const PREFACE: &str = "# Performance

Written by `make bench-page` from `compat-tests/bench/results.json`; do not edit.

To repeat it: `make bench` measures Gracchus alone, `make bench PEER=kafka` Apache Kafka in the same
run (it needs Java and mvn), `SIZE=quick` takes some twenty minutes, `ONLY=1,3` runs some of the
scenarios, `ROUNDS=3` sets how often. The machine should do nothing else.

How it is measured:

- Brokers take turns, A B A B: each round starts a new process with an empty directory, warms it up,
  runs all scenarios, and stops it; a minute lies between. Starts and recovery take turns before.
- The generator is `compat-tests/bench`: one process, raw sockets, batches encoded beforehand,
  acks=all. Every acknowledgement and every offset is checked, and everything written is read back.
- Rows that name librdkafka, kafka-producer-perf-test or kafka-consumer-perf-test are those clients
  with their own default settings; the last two say their rate themselves, without their start.
- A paced load is open: latency counts from the moment at which a record was due.
- Broker CPU is that of the process with all its threads. MB are 1,000,000 bytes of record values.
- Cells are median (least to most) of the rounds. A leg during which others took more than a tenth
  of the machine is run again; `*` marks cells where that did not help: do not trust them.
- Each broker runs as it comes: **Gracchus acknowledges after fsync, Kafka from the page cache.** In
  rows that say `from the page cache` or `after fsync` the topic sets it, the same on both.

";

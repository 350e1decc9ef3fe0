//! The broker answers as Apache Kafka does, but for what docs/differences.md names.
//!
//! Kafka's answers are the recorded ones; with KAFKA_ORACLE=HOST:PORT a running Kafka is asked
//! instead, and with RECORD=1 its answers are recorded. DIFFER_ONLY=WORD,WORD chooses cases by
//! parts of their names. `make oracle` sets these.

use std::path::{Path, PathBuf};
use std::time::Instant;

use compat_tests::broker::Broker;
use compat_tests::differ::cases;
use compat_tests::differ::compare::{Pin, parse_pins};
use compat_tests::differ::disk;
use compat_tests::differ::run::{self, Case, Outcome, Recording, Seen};

/// Most cases wait more than they work.
const AT_A_TIME: usize = 8;
/// So many cases may need a second run, alone, to agree: on a busy machine a wait can take longer.
const UNSTEADY_MAX: usize = 5;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn settings() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(here("recorded/server.properties")).expect("the settings");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
}

fn pins() -> Vec<Pin> {
    let text = std::fs::read_to_string(here("recorded/differences.txt")).expect("the pins");
    let docs = std::fs::read_to_string(here("../docs/differences.md")).expect("the document");
    let pins = parse_pins(&text);
    for pin in &pins {
        let row = format!("| {} |", pin.why);
        assert!(docs.contains(&row), "docs/differences.md has no row named {:?}", pin.why);
    }
    pins
}

#[test]
fn answers_as_kafka() {
    if std::env::var_os("KAFKA_BOOTSTRAP").is_some() {
        println!("SKIPPED: KAFKA_BOOTSTRAP is set and this test needs a broker without a past");
        return;
    }
    let started = Instant::now();
    let mut all = cases::all();
    let total = all.list.len();
    let only = std::env::var("DIFFER_ONLY").unwrap_or_default();
    let words: Vec<&str> = only.split(',').filter(|word| !word.is_empty()).collect();
    if !words.is_empty() {
        all.only(&words);
    }
    let recording = Recording(here("recorded/kafka-4.4.0"));
    let mut kafka = match std::env::var("KAFKA_ORACLE") {
        Ok(address) => ask_kafka(&address, &all.list.iter().collect::<Vec<_>>(), &recording),
        Err(_) => recording.load(),
    };
    let settings = settings();
    let overrides: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (&**k, &**v)).collect();
    let broker = Broker::start(&overrides);
    let served = run::warm_up(&broker.bootstrap).expect("the broker serves");
    let left_out = all.only_served(&served);
    let pins = pins();
    for pin in pins.iter().filter(|_| words.is_empty()) {
        let is_about_one = all.list.iter().any(|case| pin.is_about(&case.name));
        assert!(is_about_one, "a difference is pinned for {}, which is not run", pin.case);
    }
    let list: Vec<&Case> = all.list.iter().collect();
    let mut ours = run::run(&list, &broker.bootstrap, AT_A_TIME, 0);
    let unsteady = run_again(&list, &broker.bootstrap, &kafka, &mut ours, &pins);
    if let Some(data) = std::env::var_os("KAFKA_DATA") {
        compare_disks(Path::new(&data), broker.data_dir(), &mut kafka, &mut ours);
    }
    let mut outcome = run::compare(&kafka, &ours, &pins);
    if words.is_empty() {
        outcome.find_idle(&kafka, &ours, &pins);
    }
    report(&outcome, &unsteady);
    println!(
        "differ: {total} cases, {} run ({left_out} need an API that is not served), {} agree, \
         {} differ; {} differences, {} of them meant; {:.0} s",
        list.len(),
        outcome.agree,
        ours.len() - outcome.agree,
        outcome.wrong.len() + outcome.pinned,
        outcome.pinned,
        started.elapsed().as_secs_f64(),
    );
    // It would tell its last lines when dropped in a panic, and they say nothing here.
    drop(broker);
    assert!(outcome.bad_cases().is_empty(), "answers differ from Kafka's, see above");
    assert!(unsteady.len() <= UNSTEADY_MAX, "too many cases needed a second run");
}

/// Adds what lies in the directories that both brokers have.
fn compare_disks(kafka_data: &Path, our_data: &Path, kafka: &mut Seen, ours: &mut Seen) {
    let (mut theirs, mut mine) = (disk::look(kafka_data), disk::look(our_data));
    disk::common(&mut theirs, &mut mine);
    println!("differ: {} directories of partitions compared", mine.len());
    kafka.extend(theirs);
    ours.extend(mine);
}

/// Runs what differs once more, alone; the names of the cases that then agree.
fn run_again(
    list: &[&Case],
    address: &str,
    kafka: &Seen,
    ours: &mut Seen,
    pins: &[Pin],
) -> Vec<String> {
    let bad = run::compare(kafka, ours, pins).bad_cases();
    let again: Vec<&Case> = list.iter().copied().filter(|case| bad.contains(&case.name)).collect();
    // With that many it is not the machine.
    if again.len() > 4 * UNSTEADY_MAX {
        return Vec::new();
    }
    ours.extend(run::run(&again, address, 1, 1));
    let still = run::compare(kafka, ours, pins).bad_cases();
    bad.into_iter().filter(|name| !still.contains(name)).collect()
}

fn report(outcome: &Outcome, unsteady: &[String]) {
    for name in unsteady {
        println!("unsteady: {name} agreed only in a second run");
    }
    outcome.print();
}

/// The answers of a running Kafka. To be recorded they are asked for twice: what differs between
/// two runs against the same broker is no answer.
fn ask_kafka(address: &str, list: &[&Case], recording: &Recording) -> Seen {
    run::warm_up(address).expect("Kafka serves");
    let first = run::run(list, address, AT_A_TIME, 0);
    if std::env::var_os("RECORD").is_none() {
        return first;
    }
    let second = run::run(list, address, AT_A_TIME, 1);
    let outcome = run::compare(&first, &second, &[]);
    report(&outcome, &[]);
    assert!(outcome.wrong.is_empty(), "Kafka does not agree with itself, nothing recorded");
    let mut all = recording.load();
    all.retain(|name, _| cases::all().list.iter().any(|case| case.name == *name));
    all.extend(first);
    let stopped: Vec<&String> =
        all.iter().filter(|(_, seen)| seen.contains_key("STOPPED")).map(|(name, _)| name).collect();
    let bytes = recording.store(&all);
    println!("differ: {} cases recorded, {bytes} bytes", all.len());
    assert!(stopped.is_empty(), "cases stopped early on Kafka: {stopped:?}");
    all
}

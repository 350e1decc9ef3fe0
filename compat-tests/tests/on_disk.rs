//! The broker leaves the files that Apache Kafka leaves, but for what docs/differences.md names.
//!
//! Kafka's files are the recorded ones, as `differ::disk` reads them. With KAFKA_JARS=DIR a Kafka
//! runs beside the broker instead: then Kafka's `DumpLogSegments` reads the files of both, and each
//! broker opens and serves the other's. With RECORD=1 Kafka's files are recorded. `make oracle`
//! sets these.

use std::path::{Path, PathBuf};
use std::time::Instant;

use compat_tests::differ::compare::{Pin, parse_pins};
use compat_tests::differ::disk;
use compat_tests::differ::run::{self, Recording, Seen};
use compat_tests::kafka;
use compat_tests::on_disk::exchange::{self, Stopped};
use compat_tests::on_disk::workload::Workload;
use compat_tests::on_disk::{Side, dump};

/// What is deleted is still there when one looks, however long that takes.
const STAYS_LONG: (&str, &str) = ("log.segment.delete.delay.ms", "3600000");

type Settings<'a> = [(&'a str, &'a str)];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(here(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn pins() -> Vec<Pin> {
    let pins = parse_pins(&read("recorded/differences-on-disk.txt"));
    let docs = read("../docs/differences.md");
    for pin in &pins {
        let row = format!("| {} |", pin.why);
        assert!(docs.contains(&row), "docs/differences.md has no row named {:?}", pin.why);
    }
    pins
}

/// A stopped broker that went through the workload, and what it showed.
struct Ran {
    side: Side,
    workload: Workload,
    seen: Seen,
}

fn run_workload(mut side: Side) -> Ran {
    let started = Instant::now();
    run::warm_up(side.address()).expect("the broker serves");
    let data = side.data_dir();
    let mut workload = Workload::new(side.address());
    let filled = workload.fill(&data);
    side.stop();
    let first = disk::look_stopped(&data);
    side.start();
    let went_on = filled.and_then(|()| workload.go_on());
    side.stop();
    let second = disk::look_stopped(&data);
    let mut seen = Seen::from([("workload".to_owned(), workload.take_seen(went_on))]);
    for (stage, found) in [("first", first), ("second", second)] {
        seen.extend(found.into_iter().map(|(name, what)| (format!("{stage}/{name}"), what)));
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("on disk: the workload at {} took {seconds:.0} s", side.name());
    Ran { side, workload, seen }
}

/// What Kafka says of our files all the same: segments without records have no indexes, which it
/// makes then, and the workload goes on with a gap in a producer's sequence.
const EXPECTED: [&str; 2] =
    ["Could not find offset index file", "Error processing append operation on partition"];

/// What Kafka leaves: of one that runs beside the broker, or as it was recorded.
fn ask_kafka(jars: Option<&Path>, settings: &Settings) -> (Seen, Option<Ran>) {
    let recording = Recording(here("recorded/kafka-4.4.0-on-disk"));
    let Some(jars) = jars else { return (recording.load(), None) };
    let ran = run_workload(Side::kafka(jars, settings));
    let seen = ran.seen.clone();
    if std::env::var_os("RECORD").is_some() {
        let again = run_workload(Side::kafka(jars, settings));
        let outcome = run::compare(&seen, &again.seen, &[]);
        outcome.print();
        assert!(outcome.wrong.is_empty(), "Kafka does not agree with itself, nothing recorded");
        println!("on disk: {} bytes recorded", recording.store(&seen));
    }
    (seen, Some(ran))
}

#[test]
fn files_are_kafkas() {
    if std::env::var_os("KAFKA_BOOTSTRAP").is_some() {
        println!("SKIPPED: KAFKA_BOOTSTRAP is set and this test stops its broker");
        return;
    }
    let settings = read("recorded/server.properties");
    let lines = settings.lines().filter(|line| !line.starts_with('#'));
    let mut settings: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
    settings.push(STAYS_LONG);
    let jars = kafka::jars();
    let (mut kafka, kafka_ran) = ask_kafka(jars.as_deref(), &settings);
    let ours_ran = run_workload(Side::ours(&settings));
    let mut ours = ours_ran.seen.clone();
    let mut complaints = Vec::new();
    if let (Some(jars), Some(kafka_ran)) = (&jars, kafka_ran) {
        let dumps = [&kafka_ran, &ours_ran].map(|ran| dump::dump(jars, &ran.side.data_dir()));
        let [theirs, mine] = dumps;
        println!("on disk: Kafka's DumpLogSegments read {} files of ours", dump::count(&mine));
        complaints.extend(dump::complaints(&mine));
        kafka.extend(theirs);
        ours.extend(mine);
        complaints.extend(exchange_files(jars, &settings, kafka_ran, ours_ran));
    }
    // How many of the deleted topics' directories are left after a restart is a matter of moments.
    for seen in [&mut kafka, &mut ours] {
        seen.get_mut("second/disk").expect("a directory").remove("leaving");
    }
    let pins = pins();
    let mut outcome = run::compare(&kafka, &ours, &pins);
    for name in kafka.keys().filter(|name| !ours.contains_key(*name)) {
        complaints.push(format!("{name} is not there"));
    }
    if jars.is_some() {
        outcome.find_idle(&kafka, &ours, &pins);
    }
    outcome.print();
    complaints.iter().for_each(|complaint| println!("WRONG: {complaint}"));
    println!(
        "on disk: {} parts compared, {} agree; {} differences, {} of them meant",
        ours.len(),
        outcome.agree,
        outcome.wrong.len() + outcome.pinned,
        outcome.pinned,
    );
    assert!(outcome.bad_cases().is_empty(), "files differ from Kafka's, see above");
    assert!(complaints.is_empty(), "files are not understood as they should be, see above");
}

/// Lets each broker open the files of the other, found as after a crash and as after a clean stop,
/// and go on with them; what is not as at the broker that wrote them.
fn exchange_files(jars: &Path, settings: &Settings, kafka: Ran, ours: Ran) -> Vec<String> {
    let started = Instant::now();
    let mut wrong = Vec::new();
    for (writer, reader) in [(kafka, Side::ours(settings)), (ours, Side::kafka(jars, settings))] {
        let name = format!("{} with the files of {}", reader.name(), writer.side.name());
        let found = exchange_one(writer, reader).unwrap_or_else(|stop| vec![stop.0]);
        wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    println!("on disk: the exchange took {:.0} s", started.elapsed().as_secs_f64());
    wrong
}

fn exchange_one(
    mut writer: Ran,
    mut reader: Side,
) -> Result<Vec<String>, compat_tests::differ::context::Stop> {
    let kept = tempfile::Builder::new().prefix("gracchus-files-").tempdir().expect("no /tmp");
    exchange::keep(&writer.side.data_dir(), kept.path());
    writer.side.start();
    let want = exchange::serve(&mut writer.workload)?;
    let went_on = writer.workload.go_on_elsewhere();
    let want_answers = writer.workload.take_seen(went_on);
    writer.side.stop();
    run::warm_up(reader.address())?;
    let mut workload = writer.workload.moved(reader.address());
    workload.make_topics()?;
    let mut wrong = Vec::new();
    for stopped in [Stopped::Unclean, Stopped::Clean] {
        reader.stop();
        exchange::hand_over(kept.path(), &reader.data_dir(), stopped);
        reader.start();
        let got = exchange::serve(&mut workload)?;
        let found = exchange::compare(&want, &got);
        wrong.extend(found.into_iter().map(|what| format!("{stopped:?}: {what}")));
        println!(
            "on disk: {} serves {} partitions, {} bytes of {}'s files, {stopped:?}",
            reader.name(),
            got.len(),
            exchange::bytes_in(&got),
            writer.side.name(),
        );
    }
    let went_on = workload.go_on_elsewhere();
    wrong.extend(exchange::answers_differ(&want_answers, &workload.take_seen(went_on)));
    reader.stop();
    let log = reader.log_about("a-disk").into_iter();
    let unexpected = log.filter(|line| !EXPECTED.iter().any(|known| line.contains(known)));
    wrong.extend(unexpected.map(|line| format!("log: {line}")));
    Ok(wrong)
}

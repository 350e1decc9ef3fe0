//! The saved corpora of the fuzz targets, run as plain tests.

mod harness;

use std::path::Path;

#[track_caller]
fn run(target: &str, harness: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).expect("the corpus is in the repository");
    let mut paths: Vec<_> = files.map(|entry| entry.expect("can be listed").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no corpus for {target}");
    for path in paths {
        let data = std::fs::read(&path).expect("can be read");
        // Shown only when the test fails.
        println!("{}", path.display());
        harness(&data);
    }
}

#[test]
fn frames() {
    run("frames", harness::messages::any_frames);
}

#[test]
fn requests() {
    run("requests", harness::messages::any_request);
}

#[test]
fn batches() {
    run("batches", harness::batches::any_batches);
}

#[test]
fn inflate() {
    run("inflate", harness::batches::any_compressed);
}

#[test]
fn produce() {
    run("produce", harness::batches::any_produce);
}

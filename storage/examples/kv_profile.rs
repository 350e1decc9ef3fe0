//! Prints what the key-value store costs: time to open, threads, memory, synced writes.
//!
//! `cargo run --release -p storage --example kv_profile [DIR]`

use std::path::PathBuf;
use std::time::Instant;

use storage::kv::{Kv, KvBatch, RocksKv};

fn status(field: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.map_or_else(String::new, |rest| rest.trim_start_matches(':').trim().to_owned())
}

fn report(what: &str, start: Instant) {
    let ms = start.elapsed().as_secs_f64() * 1000.0;
    println!(
        "{what:<28} {ms:>9.2} ms   rss {:>10}   threads {}",
        status("VmRSS"),
        status("Threads")
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = root.join(format!("gracchus-kv-{}", std::process::id()));
    report("start", Instant::now());
    for name in ["create", "open again", "open again"] {
        let start = Instant::now();
        let kv = RocksKv::open(&path)?;
        report(name, start);
        drop(kv);
    }
    let mut kv = RocksKv::open(&path)?;
    let value = [7_u8; 200];
    let start = Instant::now();
    let mut worst = Vec::new();
    for n in 0..1000_u64 {
        let at = Instant::now();
        let mut batch = KvBatch::new();
        batch.put(n.to_be_bytes(), value).put(*b"hard-state", n.to_be_bytes());
        kv.write(batch, true)?;
        worst.push(at.elapsed().as_micros());
    }
    report("1000 synced writes", start);
    worst.sort_unstable();
    let at = |percent: usize| worst.get(worst.len() * percent / 100).copied().unwrap_or_default();
    println!("  synced write: p50 {} us, p99 {} us", at(50), at(99));
    let start = Instant::now();
    for n in 0..100_000_u64 {
        let mut batch = KvBatch::new();
        batch.put(n.to_be_bytes(), value);
        kv.write(batch, false)?;
    }
    report("100k unsynced writes", start);
    drop(kv);
    let start = Instant::now();
    let kv = RocksKv::open(&path)?;
    report("open with 20 MB", start);
    drop(kv);
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

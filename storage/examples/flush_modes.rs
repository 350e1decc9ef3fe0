//! Prints what a group commit costs: files synced one by one, synced by a pool, or journalled.
//!
//! `cargo run --release -p storage --example flush_modes [DIR] [ROUNDS]`
//!
//! Each round appends one batch to every file, flushes them as one group and calls `tick` once, as
//! a busy broker does. The column "settled" is the time in `tick`: the later sync of the segments.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use protocol_compat::batch::BatchHeader;
use storage::disk::{Disk, File, OpenMode, RealDisk, create_dir_durable};
use storage::flush::{Cuts, Dirty, DirtyFile, FlushConfig, Flusher, InTurn, SyncPool, Syncer};

type Failure = Box<dyn std::error::Error>;

/// A partition's segment and where it ends.
struct Log {
    file: Arc<dyn File>,
    path: PathBuf,
    end: u64,
    offset: i64,
}

fn batch(offset: i64, len: usize) -> Vec<u8> {
    let header = BatchHeader {
        base_offset: offset,
        batch_length: i32::try_from(len - 12).unwrap_or(i32::MAX),
        partition_leader_epoch: 0,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: 0,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: 1,
    };
    let mut bytes = header.encode().to_vec();
    bytes.resize(len, 7);
    bytes
}

impl Log {
    fn create(disk: &dyn Disk, dir: &Path, n: usize, len: usize) -> Result<Log, Failure> {
        let dir = dir.join(format!("t-{n}"));
        create_dir_durable(disk, &dir)?;
        let path = dir.join("00000000000000000000.log");
        let file = disk.open(&path, OpenMode::Create)?;
        disk.sync_dir(&dir)?;
        let mut log = Log { file, path, end: 0, offset: 0 };
        log.append(len)?;
        log.file.sync_data()?;
        Ok(log)
    }

    fn append(&mut self, len: usize) -> Result<Dirty, Failure> {
        self.file.write_at(&[&batch(self.offset, len)], self.end)?;
        let from = self.end;
        self.end += len as u64;
        self.offset += 1;
        let file =
            DirtyFile { file: self.file.clone(), path: self.path.clone(), from, to: self.end };
        Ok(Dirty {
            topic_id: uuid::Uuid::nil(),
            files: vec![file],
            dirs: Vec::new(),
            end_offset: self.offset,
            cuts: Cuts::default(),
            cuts_taken: 0,
        })
    }
}

/// CPU time of this process, user and system, in us (from `/proc`, in ticks of 10 ms).
fn cpu_us() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> = after_name.split_whitespace().flat_map(str::parse).collect();
    // The state is a letter and drops out; then utime and stime are the 11th and 12th numbers.
    fields.iter().skip(10).take(2).sum::<u64>() * 10_000
}

fn percentile(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

struct Case {
    name: &'static str,
    files: usize,
    len: usize,
    journal: bool,
    helpers: usize,
}

fn run(root: &Path, rounds: usize, case: &Case) -> Result<(), Failure> {
    let dir = root.join("bench");
    let disk = RealDisk::shared();
    create_dir_durable(&*disk, &dir)?;
    let mut logs = Vec::new();
    for n in 0..case.files {
        logs.push(Log::create(&*disk, &dir, n, case.len)?);
    }
    let config = FlushConfig {
        journal: case.journal,
        direct_files: if case.journal { 0 } else { usize::MAX },
        journal_bytes_per_second: u64::MAX,
        ..FlushConfig::default()
    };
    let open = |clean| {
        let syncer: Box<dyn Syncer> = match case.helpers {
            0 => Box::new(InTurn::default()),
            helpers => Box::new(SyncPool::new(helpers)),
        };
        Flusher::open(disk.clone(), &dir, config, syncer, 1, clean)
    };
    let (mut flusher, _) = open(true)?;
    let (mut times, mut settled) = (Vec::new(), 0.0);
    let (cpu, begin) = (cpu_us(), Instant::now());
    for _ in 0..rounds {
        let mut group = Vec::new();
        for log in &mut logs {
            group.push(log.append(case.len)?);
        }
        let start = Instant::now();
        flusher.flush(&group, i64::try_from(begin.elapsed().as_millis())?)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        flusher.tick(i64::try_from(begin.elapsed().as_millis())?)?;
        settled += start.elapsed().as_secs_f64() * 1e3;
    }
    let cpu = (cpu_us() - cpu) / rounds as u64;
    let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    println!(
        "{:>5} x {:>6} B  {:<16} p50 {p50:>8.2} ms  p99 {p99:>8.2} ms  cpu {cpu:>6} us/round  \
         settled {:>6.2} ms/round",
        case.files,
        case.len,
        case.name,
        settled / rounds as f64,
    );
    drop(flusher);
    let start = Instant::now();
    let (flusher, replayed) = open(false)?;
    if replayed.groups > 0 {
        let ms = start.elapsed().as_secs_f64() * 1e3;
        println!("       replay of {} groups: {ms:.1} ms", replayed.groups);
    }
    flusher.close()?;
    disk.remove_dir_all(&dir)?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let root = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("gracchus-flush-{}", std::process::id()));
    let rounds = args.next().and_then(|text| text.parse().ok()).unwrap_or(200);
    std::fs::create_dir_all(&root)?;
    for len in [1 << 10, 16 << 10] {
        for files in [1, 2, 3, 4, 8, 64] {
            let case = |name, journal, helpers| Case { name, files, len, journal, helpers };
            run(&root, rounds, &case("direct in turn", false, 0))?;
            run(&root, rounds, &case("direct, 4 helpers", false, 4))?;
            run(&root, rounds, &case("journal", true, 0))?;
        }
    }
    std::fs::remove_dir_all(&root)?;
    Ok(())
}

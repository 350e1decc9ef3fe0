//! Crashes at random points over thousands of seeds: every byte that was reported flushed is there
//! afterwards, and nothing else is than what some state of the log since then held.
//!
//! One seed is one life of a log directory: a few rounds, each with random work, a power cut (or a
//! failed sync) at a random call, replay (interrupted, sometimes), and a check. To run more seeds:
//! `GRACCHUS_SEEDS=0..20000 cargo test -p storage flush::`.

mod log;

pub use self::log::batch;

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use self::log::{Batch, Log};
use super::{FlushConfig, FlushError, FlushStats, Flusher, InTurn, Replayed};
use crate::disk::sim::{Fault, FaultOp};
use crate::disk::{Disk, SimConfig, SimDisk, create_dir_durable};

const DIR: &str = "data";

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

struct World {
    disk: SimDisk,
    random: Random,
    logs: Vec<Log>,
    incarnations: u32,
    now_ms: i64,
    /// Whether rolls, cuts and the like are as frequent as appends.
    is_stormy: bool,
    seed: u64,
}

/// What happened over all seeds, to see that the interesting paths were walked.
#[derive(Default, Debug)]
struct Walked {
    journalled: u64,
    settled: u64,
    direct: u64,
    restored: u64,
    gone: u64,
    stale: u64,
    flush_errors: u64,
}

impl Walked {
    fn add(&mut self, stats: FlushStats) {
        self.journalled += stats.journalled_groups;
        self.settled += stats.settled_files;
        self.direct += stats.direct_syncs;
    }

    fn replayed(&mut self, replayed: &Replayed) {
        self.restored += replayed.restored.len() as u64;
        self.gone += replayed.gone;
        self.stale += replayed.stale;
        assert!(!replayed.damaged, "a crash does not damage the superblocks");
    }
}

fn dir_of(n: usize) -> PathBuf {
    Path::new(DIR).join(format!("t-{n}"))
}

impl World {
    fn new(seed: u64) -> World {
        let disk = SimDisk::new(SimConfig::seeded(seed));
        create_dir_durable(&disk, Path::new(DIR)).unwrap();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9));
        let count = 1 + random.below(6) as usize;
        let is_stormy = random.percent(50);
        let (logs, incarnations, now_ms) = (Vec::new(), 0, 0);
        let mut world = World { disk, random, logs, incarnations, now_ms, is_stormy, seed };
        for n in 0..count {
            let log = world.create(n, Uuid::from_u128(n as u128 + 1), 0, 0).unwrap();
            world.logs.push(log);
        }
        world
    }

    fn create(&mut self, n: usize, id: Uuid, start: i64, epoch: i32) -> io::Result<Log> {
        self.incarnations += 1;
        Log::create(&self.disk, &dir_of(n), id, self.incarnations, start, epoch)
    }

    fn open(&mut self) -> Result<(Flusher, Replayed), FlushError> {
        let config = FlushConfig {
            journal: !self.random.percent(5),
            journal_bytes: self.random.pick(&[64 << 10, 96 << 10]),
            journal_step_bytes: 8 << 10,
            direct_file_bytes: self.random.pick(&[700, 6_000, 100_000]),
            direct_files: self.random.pick(&[0, 0, 0, 2]),
            journal_bytes_per_second: self.random.pick(&[20_000, 1 << 30]),
            settle_after_ms: self.random.pick(&[0, 30, 300]),
            settle_files: self.random.pick(&[1, 3]),
            settle_bytes: self.random.pick(&[2_000, 1 << 20]),
            settle_bytes_per_file: 0,
        };
        let secret = u128::from(self.random.below(u64::MAX));
        let disk = self.disk.shared();
        Flusher::open(disk, Path::new(DIR), config, Box::new(InTurn::default()), secret, false)
    }

    /// One thing a broker does to some log.
    fn change_a_log(&mut self) -> io::Result<()> {
        let n = self.random.below(self.logs.len() as u64) as usize;
        // Few sizes, so that batches of different histories end at the same positions.
        let size = self.random.pick(&[40, 40, 40, 101, 700, 5_000]);
        let fill = self.random.pick(&[1, 2]);
        let log = &mut self.logs[n];
        let span = (log.next - log.start) as u64;
        let mut what = self.random.below(100);
        if self.is_stormy && what < 24 {
            what = 79 + what % 21;
        }
        if what >= 79 && self.random.percent(3) {
            // The moments after a change that is not an append are the interesting ones.
            self.disk.cut_power_after(self.random.below(15));
        }
        match what {
            0..79 => log.append(size, fill),
            79..83 => log.roll(&self.disk),
            83..90 => {
                let back = self.random.below(span.min(6) + 1) as i64;
                log.truncate_to(&self.disk, log.next - back)
            }
            90..92 => {
                let there = log.start + self.random.below(span + 3) as i64;
                log.restart_at(&self.disk, there)
            }
            92..94 => log.drop_oldest(&self.disk),
            94..98 => {
                let nth = self.random.below(3) as usize;
                log.replace(&self.disk, nth, fill)
            }
            _ => self.recreate(n),
        }
    }

    /// The partition is deleted and comes back under its old name: the same topic or another.
    fn recreate(&mut self, n: usize) -> io::Result<()> {
        let old = &mut self.logs[n];
        let id = if self.random.percent(50) {
            old.topic_id
        } else {
            Uuid::from_u128(self.random.below(u64::MAX).into())
        };
        let (same, start) = (id == old.topic_id, old.start);
        let (next, epoch) = (old.next, old.epoch + 1);
        old.mark_deleted(&self.disk)?;
        let start = self.random.pick(&[0, start, next]);
        let old = old.batches.clone();
        let mut new = self.create(n, id, start, epoch)?;
        if same {
            // Until something of it is flushed, bytes of the old one may be found in the new one.
            new.versions.push(log::Version { batches: old, flushed: i64::MIN });
        }
        self.logs[n] = new;
        Ok(())
    }

    /// Work until the power fails or a flush does; whether it was the flush.
    fn work(&mut self, flusher: &mut Flusher) -> io::Result<bool> {
        for _ in 0..60 {
            for _ in 0..self.random.below(8) {
                self.change_a_log()?;
            }
            let mut group = Vec::new();
            let share = self.random.pick(&[30, 100]);
            for (n, log) in self.logs.iter_mut().enumerate() {
                if self.random.percent(share) {
                    group.extend(log.take_dirty().map(|dirty| (n, dirty)));
                }
            }
            // The world does not stand still between taking and flushing.
            if self.random.percent(20) {
                self.change_a_log()?;
            }
            let dirty: Vec<_> = group.iter().map(|(_, dirty)| dirty.clone()).collect();
            self.now_ms += self.random.below(20) as i64;
            if flusher.flush(&dirty, self.now_ms).is_err() {
                assert!(matches!(flusher.flush(&dirty, 0), Err(FlushError::Failed)));
                return Ok(true);
            }
            for (n, dirty) in &group {
                self.logs[*n].flushed(dirty);
            }
            if self.random.percent(50) && flusher.tick(self.now_ms).is_err() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn round(&mut self, walked: &mut Walked) -> io::Result<()> {
        let (mut flusher, _) = match self.open() {
            Ok(opened) => opened,
            Err(error) => panic!("seed {}: {error}", self.seed),
        };
        if self.random.percent(20) {
            let nth = self.random.below(60);
            self.disk.inject(Fault::io(FaultOp::Sync, "").nth(nth));
        }
        self.disk.cut_power_after(self.random.below(400));
        let ended = self.work(&mut flusher);
        walked.flush_errors += u64::from(matches!(ended, Ok(true)));
        walked.add(flusher.stats());
        drop(flusher);
        self.restart(walked);
        Ok(())
    }

    /// Crashes, replays, checks every log and takes over what is left.
    fn restart(&mut self, walked: &mut Walked) {
        self.disk = self.disk.crash();
        while self.random.percent(30) {
            self.disk.cut_power_after(self.random.below(30));
            // Also when it got through: the next replay must find the same.
            let _ = self.open();
            self.disk = self.disk.crash();
        }
        let (_, replayed) = self.open().unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
        walked.replayed(&replayed);
        for (n, log) in std::mem::take(&mut self.logs).into_iter().enumerate() {
            let log = self.check(n, log);
            self.logs.push(log);
        }
        // The next process; it must find the journal void.
        self.disk = self.disk.kill();
    }

    fn check(&mut self, n: usize, log: Log) -> Log {
        let context = format!("seed {}, log {n}", self.seed);
        if Log::found_incarnation(&self.disk, &dir_of(n)) != Some(log.incarnation) {
            assert!(!log.acked_once, "{context}: the directory is gone or an old one");
            if self.disk.stat(&dir_of(n)).unwrap().is_some() {
                self.disk.remove_dir_all(&dir_of(n)).unwrap();
            }
            return self.create(n, log.topic_id, log.start, log.epoch).unwrap();
        }
        let found = Log::scan(&self.disk, &dir_of(n), log.start);
        let end = found.last().map_or(i64::MIN, |batch| batch.offset + 1);
        let starts = |batches: &[Batch]| {
            let first = found.first().map_or(i64::MAX, |batch| batch.segment);
            let of_found = batches.iter().filter(|batch| batch.segment >= first);
            found.is_empty() || of_found.take(found.len()).eq(found.iter())
        };
        let must_reach = if log.flushed > log.start { log.flushed } else { i64::MIN };
        let is_current = starts(&log.batches) && end >= must_reach;
        let is_earlier = log.versions.iter().any(|v| starts(&v.batches) && end >= v.flushed);
        let show = |batches: &[Batch]| -> Vec<(i64, i64, i32, usize)> {
            batches.iter().map(|b| (b.segment, b.offset, b.epoch, b.bytes.len())).collect()
        };
        assert!(
            is_current || is_earlier,
            "{context}: must reach {must_reach}\nfound {:?}\nlog {:?}\nearlier {:?}",
            show(&found),
            show(&log.batches),
            log.versions.iter().map(|v| (v.flushed, show(&v.batches))).collect::<Vec<_>>(),
        );
        log.adopt(&self.disk, found).unwrap()
    }
}

/// The seeds asked for in `GRACCHUS_SEEDS`, or the first few.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let text = std::env::var("GRACCHUS_SEEDS").unwrap_or_default();
    let parsed = text.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    parsed.unwrap_or(0..few)
}

#[test]
fn what_was_flushed_survives_every_crash() {
    let mut walked = Walked::default();
    for seed in seeds(400) {
        let mut world = World::new(seed);
        for _ in 0..3 {
            world.round(&mut walked).unwrap();
        }
    }
    println!("{walked:?}");
    assert!(walked.journalled > 500 && walked.settled > 200 && walked.direct > 1000);
    assert!(walked.restored > 30 && walked.gone > 3 && walked.flush_errors > 20);
}

//! What the flusher decides and what it owes: which syncs a group costs, what a failure does, when
//! the journal is made, settled, thrown away. Crashes at random are in `crash_tests`.

use uuid::Uuid;

use super::crash_tests::batch;
use super::*;
use crate::disk::sim::{Fault, FaultKind, FaultOp};
use crate::disk::{OpenMode, SimConfig, SimDisk, create_dir_durable, read_to_vec, write_atomic};

const DIR: &str = "data";

fn strict() -> SimDisk {
    let disk = SimDisk::new(SimConfig { torn_writes: false, ..SimConfig::seeded(1) });
    create_dir_durable(&disk, Path::new(DIR)).unwrap();
    disk
}

fn small_config() -> FlushConfig {
    FlushConfig { journal_bytes: 256 << 10, journal_step_bytes: 16 << 10, ..FlushConfig::default() }
}

fn open_as(disk: &SimDisk, config: FlushConfig, clean: bool) -> (Flusher, Replayed) {
    let dir = Path::new(DIR);
    Flusher::open(disk.shared(), dir, config, Box::new(InTurn::default()), 42, clean).unwrap()
}

fn open(disk: &SimDisk) -> Flusher {
    open_as(disk, small_config(), false).0
}

/// A partition with one segment and its appends.
struct Log {
    file: Arc<dyn File>,
    path: PathBuf,
    topic_id: Uuid,
    next: i64,
    len: u64,
    told: u64,
}

impl Log {
    /// With one batch that is durable.
    fn new(disk: &SimDisk, name: &str) -> Log {
        let dir = Path::new(DIR).join(name);
        create_dir_durable(disk, &dir).unwrap();
        let path = dir.join("00000000000000000000.log");
        let file = disk.open(&path, OpenMode::Create).unwrap();
        disk.sync_dir(&dir).unwrap();
        let topic_id = Uuid::from_u128(7);
        let mut log = Log { file, path, topic_id, next: 0, len: 0, told: 0 };
        log.append(10);
        log.file.sync_data().unwrap();
        log
    }

    fn append(&mut self, payload: usize) -> Dirty {
        let bytes = batch(0, self.next, 0, payload, 1).bytes;
        self.file.write_at(&[&bytes], self.len).unwrap();
        self.next += 1;
        self.len += bytes.len() as u64;
        self.dirty()
    }

    fn dirty(&mut self) -> Dirty {
        let from = std::mem::replace(&mut self.told, self.len);
        let (file, path) = (self.file.clone(), self.path.clone());
        Dirty {
            topic_id: self.topic_id,
            files: vec![DirtyFile { file, path, from, to: self.len }],
            dirs: Vec::new(),
            end_offset: self.next,
            cuts: Cuts::default(),
            cuts_taken: 0,
        }
    }
}

fn logs(disk: &SimDisk, count: usize) -> Vec<Log> {
    (0..count).map(|n| Log::new(disk, &format!("t-{n}"))).collect()
}

fn append_all(logs: &mut [Log], payload: usize) -> Vec<Dirty> {
    logs.iter_mut().map(|log| log.append(payload)).collect()
}

fn len(disk: &SimDisk, path: &Path) -> u64 {
    disk.stat(path).unwrap().map_or(0, |stat| stat.len)
}

/// One group over so many files of so many bytes each: (syncs, directory syncs, journalled groups).
#[track_caller]
fn check_cost(files: usize, payload: usize, config: FlushConfig, want: (u64, u64, u64)) {
    let disk = strict();
    let mut logs = logs(&disk, files);
    let mut flusher = open_as(&disk, config, false).0;
    // The journal is made by the first group that needs it; look at the second.
    flusher.flush(&append_all(&mut logs, payload), 0).unwrap();
    let (before, stats) = (disk.stats(), flusher.stats());
    flusher.flush(&append_all(&mut logs, payload), 0).unwrap();
    let after = disk.stats();
    let journalled = flusher.stats().journalled_groups - stats.journalled_groups;
    let cost = (after.syncs - before.syncs, after.dir_syncs - before.dir_syncs, journalled);
    assert_eq!(cost, want);
    let disk = disk.crash();
    let (_, replayed) = open_as(&disk, config, false);
    for log in &logs {
        assert_eq!(len(&disk, &log.path), log.len);
    }
    assert_eq!(replayed.restored.len() as u64, want.2 * files as u64);
}

#[test]
fn a_group_costs_as_few_syncs_as_it_can() {
    let config = small_config();
    check_cost(1, 100, config, (1, 0, 0));
    check_cost(2, 100, config, (2, 0, 0));
    check_cost(3, 100, config, (1, 0, 1));
    check_cost(30, 100, config, (1, 0, 1));
    check_cost(3, 300 << 10, config, (3, 0, 0)); // Large files are synced.
    check_cost(9, 10_000, config, (9, 0, 0)); // More than a quarter of the ring.
    check_cost(30, 100, FlushConfig { journal: false, ..config }, (30, 0, 0));
    check_cost(30, 100, FlushConfig { direct_files: 30, ..config }, (30, 0, 0));
    check_cost(30, 100, FlushConfig { journal_bytes_per_second: 20_000, ..config }, (30, 0, 0));
}

#[test]
fn the_journal_is_made_on_first_need_and_grows_in_steps() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 4), open(&disk));
    let path = Path::new(DIR).join(JOURNAL_FILE);
    flusher.flush(&append_all(&mut logs[..2], 100), 0).unwrap();
    assert_eq!(flusher.tick(0).unwrap(), None, "nothing to do");
    assert_eq!(len(&disk, &path), 0);
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    assert_eq!(len(&disk, &path), (16 << 10) + format::RING_START);
    for _ in 0..3 {
        flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
        while flusher.tick(0).unwrap() == Some(0) {}
    }
    assert_eq!(len(&disk, &path), (32 << 10) + format::RING_START);
    // Settled, it starts over.
    settle(&mut flusher, 5_000);
    for _ in 0..9 {
        flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
        flusher.settle_all().unwrap();
        while flusher.tick(0).unwrap() == Some(0) {}
    }
    assert_eq!(len(&disk, &path), (32 << 10) + format::RING_START);
}

/// Lets all background work that is due be done.
fn settle(flusher: &mut Flusher, now_ms: i64) {
    let is_soon = |due: Option<i64>| due.is_some_and(|due_ms| due_ms <= now_ms + 5);
    while is_soon(flusher.tick(now_ms).unwrap()) {}
}

#[test]
fn journalled_files_are_settled_when_due() {
    let disk = strict();
    let mut logs = logs(&disk, 40);
    let config = FlushConfig { settle_files: 16, ..small_config() };
    let mut flusher = open_as(&disk, config, false).0;
    flusher.flush(&append_all(&mut logs, 100), 1_000).unwrap();
    assert_eq!(flusher.unsettled(), 40);
    while flusher.tick(1_500).unwrap() == Some(1_500) {} // The journal grows by a step.
    assert_eq!(flusher.tick(1_500).unwrap(), Some(3_000));
    assert_eq!(flusher.unsettled(), 40);
    // Begun, under way, done and the next begun.
    for settled in [0, 0, 16] {
        assert_eq!(flusher.tick(3_000).unwrap(), Some(3_005), "more to do soon");
        assert_eq!(
            (flusher.unsettled(), flusher.stats().settled_files),
            (40 - settled as usize, settled)
        );
    }
    // A file that is synced directly needs no settling.
    flusher.flush(&append_all(&mut logs[38..], 100), 3_000).unwrap();
    settle(&mut flusher, 3_000);
    assert_eq!((flusher.unsettled(), flusher.stats().settled_files), (0, 38));
    assert_eq!(flusher.tick(9_000).unwrap(), None);
    // The mark says that nothing is needed: replay has nothing to do.
    let (_, replayed) = open_as(&disk.crash(), small_config(), false);
    assert_eq!((replayed.groups, replayed.restored.len()), (1, 0));
}

/// Settled files after so many groups of three files, 1,000 bytes each, all at one time.
#[track_caller]
fn check_settled_early(settle_bytes: u64, settle_bytes_per_file: u64, want: std::ops::Range<u64>) {
    let disk = strict();
    let mut logs = logs(&disk, 3);
    let config = FlushConfig { settle_bytes, settle_bytes_per_file, ..small_config() };
    let mut flusher = open_as(&disk, config, false).0;
    for _ in 0..10 {
        flusher.flush(&append_all(&mut logs, 1_000), 0).unwrap();
        flusher.tick(0).unwrap();
    }
    let settled = flusher.stats().settled_files;
    assert!(want.contains(&settled), "{settled}");
}

#[test]
fn what_gathers_fast_is_settled_early() {
    check_settled_early(10_000, 0, 3..16);
    check_settled_early(100_000, 0, 0..1);
    // Many files are worth a longer wait.
    check_settled_early(10_000, 30_000, 0..1);
    check_settled_early(0, 1_000, 9..30);
}

#[test]
fn a_full_ring_settles_before_it_goes_on() {
    let disk = strict();
    let mut logs = logs(&disk, 3);
    let mut flusher = open(&disk);
    for _ in 0..200 {
        flusher.flush(&append_all(&mut logs, 1_000), 0).unwrap();
    }
    let stats = flusher.stats();
    assert_eq!(stats.journalled_groups, 200);
    assert!((3..100).contains(&stats.settled_files), "{stats:?}");
    assert!(len(&disk, &Path::new(DIR).join(JOURNAL_FILE)) <= 256 << 10);
    let disk = disk.crash();
    open(&disk);
    assert!(logs.iter().all(|log| len(&disk, &log.path) == log.len));
}

#[test]
fn a_failed_sync_is_the_end() {
    for name in ["t-1", JOURNAL_FILE] {
        let disk = strict();
        let (mut logs, mut flusher) = (logs(&disk, 3), open(&disk));
        flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
        disk.inject(Fault::io(FaultOp::Sync, name).nth(0));
        let group = append_all(&mut logs, 100);
        let result =
            if name == "t-1" { flusher.flush(&group[1..2], 0) } else { flusher.flush(&group, 0) };
        let Err(FlushError::Sync { path, .. }) = result else { panic!("{result:?}") };
        assert!(path.to_string_lossy().contains(name));
        assert!(matches!(flusher.flush(&group, 0), Err(FlushError::Failed)));
        assert!(matches!(flusher.tick(0), Err(FlushError::Failed)));
        assert!(matches!(flusher.close(), Err(FlushError::Failed)));
    }
}

#[test]
fn a_failed_directory_sync_is_the_end() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 1), open(&disk));
    let mut group = append_all(&mut logs, 100);
    group[0].dirs.push(Path::new(DIR).join("t-0"));
    disk.inject(Fault::io(FaultOp::SyncDir, "t-0").nth(0));
    assert!(matches!(flusher.flush(&group, 0), Err(FlushError::Sync { .. })));
}

/// A directory that is not there any more: fine if its partition was deleted after the group began.
#[track_caller]
fn check_directory_gone(deleted: bool, want: bool) {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 2), open(&disk));
    let mut group = append_all(&mut logs, 10);
    group[0].dirs.push(Path::new(DIR).join("t-0"));
    if deleted {
        group[0].cuts.begin();
    }
    disk.rename(&Path::new(DIR).join("t-0"), &Path::new(DIR).join("t-0.0-delete")).unwrap();
    assert_eq!(flusher.flush(&group, 0).is_ok(), want);
}

#[test]
fn a_partition_deleted_under_the_flush_is_no_failure() {
    check_directory_gone(true, true);
    check_directory_gone(false, false);
}

#[test]
fn a_full_disk_is_gone_around() {
    // No room to make the journal.
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 5), open(&disk));
    disk.inject(Fault::io(FaultOp::Allocate, JOURNAL_FILE).kind(FaultKind::Full));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    assert_eq!((flusher.stats().direct_syncs, flusher.stats().journalled_groups), (5, 0));
    // No room to write it; then room again, after a pause.
    disk.clear_faults();
    flusher.flush(&append_all(&mut logs, 100), 20_000).unwrap();
    disk.inject(Fault::io(FaultOp::Write, JOURNAL_FILE).nth(0).kind(FaultKind::Full));
    flusher.flush(&append_all(&mut logs, 100), 20_000).unwrap();
    flusher.flush(&append_all(&mut logs, 100), 20_001).unwrap();
    assert_eq!((flusher.stats().direct_syncs, flusher.stats().journalled_groups), (15, 1));
    flusher.flush(&append_all(&mut logs, 100), 40_000).unwrap();
    assert_eq!(flusher.stats().journalled_groups, 2);
    let disk = disk.crash();
    open(&disk);
    assert!(logs.iter().all(|log| len(&disk, &log.path) == log.len));
}

#[test]
fn a_clean_stop_leaves_no_journal() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 5), open(&disk));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    flusher.close().unwrap();
    let disk = disk.crash();
    assert_eq!(disk.stat(&Path::new(DIR).join(JOURNAL_FILE)).unwrap(), None);
    assert!(logs.iter().all(|log| len(&disk, &log.path) == log.len));
}

/// Journals one batch in each of three logs, crashes, lets `change` alter what is left, and
/// replays: logs that got their batch back, those gone, those stale.
#[track_caller]
fn check_replay(change: impl FnOnce(&SimDisk), clean: bool, want: (usize, u64, u64)) {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 3), open(&disk));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    let disk = disk.crash();
    change(&disk);
    let (_, replayed) = open_as(&disk, small_config(), clean);
    assert_eq!((replayed.restored.len(), replayed.gone, replayed.stale), want);
    // And never twice.
    let (_, again) = open_as(&disk.crash(), small_config(), clean);
    assert_eq!(again, Replayed::default());
}

#[test]
fn replay_leaves_alone_what_is_not_its_own() {
    let dir = |n: usize| Path::new(DIR).join(format!("t-{n}"));
    let segment = |n: usize| dir(n).join("00000000000000000000.log");
    let metadata = |disk: &SimDisk, id: u128| {
        let id = protocol_compat::ids::topic_id_text(Uuid::from_u128(id));
        let text = format!("version: 0\ntopic_id: {id}");
        write_atomic(disk, &dir(0).join("partition.metadata"), text.as_bytes()).unwrap();
    };
    check_replay(|_| {}, false, (3, 0, 0));
    check_replay(|_| {}, true, (0, 0, 0)); // Another broker stopped cleanly in between.
    check_replay(|disk| metadata(disk, 7), false, (3, 0, 0));
    check_replay(|disk| metadata(disk, 8), false, (2, 1, 0));
    check_replay(|disk| disk.remove_dir_all(&dir(1)).unwrap(), false, (2, 1, 0));
    check_replay(|disk| disk.remove_file(&segment(1)).unwrap(), false, (2, 1, 0));
    let write = |disk: &SimDisk, bytes: &[u8], at: u64| {
        let file = disk.open(&segment(2), OpenMode::Write).unwrap();
        file.write_at(&[bytes], at).unwrap();
    };
    // The batch before is another one; the batch itself is a later leader's; only torn.
    check_replay(|disk| write(disk, &batch(0, 0, 1, 10, 1).bytes, 0), false, (2, 0, 1));
    check_replay(|disk| write(disk, &batch(0, 1, 1, 90, 1).bytes, 71), false, (2, 0, 1));
    check_replay(|disk| write(disk, &batch(0, 1, 1, 90, 1).bytes[..140], 71), false, (3, 0, 0));
    check_replay(|disk| write(disk, &batch(0, 1, 0, 100, 1).bytes, 71), false, (2, 0, 0));
}

#[test]
fn rot_in_the_journal_loses_no_more_than_it_must() {
    let journal = Path::new(DIR).join(JOURNAL_FILE);
    let rot = |at: u64| {
        let journal = journal.clone();
        move |disk: &SimDisk| disk.corrupt(&journal, at, 1).unwrap()
    };
    check_replay(rot(20), false, (3, 0, 0)); // One superblock is enough.
    check_replay(rot(format::BLOCK + 20), false, (3, 0, 0));
    check_replay(rot(format::RING_START + 10), false, (0, 0, 0));
    check_replay(rot(format::RING_START + 100), false, (0, 0, 0));
}

#[test]
fn both_superblocks_rotten_is_reported() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 3), open(&disk));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    let disk = disk.crash();
    for at in [0, format::BLOCK] {
        disk.corrupt(&Path::new(DIR).join(JOURNAL_FILE), at, 1).unwrap();
    }
    assert!(open_as(&disk, small_config(), false).1.damaged);
}

#[test]
fn a_journal_of_a_newer_version_is_refused() {
    let disk = strict();
    let path = Path::new(DIR).join(JOURNAL_FILE);
    let stamp = Stamp { secret: 1, incarnation: 1 };
    let mut bytes = format::Superblock { stamp, size: 1 << 20 }.encode();
    bytes[11] = 9;
    let crc = crc32c::crc32c(&bytes[..508]);
    bytes[508..].copy_from_slice(&crc.to_be_bytes());
    write_atomic(&disk, &path, &bytes).unwrap();
    let dir = Path::new(DIR);
    let result =
        Flusher::open(disk.shared(), dir, small_config(), Box::new(InTurn::default()), 1, false)
            .map(drop);
    assert!(matches!(result, Err(FlushError::TooNew { version: 9, .. })));
}

#[test]
fn payload_cannot_forge_a_group() {
    // A client knows the format, the sequence and everything else but the secret.
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 3), open(&disk));
    let key = SegmentKey { dir: "t-1".to_owned(), base_offset: 0 };
    let header = read_to_vec(&disk, &logs[1].path, 61).unwrap_or_default();
    let mut forged = format::GroupBuilder::new(Vec::new());
    let context = format::Context::of(71, &header);
    forged.put_bytes(&key, Uuid::nil(), 71, context, 100).fill(b'!');
    let forged = forged.seal(Stamp { secret: 43, incarnation: 1 }, 2, 2);
    let path = Path::new(DIR).join(JOURNAL_FILE);
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    let file = disk.open(&path, OpenMode::Write).unwrap();
    file.write_at(&[&forged], format::RING_START + format::BLOCK).unwrap();
    file.sync_data().unwrap();
    let disk = disk.crash();
    let (_, replayed) = open_as(&disk, small_config(), false);
    assert_eq!((replayed.groups, replayed.restored.len()), (1, 3));
    assert_eq!(len(&disk, &logs[1].path), logs[1].len);
}

#[test]
fn a_log_that_was_cut_meanwhile_is_synced_not_journalled() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 5), open(&disk));
    let group = append_all(&mut logs, 100);
    group[3].cuts.begin();
    flusher.flush(&group, 0).unwrap();
    assert!(!group[3].is_current() && group[2].is_current());
    assert_eq!((flusher.unsettled(), flusher.stats().direct_syncs), (4, 1));
}

#[test]
fn a_killed_process_leaves_bytes_in_the_cache_that_replay_syncs() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 5), open(&disk));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    let disk = disk.kill();
    let (_, replayed) = open_as(&disk, small_config(), false);
    assert_eq!(replayed.restored.len(), 0, "nothing is missing");
    let disk = disk.crash();
    assert!(logs.iter().all(|log| len(&disk, &log.path) == log.len));
}

#[test]
fn the_pool_syncs_all_and_reports_a_failure() {
    let disk = strict();
    let logs = logs(&disk, 20);
    let files: Vec<_> = logs.iter().map(|log| Target::File(log.file.clone())).collect();
    let pool = SyncPool::new(3);
    for count in [0, 1, 20] {
        let before = disk.stats().syncs;
        pool.sync(&files[..count]).unwrap();
        assert_eq!(disk.stats().syncs - before, count as u64);
    }
    disk.inject(Fault::io(FaultOp::Sync, "t-7/"));
    let (at, error) = pool.sync(&files).unwrap_err();
    assert_eq!((at, error.raw_os_error()), (7, Some(5)));
    disk.clear_faults();
    pool.sync(&files).unwrap();
}

#[test]
fn the_pool_syncs_in_the_background_and_reports_a_failure() {
    let disk = strict();
    let logs = logs(&disk, 20);
    let files: Vec<_> = logs.iter().map(|log| Target::File(log.file.clone())).collect();
    let mut pool = SyncPool::new(3);
    for _ in 0..2 {
        let before = disk.stats().syncs;
        pool.begin(files.clone());
        pool.sync(&files[..2]).unwrap();
        pool.wait().unwrap();
        assert_eq!(disk.stats().syncs - before, 22);
        assert!(pool.poll().is_none(), "nothing was begun");
    }
    disk.inject(Fault::io(FaultOp::Sync, "t-7/"));
    pool.begin(files);
    let failed = loop {
        match pool.poll() {
            Some(synced) => break synced.unwrap_err(),
            None => std::thread::yield_now(),
        }
    };
    assert_eq!((failed.0, failed.1.raw_os_error()), (7, Some(5)));
}

#[test]
fn what_is_settled_in_the_background_is_still_in_the_journal() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 5), open(&disk));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    flusher.tick(5_000).unwrap();
    // Begun, not done: nothing may take the items' place, whatever comes meanwhile.
    assert_eq!(flusher.unsettled(), 5);
    flusher.flush(&append_all(&mut logs[..4], 100), 5_000).unwrap();
    let disk = disk.crash();
    let (_, replayed) = open_as(&disk, small_config(), false);
    assert_eq!(replayed.restored.len(), 5);
    assert!(logs.iter().all(|log| len(&disk, &log.path) == log.len));
}

/// Syncs at once what is to be synced in the background, and tells only who waits.
struct Early(Option<Synced>);

impl Syncer for Early {
    fn sync(&self, targets: &[Target]) -> Synced {
        InTurn::default().sync(targets)
    }

    fn begin(&mut self, targets: Vec<Target>) {
        self.0 = Some(self.sync(&targets));
    }

    fn poll(&mut self) -> Option<Synced> {
        None
    }

    fn wait(&mut self) -> Synced {
        self.0.take().expect("one was begun")
    }
}

/// The kernel tells only one sync of a file of bytes that could not be written.
#[test]
fn a_failure_that_the_background_saw_is_not_missed() {
    let disk = strict();
    let mut logs = logs(&disk, 5);
    let (dir, early) = (Path::new(DIR), Box::new(Early(None)));
    let opened = Flusher::open(disk.shared(), dir, small_config(), early, 42, false);
    let mut flusher = opened.unwrap().0;
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    disk.inject(Fault::io(FaultOp::Sync, "t-3/").nth(0));
    flusher.tick(5_000).unwrap();
    let result = flusher.flush(&append_all(&mut logs[3..4], 100), 5_000);
    let Err(FlushError::Sync { path, .. }) = result else { panic!("{result:?}") };
    assert!(path.starts_with(Path::new(DIR).join("t-3")));
}

#[test]
fn a_failed_background_sync_is_the_end() {
    let disk = strict();
    let (mut logs, mut flusher) = (logs(&disk, 5), open(&disk));
    flusher.flush(&append_all(&mut logs, 100), 0).unwrap();
    disk.inject(Fault::io(FaultOp::Sync, "t-3/").nth(0));
    assert_eq!(flusher.tick(5_000).unwrap(), Some(5_005));
    flusher.flush(&append_all(&mut logs, 100), 5_000).unwrap();
    let result = flusher.flush(&append_all(&mut logs, 100), 5_001);
    let Err(FlushError::Sync { path, .. }) = result else { panic!("{result:?}") };
    assert!(path.starts_with(Path::new(DIR).join("t-3")));
    assert!(matches!(flusher.tick(5_001), Err(FlushError::Failed)));
}

//! Both disks against the suite; then what only the simulated one can do: crash, fill up, fail.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::sim::{Fault, FaultKind, FaultOp};
use super::*;

fn strict() -> SimDisk {
    SimDisk::new(SimConfig { torn_writes: false, ..SimConfig::seeded(1) })
}

fn text(disk: &dyn Disk, path: &str) -> Option<String> {
    let bytes = read_to_vec(disk, Path::new(path), 1 << 20).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn put(disk: &dyn Disk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), OpenMode::Create).unwrap();
    file.write_at(&[bytes], 0).unwrap();
    file
}

fn sync_dir(disk: &dyn Disk, path: &str) {
    disk.sync_dir(Path::new(path)).unwrap();
}

#[test]
fn real_disk_conforms() {
    let dir = tempfile::tempdir().unwrap();
    conformance::run(&RealDisk, dir.path()).unwrap();
}

#[test]
fn simulated_disk_conforms() {
    for seed in 0..4 {
        conformance::run(&SimDisk::new(SimConfig::seeded(seed)), Path::new("/")).unwrap();
    }
    conformance::run(&strict(), Path::new("relative")).unwrap();
}

#[test]
fn a_crash_keeps_synced_bytes_and_synced_names_only() {
    let disk = strict();
    let both = put(&disk, "both", b"kept");
    both.sync_data().unwrap();
    both.write_at(&[b"LOST"], 2).unwrap();
    put(&disk, "only-name", b"abc");
    sync_dir(&disk, "/");
    put(&disk, "only-bytes", b"abc").sync_data().unwrap();
    let disk = disk.crash();
    assert_eq!(text(&disk, "both").as_deref(), Some("kept"));
    assert_eq!(text(&disk, "only-name").as_deref(), Some(""));
    assert_eq!(text(&disk, "only-bytes"), None);
}

#[test]
fn unsynced_renames_and_removals_are_undone() {
    let disk = strict();
    for name in ["a", "b", "gone"] {
        put(&disk, name, name.as_bytes()).sync_data().unwrap();
    }
    disk.create_dir_all(Path::new("dir/sub")).unwrap();
    sync_dir(&disk, "/");
    disk.rename(Path::new("a"), Path::new("b")).unwrap();
    disk.remove_file(Path::new("gone")).unwrap();
    disk.rename(Path::new("dir"), Path::new("dir2")).unwrap();
    let disk = disk.crash();
    for name in ["a", "b", "gone"] {
        assert_eq!(text(&disk, name).as_deref(), Some(name));
    }
    assert!(disk.stat(Path::new("dir")).unwrap().is_some());
    assert!(disk.stat(Path::new("dir2")).unwrap().is_none());
    assert!(disk.stat(Path::new("dir/sub")).unwrap().is_none(), "dir itself was not synced");
    disk.rename(Path::new("a"), Path::new("b")).unwrap();
    sync_dir(&disk, "/");
    let disk = disk.crash();
    assert_eq!(text(&disk, "b").as_deref(), Some("a"));
    assert_eq!(text(&disk, "a"), None);
}

#[test]
fn write_atomic_and_create_dir_durable_survive_a_crash() {
    for calls in 0..40 {
        let disk = strict();
        write_atomic(&disk, Path::new("f"), b"old").unwrap();
        disk.cut_power_after(calls);
        let result = write_atomic(&disk, Path::new("f"), b"new");
        let made = create_dir_durable(&disk, Path::new("x/y"));
        let disk = disk.crash();
        let now = text(&disk, "f");
        match result {
            Ok(()) => assert_eq!(now.as_deref(), Some("new")),
            Err(_) => assert!(now.as_deref() == Some("old") || now.as_deref() == Some("new")),
        }
        assert!(made.is_err() || disk.stat(Path::new("x/y")).unwrap().is_some());
    }
}

/// What survives of an unsynced append after a synced prefix, over many seeds.
fn survivors(seeds: u64) -> Vec<Vec<u8>> {
    let survivor = |seed| {
        let disk = SimDisk::new(SimConfig::seeded(seed));
        let file = put(&disk, "f", &[1; 1000]);
        file.sync_data().unwrap();
        sync_dir(&disk, "/");
        file.write_at(&[&[2; 9000]], 1000).unwrap();
        read_to_vec(&disk.crash(), Path::new("f"), 1 << 20).unwrap()
    };
    (0..seeds).map(survivor).collect()
}

#[test]
fn torn_writes_come_in_every_shape_and_never_touch_synced_bytes() {
    let all = survivors(300);
    assert!(all.iter().all(|bytes| bytes.iter().take(1000).all(|byte| *byte == 1)));
    assert!(all.iter().all(|bytes| (1000..=10_000).contains(&bytes.len())));
    assert!(all.iter().any(|bytes| bytes.len() == 1000), "all lost");
    assert!(all.iter().any(|bytes| bytes.len() == 10_000 && !bytes.contains(&0)), "all kept");
    assert!(all.iter().any(|bytes| bytes.len() < 10_000 && bytes.len() > 1000), "a prefix");
    let hole = |bytes: &Vec<u8>| bytes.iter().skip(1000).any(|byte| *byte == 0);
    assert!(all.iter().any(hole), "holes of zeros");
    assert_eq!(all, survivors(300), "the same from the same seed");
}

#[test]
fn a_failed_sync_cleans_the_pages_and_loses_the_bytes() {
    for kind in [FaultKind::Io, FaultKind::Lie] {
        let disk = strict();
        let file = put(&disk, "f", b"first");
        file.sync_data().unwrap();
        sync_dir(&disk, "/");
        file.write_at(&[b"SECOND"], 0).unwrap();
        disk.inject(Fault::io(FaultOp::Sync, "f").nth(0).kind(kind));
        assert_eq!(file.sync_data().is_ok(), kind == FaultKind::Lie);
        file.sync_data().unwrap();
        assert_eq!(text(&disk, "f").as_deref(), Some("SECOND"), "the cache still answers");
        let disk = disk.crash();
        assert_eq!(text(&disk, "f").as_deref(), Some("first\0"), "length reached the disk");
    }
}

#[test]
fn faults_hit_by_path_and_by_count() {
    let disk = strict();
    let (a, b) = (put(&disk, "dir-a", b"x"), put(&disk, "dir-b", b"x"));
    disk.inject(Fault::io(FaultOp::Write, "-a").nth(1));
    disk.inject(Fault::io(FaultOp::Read, "-b"));
    let write = |file: &Arc<dyn File>| file.write_at(&[b"yy"], 0).is_ok();
    assert_eq!([write(&a), write(&b), write(&a), write(&a)], [true, true, false, true]);
    let mut buf = [0; 1];
    assert_eq!(b.read_at(&mut buf, 0).unwrap_err().raw_os_error(), Some(5));
    assert!(a.read_at(&mut buf, 0).is_ok());
    disk.clear_faults();
    assert!(b.read_at(&mut buf, 0).is_ok());
    disk.inject(Fault::io(FaultOp::Rename, "c").kind(FaultKind::Full));
    let error = disk.rename(Path::new("dir-a"), Path::new("c")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

#[test]
fn a_full_disk_refuses_and_heals() {
    let disk = strict();
    disk.set_capacity(4 * 4096);
    let file = put(&disk, "f", &[1; 4096]);
    let error = file.write_at(&[&[2; 5 * 4096]], 4096).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 4 * 4096, "what fitted is written");
    let full = |result: io::Result<()>| result.unwrap_err().kind() == ErrorKind::StorageFull;
    assert!(full(disk.open(Path::new("g"), OpenMode::Create).map(drop)));
    assert!(full(file.allocate(4 * 4096, 1)));
    assert_eq!(disk.space(Path::new("/")).unwrap().usable, 0);
    file.write_at(&[&[3; 4096]], 0).unwrap(); // In place: needs no room.
    file.set_len(4096).unwrap();
    let other = put(&disk, "g", &[1; 2 * 4096]);
    disk.remove_file(Path::new("g")).unwrap();
    assert_eq!(disk.space(Path::new("/")).unwrap().usable, 3 * 4096);
    other.write_at(&[&[1; 8 * 4096]], 0).unwrap(); // Without a name it counts no more.
    file.write_at(&[&[4; 3 * 4096]], 4096).unwrap();
}

#[test]
fn restart_kills_handles_and_frees_locks() {
    let disk = strict();
    let file = put(&disk, "f", b"abc");
    let held = disk.lock(Path::new("l")).unwrap();
    let next = disk.kill();
    assert_eq!(text(&next, "f").as_deref(), Some("abc"), "the page cache outlives the process");
    assert!(file.write_at(&[b"z"], 0).is_err());
    assert!(file.sync_data().is_err());
    assert!(disk.open(Path::new("f"), OpenMode::Read).is_err());
    let again = next.lock(Path::new("l")).unwrap();
    drop(held);
    assert_eq!(next.lock(Path::new("l")).err().unwrap().kind(), ErrorKind::WouldBlock);
    drop(again);
    drop(next.lock(Path::new("l")).unwrap());
}

#[test]
fn power_fails_at_the_chosen_call() {
    let disk = strict();
    disk.cut_power_after(2);
    let file = disk.open(Path::new("f"), OpenMode::Create).unwrap();
    file.write_at(&[b"ab"], 0).unwrap();
    assert!(file.write_at(&[b"cd"], 2).is_err());
    assert!(disk.power_is_off());
    assert!(file.len().is_err() && disk.list(Path::new("/")).is_err());
    let disk = disk.crash();
    assert_eq!(disk.list(Path::new("/")).unwrap(), []);
}

#[test]
fn bit_rot_shows_now_and_after_a_crash() {
    let disk = strict();
    put(&disk, "f", b"abc").sync_data().unwrap();
    sync_dir(&disk, "/");
    disk.corrupt(Path::new("f"), 1, 0x20).unwrap();
    assert_eq!(text(&disk, "f").as_deref(), Some("aBc"));
    assert_eq!(text(&disk.crash(), "f").as_deref(), Some("aBc"));
}

#[test]
fn stats_count_calls() {
    let disk = strict();
    let file = put(&disk, "f", b"abc");
    file.sync_data().unwrap();
    sync_dir(&disk, "/");
    let stats = disk.stats();
    assert_eq!((stats.writes, stats.bytes_written, stats.syncs, stats.dir_syncs), (1, 3, 1, 1));
}

#[test]
fn parents_and_suffixes() {
    let check = |path: &str, want: &str| assert_eq!(parent(Path::new(path)), Path::new(want));
    check("a/b", "a");
    check("a", ".");
    check("/a", "/");
    check("/", "/");
    assert_eq!(suffixed(Path::new("a/b.log"), ".tmp"), PathBuf::from("a/b.log.tmp"));
}

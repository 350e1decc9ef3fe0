//! Opening, refusing and listing log directories; the texts of their small files.

use std::io::ErrorKind;

use super::meta::MetaProperties;
use super::*;
use crate::disk::sim::{Fault, FaultKind, FaultOp};
use crate::disk::{RealDisk, SimConfig, SimDisk, create_dir_durable};

const DIR: &str = "data/logs";

fn owner() -> Owner {
    Owner {
        cluster_id: Some("MkU3OEVBNTcwNTJENDM2Qk".to_owned()),
        node_id: 7,
        new_directory_id: Uuid::from_u128(0x1234_5678_9abc_def0_1111_2222_3333_4444),
    }
}

fn strict() -> SimDisk {
    SimDisk::new(SimConfig { torn_writes: false, ..SimConfig::seeded(1) })
}

fn open(disk: &SimDisk, owner: &Owner) -> Result<LogDir, DirError> {
    LogDir::open(disk.shared(), Path::new(DIR), owner)
}

fn put(disk: &dyn Disk, name: &str, bytes: &[u8]) {
    create_dir_durable(disk, Path::new(DIR)).unwrap();
    write_atomic(disk, &Path::new(DIR).join(name), bytes).unwrap();
}

fn text(disk: &dyn Disk, name: &str) -> String {
    let bytes = read_to_vec(disk, &Path::new(DIR).join(name), 1 << 20).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_new_directory_gets_an_identity_that_lasts() {
    let disk = strict();
    let dir = open(&disk, &owner()).unwrap();
    assert_eq!((dir.node_id(), dir.clean_stop()), (7, None));
    let disk = disk.crash();
    let want = "#\n# Written by Gracchus\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n\
        directory.id=EjRWeJq83vARESIiMzNERA\ngracchus.format.version=1\nnode.id=7\nversion=1\n";
    assert_eq!(text(&disk, META_FILE), want);
    let other = Owner { new_directory_id: Uuid::from_u128(u128::MAX), ..owner() };
    let again = open(&disk, &other).unwrap();
    assert_eq!(again.directory_id(), owner().new_directory_id);
    assert_eq!(again.cluster_id(), owner().cluster_id.as_deref());
}

#[test]
fn kafkas_own_file_is_taken_over() {
    let disk = strict();
    let kafka = "#\n#Wed Nov 25 02:43:25 UTC 2026\nnode.id=7\ndirectory.id=EjRWeJq83vARESIiMzNERA\n\
        version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nsome.key=a\\:b\n";
    put(&disk, META_FILE, kafka.as_bytes());
    let dir = open(&disk, &owner()).unwrap();
    assert_eq!(dir.directory_id(), owner().new_directory_id);
    assert!(
        text(&disk, META_FILE).contains("gracchus.format.version=1\nnode.id=7\nsome.key=a\\:b")
    );
}

#[test]
fn a_cluster_id_may_come_later() {
    let disk = strict();
    let nobody = Owner { cluster_id: None, ..owner() };
    let mut dir = open(&disk, &nobody).unwrap();
    assert_eq!(dir.cluster_id(), None);
    dir.set_cluster_id("first").unwrap();
    dir.set_cluster_id("first").unwrap();
    assert!(matches!(dir.set_cluster_id("second"), Err(DirError::WrongCluster { .. })));
    let disk = disk.crash();
    assert_eq!(open(&disk, &nobody).unwrap().cluster_id(), Some("first"));
}

/// Opens a directory that holds `meta`; the error must contain every one of `want`.
#[track_caller]
fn check_refused(meta: &str, want: &[&str]) {
    let disk = strict();
    put(&disk, META_FILE, meta.as_bytes());
    put(&disk, CLEAN_STOP_FILE, b"");
    let error = open(&disk, &owner()).err().expect("should be refused").to_string();
    assert!(want.iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(text(&disk, META_FILE), meta, "a refused directory is left as it was");
    assert_eq!(text(&disk, CLEAN_STOP_FILE), "");
}

#[test]
fn wrong_identities_are_refused() {
    check_refused("version=1\nnode.id=8\n", &["data/logs", "belongs to node 8", "this is node 7"]);
    check_refused("version=1\nnode.id=7\ncluster.id=x\n", &["data/logs", "cluster x", "MkU3"]);
    check_refused("version=2\nnode.id=7\n", &["meta.properties", "version is 2", "newer"]);
    let newer = "version=1\nnode.id=7\ngracchus.format.version=2\n";
    check_refused(newer, &["gracchus.format.version is 2", "knows 1", "newer"]);
    check_refused("version=1\n", &["damaged", "node.id is missing"]);
    check_refused("", &["damaged", "broker.id is missing"]);
    check_refused("version=one\nnode.id=7\n", &["version is \"one\""]);
    check_refused("version=1\nnode.id=-7\n", &["node.id is \"-7\""]);
    check_refused("version=1\nnode.id=4000000000\n", &["node.id is 4000000000"]);
    check_refused("version=1\nnode.id=7\ndirectory.id=x\n", &["directory.id \"x\" is not an id"]);
    check_refused("version=1\nnode.id=7\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", &["reserved"]);
    check_refused(&"#".repeat(SMALL_FILE_BYTES_MAX + 1).replace("##", "#\n"), &["damaged"]);
}

#[test]
fn old_files_and_odd_properties_are_read() {
    let check = |text: &str, node_id| {
        let meta = MetaProperties::parse(text).unwrap();
        assert_eq!((meta.node_id, meta.cluster_id.as_deref()), (node_id, Some("c=1 x")));
        assert_eq!(MetaProperties::parse(&meta.print()).unwrap(), meta);
    };
    check("version=0\nbroker.id=3\ncluster.id=c\\=1 x\n", 3);
    check("broker.id : 3\r\n! note\r\n  cluster.id   c\\u003d1\\ x\r\n", 3);
    check("version:1\nnode.id 9\ncluster.id=c=1 x\nother\\ key\\:=v\\\\\\t\\n", 9);
}

#[test]
fn a_second_process_is_told_who_holds_the_directory() {
    let disk = strict();
    let held = open(&disk, &owner()).unwrap();
    let error = open(&disk, &owner()).err().unwrap();
    assert!(matches!(error, DirError::Locked { .. }));
    let error = error.to_string();
    assert!(error.contains("data/logs is in use") && error.contains("Apache Kafka"), "{error}");
    drop(held);
    open(&disk, &owner()).unwrap();
}

#[test]
fn the_real_lock_excludes_a_second_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    let held = LogDir::open(RealDisk::shared(), &path, &owner()).unwrap();
    let second = LogDir::open(RealDisk::shared(), &path, &owner());
    assert!(matches!(second, Err(DirError::Locked { .. })));
    held.close(3).unwrap();
    let again = LogDir::open(RealDisk::shared(), &path, &owner()).unwrap();
    assert_eq!(again.clean_stop(), Some(CleanStop { broker_epoch: Some(3) }));
}

#[test]
fn unusable_directories_say_what_failed() {
    let check = |fault: Fault, want: &str| {
        let disk = strict();
        disk.inject(fault);
        let error = open(&disk, &owner()).err().unwrap().to_string();
        assert!(error.contains("data/logs cannot be used") && error.contains(want), "{error}");
    };
    check(Fault::io(FaultOp::Create, DIR), "cannot create it");
    check(Fault::io(FaultOp::Create, LOCK_FILE), "cannot take its lock file");
    check(Fault::io(FaultOp::Create, PROBE_FILE), "cannot write to it");
    check(Fault::io(FaultOp::Write, META_FILE).kind(FaultKind::Full), "meta.properties");
    let disk = strict();
    disk.create_dir_all(Path::new("data")).unwrap();
    disk.open(Path::new(DIR), OpenMode::Create).unwrap();
    assert!(matches!(open(&disk, &owner()), Err(DirError::Unusable { .. })), "a file in its place");
}

#[test]
fn the_clean_stop_marker_counts_once() {
    let disk = strict();
    open(&disk, &owner()).unwrap().close(42).unwrap();
    let disk = disk.crash();
    assert_eq!(text(&disk, CLEAN_STOP_FILE), "{\"version\":0,\"brokerEpoch\":42}");
    let dir = open(&disk, &owner()).unwrap();
    assert_eq!(dir.clean_stop(), Some(CleanStop { broker_epoch: Some(42) }));
    let disk = disk.crash();
    let dir = open(&disk, &owner()).unwrap();
    assert_eq!(dir.clean_stop(), None, "the removal is durable before anything is served");
}

#[test]
fn markers_of_all_kinds() {
    let check = |text: &str, want| {
        let disk = strict();
        put(&disk, CLEAN_STOP_FILE, text.as_bytes());
        let found = open(&disk, &owner()).unwrap().clean_stop();
        assert_eq!(found, Some(CleanStop { broker_epoch: want }));
    };
    check("", None);
    check("{ \"brokerEpoch\" : 12 , \"version\": 0 }\n", Some(12));
    check("{\"version\":0,\"brokerEpoch\":-1}", None);
    check("{\"version\":1,\"brokerEpoch\":5}", None);
    check("{\"version\":0,\"brokerEpoch\":99999999999999999999}", None);
    check("nonsense", None);
}

#[test]
fn directories_are_told_apart_by_name() {
    let disk = strict();
    let dir = open(&disk, &owner()).unwrap();
    let hex = "0123456789abcdef0123456789abcdef";
    for name in [
        "orders-0".to_owned(),
        "orders-10".to_owned(),
        "a.b-delete-3".to_owned(),
        "x-stray-1".to_owned(),
        format!("orders-1.{hex}-delete"),
        format!("cut-topic.{hex}-delete"),
        format!("orders-2.{hex}-stray"),
        format!("orders-3.{hex}-future"),
        "__cluster_metadata-0".to_owned(),
        "lost+found".to_owned(),
        "orders-01".to_owned(),
        "orders--1".to_owned(),
        "orders-2147483648".to_owned(),
        "-1".to_owned(),
        "metadata".to_owned(),
    ] {
        disk.create_dir_all(&Path::new(DIR).join(name)).unwrap();
    }
    disk.open(&Path::new(DIR).join("file-0"), OpenMode::Create).unwrap();
    let listing = dir.list().unwrap();
    let partitions: Vec<String> = listing.partitions.iter().map(|p| p.tp.to_string()).collect();
    assert_eq!(partitions, ["a.b-delete-3", "orders--1", "orders-0", "orders-10", "x-stray-1"]);
    let at = |name: &str| Path::new(DIR).join(name);
    assert_eq!(listing.partitions[2].path, at("orders-0"));
    assert_eq!(dir.partition_path(&listing.partitions[2].tp), at("orders-0"));
    assert_eq!(listing.deleted.len(), 2);
    assert_eq!(listing.stray, [at(&format!("orders-2.{hex}-stray"))]);
    assert_eq!(listing.future, [at(&format!("orders-3.{hex}-future"))]);
    assert_eq!(listing.other.len(), 6);
}

#[test]
fn a_directory_that_disappears_is_reported() {
    let disk = strict();
    let dir = open(&disk, &owner()).unwrap();
    disk.remove_dir_all(Path::new(DIR)).unwrap();
    let error = dir.list().err().unwrap();
    let DirError::Unusable { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::NotFound);
}

#[test]
fn a_failed_sync_is_remembered_until_a_clean_stop() {
    let disk = strict();
    assert!(!open(&disk, &owner()).unwrap().sync_failed());
    note_failed_sync(&disk, Path::new(DIR)).unwrap();
    let disk = disk.kill();
    let dir = open(&disk, &owner()).unwrap();
    assert!(dir.sync_failed());
    let disk = disk.kill();
    let dir = open(&disk, &owner()).unwrap();
    assert!(dir.sync_failed());
    dir.close(1).unwrap();
    assert!(!open(&disk, &owner()).unwrap().sync_failed());
}

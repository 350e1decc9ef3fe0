//! Both stores against the suite, then what each alone promises.

use super::*;

fn put(kv: &mut dyn Kv, key: &str, sync: bool) -> Result<(), KvError> {
    let mut batch = KvBatch::new();
    batch.put(key, "v");
    kv.write(batch, sync)
}

fn keys(kv: &dyn Kv) -> String {
    let pairs = kv.scan(b"", b"~", 100).unwrap();
    pairs.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect()
}

#[test]
fn memory_conforms() {
    conformance::run(&mut MemStore::new().open()).unwrap();
}

#[test]
fn rocks_conforms_and_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kv");
    let mut kv = RocksKv::open(&path).unwrap();
    conformance::run(&mut kv).unwrap();
    put(&mut kv, "last", false).unwrap();
    let second = RocksKv::open(&path).err().unwrap();
    assert!(matches!(second, KvError::Io(_)), "{second}");
    drop(kv);
    let kv = RocksKv::open(&path).unwrap();
    assert_eq!(kv.get(b"last").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn rocks_reports_a_directory_it_cannot_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-file");
    std::fs::write(&path, b"x").unwrap();
    assert!(matches!(RocksKv::open(&path).err().unwrap(), KvError::Io(_)));
}

#[test]
fn rocks_reports_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kv");
    drop(RocksKv::open(&path).unwrap());
    std::fs::write(path.join("CURRENT"), b"nonsense").unwrap();
    assert!(matches!(RocksKv::open(&path).err().unwrap(), KvError::Corrupt(_)));
}

/// Writes `a` synced, `b` and `c` not, crashes with so many survivors, and compares.
#[track_caller]
fn check_crash(survivors: usize, want: &str) {
    let store = MemStore::new();
    let mut kv = store.open();
    put(&mut kv, "a", true).unwrap();
    put(&mut kv, "b", false).unwrap();
    put(&mut kv, "c", false).unwrap();
    assert_eq!((keys(&kv).as_str(), store.unsynced()), ("abc", 2));
    store.crash(survivors);
    assert!(kv.get(b"a").is_err() && put(&mut kv, "d", true).is_err());
    let mut kv = store.open();
    assert_eq!(keys(&kv), want);
    // A synced write carries every write before it.
    put(&mut kv, "x", false).unwrap();
    put(&mut kv, "y", true).unwrap();
    store.crash(0);
    assert_eq!(keys(&store.open()), format!("{want}xy"));
}

#[test]
fn a_crash_loses_unsynced_batches_from_the_end() {
    check_crash(0, "a");
    check_crash(1, "ab");
    check_crash(2, "abc");
    check_crash(9, "abc");
}

#[test]
fn opening_again_kills_the_older_handle_and_loses_nothing() {
    let store = MemStore::new();
    let mut old = store.open();
    put(&mut old, "a", false).unwrap();
    let new = store.open();
    assert!(put(&mut old, "b", true).is_err());
    assert_eq!(keys(&new), "a");
}

#[test]
fn memory_fails_the_chosen_write() {
    let store = MemStore::new();
    let mut kv = store.open();
    store.fail_after(1);
    put(&mut kv, "a", true).unwrap();
    assert!(put(&mut kv, "b", true).is_err());
    assert!(put(&mut kv, "c", true).is_err());
    assert_eq!(keys(&kv), "a");
}

//! What every `Disk` must do, as checks that run against any of them. Crashes are not here: only
//! the simulated disk can have one.
//!
//! Each check gets a fresh directory below the one handed in and panics on a broken promise.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::{DirEntry, Disk, File, OpenMode, create_dir_durable, read_to_vec, write_atomic};

type Check = fn(&dyn Disk, &Path) -> io::Result<()>;

const CHECKS: [(&str, Check); 12] = [
    ("open-modes", open_modes),
    ("read-write", read_write),
    ("vectored-write", vectored_write),
    ("set-len", set_len),
    ("allocate", allocate),
    ("list-sorted", list_sorted),
    ("stat", stat),
    ("rename", rename),
    ("remove", remove),
    ("lock", lock),
    ("helpers", helpers),
    ("space", space),
];

/// Runs all checks below `root`, an existing directory.
///
/// # Errors
/// Whatever the disk answered where it should have answered OK.
pub fn run(disk: &dyn Disk, root: &Path) -> io::Result<()> {
    for (name, check) in CHECKS {
        let dir = root.join(name);
        disk.create_dir_all(&dir)?;
        check(disk, &dir).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
    }
    Ok(())
}

#[track_caller]
fn fails<T>(result: io::Result<T>, kind: ErrorKind) {
    match result {
        Ok(_) => panic!("should have failed with {kind:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// The whole file, read with a buffer longer than it.
fn content(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0xee; file.len()? as usize + 10];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn open_modes(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let path = dir.join("f");
    fails(disk.open(&path, OpenMode::Read), ErrorKind::NotFound);
    fails(disk.open(&path, OpenMode::Write), ErrorKind::NotFound);
    fails(disk.open(&dir.join("none/f"), OpenMode::Create), ErrorKind::NotFound);
    let created = disk.open(&path, OpenMode::Create)?;
    assert!(created.is_empty()?);
    created.write_at(&[b"abc"], 0)?;
    // Neither mode cuts what is there, and handles see one file.
    let again = disk.open(&path, OpenMode::Create)?;
    disk.open(&path, OpenMode::Write)?.write_at(&[b"X"], 1)?;
    assert_eq!(content(&*again)?, b"aXc");
    let reader = disk.open(&path, OpenMode::Read)?;
    assert_eq!(content(&*reader)?, b"aXc");
    assert!(reader.write_at(&[b"no"], 0).is_err());
    assert_eq!(content(&*created)?, b"aXc");
    Ok(())
}

fn read_write(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let file = disk.open(&dir.join("f"), OpenMode::Create)?;
    let mut buf = [9; 4];
    assert_eq!(file.read_at(&mut buf, 0)?, 0);
    file.write_at(&[b"0123456789"], 0)?;
    assert_eq!((file.read_at(&mut buf, 3)?, &buf), (4, b"3456"));
    assert_eq!(file.read_at(&mut buf, 8)?, 2);
    assert_eq!(file.read_at(&mut buf, 10)?, 0);
    assert_eq!(file.read_at(&mut buf, 1 << 40)?, 0);
    assert_eq!(file.read_at(&mut [], 0)?, 0);
    // Written just now, so in memory; the hint changes nothing.
    file.will_need(0, 10);
    assert_eq!((file.read_cached_at(&mut buf, 3)?, &buf), (4, b"3456"));
    assert_eq!(file.read_cached_at(&mut buf, 8)?, 2);
    assert_eq!(file.read_cached_at(&mut buf, 1 << 40)?, 0);
    // A gap reads as zeros, over a page border too.
    file.write_at(&[b"end"], 10_000)?;
    assert_eq!(file.len()?, 10_003);
    let bytes = content(&*file)?;
    assert!(bytes.iter().skip(10).take(9_990).all(|byte| *byte == 0));
    assert!(bytes.ends_with(b"end"));
    file.sync_data()
}

fn vectored_write(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let file = disk.open(&dir.join("f"), OpenMode::Create)?;
    let pieces: Vec<Vec<u8>> = (0..100_usize).map(|n| vec![n as u8; n * 7 % 300]).collect();
    let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    file.write_at(&slices, 5)?;
    let want = [vec![0; 5], pieces.concat()].concat();
    assert_eq!(content(&*file)?, want);
    file.write_at(&[], 0)?;
    file.write_at(&[b"", b""], 1 << 30)?;
    assert_eq!(content(&*file)?, want, "an empty write changes nothing");
    Ok(())
}

fn set_len(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let file = disk.open(&dir.join("f"), OpenMode::Create)?;
    file.write_at(&[&[7; 9000]], 0)?;
    file.set_len(4_100)?;
    file.set_len(9_000)?;
    let bytes = content(&*file)?;
    assert_eq!(bytes.len(), 9_000);
    assert!(bytes.iter().take(4_100).all(|byte| *byte == 7));
    assert!(bytes.iter().skip(4_100).all(|byte| *byte == 0), "cut bytes came back");
    file.set_len(0)?;
    assert!(file.is_empty()?);
    file.sync_data()
}

fn allocate(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let file = disk.open(&dir.join("f"), OpenMode::Create)?;
    file.write_at(&[b"abc"], 0)?;
    file.allocate(0, 100_000)?;
    file.allocate(0, 0)?;
    assert_eq!(content(&*file)?, b"abc", "room is not length");
    file.write_at(&[b"d"], 50_000)?;
    assert_eq!(file.len()?, 50_001);
    Ok(())
}

fn list_sorted(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    fails(disk.list(&dir.join("none")), ErrorKind::NotFound);
    assert_eq!(disk.list(dir)?, []);
    for name in ["b", "a.log", "B", "c-1"] {
        disk.open(&dir.join(name), OpenMode::Create)?;
    }
    disk.create_dir_all(&dir.join("aa/deep"))?;
    let entry = |name: &str, is_dir| DirEntry { name: name.to_owned(), is_dir };
    let want = [("B", false), ("a.log", false), ("aa", true), ("b", false), ("c-1", false)];
    assert_eq!(disk.list(dir)?, want.map(|(name, is_dir)| entry(name, is_dir)));
    Ok(())
}

fn stat(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let path = dir.join("f");
    assert_eq!(disk.stat(&path)?, None);
    let file = disk.open(&path, OpenMode::Create)?;
    file.write_at(&[b"12345"], 0)?;
    file.set_modified(1_700_000_000_123)?;
    let stat = disk.stat(&path)?.ok_or(ErrorKind::NotFound)?;
    assert_eq!((stat.len, stat.modified_ms, stat.is_dir), (5, 1_700_000_000_123, false));
    let stat = disk.stat(dir)?.ok_or(ErrorKind::NotFound)?;
    assert_eq!((stat.len, stat.is_dir), (0, true));
    Ok(())
}

fn rename(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let (a, b, c) = (dir.join("a"), dir.join("b"), dir.join("sub/c"));
    fails(disk.rename(&a, &b), ErrorKind::NotFound);
    let file = disk.open(&a, OpenMode::Create)?;
    file.write_at(&[b"new"], 0)?;
    disk.open(&b, OpenMode::Create)?.write_at(&[b"old, longer"], 0)?;
    disk.rename(&a, &b)?;
    assert_eq!(disk.stat(&a)?, None);
    assert_eq!(read_to_vec(disk, &b, 100)?, b"new");
    file.write_at(&[b"N"], 0)?;
    assert_eq!(read_to_vec(disk, &b, 100)?, b"New", "a handle follows the file");
    disk.create_dir_all(&dir.join("sub"))?;
    disk.rename(&b, &c)?;
    disk.rename(&dir.join("sub"), &dir.join("moved"))?;
    assert_eq!(read_to_vec(disk, &dir.join("moved/c"), 100)?, b"New");
    // A directory does not replace one that holds something, nor a file.
    disk.create_dir_all(&dir.join("other/x"))?;
    assert!(disk.rename(&dir.join("moved"), &dir.join("other")).is_err());
    disk.open(&a, OpenMode::Create)?;
    assert!(disk.rename(&dir.join("moved"), &a).is_err());
    assert!(disk.rename(&a, &dir.join("moved")).is_err());
    disk.sync_dir(dir)
}

fn remove(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let path = dir.join("f");
    fails(disk.remove_file(&path), ErrorKind::NotFound);
    fails(disk.remove_dir_all(&path), ErrorKind::NotFound);
    let file = disk.open(&path, OpenMode::Create)?;
    file.write_at(&[b"abc"], 0)?;
    disk.remove_file(&path)?;
    assert_eq!(disk.stat(&path)?, None);
    file.write_at(&[b"d"], 3)?;
    assert_eq!(content(&*file)?, b"abcd", "an open file outlives its name");
    // A new file of the old name is another file.
    assert!(disk.open(&path, OpenMode::Create)?.is_empty()?);
    disk.create_dir_all(&dir.join("d/e"))?;
    disk.open(&dir.join("d/e/f"), OpenMode::Create)?;
    assert!(disk.remove_file(&dir.join("d")).is_err());
    disk.remove_dir_all(&dir.join("d"))?;
    assert_eq!(disk.stat(&dir.join("d/e/f"))?, None);
    disk.sync_dir(dir)
}

fn lock(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let path = dir.join(".lock");
    let held = disk.lock(&path)?;
    fails(disk.lock(&path), ErrorKind::WouldBlock);
    let other = disk.lock(&dir.join(".lock2"))?;
    drop(held);
    drop(disk.lock(&path)?);
    drop(other);
    Ok(())
}

fn helpers(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let path = dir.join("f");
    write_atomic(disk, &path, b"a longer first text")?;
    write_atomic(disk, &path, b"second")?;
    assert_eq!(read_to_vec(disk, &path, 6)?, b"second");
    fails(read_to_vec(disk, &path, 5), ErrorKind::InvalidData);
    fails(read_to_vec(disk, &dir.join("none"), 5), ErrorKind::NotFound);
    assert_eq!(disk.list(dir)?.len(), 1, "the temporary file is gone");
    let deep = dir.join("x/y/z");
    create_dir_durable(disk, &deep)?;
    create_dir_durable(disk, &deep)?;
    assert!(disk.stat(&deep)?.is_some_and(|stat| stat.is_dir));
    assert!(disk.create_dir_all(&path.join("below-a-file")).is_err());
    Ok(())
}

fn space(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let space = disk.space(dir)?;
    assert!(space.usable > 0 && space.usable <= space.total);
    fails(disk.space(&dir.join("none")), ErrorKind::NotFound);
    fails(disk.sync_dir(&dir.join("none")), ErrorKind::NotFound);
    Ok(())
}

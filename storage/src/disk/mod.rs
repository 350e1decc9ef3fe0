//! The disk as the storage crate sees it: two object-safe traits and the few helpers built on them.
//!
//! Owns the contract: what a call promises, and what survives a crash. The promises are POSIX at
//! its strictest: bytes survive once `sync_data` returned, names survive once `sync_dir` of their
//! directory returned, and nothing else does. `real.rs` keeps them with system calls, `sim.rs` in
//! memory; `conformance.rs` holds both to the same suite. Who calls what, when, is not decided
//! here.

pub mod conformance;
mod real;
pub mod sim;

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use real::RealDisk;
pub use sim::{SimConfig, SimDisk};

/// How a file is opened. A file is never truncated by opening it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// Existing, read only.
    Read,
    /// Existing, read and write.
    Write,
    /// Created empty when absent; read and write.
    Create,
}

/// One name in a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
}

/// What is known of a path without opening it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Bytes; 0 for a directory.
    pub len: u64,
    /// Last modification, ms since 1970.
    pub modified_ms: i64,
    pub is_dir: bool,
}

/// Room on the volume that holds a directory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    pub total: u64,
    /// What this process may still write.
    pub usable: u64,
}

/// Files and directories. Paths are taken as given, absolute or relative to the working directory.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound` when it is absent (or, with `Create`, when its directory is).
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// The names in a directory, sorted. `NotFound` when it is absent.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;

    /// `None` when nothing has that name.
    fn stat(&self, path: &Path) -> io::Result<Option<Stat>>;

    /// Creates the directory and its parents; fine when it exists. Not durable before `sync_dir` of
    /// each parent: see [`create_dir_durable`].
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Renames a file (replacing a file of the new name, atomically) or a directory (the new name
    /// must be free). Durable after `sync_dir` of both directories.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name; open handles go on working. `NotFound` when absent.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and all below it. `NotFound` when absent.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable: creations, renames, removals.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Room on the volume of `dir`.
    fn space(&self, dir: &Path) -> io::Result<Space>;

    /// Takes the exclusive lock of a file (created when absent) until the result is dropped. A
    /// crash of the process frees it.
    ///
    /// # Errors
    /// `WouldBlock` when someone else, in this process or another, holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

/// An open file. Positioned calls only, so that a handle can be shared by threads.
pub trait File: Send + Sync {
    /// Fills `buf` from `offset`; fewer bytes (also 0) mean the file ends there.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Like `read_at`, from memory alone.
    ///
    /// # Errors
    /// `WouldBlock` when the disk would have to be asked.
    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buf, offset)
    }

    /// Says that these bytes will be read soon. A hint: nothing depends on it.
    fn will_need(&self, _offset: u64, _len: u64) {}

    /// Writes all of `bufs`, one after the other, at `offset`; the file grows as needed and a gap
    /// reads as zeros. On an error any part of the bytes may have been written.
    fn write_at(&self, bufs: &[&[u8]], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) to `len`. Durable after `sync_data`.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the bytes and the length durable. After an error nobody knows what is durable, and a
    /// later success proves nothing: the caller must end the process.
    fn sync_data(&self) -> io::Result<()>;

    /// Reserves room without changing the length. Best effort: a file system that cannot do it
    /// answers `Ok`; a full one answers `StorageFull`.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// The descriptor, for `sendfile`; `None` where there is none (simulation).
    fn raw_fd(&self) -> Option<RawFd>;

    /// Sets the modification time, ms since 1970.
    fn set_modified(&self, ms: i64) -> io::Result<()>;
}

/// A file of which only what is in memory is read: else `WouldBlock`.
pub(crate) struct FromMemory(pub(crate) Arc<dyn File>);

impl File for FromMemory {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_cached_at(buf, offset)
    }

    fn write_at(&self, bufs: &[&[u8]], offset: u64) -> io::Result<()> {
        self.0.write_at(bufs, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.allocate(offset, len)
    }

    fn raw_fd(&self) -> Option<RawFd> {
        self.0.raw_fd()
    }

    fn set_modified(&self, ms: i64) -> io::Result<()> {
        self.0.set_modified(ms)
    }
}

impl fmt::Debug for dyn File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("fd", &self.raw_fd()).finish()
    }
}

impl fmt::Debug for dyn Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// Reads a whole file.
///
/// # Errors
/// `InvalidData` when it is longer than `max` bytes, so that a damaged or foreign file cannot ask
/// for the memory of the machine.
pub fn read_to_vec(disk: &dyn Disk, path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    if len > max {
        let text = format!("{} holds {len} bytes, more than {max}", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut bytes = vec![0; len];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Replaces a file's content: after a crash the file holds either the old bytes or the new ones,
/// and once this returned, the new ones. Goes through `<path>.tmp`, as Kafka's checkpoints do.
pub fn write_atomic(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let tmp = suffixed(path, ".tmp");
    let file = disk.open(&tmp, OpenMode::Create)?;
    file.set_len(0)?;
    file.write_at(&[bytes], 0)?;
    file.sync_data()?;
    disk.rename(&tmp, path)?;
    disk.sync_dir(parent(path))
}

/// Creates a directory and its parents, and makes every name that was new durable.
pub fn create_dir_durable(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    create_dirs(disk, path)?.iter().try_for_each(|dir| disk.sync_dir(dir))
}

/// Creates a directory and its parents; returns where names are new, for the caller to sync in this
/// order.
pub fn create_dirs(disk: &dyn Disk, path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut grown = Vec::new();
    let mut at = path;
    while disk.stat(at)?.is_none() {
        at = parent(at);
        grown.push(at.to_owned());
    }
    disk.create_dir_all(path)?;
    grown.reverse();
    Ok(grown)
}

/// The directory that holds `path`; `.` for a bare name, the root for the root.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() => Path::new("."),
        Some(dir) => dir,
        None => path,
    }
}

/// `path` with `suffix` appended to its last name.
pub fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;

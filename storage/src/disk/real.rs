//! `Disk` on the machine's own file systems, by plain system calls.
//!
//! Owns the mapping of each promise to its call: `fdatasync` for bytes, `fsync` of the directory
//! for names, `fallocate(KEEP_SIZE)` for room, `flock` plus a POSIX record lock for exclusion (the
//! second is what a Java process takes and sees). Retries `EINTR` and short transfers; hides
//! nothing else.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::{DirEntry, Disk, File, OpenMode, Space, Stat};

/// Slices handed to one `pwritev`; kept on the stack. More are written by further calls.
const SLICES_PER_CALL: usize = 16;

/// The real disk. Holds nothing; copies are free.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealDisk;

impl RealDisk {
    /// The real disk as the trait object the rest of the crate takes.
    pub fn shared() -> Arc<dyn Disk> {
        Arc::new(RealDisk)
    }
}

struct RealFile(fs::File);

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let write = mode != OpenMode::Read;
        let create = mode == OpenMode::Create;
        let file = fs::OpenOptions::new()
            .read(true)
            .write(write)
            .create(create)
            .truncate(false)
            .open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            // A link to a directory counts as one: log directories may be links.
            let is_dir = match entry.file_type()? {
                kind if kind.is_symlink() => entry.path().is_dir(),
                kind => kind.is_dir(),
            };
            entries
                .push(DirEntry { name: entry.file_name().to_string_lossy().into_owned(), is_dir });
        }
        entries.sort();
        Ok(entries)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_dir = meta.is_dir();
        Ok(Some(Stat {
            len: if is_dir { 0 } else { meta.len() },
            modified_ms: to_ms(meta.modified()?),
            is_dir,
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let file = fs::File::open(dir)?;
        Ok(retry_on_intr(|| rustix::fs::fsync(&file))?)
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let stat = retry_on_intr(|| rustix::fs::statvfs(dir))?;
        Ok(Space {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            usable: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let taken = |result: Result<(), Errno>| match result {
            Err(Errno::AGAIN | Errno::ACCESS) => Err(io::ErrorKind::WouldBlock.into()),
            other => other.map_err(io::Error::from),
        };
        // `flock` excludes ourselves too; the record lock excludes Apache Kafka.
        let kind = FlockOperation::NonBlockingLockExclusive;
        taken(retry_on_intr(|| rustix::fs::flock(&file, kind)))?;
        match retry_on_intr(|| rustix::fs::fcntl_lock(&file, kind)) {
            // Some network file systems know only one of the two.
            Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP) => {}
            other => taken(other)?,
        }
        Ok(Box::new(file))
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            match retry_on_intr(|| rustix::io::pread(&self.0, &mut *rest, at))? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            let into = &mut [IoSliceMut::new(rest)];
            match retry_on_intr(|| rustix::io::preadv2(&self.0, into, at, ReadWriteFlags::NOWAIT)) {
                Ok(0) => break,
                Ok(read) => done += read,
                // The file system or the kernel cannot say.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    return self.read_at(buf, offset);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn will_need(&self, offset: u64, len: u64) {
        // A hint: without it the read is what waits.
        let _ = rustix::fs::fadvise(&self.0, offset, NonZeroU64::new(len), Advice::WillNeed);
    }

    fn write_at(&self, bufs: &[&[u8]], offset: u64) -> io::Result<()> {
        let mut at = offset;
        for chunk in bufs.chunks(SLICES_PER_CALL) {
            let mut storage = [IoSlice::new(&[]); SLICES_PER_CALL];
            for (slot, buf) in storage.iter_mut().zip(chunk) {
                *slot = IoSlice::new(buf);
            }
            let mut slices = storage.get_mut(..chunk.len()).unwrap_or_default();
            IoSlice::advance_slices(&mut slices, 0); // drops leading empty slices
            while !slices.is_empty() {
                let wrote = retry_on_intr(|| rustix::io::pwritev(&self.0, slices, at))?;
                if wrote == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                at = at.saturating_add(wrote as u64);
                IoSlice::advance_slices(&mut slices, wrote);
            }
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        // A sync that failed once proves nothing when repeated, so only EINTR is retried.
        Ok(retry_on_intr(|| rustix::fs::fdatasync(&self.0))?)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| rustix::fs::fallocate(&self.0, flags, offset, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }

    fn raw_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
    }

    fn set_modified(&self, ms: i64) -> io::Result<()> {
        self.0.set_modified(from_ms(ms))
    }
}

fn to_ms(time: SystemTime) -> i64 {
    let ms = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(span) => ms(span),
        Err(before) => -ms(before.duration()),
    }
}

fn from_ms(ms: i64) -> SystemTime {
    let span = Duration::from_millis(ms.unsigned_abs());
    let time = if ms < 0 { UNIX_EPOCH.checked_sub(span) } else { UNIX_EPOCH.checked_add(span) };
    time.unwrap_or(UNIX_EPOCH)
}

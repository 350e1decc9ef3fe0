//! `Disk` in memory, with crashes and faults, the same from the same seed.
//!
//! Owns names, handles, locks, room and the order of events; `sim/node.rs` owns what files and
//! directories hold and what a crash leaves of them, `sim/faults.rs` which calls fail. A disk
//! handle stands for a running process: after [`SimDisk::crash`] or [`SimDisk::kill`] every older
//! handle, file and lock is dead (its calls fail), and the handle returned is the restarted
//! process's.

mod faults;
mod node;

use std::io;
use std::os::fd::RawFd;
use std::path::{Component, Path};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::{DirEntry, Disk, File, OpenMode, Space, Stat};
use faults::Faults;
pub use faults::{Fault, FaultKind, FaultOp};
use node::{Chance, DirNode, FileNode, Node, PAGE, Room};

/// What a simulated disk starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimConfig {
    pub seed: u64,
    /// Bytes of room, counted in pages of 4096.
    pub capacity: u64,
    /// Whether a crash may keep part of what was not synced (whole, a prefix, or any sectors; the
    /// first few changes of names). Without it a crash keeps exactly what was synced.
    pub torn_writes: bool,
}

impl SimConfig {
    /// Torn writes on 1 TiB.
    pub fn seeded(seed: u64) -> SimConfig {
        SimConfig { seed, capacity: 1 << 40, torn_writes: true }
    }
}

/// Calls since the disk was made, for tests that count syncs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SimStats {
    pub reads: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub syncs: u64,
    pub dir_syncs: u64,
}

struct State {
    root: Arc<Mutex<DirNode>>,
    room: Room,
    chance: Chance,
    torn_writes: bool,
    faults: Faults,
    /// Paths of held locks.
    locks: std::collections::BTreeSet<String>,
    /// Counts restarts; handles of an older generation are dead.
    generation: u64,
    /// Changing calls until the power fails; `Some(0)`: it has.
    power_left: Option<u64>,
    now_ms: i64,
    cold_one_in: u64,
    stats: SimStats,
}

/// A simulated disk as one process sees it. Clones belong to the same process.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Mutex<State>>,
    generation: u64,
}

impl SimDisk {
    pub fn new(config: SimConfig) -> SimDisk {
        let state = State {
            root: Arc::default(),
            room: Room { total: config.capacity / PAGE, used: 0 },
            chance: Chance(config.seed),
            torn_writes: config.torn_writes,
            faults: Faults::default(),
            locks: Default::default(),
            generation: 0,
            power_left: None,
            now_ms: 0,
            cold_one_in: 0,
            stats: SimStats::default(),
        };
        SimDisk { shared: Arc::new(Mutex::new(state)), generation: 0 }
    }

    /// This disk as the trait object the rest of the crate takes.
    pub fn shared(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    /// The power fails and comes back: what was not synced is lost (or torn, by the seed). Faults
    /// are cleared. Returns the disk for the next process; works on a dead handle too.
    #[must_use = "the old handle is dead"]
    pub fn crash(&self) -> SimDisk {
        let mut state = self.shared.lock();
        state.generation += 1;
        state.power_left = None;
        state.faults.clear();
        state.locks.clear();
        let crash_number = state.generation;
        let mut chance = state.chance.clone();
        let torn = state.torn_writes;
        let mut pages = 0;
        let mut todo = vec![Node::Dir(state.root.clone())];
        while let Some(node) = todo.pop() {
            let chance = torn.then_some(&mut chance);
            match node {
                Node::File(file) => {
                    let mut file = file.lock();
                    file.crash(crash_number, chance);
                    file.linked = true;
                    pages += file.pages();
                }
                Node::Dir(dir) => {
                    let mut dir = dir.lock();
                    dir.crash(chance);
                    todo.extend(dir.live.values().cloned());
                }
            }
        }
        state.room.used = pages;
        state.chance = chance;
        SimDisk { shared: self.shared.clone(), generation: crash_number }
    }

    /// The process dies, the machine does not: handles and locks go, all bytes and names stay.
    #[must_use = "the old handle is dead"]
    pub fn kill(&self) -> SimDisk {
        let mut state = self.shared.lock();
        state.generation += 1;
        state.power_left = None;
        state.locks.clear();
        SimDisk { shared: self.shared.clone(), generation: state.generation }
    }

    /// The power fails after `calls` more changing calls: the next one does nothing (a write: a
    /// part), and it and every later call fail until [`SimDisk::crash`].
    pub fn cut_power_after(&self, calls: u64) {
        self.shared.lock().power_left = Some(calls.saturating_add(1));
    }

    /// Whether [`SimDisk::cut_power_after`] has struck.
    pub fn power_is_off(&self) -> bool {
        self.shared.lock().power_left == Some(0)
    }

    /// Adds a rule for failing calls.
    pub fn inject(&self, fault: Fault) {
        self.shared.lock().faults.add(fault);
    }

    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Changes the room of the volume, in bytes.
    pub fn set_capacity(&self, capacity: u64) {
        self.shared.lock().room.total = capacity / PAGE;
    }

    /// From now on one byte range in `one_in` is not in memory, by the seed; 0: all are.
    pub fn set_cold(&self, one_in: u64) {
        self.shared.lock().cold_one_in = one_in;
    }

    /// The time that changed files get, ms since 1970.
    pub fn set_now(&self, now_ms: i64) {
        self.shared.lock().now_ms = now_ms;
    }

    pub fn stats(&self) -> SimStats {
        self.shared.lock().stats
    }

    /// Bit rot: XORs one byte of a file, in the cache and on the disk.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn corrupt(&self, path: &Path, offset: u64, xor: u8) -> io::Result<()> {
        let state = self.shared.lock();
        match state.find(&names(path)) {
            Some(Node::File(file)) => file.lock().corrupt(offset, xor),
            _ => return Err(Errno::NOENT.into()),
        }
        Ok(())
    }

    fn enter(&self, op: FaultOp, path: &str) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.shared.lock();
        state.enter(self.generation, op, path)?;
        Ok(state)
    }
}

impl State {
    /// What every call goes through: dead handles, the power, injected faults.
    fn enter(&mut self, generation: u64, op: FaultOp, path: &str) -> io::Result<()> {
        self.alive(generation)?;
        if !matches!(op, FaultOp::Open | FaultOp::Read)
            && let Some(left) = &mut self.power_left
        {
            *left -= 1;
            if *left == 0 {
                return Err(power_is_off());
            }
        }
        match self.faults.hit(op, path) {
            None => Ok(()),
            Some(FaultKind::Full) => Err(Errno::NOSPC.into()),
            Some(FaultKind::Io) => Err(Errno::IO.into()),
            Some(FaultKind::Lie) => Err(io::Error::other(Lie)),
        }
    }

    fn alive(&self, generation: u64) -> io::Result<()> {
        if self.generation != generation {
            return Err(io::Error::other("simulated process is dead"));
        }
        if self.power_left == Some(0) { Err(power_is_off()) } else { Ok(()) }
    }

    fn find(&self, names: &[String]) -> Option<Node> {
        let mut at = Node::Dir(self.root.clone());
        for name in names {
            let Node::Dir(dir) = at else { return None };
            let next = dir.lock().live.get(name).cloned();
            at = next?;
        }
        Some(at)
    }

    fn find_dir(&self, names: &[String]) -> io::Result<Arc<Mutex<DirNode>>> {
        match self.find(names) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    /// The directory of a path and the last name in it.
    fn find_parent<'n>(&self, names: &'n [String]) -> io::Result<(Arc<Mutex<DirNode>>, &'n str)> {
        let (name, dir) = names.split_last().ok_or(io::Error::from(Errno::INVAL))?;
        Ok((self.find_dir(dir)?, name))
    }

    /// Gives back the room of a node whose last name went.
    fn unlink(&mut self, node: &Node) {
        match node {
            Node::File(file) => {
                let mut file = file.lock();
                if std::mem::take(&mut file.linked) {
                    self.room.used = self.room.used.saturating_sub(file.pages());
                }
            }
            Node::Dir(dir) => {
                let nodes: Vec<Node> = dir.lock().live.values().cloned().collect();
                nodes.iter().for_each(|node| self.unlink(node));
            }
        }
    }

    fn new_file(&mut self) -> Arc<Mutex<FileNode>> {
        let modified_ms = self.now_ms;
        Arc::new(Mutex::new(FileNode::named(modified_ms)))
    }
}

/// Marks the error of a call that should answer OK and do nothing.
#[derive(Debug)]
struct Lie;

impl std::fmt::Display for Lie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("simulated input/output error")
    }
}

impl std::error::Error for Lie {}

fn is_lie(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Lie>())
}

fn power_is_off() -> io::Error {
    io::Error::other("simulated power is off")
}

/// The names on a path from the root; relative paths start there as well.
fn names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let (names, text) = (names(path), path.to_string_lossy());
        let mut state = self.enter(FaultOp::Open, &text)?;
        let node = match state.find(&names) {
            Some(Node::File(file)) => file,
            Some(Node::Dir(_)) => return Err(Errno::ISDIR.into()),
            None if mode != OpenMode::Create => return Err(Errno::NOENT.into()),
            None => {
                let (dir, name) = state.find_parent(&names)?;
                state.enter(self.generation, FaultOp::Create, &text)?;
                if state.room.used >= state.room.total {
                    return Err(Errno::NOSPC.into());
                }
                let file = state.new_file();
                dir.lock().change(vec![(name.to_owned(), Some(Node::File(file.clone())))]);
                file
            }
        };
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            node,
            path: text.into_owned(),
            writable: mode != OpenMode::Read,
        }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.enter(FaultOp::Open, &dir.to_string_lossy())?;
        let dir = state.find_dir(&names(dir))?;
        let entry = |(name, node): (&String, &Node)| DirEntry {
            name: name.clone(),
            is_dir: matches!(node, Node::Dir(_)),
        };
        let entries = dir.lock().live.iter().map(entry).collect();
        Ok(entries)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let state = self.enter(FaultOp::Open, &path.to_string_lossy())?;
        Ok(state.find(&names(path)).map(|node| match node {
            Node::Dir(_) => Stat { len: 0, modified_ms: 0, is_dir: true },
            Node::File(file) => {
                let file = file.lock();
                Stat { len: file.len(), modified_ms: file.modified_ms, is_dir: false }
            }
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let text = path.to_string_lossy();
        self.shared.lock().alive(self.generation)?;
        let names = names(path);
        for depth in 1..=names.len() {
            let (here, _) = names.split_at(depth);
            let mut state = self.shared.lock();
            match state.find(here) {
                Some(Node::Dir(_)) => continue,
                Some(Node::File(_)) => return Err(Errno::NOTDIR.into()),
                None => state.enter(self.generation, FaultOp::Create, &text)?,
            }
            let (dir, name) = state.find_parent(here)?;
            dir.lock().change(vec![(name.to_owned(), Some(Node::Dir(Arc::default())))]);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_names, to_names) = (names(from), names(to));
        let mut state = self.enter(FaultOp::Rename, &to.to_string_lossy())?;
        let node = state.find(&from_names).ok_or(io::Error::from(Errno::NOENT))?;
        let (from_dir, from_name) = state.find_parent(&from_names)?;
        let (to_dir, to_name) = state.find_parent(&to_names)?;
        if from_names == to_names {
            return Ok(());
        }
        if to_names.starts_with(&from_names) {
            return Err(Errno::INVAL.into());
        }
        let old = to_dir.lock().live.get(to_name).cloned();
        match (&node, &old) {
            (_, None) => {}
            (Node::File(_), Some(Node::File(_))) => old.iter().for_each(|old| state.unlink(old)),
            (Node::File(_), Some(Node::Dir(_))) => return Err(Errno::ISDIR.into()),
            (Node::Dir(_), Some(Node::File(_))) => return Err(Errno::NOTDIR.into()),
            (Node::Dir(_), Some(Node::Dir(old))) if old.lock().live.is_empty() => {}
            (Node::Dir(_), Some(Node::Dir(_))) => return Err(Errno::NOTEMPTY.into()),
        }
        let gone = (from_name.to_owned(), None);
        let new = (to_name.to_owned(), Some(node));
        if Arc::ptr_eq(&from_dir, &to_dir) {
            from_dir.lock().change(vec![gone, new]);
        } else {
            to_dir.lock().change(vec![new]);
            from_dir.lock().change(vec![gone]);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let names = names(path);
        let mut state = self.enter(FaultOp::Remove, &path.to_string_lossy())?;
        match state.find(&names) {
            None => return Err(Errno::NOENT.into()),
            Some(Node::Dir(_)) => return Err(Errno::ISDIR.into()),
            Some(node) => state.unlink(&node),
        }
        let (dir, name) = state.find_parent(&names)?;
        dir.lock().change(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let names = names(path);
        let mut state = self.enter(FaultOp::Remove, &path.to_string_lossy())?;
        let node = Node::Dir(state.find_dir(&names)?);
        let (dir, name) = state.find_parent(&names)?;
        state.unlink(&node);
        dir.lock().change(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.shared.lock().stats.dir_syncs += 1;
        let state = match self.enter(FaultOp::SyncDir, &dir.to_string_lossy()) {
            Err(error) if is_lie(&error) => return Ok(()),
            other => other?,
        };
        state.find_dir(&names(dir))?.lock().sync();
        Ok(())
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let state = self.enter(FaultOp::Open, &dir.to_string_lossy())?;
        state.find_dir(&names(dir))?;
        let (total, used) = (state.room.total, state.room.used);
        Ok(Space { total: total * PAGE, usable: total.saturating_sub(used) * PAGE })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.open(path, OpenMode::Create)?;
        let key = names(path).join("/");
        if !self.shared.lock().locks.insert(key.clone()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { disk: self.clone(), key }))
    }
}

struct SimLock {
    disk: SimDisk,
    key: String,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.shared.lock();
        // A lock of a dead process must not free the one its successor took.
        if state.generation == self.disk.generation {
            state.locks.remove(&self.key);
        }
    }
}

struct SimFile {
    disk: SimDisk,
    node: Arc<Mutex<FileNode>>,
    path: String,
    writable: bool,
}

impl SimFile {
    fn enter_changing(&self, op: FaultOp) -> io::Result<MutexGuard<'_, State>> {
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        let state = self.disk.enter(op, &self.path)?;
        self.node.lock().modified_ms = state.now_ms;
        Ok(state)
    }

    /// A failing write leaves a part of its bytes behind, as a real one may.
    fn write_part(&self, bufs: &[&[u8]], offset: u64) {
        let mut state = self.disk.shared.lock();
        if state.generation != self.disk.generation {
            return;
        }
        let bytes = bufs.concat();
        let part = state.chance.below(bytes.len() as u64 + 1) as usize;
        let (part, _) = bytes.split_at(part);
        // Also when this runs out of room: the call fails in any case.
        let _ = self.node.lock().write(part, offset, &mut state.room);
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.enter(FaultOp::Read, &self.path)?;
        state.stats.reads += 1;
        Ok(self.node.lock().read(buf, offset))
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        {
            let mut state = self.disk.shared.lock();
            let one_in = state.cold_one_in;
            if one_in > 0 && state.chance.below(one_in) == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.read_at(buf, offset)
    }

    fn write_at(&self, bufs: &[&[u8]], offset: u64) -> io::Result<()> {
        let was_off = self.disk.power_is_off();
        let mut guard = match self.enter_changing(FaultOp::Write) {
            Err(error) => {
                if self.writable && !was_off {
                    self.write_part(bufs, offset);
                }
                return Err(error);
            }
            Ok(guard) => guard,
        };
        let state = &mut *guard;
        let mut at = offset;
        state.stats.writes += 1;
        for buf in bufs {
            self.node.lock().write(buf, at, &mut state.room)?;
            at += buf.len() as u64;
        }
        state.stats.bytes_written += at - offset;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.shared.lock().alive(self.disk.generation)?;
        Ok(self.node.lock().len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.enter_changing(FaultOp::Write)?;
        self.node.lock().set_len(len, &mut state.room);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.shared.lock().stats.syncs += 1;
        match self.disk.enter(FaultOp::Sync, &self.path) {
            Ok(_state) => self.node.lock().sync(),
            // The fsync trap: an injected failure leaves the pages clean and unwritten. A process
            // that is dead or without power changes nothing.
            Err(error) if is_lie(&error) => self.node.lock().sync_failed(),
            Err(error) => {
                if error.raw_os_error().is_some() {
                    self.node.lock().sync_failed();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.enter_changing(FaultOp::Allocate)?;
        self.node.lock().allocate(offset, len, &mut state.room)
    }

    fn raw_fd(&self) -> Option<RawFd> {
        None
    }

    fn set_modified(&self, ms: i64) -> io::Result<()> {
        drop(self.enter_changing(FaultOp::Write)?);
        self.node.lock().modified_ms = ms;
        Ok(())
    }
}

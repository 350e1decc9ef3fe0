//! What a simulated file and a simulated directory hold, live and durable, and what a crash leaves
//! of them. Knows nothing of paths, handles or injected faults: that is `sim.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

/// Bytes per page of the simulated cache; also the unit in which room is counted.
pub(super) const PAGE: u64 = 4096;
/// Bytes that a device writes whole or not at all.
const SECTOR: usize = 512;
const SECTORS_PER_PAGE: u64 = PAGE / SECTOR as u64;

type Page = Arc<[u8; PAGE as usize]>;

/// Seeded pseudo-random numbers (splitmix64): the only source of chance in the simulated disk.
#[derive(Clone, Debug)]
pub(super) struct Chance(pub u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Room left on the simulated volume, in pages.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub total: u64,
    pub used: u64,
}

impl Room {
    fn take(&mut self, pages: u64) -> io::Result<()> {
        if self.used.saturating_add(pages) > self.total {
            return Err(Errno::NOSPC.into());
        }
        self.used += pages;
        Ok(())
    }
}

/// A file: what reads see, what a crash is sure to leave, and which pages differ.
#[derive(Default)]
pub(super) struct FileNode {
    live: BTreeMap<u64, Page>,
    live_len: u64,
    durable: BTreeMap<u64, Page>,
    durable_len: u64,
    /// Pages whose live content a sync has yet to write. A failed sync empties it all the same.
    dirty: BTreeSet<u64>,
    pub modified_ms: i64,
    /// Has a name, so its pages count against the volume's room.
    pub linked: bool,
    /// The crash that this file went through last, so that a file with two names crashes once.
    crashed_at: u64,
}

impl FileNode {
    /// An empty file that has a name.
    pub fn named(modified_ms: i64) -> FileNode {
        FileNode { linked: true, modified_ms, ..FileNode::default() }
    }

    pub fn len(&self) -> u64 {
        self.live_len
    }

    pub fn pages(&self) -> u64 {
        self.live.len() as u64
    }

    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let left = self.live_len.saturating_sub(offset);
        let want = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (head, _) = buf.split_at_mut(want);
        for (page, within, piece) in pieces_mut(head, offset) {
            match self.live.get(&page).and_then(|bytes| bytes.get(within..within + piece.len())) {
                Some(bytes) => piece.copy_from_slice(bytes),
                None => piece.fill(0),
            }
        }
        want
    }

    /// Writes what fits; when the room runs out the bytes before that point stay written.
    pub fn write(&mut self, buf: &[u8], offset: u64, room: &mut Room) -> io::Result<()> {
        let mut at = offset;
        let mut rest = buf;
        while !rest.is_empty() {
            let (page, within) = (at / PAGE, (at % PAGE) as usize);
            let (piece, tail) = rest.split_at(rest.len().min(PAGE as usize - within));
            let bytes = self.page_mut(page, room)?;
            if let Some(target) = bytes.get_mut(within..within + piece.len()) {
                target.copy_from_slice(piece);
            }
            self.dirty.insert(page);
            at += piece.len() as u64;
            self.live_len = self.live_len.max(at);
            rest = tail;
        }
        Ok(())
    }

    fn page_mut(&mut self, page: u64, room: &mut Room) -> io::Result<&mut [u8; PAGE as usize]> {
        if self.linked && !self.live.contains_key(&page) {
            room.take(1)?;
        }
        let slot = self.live.entry(page).or_insert_with(zero_page);
        Ok(Arc::make_mut(slot))
    }

    /// Reserves pages; those beyond the length hold zeros, so nothing else has to know.
    pub fn allocate(&mut self, offset: u64, len: u64, room: &mut Room) -> io::Result<()> {
        let end = offset.saturating_add(len).div_ceil(PAGE);
        let missing = |page: &u64| !self.live.contains_key(page);
        let new: Vec<u64> = (offset / PAGE..end).filter(missing).collect();
        if self.linked {
            room.take(new.len() as u64)?;
        }
        for page in new {
            self.live.insert(page, zero_page());
        }
        Ok(())
    }

    pub fn set_len(&mut self, len: u64, room: &mut Room) {
        // Also for the same length: pages that were only reserved lie behind it.
        if len <= self.live_len {
            self.dirty.extend(self.live.range(len / PAGE..).map(|(page, _)| *page));
            let before = self.pages();
            cut(&mut self.live, len);
            if self.linked {
                room.used = room.used.saturating_sub(before - self.pages());
            }
        }
        self.live_len = len;
    }

    pub fn sync(&mut self) {
        for page in std::mem::take(&mut self.dirty) {
            match self.live.get(&page) {
                Some(bytes) => self.durable.insert(page, bytes.clone()),
                None => self.durable.remove(&page),
            };
        }
        self.durable_len = self.live_len;
    }

    /// The fsync trap: the pages count as clean though they never reached the disk, so the next
    /// sync answers OK over bytes that a crash will lose.
    pub fn sync_failed(&mut self) {
        self.dirty.clear();
    }

    /// Damages a byte, in the cache and on the disk alike.
    pub fn corrupt(&mut self, offset: u64, xor: u8) {
        for pages in [&mut self.live, &mut self.durable] {
            if let Some(bytes) = pages.get_mut(&(offset / PAGE))
                && let Some(byte) = Arc::make_mut(bytes).get_mut((offset % PAGE) as usize)
            {
                *byte ^= xor;
            }
        }
    }

    /// The power fails. With `chance`, some of what was not synced survives: all of it, a prefix,
    /// or any subset of sectors under any length in between; without, none.
    pub fn crash(&mut self, crash_number: u64, chance: Option<&mut Chance>) {
        if self.crashed_at == crash_number {
            return;
        }
        self.crashed_at = crash_number;
        if let Some(chance) = chance
            && (!self.dirty.is_empty() || self.live_len != self.durable_len)
        {
            self.survive(chance);
        }
        self.dirty.clear();
        let len = self.durable_len;
        cut(&mut self.durable, len);
        self.live = self.durable.clone();
        self.live_len = len;
    }

    /// Moves part of the live state into the durable one.
    fn survive(&mut self, chance: &mut Chance) {
        let changed = self.changed_sectors();
        let (old_len, new_len) = (self.durable_len, self.live_len);
        let either = if chance.percent(50) { old_len } else { new_len };
        match chance.below(100) {
            0..40 => {}
            40..55 => {
                self.keep(&changed);
                self.durable_len = new_len;
            }
            55..80 => {
                let count = chance.below(changed.len() as u64 + 1) as usize;
                let (kept, _) = changed.split_at(count);
                self.keep(kept);
                let end = kept.last().map_or(0, |sector| (sector + 1) * SECTOR as u64);
                let grown = old_len.max(end.min(new_len));
                self.durable_len = if new_len < old_len { either } else { grown };
            }
            _ => {
                let kept: Vec<u64> = changed.into_iter().filter(|_| chance.percent(50)).collect();
                self.keep(&kept);
                let (low, high) = (old_len.min(new_len), old_len.max(new_len));
                let between = low + chance.below(high - low + 1);
                self.durable_len = if chance.percent(50) { between } else { either };
            }
        }
    }

    /// Numbers of the sectors in dirty pages whose live bytes are not the durable ones, ascending.
    fn changed_sectors(&self) -> Vec<u64> {
        let zero = zero_page();
        let mut changed = Vec::new();
        for page in &self.dirty {
            let live = self.live.get(page).unwrap_or(&zero);
            let durable = self.durable.get(page).unwrap_or(&zero);
            let sectors = live.chunks(SECTOR).zip(durable.chunks(SECTOR));
            for (at, (new, old)) in (page * SECTORS_PER_PAGE..).zip(sectors) {
                if new != old {
                    changed.push(at);
                }
            }
        }
        changed
    }

    fn keep(&mut self, sectors: &[u64]) {
        let zero = zero_page();
        for sector in sectors {
            let page = sector / SECTORS_PER_PAGE;
            let start = (sector % SECTORS_PER_PAGE) as usize * SECTOR;
            let live = self.live.get(&page).unwrap_or(&zero);
            let durable = Arc::make_mut(self.durable.entry(page).or_insert_with(zero_page));
            let from = live.get(start..start + SECTOR);
            if let (Some(to), Some(from)) = (durable.get_mut(start..start + SECTOR), from) {
                to.copy_from_slice(from);
            }
        }
    }
}

fn zero_page() -> Page {
    Arc::new([0; PAGE as usize])
}

/// Drops the pages beyond `len` and zeroes the rest of the last one, so that growing reads zeros.
fn cut(pages: &mut BTreeMap<u64, Page>, len: u64) {
    drop(pages.split_off(&len.div_ceil(PAGE)));
    let within = (len % PAGE) as usize;
    if within != 0
        && let Some(bytes) = pages.get_mut(&(len / PAGE))
        && let Some(tail) = Arc::make_mut(bytes).get_mut(within..)
    {
        tail.fill(0);
    }
}

/// Splits a buffer at page borders: (page number, position in the page, bytes).
fn pieces_mut(buf: &mut [u8], offset: u64) -> impl Iterator<Item = (u64, usize, &mut [u8])> {
    let first = ((PAGE - offset % PAGE) as usize).min(buf.len());
    let (head, tail) = buf.split_at_mut(first);
    let next_page = offset / PAGE + 1;
    let head = std::iter::once((offset / PAGE, (offset % PAGE) as usize, head));
    let tail = tail.chunks_mut(PAGE as usize).zip(next_page..);
    head.chain(tail.map(|(piece, page)| (page, 0, piece)))
}

/// A file or a directory.
#[derive(Clone)]
pub(super) enum Node {
    File(Arc<Mutex<FileNode>>),
    Dir(Arc<Mutex<DirNode>>),
}

/// One change of names in one directory; what it names comes or goes together.
type NameChange = Vec<(String, Option<Node>)>;

/// A directory: its names as seen now, as a crash leaves them, and the changes between, in order.
#[derive(Default)]
pub(super) struct DirNode {
    pub live: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    pending: Vec<NameChange>,
}

impl DirNode {
    /// Applies a change to the live names.
    pub fn change(&mut self, change: NameChange) {
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    pub fn sync(&mut self) {
        self.durable = self.live.clone();
        self.pending.clear();
    }

    /// The power fails: the durable names, and with `chance` maybe the first few unsynced changes.
    pub fn crash(&mut self, chance: Option<&mut Chance>) {
        let pending = std::mem::take(&mut self.pending);
        let kept = chance.map_or(0, |chance| match chance.below(100) {
            0..40 => 0,
            40..60 => pending.len(),
            _ => chance.below(pending.len() as u64 + 1) as usize,
        });
        for change in pending.iter().take(kept) {
            apply(&mut self.durable, change);
        }
        self.live = self.durable.clone();
    }
}

fn apply(names: &mut BTreeMap<String, Node>, change: &NameChange) {
    for (name, node) in change {
        match node {
            Some(node) => names.insert(name.clone(), node.clone()),
            None => names.remove(name),
        };
    }
}

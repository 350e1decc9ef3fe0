//! Room on the disk of a log directory: clients' records stop a little before its end, so that what
//! makes room again (deletions, metadata, coordinators) still finds some.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use storage::dirs::note_failed_sync;
use storage::disk::Disk;

/// With less room than this, clients' records are refused.
pub const RESERVE_BYTES: u64 = 16 << 20;

/// On a small disk the reserve is this part of it.
pub const RESERVE_PART: u64 = 8;

/// While there is too little room, it is looked at this often.
const LOOK_EVERY_MS: i64 = 250;

/// There is room.
const PLENTY: i64 = i64::MIN;

/// Looked at after each flushed group, and by appends while there is too little.
pub struct Room {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// When to look again; [`PLENTY`] while there is room.
    short_until_ms: AtomicI64,
}

impl Room {
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Room {
        Room { disk, dir, short_until_ms: AtomicI64::new(PLENTY) }
    }

    /// Whether clients' records may be appended. Costs a load while there is room.
    pub fn is_there(&self, now_ms: i64) -> bool {
        let until_ms = self.short_until_ms.load(Ordering::Relaxed);
        if until_ms == PLENTY {
            return true;
        }
        // A clock that was set back counts as due.
        let is_due = !(0..=LOOK_EVERY_MS).contains(&until_ms.saturating_sub(now_ms));
        is_due && self.look(now_ms)
    }

    /// Whether there was too little when it was last looked at.
    pub fn is_short(&self) -> bool {
        self.short_until_ms.load(Ordering::Relaxed) != PLENTY
    }

    /// Tells the next process that a sync failed here.
    pub fn note_failed_sync(&self) {
        if let Err(error) = note_failed_sync(&*self.disk, &self.dir) {
            let dir = self.dir.display();
            tracing::error!(%dir, %error, "cannot leave word that a sync failed");
        }
    }

    /// Asks the disk. One that does not answer has room: a write will tell.
    pub fn look(&self, now_ms: i64) -> bool {
        let space = self.disk.space(&self.dir);
        let (total, usable) = space.map_or((u64::MAX, u64::MAX), |at| (at.total, at.usable));
        let is_there = is_enough(total, usable);
        let until_ms = if is_there { PLENTY } else { now_ms.saturating_add(LOOK_EVERY_MS) };
        let was_there = self.short_until_ms.swap(until_ms, Ordering::Relaxed) == PLENTY;
        let dir = self.dir.display();
        match (was_there, is_there) {
            (true, false) => tracing::error!(%dir, usable, "disk full: no records are taken"),
            (false, true) => tracing::info!(%dir, usable, "room again: records are taken"),
            _ => {}
        }
        is_there
    }
}

/// Whether a disk of `total` bytes has enough with `usable` ones.
fn is_enough(total: u64, usable: u64) -> bool {
    usable >= RESERVE_BYTES.min(total / RESERVE_PART)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use storage::disk::{Disk, OpenMode, SimConfig, SimDisk};

    use super::{LOOK_EVERY_MS, RESERVE_BYTES, Room, is_enough};

    const PAGE: u64 = 4096;

    #[test]
    fn a_small_disk_has_a_small_reserve() {
        let check = |total: u64, usable: u64, want| assert_eq!(is_enough(total, usable), want);
        check(1 << 40, RESERVE_BYTES, true);
        check(1 << 40, RESERVE_BYTES - 1, false);
        check(80 << 20, 10 << 20, true);
        check(80 << 20, (10 << 20) - 1, false);
        check(u64::MAX, u64::MAX, true);
    }

    #[test]
    fn records_stop_before_the_end_and_go_on_when_there_is_room() {
        let disk = SimDisk::new(SimConfig::seeded(1));
        disk.create_dir_all(Path::new("d")).expect("a new disk");
        let file = disk.open(Path::new("d/f"), OpenMode::Create).expect("a file");
        file.allocate(0, 15 * PAGE).expect("there is room");
        let room = Room::new(disk.shared(), "d".into());
        disk.set_capacity(16 * PAGE);
        // Nobody has looked yet.
        assert!(room.is_there(5));
        assert!(!room.look(5) && !room.is_there(6));
        disk.set_capacity(32 * PAGE);
        assert!(!room.is_there(6));
        assert!(room.is_there(6 + LOOK_EVERY_MS) && room.is_there(7));
        // The clock was set back while there was too little.
        disk.set_capacity(16 * PAGE);
        assert!(!room.look(1_000_000));
        disk.set_capacity(32 * PAGE);
        assert!(room.is_there(0));
    }
}

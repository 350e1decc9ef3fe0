//! Where groups go: never over a kept one, in ring order, back to the start when that is safe.

use std::collections::BTreeMap;

use super::*;
use crate::disk::{SimConfig, SimDisk};
use crate::flush::format::{Context, SegmentKey};

const STAMP: Stamp = Stamp { secret: 1, incarnation: 1 };

fn journal(disk: &SimDisk, size: u64) -> Journal {
    Journal::create(disk, Path::new("j"), STAMP, size, BLOCK).unwrap()
}

fn group(journal: &mut Journal, len: u32) -> GroupBuilder {
    let mut group = journal.builder();
    let key = SegmentKey { dir: "t-0".to_owned(), base_offset: 0 };
    group.put_bytes(&key, uuid::Uuid::nil(), 0, Context::of(0, b""), len);
    group
}

#[test]
fn groups_never_overlap_kept_ones() {
    for seed in 0..20_u64 {
        let disk = SimDisk::new(SimConfig::seeded(seed));
        let mut journal = journal(&disk, RING_START + 12 * BLOCK);
        let mut needed_from = 1;
        let mut random = seed;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (random >> 33) % bound
        };
        for _ in 0..300 {
            let len = next(9_000) as u32;
            let new = group(&mut journal, len);
            if !journal.fits(new.len()) {
                // Room comes from settling the oldest.
                needed_from = (needed_from + 1 + next(3)).min(journal.next_sequence());
                journal.release(needed_from);
                assert!(needed_from < journal.next_sequence() || journal.fits(new.len()));
                journal.buffer = Vec::new();
                continue;
            }
            let needed = needed_from.min(journal.next_sequence());
            assert!(journal.append(new, needed).is_ok());
            let mut taken = BTreeMap::new();
            for kept in &journal.kept {
                assert!(kept.start >= RING_START && kept.end <= journal.size);
                for block in (kept.start..kept.end).step_by(BLOCK as usize) {
                    assert_eq!(taken.insert(block, kept.sequence), None, "seed {seed}");
                }
            }
            if next(4) == 0 {
                needed_from = journal.next_sequence() - next(2);
                journal.release(needed_from);
            }
        }
    }
}

#[test]
fn a_settled_journal_starts_over() {
    let disk = SimDisk::new(SimConfig::seeded(1));
    let mut journal = journal(&disk, RING_START + 100 * BLOCK);
    let mut starts = Vec::new();
    for _ in 0..6 {
        let sequence = journal.next_sequence();
        let new = group(&mut journal, 100);
        assert!(journal.append(new, sequence).is_ok());
        journal.release(sequence);
        starts.extend(journal.kept.back().map(|last| (last.start - RING_START) / BLOCK));
    }
    // The last group is never overwritten, and the ends never touch.
    assert_eq!(starts, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn fills_ahead_in_steps_up_to_its_size() {
    let disk = SimDisk::new(SimConfig::seeded(1));
    let mut journal = journal(&disk, RING_START + 3 * BLOCK);
    assert_eq!(journal.filled, RING_START + BLOCK);
    assert!(!journal.fill_ahead(BLOCK).unwrap(), "the cursor is far enough from the end");
    let new = group(&mut journal, 10);
    assert!(journal.append(new, 1).is_ok());
    assert!(journal.fill_ahead(BLOCK).unwrap());
    assert!(!journal.fill_ahead(BLOCK).unwrap());
    for needed in 2..4 {
        let new = group(&mut journal, 10);
        assert!(journal.append(new, needed).is_ok());
        journal.fill_ahead(BLOCK).unwrap();
    }
    assert_eq!(journal.filled, journal.size);
    assert!(!journal.fill_ahead(BLOCK).unwrap());
}

#[test]
fn an_old_file_is_used_again() {
    let disk = SimDisk::new(SimConfig::seeded(1));
    let size = RING_START + 4 * BLOCK;
    let mut old = journal(&disk, size);
    let new = group(&mut old, 3 * BLOCK as u32);
    assert!(old.append(new, 1).is_ok());
    let next = Journal::create(&disk, Path::new("j"), STAMP, size, BLOCK).unwrap();
    assert_eq!((next.filled, next.cursor), (size, RING_START));
}

//! The receive buffer of a connection, and the pool it comes from.
//!
//! A busy connection owns one page-aligned buffer and parses frames in place; an idle one owns
//! none. A frame larger than the buffer gets one of its own size, charged to the process budget.

use std::cell::RefCell;

use crate::env::AlignedBuf;

/// What one read may bring.
pub const READ_BYTES: usize = 256 << 10;

/// What is kept for a request that has only begun.
const PAGE_BYTES: usize = 4096;

/// Frames up to here share a buffer; larger ones are read to their end before the next begins, so
/// that no large tail has to move.
const SHARED_FRAME_BYTES_MAX: usize = 64 << 10;

/// How many bytes of buffers a shard keeps for the next connection that wakes. Fresh memory costs a
/// page fault for each of its pages.
const POOLED_BYTES_MAX: usize = 8 << 20;

thread_local! {
    static POOL: RefCell<Vec<AlignedBuf>> = const { RefCell::new(Vec::new()) };
}

/// Unparsed bytes of one connection.
#[derive(Default)]
pub struct ReadBuffer {
    memory: Option<AlignedBuf>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// The bytes that were read and not consumed.
    pub fn filled(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(memory) => &mut memory.as_mut_slice()[self.start..self.end],
            None => &mut [],
        }
    }

    pub fn filled_len(&self) -> usize {
        self.end - self.start
    }

    pub fn consume(&mut self, len: usize) {
        self.start += len;
        assert!(self.start <= self.end, "consumed more than was read");
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Room for more bytes. `pending` is the whole length, prefix included, of the frame that the
    /// filled part begins, when it is known.
    pub fn room(&mut self, pending: Option<usize>) -> &mut [u8] {
        let wanted = pending.unwrap_or(0).max(READ_BYTES);
        self.make_room(wanted, pending.unwrap_or(4));
        let (start, end) = (self.start, self.end);
        let memory = self.memory.get_or_insert_with(|| take(READ_BYTES));
        let limit = match pending {
            Some(frame) if frame > SHARED_FRAME_BYTES_MAX => start + frame,
            _ => memory.len(),
        };
        &mut memory.as_mut_slice()[end..limit]
    }

    /// Lets the buffer hold `wanted` bytes in all, with the current frame's `frame` contiguous.
    fn make_room(&mut self, wanted: usize, frame: usize) {
        let capacity = self.memory.as_ref().map_or(0, AlignedBuf::len);
        if capacity < wanted {
            self.move_into(take(wanted));
        } else if self.start > 0 && (self.start + frame > capacity || self.end == capacity) {
            let (start, end) = (self.start, self.end);
            if let Some(memory) = &mut self.memory {
                memory.as_mut_slice().copy_within(start..end, 0);
            }
            (self.start, self.end) = (0, end - start);
        }
    }

    pub fn grow(&mut self, len: usize) {
        self.end += len;
    }

    /// How many bytes this buffer owns.
    pub fn capacity(&self) -> usize {
        self.memory.as_ref().map_or(0, AlignedBuf::len)
    }

    /// Nothing comes for now: gives the memory back, but for a page if a little is in it. Many
    /// peers that begin a request and send no more cost little.
    pub fn settle(&mut self) {
        if self.filled_len() == 0 {
            self.release();
        } else if self.filled_len() <= PAGE_BYTES && self.capacity() > PAGE_BYTES {
            self.move_into(AlignedBuf::new(PAGE_BYTES));
        }
    }

    /// Gives a large buffer back if what is in it fits into one of the usual size; whether it did.
    pub fn shrink(&mut self) -> bool {
        let fits = self.capacity() > READ_BYTES && self.filled_len() <= READ_BYTES;
        if fits {
            self.move_into(AlignedBuf::new(READ_BYTES));
        }
        fits
    }

    fn move_into(&mut self, mut other: AlignedBuf) {
        let filled = self.filled();
        let len = filled.len();
        other.as_mut_slice()[..len].copy_from_slice(filled);
        self.release();
        self.memory = Some(other);
        (self.start, self.end) = (0, len);
    }

    fn release(&mut self) {
        (self.start, self.end) = (0, 0);
        let Some(memory) = self.memory.take() else { return };
        POOL.with_borrow_mut(|pool| {
            let pooled: usize = pool.iter().map(AlignedBuf::len).sum();
            if memory.len() >= READ_BYTES && pooled + memory.len() <= POOLED_BYTES_MAX {
                pool.push(memory);
            }
        });
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

fn take(len: usize) -> AlignedBuf {
    let pooled = POOL.with_borrow_mut(|pool| {
        // The smallest that is large enough, so that the large ones stay for those who need them.
        let fits = pool.iter().enumerate().filter(|(_, memory)| memory.len() >= len);
        let at = fits.min_by_key(|(_, memory)| memory.len()).map(|(at, _)| at)?;
        Some(pool.swap_remove(at))
    });
    pooled.unwrap_or_else(|| AlignedBuf::new(len))
}

#[cfg(test)]
mod tests {
    use super::{READ_BYTES, ReadBuffer};

    fn feed(buffer: &mut ReadBuffer, bytes: &[u8], pending: Option<usize>) {
        let room = buffer.room(pending);
        room[..bytes.len()].copy_from_slice(bytes);
        buffer.grow(bytes.len());
    }

    #[test]
    fn keeps_what_is_not_consumed_when_it_moves_and_grows() {
        let mut buffer = ReadBuffer::default();
        feed(&mut buffer, &[1; 100], None);
        feed(&mut buffer, &[2; 100], None);
        buffer.consume(150);
        assert_eq!(buffer.filled(), &[2; 50]);
        // A frame larger than the buffer: moved into one of its own.
        assert!(buffer.room(Some(READ_BYTES * 2)).len() + 50 == READ_BYTES * 2);
        assert_eq!(buffer.filled(), &[2; 50]);
        buffer.consume(50);
        buffer.settle();
        assert_eq!(buffer.capacity(), 0);
    }

    /// A buffer with `filled` bytes settles, and shrinks, to these capacities.
    #[track_caller]
    fn check_small(filled: usize, pending: Option<usize>, settled: usize, shrunk: usize) {
        for (want, shrink) in [(settled, false), (shrunk, true)] {
            let mut buffer = ReadBuffer::default();
            let bytes: Vec<u8> = (0..filled).map(|at| at as u8).collect();
            feed(&mut buffer, &bytes, pending);
            match shrink {
                true => assert_eq!(buffer.shrink(), want < pending.unwrap_or(0)),
                false => buffer.settle(),
            }
            assert_eq!(buffer.capacity(), want, "{filled} bytes, shrink: {shrink}");
            assert_eq!(buffer.filled(), &bytes);
            // It goes on where it was.
            feed(&mut buffer, &[7], pending);
            assert_eq!(buffer.filled_len(), filled + 1);
        }
    }

    #[test]
    fn who_only_began_a_request_holds_a_page() {
        let large = Some(READ_BYTES * 2);
        check_small(4, None, 4096, READ_BYTES);
        check_small(4096, None, 4096, READ_BYTES);
        check_small(4097, None, READ_BYTES, READ_BYTES);
        check_small(8, large, 4096, READ_BYTES);
        check_small(READ_BYTES, large, READ_BYTES * 2, READ_BYTES);
    }

    #[test]
    fn a_large_frame_is_read_to_its_end_and_no_further() {
        let mut buffer = ReadBuffer::default();
        feed(&mut buffer, &[0; 10], None);
        assert_eq!(buffer.room(Some(100_000)).len(), 99_990);
        assert_eq!(buffer.room(Some(1000)).len(), READ_BYTES - 10);
    }
}

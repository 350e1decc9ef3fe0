//! The one place of this crate with `unsafe`: page-aligned memory.

/// The size and alignment of a page.
const PAGE: usize = 4096;

#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; PAGE]);

/// Bytes that start on a page border.
///
/// Kernel copies into a buffer that starts 16 bytes into a page, which is what a `Vec` of this size
/// gives, run at less than half the speed.
pub struct AlignedBuf {
    pages: Vec<Page>,
}

impl AlignedBuf {
    /// At least `len` bytes, zeroed.
    pub fn new(len: usize) -> AlignedBuf {
        AlignedBuf { pages: vec![Page([0; PAGE]); len.div_ceil(PAGE).max(1)] }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.pages.len() * PAGE
    }

    /// Never: there is at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `Page` is `repr(C)` over `[u8; PAGE]` with no padding, the pages are contiguous
        // and initialised, and the length is exactly theirs.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.len()) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let len = self.len();
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::AlignedBuf;

    #[test]
    fn starts_on_a_page_and_rounds_up() {
        let mut buf = AlignedBuf::new(5000);
        assert_eq!(buf.len(), 8192);
        assert_eq!(buf.as_slice().as_ptr() as usize % 4096, 0);
        buf.as_mut_slice()[8191] = 7;
        assert_eq!(buf.as_slice()[8191], 7);
    }
}

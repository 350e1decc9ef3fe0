//! Page-aligned memory.

/// The size and alignment of a page.
const PAGE: usize = 4096;

/// Bytes that start on a page border.
///
/// Kernel copies into a buffer that starts 16 bytes into a page, which is what a `Vec` of this size
/// gives, run at less than half the speed.
pub struct AlignedBuf {
    /// A page longer than wanted, so that there is a border in the first one. It is never resized.
    memory: Vec<u8>,
    start: usize,
}

impl AlignedBuf {
    /// At least `len` bytes, zeroed.
    ///
    /// Zeros of this kind come from the kernel untouched if they are many: a peer that announces
    /// 100 MiB and sends nothing costs no page. Asking the allocator for aligned ones would write
    /// to all of them.
    pub fn new(len: usize) -> AlignedBuf {
        let memory = vec![0; len.div_ceil(PAGE).max(1) * PAGE + PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        assert!(start < PAGE, "the border lies in the first page");
        AlignedBuf { memory, start }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.memory.len() - PAGE
    }

    /// Never: there is at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len()]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let end = self.start + self.len();
        &mut self.memory[self.start..end]
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

    /// Pages in memory; the kernel tells.
    fn resident_pages() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        text.split(' ').nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    #[test]
    fn a_large_one_costs_nothing_until_it_is_written_to() {
        let before = resident_pages();
        let large: Vec<AlignedBuf> = (0..20).map(|_| AlignedBuf::new(100 << 20)).collect();
        assert_eq!(large[19].len(), 100 << 20);
        let grown = resident_pages().saturating_sub(before);
        assert!(grown < 100 << 20 >> 12, "{grown} pages");
    }
}

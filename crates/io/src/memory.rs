//! Memory that holds much for long.

use memmap2::{Advice, MmapMut};
use std::io;

/// Zeroed bytes of the process's own, on huge pages where the system has some to give: a look at a random place then
/// costs one miss of the cache and not another one for where the page is.
pub(crate) struct Memory(MmapMut);

impl Memory {
    /// So many bytes.
    pub(crate) fn new(len: usize) -> io::Result<Memory> {
        let map = MmapMut::map_anon(len)?;
        // Ordinary pages do as well.
        let _ = map.advise(Advice::HugePage);
        Ok(Memory(map))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_keeps_what_is_written() {
        for len in [0, 1, 4096, 5 << 20] {
            let mut memory = Memory::new(len).unwrap();
            assert!(memory.bytes().len() == len && memory.bytes().iter().all(|byte| *byte == 0));
            memory.bytes_mut().fill(7);
            assert!(memory.bytes().iter().all(|byte| *byte == 7));
        }
    }
}

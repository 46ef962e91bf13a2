//! The memory of a payload that is kept.

use std::io;

use super::mapping::Mapping;

/// Zeroed bytes of the process's own, on huge pages where the system has some to give: a look at a random place then
/// costs one miss of the cache and not another one for where the page is.
pub(crate) struct Memory(Mapping);

impl Memory {
    /// So many bytes.
    pub(crate) fn new(len: usize) -> io::Result<Memory> {
        let mapping = Mapping::anonymous(len, 0)?;
        mapping.prefer_huge_pages();
        Ok(Memory(mapping))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
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

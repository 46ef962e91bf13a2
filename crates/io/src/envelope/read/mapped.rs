//! Reads from a mapping of a sealed file, whose pages are checked once.

use super::{PAGE_LEN, SealedFile};
use crate::envelope::layout::{GROUP, PAGE};
use crate::error::Result;
use std::sync::atomic::{AtomicU64, Ordering};

impl SealedFile {
    /// As [`SealedFile::read_into`], copied from a mapping of the file ([`crate::ReadFile::read_mapped`]). A
    /// page is checked when it is read for the first time only, so later damage is not found. Takes a bit for
    /// each page.
    ///
    /// # Errors
    /// As [`SealedFile::read`]. A device error ends the process by a signal.
    pub fn read_mapped_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let read = self.read_mapped_range(offset, len, out);
        if read.is_err() {
            out.clear();
        }
        read
    }

    fn read_mapped_range(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.resident().is_some() || len == 0 {
            return self.read_range(offset, len, out);
        }
        let end = self.payload_end_of(offset, len)?;
        let pages = offset / PAGE..end.div_ceil(PAGE);
        self.bytes_read.fetch_add((pages.end - pages.start) * PAGE, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        pages.into_iter().try_for_each(|page| self.check_mapped_page(page))?;
        // Exact, because callers count this memory in their budget.
        out.reserve_exact(len.saturating_sub(out.len()));
        out.resize(len, 0);
        self.file.read_mapped(offset, out)
    }

    /// Checks a page of the mapping, unless it was checked before.
    fn check_mapped_page(&self, number: u64) -> Result<()> {
        let bits = self
            .checked_pages
            .get_or_init(|| (0..self.layout().pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
        let (word, bit) = (&bits[self.to_usize(number / 64)?], 1 << (number % 64));
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        let mut page = [0; PAGE_LEN];
        let left = self.layout().payload_end - number * PAGE;
        let page = &mut page[..left.min(PAGE) as usize];
        self.file.read_mapped(number * PAGE, page)?;
        self.check_page(number, page, &self.group(number / GROUP)?)?;
        word.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{HEADER_LEN, Identity, SealedWriter};
    use crate::error::ErrorKind;
    use crate::mem::MemDisk;

    const IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 77 };

    #[test]
    fn a_page_of_a_mapping_is_checked_when_it_is_read_first() {
        let disk = MemDisk::new();
        let payload: Vec<u8> = (0..300_000).map(|k: u32| (k * 7 + k / 256) as u8).collect();
        let mut writer = SealedWriter::create(&disk, "b", IDENTITY).unwrap();
        writer.write(&payload).unwrap();
        let seal = writer.finish().unwrap();
        let damage = |page: usize| disk.corrupt("b", |bytes| bytes[page * PAGE_LEN + 100] ^= 1);
        damage(3);
        let file = SealedFile::open(&disk, "b", IDENTITY, seal).unwrap();
        let mut out = vec![1, 2, 3];
        for (start, len) in [(0, 0), (0, 1), (5000, 300), (299_000, 1000), (20_000, 279_000), (9000, 0)] {
            file.read_mapped_into(HEADER_LEN + start as u64, len, &mut out).unwrap();
            assert_eq!(out, payload[start..start + len]);
        }
        for start in [2 * PAGE_LEN, 3 * PAGE_LEN, 3 * PAGE_LEN + 100] {
            let error = file.read_mapped_into(start as u64, 2 * PAGE_LEN, &mut out).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(3 * PAGE)));
            assert!(out.is_empty());
        }
        // Page 6 was checked.
        damage(6);
        file.read_mapped_into(6 * PAGE, PAGE_LEN, &mut out).unwrap();
        assert!(file.read(6 * PAGE, PAGE_LEN).is_err());
        for (start, len) in [(0, 10), (HEADER_LEN, payload.len() + 1), (u64::MAX, 2)] {
            assert!(file.read_mapped_into(start, len, &mut out).is_err());
        }
    }

    #[test]
    fn threads_that_read_a_mapping_all_find_a_damaged_page() {
        const PAGES: usize = 100;
        const DAMAGED: usize = 37;
        let disk = MemDisk::new();
        let payload: Vec<u8> = (0..PAGES * PAGE_LEN).map(|k| (k * 7 + k / 256) as u8).collect();
        let mut writer = SealedWriter::create(&disk, "b", IDENTITY).unwrap();
        writer.write(&payload).unwrap();
        let seal = writer.finish().unwrap();
        disk.corrupt("b", |bytes| bytes[DAMAGED * PAGE_LEN + 9] ^= 4);
        let file = SealedFile::open(&disk, "b", IDENTITY, seal).unwrap();
        std::thread::scope(|scope| {
            for step in [1, 3, 7, 11] {
                let (file, payload) = (&file, &payload);
                scope.spawn(move || {
                    let mut out = Vec::new();
                    for page in (0..PAGES).map(|k| k * step % PAGES) {
                        let offset = page * PAGE_LEN + HEADER_LEN as usize;
                        let read = file.read_mapped_into(offset as u64, 200, &mut out);
                        assert_eq!(read.is_err(), page == DAMAGED, "page {page}");
                        let start = page * PAGE_LEN;
                        assert!(page == DAMAGED || out == payload[start..start + 200]);
                    }
                });
            }
        });
    }
}

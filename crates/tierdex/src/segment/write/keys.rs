//! Writes `keys`: hashes of external ids with their documents, in order, then the first hash of each page
//! (docs/format/keys.md).

use super::super::layout::{FileKind, FileMeta, KEY_BYTES, KEY_PAGE_ENTRIES, KeyEntry, KeySeed, push_tail};
use super::file::{create, seal};
use crate::Result;
use tierdex_io::{Disk, PAGE};

/// Collects the hashes of the external ids of a segment, in the order of documents.
pub struct KeysWriter {
    seed: KeySeed,
    entries: Vec<KeyEntry>,
}

impl KeysWriter {
    /// For a segment of an index with this seed.
    pub fn new(seed: KeySeed) -> KeysWriter {
        KeysWriter { seed, entries: Vec::new() }
    }

    /// Appends the next document's id.
    pub fn add(&mut self, id: &[u8]) {
        self.entries.push(KeyEntry { hash: self.seed.hash(id), document: self.entries.len() as u32 });
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<KeyEntry>()
    }

    /// Sorts the entries and writes the file.
    pub fn finish(mut self, disk: &dyn Disk, segment: u64) -> Result<FileMeta> {
        self.entries.sort_unstable();
        let mut entries = self.entries.iter().copied();
        write_keys(disk, segment, || Ok(entries.next()))
    }
}

/// Writes the entries that `next` returns, which are in order.
pub fn write_keys(
    disk: &dyn Disk,
    segment: u64,
    mut next: impl FnMut() -> Result<Option<KeyEntry>>,
) -> Result<FileMeta> {
    let mut file = create(disk, segment, 0, FileKind::Keys)?;
    file.pad_to_page()?;
    let (mut page, mut first_hashes, mut documents) = (Vec::with_capacity(PAGE as usize), Vec::new(), 0_u64);
    while let Some(entry) = next()? {
        if documents.is_multiple_of(KEY_PAGE_ENTRIES as u64) {
            first_hashes.extend_from_slice(&entry.hash.to_le_bytes());
        }
        page.extend_from_slice(&entry.hash.to_le_bytes());
        page.extend_from_slice(&entry.document.to_le_bytes());
        documents += 1;
        if page.len() == KEY_PAGE_ENTRIES * KEY_BYTES {
            file.write(&page)?;
            page.clear();
        }
    }
    file.write(&page)?;
    file.write(&first_hashes)?;
    let mut tail = Vec::new();
    push_tail(&mut tail, &[documents]);
    file.write(&tail)?;
    seal(file, 0, FileKind::Keys)
}

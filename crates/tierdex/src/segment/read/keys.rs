//! Reads `keys` (docs/format/keys.md): looks up the documents whose external ids have a hash, and walks and
//! merges all entries in order.

use super::source::{BlockSource, page_range};
use super::tail::read_tail;
use crate::bytes::u32_at;
use crate::segment::layout::{KEY_BYTES, KEY_FIRST_PAGE, KEY_PAGE_ENTRIES, KeyEntry};
use crate::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, binary_heap::PeekMut};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{PAGE, SealedFile};

/// Looks up documents by the hash of their external id. The first hash of each page is read on first use and
/// stays resident: 4 bytes for 512 documents.
pub struct KeysReader {
    file: Arc<SealedFile>,
    documents: u32,
    /// First hash of each page, as little-endian `u32`.
    first_hashes: OnceLock<Vec<u8>>,
}

impl KeysReader {
    pub(super) fn open(file: SealedFile, documents: u32) -> Result<KeysReader> {
        let [count] = read_tail::<1>(&file)?;
        let keys = KeysReader { file: Arc::new(file), documents, first_hashes: OnceLock::new() };
        let tail_start = keys.entries_end() + keys.memory();
        if count != u64::from(documents) || keys.file.payload().end != tail_start + size_of::<u64>() as u64 {
            return Err(Error::corrupt(keys.file.name(), tail_start, "the tail does not fit the file"));
        }
        Ok(keys)
    }

    /// Replaces `documents` by those whose id has this hash, ascending. Reads one page; if the hash is the
    /// first of a page, also the page before.
    pub fn look_up(&self, hash: u32, source: &dyn BlockSource, documents: &mut Vec<u32>) -> Result<()> {
        documents.clear();
        let first_hashes = self.first_hashes()?.as_chunks::<4>().0;
        let from = first_hashes.partition_point(|first| u32::from_le_bytes(*first) < hash);
        let to = first_hashes.partition_point(|first| u32::from_le_bytes(*first) <= hash);
        let mut bytes = Vec::new();
        for page in from.saturating_sub(1)..to {
            source.read(&self.file, self.range_of(page), &mut bytes)?;
            let entries = bytes.as_chunks::<KEY_BYTES>().0;
            let start = entries.partition_point(|bytes| entry(bytes).hash < hash);
            for entry in entries[start..].iter().map(entry).take_while(|entry| entry.hash == hash) {
                if entry.document >= self.documents || documents.last() >= Some(&entry.document) {
                    return Err(self.corrupt(page, "documents that are not in order"));
                }
                documents.push(entry.document);
            }
        }
        Ok(())
    }

    /// All entries, in order of hashes, then of documents.
    pub fn walk<'a>(&'a self, source: &'a dyn BlockSource) -> KeysWalk<'a> {
        KeysWalk { keys: self, source, next_page: 0, bytes: Vec::new(), at: 0, last: None }
    }

    /// Bytes in memory of the first hashes of the pages.
    pub fn memory(&self) -> u64 {
        (size_of::<u32>() * self.pages()) as u64
    }

    /// The file of keys.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// Number of pages of entries.
    pub fn pages(&self) -> usize {
        (self.documents as usize).div_ceil(KEY_PAGE_ENTRIES)
    }

    /// Offset after the last entry.
    fn entries_end(&self) -> u64 {
        page_range(KEY_FIRST_PAGE).start + (KEY_BYTES as u64) * u64::from(self.documents)
    }

    /// Byte range of a page of entries; the last may be shorter.
    fn range_of(&self, page: usize) -> Range<u64> {
        let range = page_range(KEY_FIRST_PAGE + page as u32);
        range.start..range.end.min(self.entries_end())
    }

    fn first_hashes(&self) -> Result<&[u8]> {
        if let Some(first_hashes) = self.first_hashes.get() {
            return Ok(first_hashes);
        }
        let first_hashes = self.file.read(self.entries_end(), self.memory() as usize)?;
        Ok(self.first_hashes.get_or_init(|| first_hashes))
    }

    fn corrupt(&self, page: usize, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.range_of(page).start, what)
    }
}

/// Reads all entries of a file of keys in order, one page at a time.
pub struct KeysWalk<'a> {
    keys: &'a KeysReader,
    source: &'a dyn BlockSource,
    next_page: usize,
    /// The page before, and the offset in it of the next entry.
    bytes: Vec<u8>,
    at: usize,
    last: Option<KeyEntry>,
}

impl KeysWalk<'_> {
    /// The next entry, greater than the one before; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Storage`] if the page cannot be read, or is damaged.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<KeyEntry>> {
        if self.at == self.bytes.len() && !self.read_page()? {
            return Ok(None);
        }
        let next = entry(self.bytes[self.at..].first_chunk().expect("pages have whole entries"));
        if self.last >= Some(next) || next.document >= self.keys.documents {
            return Err(self.corrupt("entries that are not in order, or of no document"));
        }
        if self.at == 0 && u32_at(self.keys.first_hashes()?, self.next_page - 1) != Some(next.hash) {
            return Err(self.corrupt("a page begins with another hash"));
        }
        self.at += KEY_BYTES;
        self.last = Some(next);
        Ok(self.last)
    }

    /// Reads the next page; false after the last.
    fn read_page(&mut self) -> Result<bool> {
        if self.next_page == self.keys.pages() {
            return Ok(false);
        }
        self.source.read(&self.keys.file, self.keys.range_of(self.next_page), &mut self.bytes)?;
        (self.next_page, self.at) = (self.next_page + 1, 0);
        Ok(true)
    }

    fn corrupt(&self, what: &str) -> Error {
        self.keys.corrupt(self.next_page.saturating_sub(1), what)
    }
}

/// The keys of a segment that is merged with others.
pub struct KeysInput<'a> {
    /// All its entries.
    pub walk: KeysWalk<'a>,
    /// The number of a document after merging; `None` if it is dropped. Does not change the order of
    /// documents.
    pub document: Box<dyn Fn(u32) -> Option<u32> + 'a>,
}

impl KeysInput<'_> {
    /// The next entry whose document is not dropped.
    fn next(&mut self) -> Result<Option<KeyEntry>> {
        while let Some(entry) = self.walk.next()? {
            if let Some(document) = (self.document)(entry.document) {
                return Ok(Some(KeyEntry { document, ..entry }));
            }
        }
        Ok(None)
    }
}

/// The entries of several segments in order, with the numbers that documents have after merging.
pub struct MergedKeys<'a> {
    inputs: Vec<KeysInput<'a>>,
    /// The next entry of each input, and the number of the input.
    heads: BinaryHeap<Reverse<(KeyEntry, usize)>>,
}

impl<'a> MergedKeys<'a> {
    /// Merges these segments, no two of which give a document the same number.
    pub fn new(mut inputs: Vec<KeysInput<'a>>) -> Result<MergedKeys<'a>> {
        let mut heads = BinaryHeap::with_capacity(inputs.len());
        for (number, input) in inputs.iter_mut().enumerate() {
            heads.extend(input.next()?.map(|entry| Reverse((entry, number))));
        }
        Ok(MergedKeys { inputs, heads })
    }

    /// The next entry, `None` after the last.
    ///
    /// # Errors
    /// As [`KeysWalk::next`].
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<KeyEntry>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((entry, input)) = *head;
        match self.inputs[input].next()? {
            Some(next) => *head = Reverse((next, input)),
            None => drop(PeekMut::pop(head)),
        }
        Ok(Some(entry))
    }
}

fn entry(bytes: &[u8; KEY_BYTES]) -> KeyEntry {
    let [a, b, c, d, e, f, g, h] = *bytes;
    KeyEntry { hash: u32::from_le_bytes([a, b, c, d]), document: u32::from_le_bytes([e, f, g, h]) }
}

const _: () = assert!(KEY_PAGE_ENTRIES * KEY_BYTES == PAGE as usize);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::layout::{FileKind, file_name, identity};
    use crate::segment::read::FILES;
    use crate::segment::write::write_keys;
    use proptest::prelude::*;
    use tierdex_io::MemDisk;

    /// Writes entries of documents 0, 1, ... with these hashes.
    fn keys_of(segment: u64, hashes: &[u32]) -> KeysReader {
        let mut entries: Vec<KeyEntry> =
            (0..).zip(hashes).map(|(document, hash)| KeyEntry { hash: *hash, document }).collect();
        entries.sort_unstable();
        let disk = MemDisk::new();
        let mut entries = entries.into_iter();
        let file = write_keys(&disk, segment, || Ok(entries.next())).unwrap();
        let kind = FileKind::Keys;
        let file =
            SealedFile::open(&disk, &file_name(segment, 0, kind), identity(segment, 0, kind), file.seal);
        KeysReader::open(file.unwrap(), hashes.len() as u32).unwrap()
    }

    fn any_hashes() -> impl Strategy<Value = Vec<u32>> {
        // Few hashes: equal ones cross pages.
        prop_oneof![
            prop::collection::vec(0u32..6, 0..2600),
            prop::collection::vec(0u32..100, 0..1300),
            prop::collection::vec(any::<u32>(), 0..1300),
        ]
    }

    fn walk_all(mut next: impl FnMut() -> Result<Option<KeyEntry>>) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| next().unwrap()).map(|entry| (entry.hash, entry.document)).collect()
    }

    proptest! {
        #[test]
        fn keys_are_those_of_a_model(hashes in any_hashes(), others in prop::collection::vec(any::<u32>(), 5)) {
            let keys = keys_of(1, &hashes);
            let documents_of = |hash: u32| {
                (0..).zip(&hashes).filter(|(_, of)| **of == hash).map(|(document, _)| document).collect::<Vec<u32>>()
            };
            let mut found = vec![99];
            for hash in hashes.iter().step_by(37).copied().chain(others).chain(0..7) {
                keys.look_up(hash, &FILES, &mut found).unwrap();
                prop_assert_eq!(&found, &documents_of(hash), "{}", hash);
            }
            let mut model: Vec<(u32, u32)> = hashes.iter().copied().zip(0..).collect();
            model.sort_unstable();
            let mut walk = keys.walk(&FILES);
            prop_assert_eq!(walk_all(|| walk.next()), model);
        }

        #[test]
        fn merged_keys_are_those_of_all_documents_that_are_left(
            parts in prop::collection::vec(any_hashes(), 1..4), step in 1u32..5,
        ) {
            let keys: Vec<KeysReader> = parts.iter().map(|hashes| keys_of(1, hashes)).collect();
            let (mut inputs, mut model, mut base) = (Vec::new(), Vec::new(), 0);
            for (keys, hashes) in keys.iter().zip(&parts) {
                let is_left = move |document: &u32| !document.is_multiple_of(step);
                let document = move |document: u32| {
                    is_left(&document).then(|| base + document - document.div_ceil(step))
                };
                model.extend((0..).zip(hashes).filter_map(|(of, hash)| Some((*hash, document(of)?))));
                inputs.push(KeysInput { walk: keys.walk(&FILES), document: Box::new(document) });
                base += (0..hashes.len() as u32).filter(is_left).count() as u32;
            }
            model.sort_unstable();
            let mut merged = MergedKeys::new(inputs).unwrap();
            prop_assert_eq!(walk_all(|| merged.next()), model);
        }
    }

    #[test]
    fn a_look_up_reads_one_page() {
        let hashes: Vec<u32> = (0..4 * KEY_PAGE_ENTRIES as u32).map(|number| 2 * number).collect();
        let keys = keys_of(1, &hashes);
        let mut found = Vec::new();
        keys.look_up(2, &FILES, &mut found).unwrap();
        for hash in [1, 3, 1022, 1030, 4001, u32::MAX] {
            let before = keys.file().reads();
            keys.look_up(hash, &FILES, &mut found).unwrap();
            assert_eq!(keys.file().reads() - before, 1, "{hash}");
            assert_eq!(found.len(), usize::from(hash % 2 == 0), "{hash}");
        }
    }
}

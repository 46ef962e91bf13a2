//! Reads external ids from `ids` (docs/format/documents.md): pages of ids, and an index, itself in pages,
//! with the first document of each page of ids.

use super::source::{BlockSource, FILES, page_range};
use super::tail::read_tail;
use crate::bytes::{ByteReader, u16_at, u32_at};
use crate::limits::{ID_BYTES_MAX, ID_INDEX_PAGE_ENTRIES, ID_RESTART_INTERVAL};
use crate::{Error, Result, segment::layout::ID_PAGE_HEADER_BYTES};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{PAGE, SealedFile};

/// Looks up the external id of a document. The first document of each page of the index is read on first use
/// and stays resident: 4 bytes for 512 pages of ids.
pub struct IdsReader {
    file: Arc<SealedFile>,
    documents: u32,
    /// Number of entries of the index: one for each page of ids.
    pages: usize,
    /// Offset of the index in the file.
    index_start: u64,
    /// First document of each page of the index, as little-endian `u32`.
    first_documents: OnceLock<Vec<u8>>,
}

/// Bytes of a run of ids, and of the restart points of a page, that are prefetched into the caches of the
/// processor.
const RUN_BYTES_TYPICAL: usize = 128;

/// A page of ids, and the range of the requested documents whose ids it has.
struct PageDocuments {
    page: u32,
    /// The document of the first id of the page.
    first_document: u32,
    begin: u32,
    end: u32,
}

impl PageDocuments {
    /// The indexes of its documents among the requested ones.
    fn indexes(&self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }
}

impl IdsReader {
    pub(super) fn open(file: SealedFile, documents: u32) -> Result<IdsReader> {
        let [count, pages, index_start] = read_tail::<3>(&file)?;
        let payload = file.payload();
        // Each page has at least one document.
        let pages = usize::try_from(pages).ok().filter(|pages| *pages <= documents as usize);
        let end = pages.and_then(|pages| {
            index_start.checked_add((8 * pages + 4 * pages.div_ceil(ID_INDEX_PAGE_ENTRIES) + 24) as u64)
        });
        let is_valid =
            count == u64::from(documents) && index_start % PAGE == 0 && index_start >= payload.start;
        match pages.filter(|_| is_valid && end == Some(payload.end)) {
            Some(pages) => {
                let (file, first_documents) = (Arc::new(file), OnceLock::new());
                Ok(IdsReader { file, documents, pages, index_start, first_documents })
            }
            None => Err(Error::corrupt(file.name(), payload.end, "the tail does not fit the file")),
        }
    }

    /// Calls `body` with the index in `documents` and the external id of each document, until `body` returns
    /// false. `documents` must not decrease; the memory is proportional to their number.
    pub fn read_ids(
        &self,
        documents: &[u32],
        source: &dyn BlockSource,
        mut body: impl FnMut(usize, &str) -> bool,
    ) -> Result<()> {
        let (numbers, parts) = self.locate(documents, source)?;
        let (mut id, mut long) = (Vec::new(), Vec::new());
        source.for_each_page(&self.file, &numbers, &mut |first, pages| {
            let parts = || parts[first..].iter().zip(pages);
            // The processor waits for the memory of several pages at a time.
            pages.iter().for_each(|bytes| prefetch_ends(bytes));
            for (part, bytes) in parts() {
                let page = self.page(part.page, bytes)?;
                for document in &documents[part.indexes()] {
                    page.prefetch_run((document - part.first_document) as usize);
                }
            }
            for (part, bytes) in parts() {
                let bytes = match self.is_long(part.page, bytes)? {
                    true => {
                        let range = page_range(part.page);
                        source.read(&self.file, range.start..range.end + PAGE, &mut long)?;
                        &long
                    }
                    false => *bytes,
                };
                let page = self.page(part.page, bytes)?;
                for index in part.indexes() {
                    let number = (documents[index] - part.first_document) as usize;
                    if !body(index, page.id(number, &mut id)?) {
                        return Ok(false);
                    }
                }
            }
            source.checkpoint(0..0)?;
            Ok(true)
        })
    }

    /// Calls `body` with the id of each document in order, and checks the index and all pages.
    pub fn for_each(&self, mut body: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let (mut next, mut bytes, mut id, mut entries) = (0, Vec::new(), Vec::new(), Vec::new());
        let mut next_page = 1;
        for index_page in 0..self.pages.div_ceil(ID_INDEX_PAGE_ENTRIES) {
            self.read_index(index_page, &FILES, &mut entries)?;
            if u32_at(self.first_documents()?, index_page) != Some(next) {
                return Err(self.corrupt("a page of the index begins with another document"));
            }
            for entry in entries.as_chunks::<8>().0 {
                let (first, page) = index_entry(entry);
                if first != next || u64::from(page) != next_page {
                    return Err(self.corrupt("a page begins with another document or is elsewhere"));
                }
                self.read_page(page, &FILES, &mut bytes)?;
                next_page += bytes.len() as u64 / PAGE;
                let content = self.page(page, &bytes)?;
                if content.ids as u64 > u64::from(self.documents - next) {
                    return Err(self.corrupt("more ids than documents"));
                }
                let mut view = content.entries.clone();
                for number in 0..content.ids {
                    if content.run_start(number).is_some_and(|start| start != view.offset() - content.start) {
                        return Err(view.corrupt("a restart is elsewhere"));
                    }
                    body(content.next_id(number, &mut view, &mut id)?)?;
                }
                next += content.ids as u32;
            }
        }
        if next == self.documents { Ok(()) } else { Err(self.corrupt("ids of another number of documents")) }
    }

    /// Bytes in memory of the first documents of the index pages.
    pub fn memory(&self) -> u64 {
        4 * self.pages.div_ceil(ID_INDEX_PAGE_ENTRIES) as u64
    }

    /// The file of ids.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// The pages with the ids of these documents, which must not decrease: the number of each page, and its
    /// documents.
    fn locate(&self, documents: &[u32], source: &dyn BlockSource) -> Result<(Vec<u32>, Vec<PageDocuments>)> {
        let no_id = || self.corrupt("document has no id");
        let first_documents = self.first_documents()?.as_chunks::<4>().0;
        // The pages of the index, and the document after each.
        let (mut index_pages, mut rest) = (Vec::new(), documents);
        while let Some(document) = rest.first() {
            let after = first_documents.partition_point(|first| u32::from_le_bytes(*first) <= *document);
            let end = first_documents.get(after).map_or(u32::MAX, |first| u32::from_le_bytes(*first));
            let number = after.checked_sub(1).ok_or_else(no_id)?;
            source.prefetch(&self.file, self.index_range(number));
            index_pages.push((number, end));
            rest = &rest[rest.partition_point(|document| *document < end)..];
        }
        let capacity = documents.len().min(self.pages);
        let (mut numbers, mut parts) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        let (mut bytes, mut begin) = (Vec::new(), 0);
        for (number, end) in index_pages {
            self.read_index(number, source, &mut bytes)?;
            let mut entries = bytes.as_chunks::<8>().0;
            while let Some(document) = documents.get(begin).filter(|document| **document < end) {
                let at = entries.partition_point(|entry| index_entry(entry).0 <= *document);
                entries = &entries[at.checked_sub(1).ok_or_else(no_id)?..];
                let (first_document, page) = index_entry(&entries[0]);
                let range = page_range(page);
                if first_document > *document {
                    return Err(no_id());
                }
                if range.start < self.file.payload().start || range.end > self.index_start {
                    return Err(self.corrupt("a page of ids before or after all ids"));
                }
                let after = entries.get(1).map_or(end, |entry| index_entry(entry).0);
                let count = documents[begin..].partition_point(|document| *document < after).max(1);
                let end = begin + count;
                numbers.push(page);
                parts.push(PageDocuments { page, first_document, begin: begin as u32, end: end as u32 });
                begin = end;
            }
        }
        Ok((numbers, parts))
    }

    /// Byte range of a page of the index.
    fn index_range(&self, number: usize) -> Range<u64> {
        let entry = |number: usize| self.index_start + 8 * number.min(self.pages) as u64;
        entry(ID_INDEX_PAGE_ENTRIES * number)..entry(ID_INDEX_PAGE_ENTRIES * (number + 1))
    }

    fn read_index(&self, number: usize, source: &dyn BlockSource, out: &mut Vec<u8>) -> Result<()> {
        source.read(&self.file, self.index_range(number), out)
    }

    /// Reads a page of ids; two pages if its only id is longer than one.
    fn read_page(&self, page: u32, source: &dyn BlockSource, out: &mut Vec<u8>) -> Result<()> {
        let range = page_range(page);
        if range.end > self.index_start {
            return Err(self.corrupt("a page of ids after their end"));
        }
        source.read(&self.file, range.clone(), out)?;
        if self.is_long(page, out)? {
            source.read(&self.file, range.start..range.end + PAGE, out)?;
        }
        Ok(())
    }

    /// Whether the only id of a page is continued on the next.
    fn is_long(&self, page: u32, bytes: &[u8]) -> Result<bool> {
        let range = page_range(page);
        let mut view = ByteReader::new(self.file.name(), range.start, bytes);
        let (ids, _, own) = (view.u16()?, view.varint()?, view.varint()?);
        Ok(ids == 1 && own > view.remaining() as u64 && range.end + PAGE <= self.index_start)
    }

    /// Divides the bytes of a page of ids into entries and restart points.
    fn page<'b>(&'b self, page: u32, bytes: &'b [u8]) -> Result<IdPage<'b>> {
        let start = page_range(page).start;
        let ids = u16_at(bytes, 0).map_or(0, usize::from);
        let restarts = ids.saturating_sub(1) / ID_RESTART_INTERVAL * size_of::<u16>();
        match bytes.len().checked_sub(restarts) {
            Some(entries_end) if ids > 0 && entries_end >= ID_PAGE_HEADER_BYTES => {
                let entries = &bytes[ID_PAGE_HEADER_BYTES..entries_end];
                let entries = ByteReader::new(self.file.name(), start + ID_PAGE_HEADER_BYTES as u64, entries);
                Ok(IdPage { start, ids, entries, restarts: &bytes[entries_end..] })
            }
            _ => Err(Error::corrupt(self.file.name(), start, "impossible number of ids")),
        }
    }

    fn first_documents(&self) -> Result<&[u8]> {
        if let Some(first_documents) = self.first_documents.get() {
            return Ok(first_documents);
        }
        let start = self.index_start + 8 * self.pages as u64;
        let first_documents = self.file.read(start, self.memory() as usize)?;
        Ok(self.first_documents.get_or_init(|| first_documents))
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.index_start, what)
    }
}

/// A page of prefix-coded ids. Each restart point is the offset of an id that is stored whole, as `u16`; the
/// ids between two of them are a run.
struct IdPage<'b> {
    /// Offset of the page in the file.
    start: u64,
    /// Number of ids in the page.
    ids: usize,
    entries: ByteReader<'b>,
    restarts: &'b [u8],
}

impl IdPage<'_> {
    /// Offset in the page of an id with which a run starts; `None` for other ids.
    fn run_start(&self, number: usize) -> Option<u64> {
        let run = (number / ID_RESTART_INTERVAL).checked_sub(1);
        let start = run.map_or(Some(ID_PAGE_HEADER_BYTES as u16), |restart| u16_at(self.restarts, restart));
        start.filter(|_| number.is_multiple_of(ID_RESTART_INTERVAL)).map(u64::from)
    }

    /// Offset in `entries` of the run of an id.
    fn run_of(&self, number: usize) -> Option<usize> {
        let start = self.run_start(number / ID_RESTART_INTERVAL * ID_RESTART_INTERVAL);
        let start = start.filter(|_| number < self.ids)?.checked_sub(ID_PAGE_HEADER_BYTES as u64)?;
        usize::try_from(start).ok().filter(|start| *start <= self.entries.remaining())
    }

    /// Prefetches the run of an id into the caches of the processor.
    fn prefetch_run(&self, number: usize) {
        if let Some(start) = self.run_of(number) {
            let run = &self.entries.rest()[start..];
            tierdex_codec::prefetch(&run[..run.len().min(RUN_BYTES_TYPICAL)]);
        }
    }

    /// Decodes an id into `out`.
    fn id<'o>(&self, number: usize, out: &'o mut Vec<u8>) -> Result<&'o str> {
        let mut view = self.entries.clone();
        view.bytes(self.run_of(number).ok_or_else(|| view.corrupt("document has no id"))?)?;
        for before in number / ID_RESTART_INTERVAL * ID_RESTART_INTERVAL..=number {
            self.next_bytes(before, &mut view, out)?;
        }
        std::str::from_utf8(out).map_err(|_| view.corrupt("an id is not UTF-8"))
    }

    /// Decodes the next id of `view` into `out`, which contains the previous id.
    fn next_id<'o>(&self, number: usize, view: &mut ByteReader<'_>, out: &'o mut Vec<u8>) -> Result<&'o str> {
        self.next_bytes(number, view, out)?;
        std::str::from_utf8(out).map_err(|_| view.corrupt("an id is not UTF-8"))
    }

    /// As [`IdPage::next_id`], without the check of the bytes.
    fn next_bytes(&self, number: usize, view: &mut ByteReader<'_>, out: &mut Vec<u8>) -> Result<()> {
        if number.is_multiple_of(ID_RESTART_INTERVAL) {
            out.clear();
        }
        let (shared, own) = (view.varint()?, view.varint()?);
        if shared > out.len() as u64 || own > ID_BYTES_MAX as u64 - shared {
            return Err(view.corrupt("impossible lengths of an id"));
        }
        out.truncate(shared as usize);
        out.extend_from_slice(view.bytes(own as usize)?);
        Ok(())
    }
}

/// Prefetches into the caches of the processor what is read first of a page: its header, and restart points.
fn prefetch_ends(bytes: &[u8]) {
    tierdex_codec::prefetch(&bytes[..bytes.len().min(64)]);
    tierdex_codec::prefetch(&bytes[bytes.len().saturating_sub(RUN_BYTES_TYPICAL)..]);
}

/// An entry of the index: the first document of a page of ids, and the number of the page in the file.
fn index_entry(entry: &[u8; 8]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = *entry;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

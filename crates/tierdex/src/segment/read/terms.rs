//! Reads the term dictionary.

use super::source::{BlockSource, FILES};
use super::{pages::PageIndex, tail::read_tail};
use crate::bytes::{ByteReader, prefix_key, u16_at};
use crate::limits::{TERM_BYTES_MAX, TERM_PAGE, TERM_RESTART_INTERVAL};
use crate::segment::layout::{OFFSET_MAX, TERM_PAGE_HEADER_BYTES, TERM_RESTART_BYTES, is_inline};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{Arena, PAGE, ResidentBytes, SealedFile};

/// Bytes at the end of a page, where the restart points are, that are prefetched into the CPU cache.
const RESTARTS_PREFETCH_BYTES: usize = 128;

/// Least bytes of an entry: two lengths, a byte of the term, and three numbers.
const ENTRY_BYTES_MIN: usize = 6;

/// Looks up terms. A lookup reads one page, which the resident page index determines.
pub struct TermsReader {
    file: Arc<SealedFile>,
    /// Number of documents that have the field: an upper bound of document frequencies.
    documents: u32,
    pages: u64,
    terms: u64,
    /// Byte range of the page index in the file.
    index_range: Range<u64>,
    /// Bytes in memory of the page index.
    index_memory: usize,
    /// The page index, read on first use.
    index: OnceLock<PageIndex>,
    /// Prefix keys of the terms at restart points, once the pages are resident.
    restart_keys: OnceLock<RestartKeys>,
}

/// [`prefix_key`] of the term at each restart point, so that a binary search for the restart point of a term
/// reads few cache lines of the page itself.
struct RestartKeys {
    pages: usize,
    /// Two arrays of little-endian `u64`: the start of each page, and the end of the last, in the second
    /// array; and the prefix keys of all pages.
    content: ResidentBytes,
}

/// The dictionary entry of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermInfo {
    /// Number of documents that contain the term, at least 1.
    pub document_frequency: u32,
    /// Number of occurrences: the sum of the frequencies.
    pub occurrences: u64,
    /// Byte range of the skip record in `skips`.
    pub skips: Range<u64>,
    /// Byte range of the blocks in `postings`; `None` if the list is inline in the skip record.
    pub blocks: Option<Range<u64>>,
}

impl TermInfo {
    /// Total bytes of the blocks of documents and frequencies; 0 for an inline list.
    pub fn block_bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |range| range.end - range.start)
    }
}

impl TermsReader {
    pub(super) fn open(file: SealedFile, documents: u32, expected: u64) -> Result<TermsReader> {
        let [pages, terms, index_at, index_len] = read_tail::<4>(&file)?;
        let payload = file.payload();
        let pages_end = pages.checked_mul(PAGE).and_then(|len| len.checked_add(PAGE));
        let end = index_at.checked_add(index_len).and_then(|end| end.checked_add(32));
        let terms_max = pages.saturating_mul((TERM_PAGE / ENTRY_BYTES_MIN) as u64);
        let fits = pages_end == Some(index_at) && end == Some(payload.end) && terms <= terms_max;
        if !fits || terms != expected {
            return Err(Error::corrupt(file.name(), payload.end, "the tail does not fit the file"));
        }
        let index_range = index_at..index_at + index_len;
        let index_memory = PageIndex::memory(index_view(&file, &index_range, &mut Vec::new())?, pages)?;
        Ok(TermsReader {
            file: Arc::new(file),
            documents,
            pages,
            terms,
            index_range,
            index_memory,
            index: OnceLock::new(),
            restart_keys: OnceLock::new(),
        })
    }

    /// Number of terms.
    pub fn len(&self) -> u64 {
        self.terms
    }

    /// Whether the dictionary has no terms.
    pub fn is_empty(&self) -> bool {
        self.terms == 0
    }

    /// Bytes of memory that the page index takes in an arena.
    pub fn index_memory(&self) -> u64 {
        Arena::allocation_bytes(self.index_memory as u64)
    }

    /// Bytes of memory that the prefix keys of restart points take in an arena, if the pages are resident.
    pub fn restart_keys_memory(&self) -> u64 {
        Arena::allocation_bytes(self.restart_keys_len())
    }

    fn restart_keys_len(&self) -> u64 {
        8 * (self.terms / TERM_RESTART_INTERVAL as u64 + 2 * self.pages + 1)
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The entry of a term, `None` if the dictionary does not have it; its page is read from `source` if it
    /// is not resident.
    pub fn get(&self, term: &[u8], source: &dyn BlockSource) -> Result<Option<TermInfo>> {
        let Some(page) = self.page_of(term)? else { return Ok(None) };
        // A lookup starts with the header and the restart points at the end of the page.
        let start = self.page_offset(page);
        self.file.load_lines(start, TERM_PAGE_HEADER_BYTES);
        self.file.load_lines(start + (TERM_PAGE - RESTARTS_PREFETCH_BYTES) as u64, RESTARTS_PREFETCH_BYTES);
        let mut buffer = Vec::new();
        let bytes = match self.file.resident_range(PAGE + page * PAGE, TERM_PAGE) {
            Some(bytes) => bytes,
            None => {
                self.read_page(page, source, &mut buffer)?;
                &buffer
            }
        };
        let prefix_keys = self.restart_keys.get().map(|restart_keys| restart_keys.of_page(page));
        TermPage::parse(&self.file, page, bytes, self.documents)?.find_term(term, prefix_keys.unwrap_or(&[]))
    }

    /// Makes the page index resident, in `arena` if given, and returns it.
    pub(super) fn load_page_index(&self, arena: Option<&mut Arena>) -> Result<&PageIndex> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let mut bytes = Vec::new();
        let view = index_view(&self.file, &self.index_range, &mut bytes)?;
        let index = PageIndex::read(view, self.pages, self.index_memory, arena)?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Makes all pages and the prefix keys of their restart points resident, in `arena` if given.
    pub(super) fn load_pages(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        self.file.load_into(arena.as_deref_mut())?;
        if self.restart_keys.get().is_some() {
            return Ok(());
        }
        let pages = self.pages as usize;
        let fill = |content: &mut [u8]| -> Result<()> {
            let (starts, prefix_keys) = content.as_chunks_mut().0.split_at_mut(pages + 1);
            let (mut start, mut bytes) = (0, Vec::new());
            for page in 0..pages {
                self.read_page(page as u64, &FILES, &mut bytes)?;
                let content = TermPage::parse(&self.file, page as u64, &bytes, self.documents)?;
                let out = prefix_keys.get_mut(start..start + content.restarts);
                let out = out.ok_or_else(|| content.corrupt(0, "more terms than the segment has"))?;
                for (restart, out) in out.iter_mut().enumerate() {
                    *out = prefix_key(content.restart_term(restart)?).to_le_bytes();
                }
                start += content.restarts;
                starts[page + 1] = (start as u64).to_le_bytes();
            }
            Ok(())
        };
        let content =
            ResidentBytes::allocate(arena, self.restart_keys_len() as usize, fill, self.file.name())?;
        // Another thread may have set an equal value in the meantime.
        let _ = self.restart_keys.set(RestartKeys { pages, content });
        Ok(())
    }

    /// Iterates over all terms in order, with large reads from the file.
    pub fn stream(&self) -> TermStream<'_> {
        self.stream_from(&FILES)
    }

    /// Iterates over all terms in order; pages are read from `source`.
    pub fn stream_from<'a>(&'a self, source: &'a dyn BlockSource) -> TermStream<'a> {
        TermStream {
            reader: self,
            source,
            page: 0,
            cursor: None,
            term: Vec::new(),
            buffer: Vec::new(),
            target: Vec::new(),
        }
    }

    /// The page that contains `term`, if the dictionary contains it; `None` if it is greater than all terms.
    pub fn page_of(&self, term: &[u8]) -> Result<Option<u64>> {
        Ok(self.load_page_index(None)?.find(term))
    }

    /// Offset of a page in the file.
    pub fn page_offset(&self, page: u64) -> u64 {
        PAGE + page * PAGE
    }

    /// The file `terms`.
    pub fn file(&self) -> &SealedFile {
        &self.file
    }

    fn read_page(&self, page: u64, source: &dyn BlockSource, buffer: &mut Vec<u8>) -> Result<()> {
        if page >= self.pages {
            return Err(Error::corrupt(self.file.name(), 0, "the term index names a page that is not there"));
        }
        let start = self.page_offset(page);
        source.read(&self.file, start..start + TERM_PAGE as u64, buffer)
    }
}

/// Iterates over all terms in order.
pub struct TermStream<'a> {
    reader: &'a TermsReader,
    source: &'a dyn BlockSource,
    page: u64,
    /// The position after the current term in `buffer`, the bytes of the page; `None` before the first page
    /// and after the last term.
    cursor: Option<PagePosition>,
    term: Vec<u8>,
    buffer: Vec<u8>,
    /// Terms that are less than this one are skipped; if it is empty, none.
    target: Vec<u8>,
}

impl TermStream<'_> {
    /// The source of pages that are not resident.
    pub(super) fn source(&self) -> &dyn BlockSource {
        self.source
    }

    /// The next term; `None` after the last. Invalidates the previous one.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(&[u8], TermInfo)>> {
        Ok(self.advance()?.map(|info| (self.term.as_slice(), info)))
    }

    /// Moves to the next term, [`TermStream::term`], and returns its entry; `None` after the last.
    pub fn advance(&mut self) -> Result<Option<TermInfo>> {
        loop {
            if let Some(entries) = &mut self.cursor {
                let page =
                    TermPage::parse(&self.reader.file, self.page, &self.buffer, self.reader.documents)?;
                page.skip_to_restart(entries, &self.target)?;
                while let Some(info) = page.next(entries, &mut self.term)? {
                    if self.term >= self.target {
                        self.target.clear();
                        return Ok(Some(info));
                    }
                }
                page.check_padding(entries)?;
                self.page = self.following_page()?;
            }
            if self.page == self.reader.pages {
                self.cursor = None;
                return Ok(None);
            }
            self.reader.read_page(self.page, self.source, &mut self.buffer)?;
            let page = TermPage::parse(&self.reader.file, self.page, &self.buffer, self.reader.documents)?;
            self.cursor = Some(page.position_at(page.find_restart_from(0, &self.target)?)?);
        }
    }

    /// The current term.
    pub fn term(&self) -> &[u8] {
        &self.term
    }

    /// Skips the terms that are less than `target`, which is greater than the current term. Pages in between
    /// are not read.
    pub fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.target.clear();
        self.target.extend_from_slice(target);
        if self.cursor.is_none() {
            self.page = self.reader.page_of(target)?.unwrap_or(self.reader.pages);
        }
        Ok(())
    }

    /// The page to read after the current one: the next, or that of the target.
    fn following_page(&self) -> Result<u64> {
        if self.target.is_empty() {
            return Ok(self.page + 1);
        }
        // The target may be between the last term of the current page and its separator: the index then names
        // the current page again.
        Ok(self.reader.page_of(&self.target)?.unwrap_or(self.reader.pages).max(self.page + 1))
    }

    /// The number of the page that contains the current term.
    pub fn page(&self) -> u64 {
        self.page
    }
}

impl RestartKeys {
    fn of_page(&self, page: u64) -> &[[u8; 8]] {
        let (starts, prefix_keys) = self.content.as_chunks().0.split_at(self.pages + 1);
        let start = |page: usize| u64::from_le_bytes(starts[page]) as usize;
        &prefix_keys[start(page as usize)..start(page as usize + 1)]
    }
}

/// Reads the page index into `bytes`.
fn index_view<'a>(
    file: &'a SealedFile,
    range: &Range<u64>,
    bytes: &'a mut Vec<u8>,
) -> Result<ByteReader<'a>> {
    *bytes = file.read(range.start, usize::try_from(range.end - range.start).unwrap_or(usize::MAX))?;
    Ok(ByteReader::new(file.name(), range.start, bytes))
}

/// A page of the dictionary. Entries are checked as they are decoded.
struct TermPage<'a> {
    file: &'a SealedFile,
    /// Offset of the page in the file.
    at: u64,
    bytes: &'a [u8],
    /// Number of terms and of restart points.
    terms: usize,
    restarts: usize,
    /// Offset in `skips` of the record of the first term.
    skips: u64,
    /// Upper bound of document frequencies.
    documents: u32,
}

/// A position between two entries of a page.
struct PagePosition {
    /// Offset in the page, number of entries before, and offset in `skips` of the next record.
    at: usize,
    number: usize,
    skips: u64,
    /// Length of the previous term in bytes.
    len: usize,
    /// Dictionary entry of the previous term.
    info: TermInfo,
}

/// An encoded term: the length of the prefix shared with the previous term, and its suffix.
struct TermEntry<'a> {
    shared: usize,
    suffix: &'a [u8],
}

impl<'a> TermPage<'a> {
    fn parse(file: &'a SealedFile, page: u64, bytes: &'a [u8], documents: u32) -> Result<TermPage<'a>> {
        let at = PAGE + page * PAGE;
        let mut view = ByteReader::new(file.name(), at, bytes);
        let (terms, restarts) = (usize::from(view.u16()?), usize::from(view.u16()?));
        let skips = view.u64()?;
        if terms == 0 || restarts != terms.div_ceil(TERM_RESTART_INTERVAL) {
            return Err(view.corrupt("impossible number of terms or restarts"));
        }
        if TERM_PAGE_HEADER_BYTES + restarts * TERM_RESTART_BYTES > bytes.len() {
            return Err(view.corrupt("restarts do not fit the page"));
        }
        Ok(TermPage { file, at, bytes, terms, restarts, skips, documents })
    }

    /// The last restart point whose term is not greater than `term`; 0 if there is none. `prefix_keys` has
    /// the prefix keys of all restart points of the page, or is empty.
    fn find_restart(&self, term: &[u8], prefix_keys: &[[u8; 8]]) -> Result<usize> {
        if prefix_keys.len() != self.restarts {
            return self.find_restart_from(0, term);
        }
        let prefix_key = prefix_key(term);
        let before = prefix_keys.partition_point(|other| u64::from_le_bytes(*other) < prefix_key);
        let same = prefix_keys[before..]
            .iter()
            .take_while(|other| u64::from_le_bytes(**other) == prefix_key)
            .count();
        let mut restart = before.saturating_sub(1);
        for next in before..before + same {
            if self.restart_term(next)? > term {
                break;
            }
            restart = next;
        }
        Ok(restart)
    }

    /// The last restart point from `first` on whose term is not greater than `term`; `first` if there is
    /// none.
    fn find_restart_from(&self, first: usize, term: &[u8]) -> Result<usize> {
        let (mut low, mut high) = (first, self.restarts);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.restart_term(middle)? <= term { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Moves forward to the last restart point whose term is not greater than `target`, if it is ahead.
    fn skip_to_restart(&self, entries: &mut PagePosition, target: &[u8]) -> Result<()> {
        let next = entries.number.div_ceil(TERM_RESTART_INTERVAL);
        if !target.is_empty() && next < self.restarts && self.restart_term(next)? <= target {
            *entries = self.position_at(self.find_restart_from(next, target)?)?;
        }
        Ok(())
    }

    /// The dictionary entry of a term, if it is in the page.
    fn find_term(&self, term: &[u8], prefix_keys: &[[u8; 8]]) -> Result<Option<TermInfo>> {
        let mut entries = self.position_at(self.find_restart(term, prefix_keys)?)?;
        // Length of the common prefix of `term` and the previous entry, which is less than `term`.
        let mut common = 0;
        while let Some(entry) = self.entry(&mut entries)? {
            if entry.shared > common {
                // This entry shares with the previous one the byte that makes it less than `term`.
                continue;
            }
            if entry.shared < common {
                break;
            }
            let own = entry.suffix.iter().zip(&term[common..]).take_while(|(a, b)| a == b).count();
            common += own;
            match (entry.suffix.get(own), term.get(common)) {
                (None, None) => return Ok(Some(entries.info)),
                (None, Some(_)) => {}
                (Some(entry), Some(term)) if entry < term => {}
                _ => break,
            }
        }
        Ok(None)
    }

    /// The position of a restart point.
    fn position_at(&self, restart: usize) -> Result<PagePosition> {
        let encoded = &self.bytes[self.bytes.len() - (self.restarts - restart) * TERM_RESTART_BYTES..];
        let at = usize::from(u16_at(encoded, 0).expect("a restart point has six bytes"));
        let mut view = ByteReader::new(self.file.name(), self.at, &encoded[2..TERM_RESTART_BYTES]);
        let skips = self.skips.checked_add(u64::from(view.u32()?));
        let skips = skips.ok_or_else(|| self.corrupt(at, "offset in skips overflows"))?;
        if at < TERM_PAGE_HEADER_BYTES || at > self.entries_end() {
            return Err(self.corrupt(at, "restart lies outside the page"));
        }
        let info = TermInfo { document_frequency: 0, occurrences: 0, skips: 0..0, blocks: None };
        Ok(PagePosition { at, number: restart * TERM_RESTART_INTERVAL, skips, len: 0, info })
    }

    /// The term at a restart point.
    fn restart_term(&self, restart: usize) -> Result<&'a [u8]> {
        let at = self.position_at(restart)?.at;
        let mut view = self.entries_from(at)?;
        if view.u8()? != 0 {
            return Err(self.corrupt(at, "a restart shares a prefix"));
        }
        let len = usize::from(view.u8()?);
        view.bytes(len)
    }

    /// Decodes the next entry, and its term into `term`, which contains the previous term.
    fn next(&self, entries: &mut PagePosition, term: &mut Vec<u8>) -> Result<Option<TermInfo>> {
        if entries.number < self.terms && entries.number.is_multiple_of(TERM_RESTART_INTERVAL) {
            let restart = self.position_at(entries.number / TERM_RESTART_INTERVAL)?;
            if (restart.at, restart.skips) != (entries.at, entries.skips) {
                return Err(self.corrupt(entries.at, "a restart point is elsewhere"));
            }
        }
        let Some(entry) = self.entry(entries)? else { return Ok(None) };
        term.truncate(entry.shared);
        term.extend_from_slice(entry.suffix);
        Ok(Some(entries.info.clone()))
    }

    /// Decodes the next entry, without its whole term.
    #[inline(always)]
    fn entry(&self, entries: &mut PagePosition) -> Result<Option<TermEntry<'a>>> {
        if entries.number == self.terms {
            return Ok(None);
        }
        let mut view = self.entries_from(entries.at)?;
        let (shared, own) = (usize::from(view.u8()?), usize::from(view.u8()?));
        let restart = entries.number.is_multiple_of(TERM_RESTART_INTERVAL);
        if shared > entries.len
            || (restart && shared > 0)
            || shared + own > TERM_BYTES_MAX
            || shared + own == 0
        {
            return Err(self.corrupt(entries.at, "impossible lengths of a term"));
        }
        let suffix = view.bytes(own)?;
        let document_frequency = view.varint32()?;
        let repetitions = view.varint()?;
        let skips_len = view.varint()?;
        let occurrences = u64::from(document_frequency).checked_add(repetitions);
        let end = entries.skips.checked_add(skips_len).filter(|end| *end <= OFFSET_MAX);
        let (Some(occurrences), Some(end)) = (occurrences, end) else {
            return Err(self.corrupt(entries.at, "numbers of a term overflow"));
        };
        if document_frequency == 0 || document_frequency > self.documents || skips_len == 0 {
            return Err(self.corrupt(entries.at, "impossible numbers of a term"));
        }
        let info = &mut entries.info;
        (info.document_frequency, info.occurrences) = (document_frequency, occurrences);
        info.skips = entries.skips..end;
        info.blocks = match is_inline(document_frequency) {
            true => None,
            false => Some(read_list_range(&mut view)?),
        };
        (entries.number, entries.skips, entries.len) = (entries.number + 1, end, shared + own);
        entries.at = (view.offset() - self.at) as usize;
        Ok(Some(TermEntry { shared, suffix }))
    }

    /// Checks that the bytes between the last entry and the restart points are zero.
    fn check_padding(&self, entries: &PagePosition) -> Result<()> {
        match self.bytes[entries.at..self.entries_end()].iter().position(|&byte| byte != 0) {
            Some(offset) => Err(self.corrupt(entries.at + offset, "padding is not zero")),
            None => Ok(()),
        }
    }

    fn entries_from(&self, at: usize) -> Result<ByteReader<'a>> {
        let bytes = self.bytes.get(at..self.entries_end());
        let bytes = bytes.ok_or_else(|| self.corrupt(at, "entry lies outside the page"))?;
        Ok(ByteReader::new(self.file.name(), self.at + at as u64, bytes))
    }

    fn entries_end(&self) -> usize {
        self.bytes.len() - self.restarts * TERM_RESTART_BYTES
    }

    fn corrupt(&self, at: usize, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.at + at as u64, what)
    }
}

/// Reads the byte range of a list in `postings`: its offset and its length.
fn read_list_range(view: &mut ByteReader<'_>) -> Result<Range<u64>> {
    let (start, len) = (view.varint()?, view.varint()?);
    let end = start.checked_add(len).filter(|end| len > 0 && *end <= OFFSET_MAX);
    Ok(start..end.ok_or_else(|| view.corrupt("impossible offset of a list"))?)
}

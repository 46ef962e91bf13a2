//! Reads the term dictionary.

use super::source::{BlockSource, FILES};
use super::{pages::PageIndex, tail::read_tail};
use crate::bytes::{ByteReader, prefix_key};
use crate::limits::{BLOCK, TERM_BYTES_MAX, TERM_PAGE, TERM_RESTART_INTERVAL};
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
    /// Number of these documents that are known to be deleted.
    pub deleted: u32,
}

impl TermInfo {
    /// Number of documents that contain the term and are not deleted, at least 1. An upper bound if the terms
    /// of deleted documents are not known.
    #[inline]
    pub fn live_documents(&self) -> u32 {
        self.document_frequency.saturating_sub(self.deleted)
    }

    /// With this number of deleted documents; `None` if no live document has the term.
    pub fn with_deletes(mut self, deleted: u32) -> Option<TermInfo> {
        self.deleted = deleted;
        (self.live_documents() > 0).then_some(self)
    }

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
        let bytes = match self.resident_page(page) {
            Some(bytes) => bytes,
            None => {
                self.read_page(page, source, &mut buffer)?;
                &buffer
            }
        };
        self.parse_page(page, bytes)?.find_term(term)
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
                let content = self.parse_page(page as u64, &bytes)?;
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
        TermStream { reader: self, page: 0, cursor: None, term: Vec::new(), buffer: Vec::new() }
    }

    /// As [`TermsReader::stream`], from the start of the page on that contains `first`, or the next term.
    pub fn stream_from(&self, first: &[u8]) -> Result<TermStream<'_>> {
        Ok(TermStream { page: self.page_of(first)?.unwrap_or(self.pages), ..self.stream() })
    }

    /// Separators that divide the terms into parts of `pages` pages each, in order. A separator is at least
    /// the last term of its part, and less than the first term of the next.
    pub fn separators(&self, pages: usize) -> Result<impl Iterator<Item = &[u8]>> {
        let index = self.load_page_index(None)?;
        let ends = (pages..self.pages as usize).step_by(pages);
        Ok(ends.map(|end| index.separator(end - 1)))
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
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    pub(super) fn read_page(&self, page: u64, source: &dyn BlockSource, buffer: &mut Vec<u8>) -> Result<()> {
        if page >= self.pages {
            return Err(Error::corrupt(self.file.name(), 0, "the term index names a page that is not there"));
        }
        let start = self.page_offset(page);
        source.read(&self.file, start..start + TERM_PAGE as u64, buffer)
    }

    /// The bytes of a page, if the pages are resident.
    pub(super) fn resident_page(&self, page: u64) -> Option<&[u8]> {
        self.file.resident_range(self.page_offset(page), TERM_PAGE)
    }

    pub(super) fn parse_page<'a>(&'a self, page: u64, bytes: &'a [u8]) -> Result<TermPage<'a>> {
        let prefix_keys = self.restart_keys.get().map_or(&[][..], |keys| keys.of_page(page));
        TermPage::parse(&self.file, page, bytes, prefix_keys, self.documents)
    }
}

/// Iterates over all terms in order.
pub struct TermStream<'a> {
    reader: &'a TermsReader,
    page: u64,
    /// The position after the current term in `buffer`, the bytes of the page; `None` before the first page
    /// and after the last term.
    cursor: Option<PagePosition>,
    term: Vec<u8>,
    buffer: Vec<u8>,
}

impl TermStream<'_> {
    /// The next term; `None` after the last. Invalidates the previous one.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(&[u8], TermInfo)>> {
        Ok(self.advance()?.map(|info| (self.term.as_slice(), info)))
    }

    /// Moves to the next term, [`TermStream::term`], and returns its entry; `None` after the last.
    pub fn advance(&mut self) -> Result<Option<TermInfo>> {
        loop {
            if let Some(entries) = &mut self.cursor {
                let page = self.reader.parse_page(self.page, &self.buffer)?;
                if let Some(info) = page.next(entries, &mut self.term)? {
                    return Ok(Some(info));
                }
                page.check_padding(entries)?;
                self.page += 1;
            }
            if self.page == self.reader.pages {
                self.cursor = None;
                return Ok(None);
            }
            self.reader.read_page(self.page, &FILES, &mut self.buffer)?;
            self.cursor = Some(self.reader.parse_page(self.page, &self.buffer)?.position_at(0)?);
        }
    }

    /// The current term.
    pub fn term(&self) -> &[u8] {
        &self.term
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
pub(super) struct TermPage<'a> {
    file: &'a SealedFile,
    /// Offset of the page in the file.
    at: u64,
    bytes: &'a [u8],
    /// Number of terms and of restart points.
    terms: usize,
    restarts: usize,
    /// Offset in `skips` of the record of the first term.
    skips: u64,
    /// The prefix keys of all restart points; empty if they are not in memory.
    prefix_keys: &'a [[u8; 8]],
    /// Upper bound of document frequencies.
    documents: u32,
}

/// A position between two entries of a page.
#[derive(Clone, Copy)]
pub(super) struct PagePosition {
    /// Offset in the page, number of entries before, and offset in `skips` of the next record.
    at: usize,
    number: usize,
    skips: u64,
    /// Length of the previous term in bytes.
    len: usize,
}

/// An entry of a page: the length of the prefix that the term shares with the previous one, its suffix, and
/// its numbers.
pub(super) struct TermEntry<'a> {
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
    document_frequency: u32,
    occurrences: u64,
    skips: Range<u64>,
    blocks: Option<Range<u64>>,
}

impl TermEntry<'_> {
    pub(super) fn info(self) -> TermInfo {
        let TermEntry { document_frequency, occurrences, skips, blocks, .. } = self;
        TermInfo { document_frequency, occurrences, skips, blocks, deleted: 0 }
    }
}

impl<'a> TermPage<'a> {
    fn parse(
        file: &'a SealedFile,
        page: u64,
        bytes: &'a [u8],
        prefix_keys: &'a [[u8; 8]],
        documents: u32,
    ) -> Result<TermPage<'a>> {
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
        Ok(TermPage { file, at, bytes, terms, restarts, skips, prefix_keys, documents })
    }

    /// The last restart point from `first` on whose term is not greater than `term`; `first` if there is
    /// none.
    pub(super) fn find_restart(&self, first: usize, term: &[u8]) -> Result<usize> {
        let (mut low, mut high) = (first, self.restarts);
        if self.prefix_keys.len() == self.restarts {
            let (keys, key) = (&self.prefix_keys[first..], prefix_key(term));
            let less = keys.partition_point(|other| u64::from_le_bytes(*other) < key);
            let same = keys[less..].iter().take_while(|other| u64::from_le_bytes(**other) == key).count();
            (low, high) = (first + less.saturating_sub(1), first + less + same);
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.restart_term(middle)? <= term { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Whether the next entry is at a restart point.
    pub(super) fn is_restart(&self, entries: &PagePosition) -> bool {
        entries.number < self.terms && entries.number.is_multiple_of(TERM_RESTART_INTERVAL)
    }

    /// From a restart point, moves forward to the last one whose term is not greater than `target`; stays if
    /// there is none.
    pub(super) fn skip_restarts(&self, entries: &mut PagePosition, target: &[u8]) -> Result<()> {
        let current = entries.number / TERM_RESTART_INTERVAL;
        let restart = self.find_restart(current, target)?;
        if restart > current {
            *entries = self.position_at(restart)?;
        }
        Ok(())
    }

    /// The dictionary entry of a term, if it is in the page.
    fn find_term(&self, term: &[u8]) -> Result<Option<TermInfo>> {
        let mut entries = self.position_at(self.find_restart(0, term)?)?;
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
                (None, None) => return Ok(Some(entry.info())),
                (None, Some(_)) => {}
                (Some(entry), Some(term)) if entry < term => {}
                _ => break,
            }
        }
        Ok(None)
    }

    /// The position of a restart point.
    pub(super) fn position_at(&self, restart: usize) -> Result<PagePosition> {
        let encoded = &self.bytes[self.bytes.len() - (self.restarts - restart) * TERM_RESTART_BYTES..];
        let [at_low, at_high, skips @ ..] =
            *encoded.first_chunk::<TERM_RESTART_BYTES>().expect("a restart point has six bytes");
        let at = usize::from(u16::from_le_bytes([at_low, at_high]));
        let skips = self.skips.checked_add(u64::from(u32::from_le_bytes(skips)));
        let skips = skips.ok_or_else(|| self.corrupt(at, "offset in skips overflows"))?;
        if at < TERM_PAGE_HEADER_BYTES || at > self.entries_end() {
            return Err(self.corrupt(at, "restart lies outside the page"));
        }
        Ok(PagePosition { at, number: restart * TERM_RESTART_INTERVAL, skips, len: 0 })
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
        if self.is_restart(entries) {
            self.check_restart(entries)?;
        }
        let Some(entry) = self.entry(entries)? else { return Ok(None) };
        term.truncate(entry.shared);
        term.extend_from_slice(entry.suffix);
        Ok(Some(entry.info()))
    }

    /// Checks that the next entry is where its restart point is.
    pub(super) fn check_restart(&self, entries: &PagePosition) -> Result<()> {
        let restart = self.position_at(entries.number / TERM_RESTART_INTERVAL)?;
        if (restart.at, restart.skips) != (entries.at, entries.skips) {
            return Err(self.corrupt(entries.at, "a restart point is elsewhere"));
        }
        Ok(())
    }

    /// Decodes the next entry, without its whole term.
    #[inline(always)]
    pub(super) fn entry(&self, entries: &mut PagePosition) -> Result<Option<TermEntry<'a>>> {
        if entries.number == self.terms {
            return Ok(None);
        }
        let mut view = self.entries_from(entries.at)?;
        let (shared, own) = (usize::from(view.u8()?), usize::from(view.u8()?));
        let restart = entries.number.is_multiple_of(TERM_RESTART_INTERVAL);
        if shared > entries.len || (restart && shared > 0) || shared + own > TERM_BYTES_MAX || own == 0 {
            return Err(self.corrupt(entries.at, "impossible lengths of a term"));
        }
        let suffix = view.bytes(own)?;
        let (document_frequency, repetitions, skips_len) = read_numbers(&mut view)?;
        let occurrences = u64::from(document_frequency).checked_add(repetitions);
        let end = entries.skips.checked_add(skips_len).filter(|end| *end <= OFFSET_MAX);
        let (Some(occurrences), Some(end)) = (occurrences, end) else {
            return Err(self.corrupt(entries.at, "numbers of a term overflow"));
        };
        if document_frequency == 0 || document_frequency > self.documents || skips_len == 0 {
            return Err(self.corrupt(entries.at, "impossible numbers of a term"));
        }
        let skips = entries.skips..end;
        let blocks = match is_inline(document_frequency) {
            true => None,
            false => Some(read_list_range(&mut view)?),
        };
        (entries.number, entries.skips, entries.len) = (entries.number + 1, end, shared + own);
        entries.at = (view.offset() - self.at) as usize;
        Ok(Some(TermEntry { shared, suffix, document_frequency, occurrences, skips, blocks }))
    }

    /// Skips the entries before the next restart point as long as `is_rejected` is true of the length of the
    /// prefix that an entry shares with the previous one, and of the next byte of its term. Stops before an
    /// entry with a number of several bytes. The numbers of skipped entries are not checked.
    #[inline(always)]
    pub(super) fn skip_while(
        &self,
        entries: &mut PagePosition,
        mut is_rejected: impl FnMut(usize, u8) -> bool,
    ) {
        // Then no entry that is skipped has the range of a list.
        const _: () = assert!(BLOCK > 0x7f);
        let bytes = &self.bytes[..self.entries_end()];
        let end = self.terms.min(entries.number.next_multiple_of(TERM_RESTART_INTERVAL));
        while entries.number < end
            && let Some(&[shared, own, first, ref rest @ ..]) = bytes.get(entries.at..)
            && let (shared, own) = (usize::from(shared), usize::from(own))
            && let Some(rest_of_term) = own.checked_sub(1)
            && let Some([documents, repetitions, record]) = rest.get(rest_of_term..rest_of_term + 3)
            && (documents | repetitions | record) < 0x80
            && shared <= entries.len
            && shared + own <= TERM_BYTES_MAX
            && is_rejected(shared, first)
        {
            entries.at += own + 5;
            entries.number += 1;
            entries.len = shared + own;
            entries.skips += u64::from(*record);
        }
    }

    /// Checks that the bytes between the last entry and the restart points are zero.
    pub(super) fn check_padding(&self, entries: &PagePosition) -> Result<()> {
        match self.bytes[entries.at..self.entries_end()].iter().position(|&byte| byte != 0) {
            Some(offset) => Err(self.corrupt(entries.at + offset, "padding is not zero")),
            None => Ok(()),
        }
    }

    #[inline]
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

/// Reads the document frequency, the occurrences beyond one a document, and the length of the skip record.
#[inline(always)]
fn read_numbers(view: &mut ByteReader<'_>) -> Result<(u32, u64, u64)> {
    match view.rest() {
        // The numbers of most terms have one byte each.
        [documents, repetitions, skips_len, ..] if (documents | repetitions | skips_len) < 0x80 => {
            let numbers = (u32::from(*documents), u64::from(*repetitions), u64::from(*skips_len));
            view.bytes(3)?;
            Ok(numbers)
        }
        _ => Ok((view.varint32()?, view.varint()?, view.varint()?)),
    }
}

/// Reads the byte range of a list in `postings`: its offset and its length.
fn read_list_range(view: &mut ByteReader<'_>) -> Result<Range<u64>> {
    let (start, len) = (view.varint()?, view.varint()?);
    let end = start.checked_add(len).filter(|end| len > 0 && *end <= OFFSET_MAX);
    Ok(start..end.ok_or_else(|| view.corrupt("impossible offset of a list"))?)
}

//! The term dictionary.

use super::super::layout::{OFFSET_MAX, PAGE_HEAD, RESTART, is_inline};
use super::pages::{PageIndex, head};
use super::read_tail;
use super::source::{BlockSource, FILES};
use crate::bytes::{View, u16_at};
use crate::error::{Error, Result};
use crate::limits::{TERM_BYTES_MAX, TERM_PAGE};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{Arena, PAGE, SealedFile};

/// Bytes of restarts at the end of a page that are loaded before they are known to be needed.
const RESTARTS_LOADED: usize = 128;

/// Finds terms. The last term of each page is resident; a look-up reads one page.
pub struct TermsReader {
    file: Arc<SealedFile>,
    /// Those that have the field: no term stands in more.
    documents: u32,
    pages: u64,
    terms: u64,
    index: PageIndex,
    /// Where each page's restarts begin, once the pages are kept in memory.
    heads: OnceLock<RestartHeads>,
}

/// The first bytes of the terms at all restarts, so that a search touches few places of a page.
struct RestartHeads {
    heads: Vec<u64>,
    /// The first restart of each page, and the number of all.
    starts: Vec<usize>,
}

/// What the dictionary says of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermInfo {
    /// Documents that hold it, at least 1.
    pub documents: u32,
    /// Its occurrences in all of them.
    pub occurrences: u64,
    /// Bytes of its record in `skips`.
    pub skips: Range<u64>,
    /// Bytes of its blocks in `docs` and in `freqs`, if its list is long enough to have some.
    pub blocks: Option<[Range<u64>; 2]>,
}

impl TermInfo {
    /// Bytes of its blocks, of documents and of frequencies.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().flatten().map(|range| range.end - range.start).sum()
    }
}

impl TermsReader {
    pub(super) fn open(file: SealedFile, documents: u32, expected: u64) -> Result<TermsReader> {
        let [pages, terms, index_at, index_len] = read_tail::<4>(&file)?;
        let payload = file.payload();
        let pages_end = pages.checked_mul(PAGE).and_then(|len| len.checked_add(PAGE));
        let end = index_at.checked_add(index_len).and_then(|end| end.checked_add(32));
        if pages_end != Some(index_at) || end != Some(payload.end) || terms != expected {
            return Err(Error::corrupt(file.name(), payload.end, "the tail does not fit the file"));
        }
        let bytes = file.read(index_at, usize::try_from(index_len).unwrap_or(usize::MAX))?;
        let index = PageIndex::read(View::new(file.name(), index_at, &bytes), pages)?;
        Ok(TermsReader { file: Arc::new(file), documents, pages, terms, index, heads: OnceLock::new() })
    }

    /// Number of terms.
    pub fn len(&self) -> u64 {
        self.terms
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.terms == 0
    }

    /// Bytes that stay in memory.
    pub fn memory(&self) -> usize {
        self.index.memory()
    }

    /// Bytes that are in memory beside the pages when these are.
    pub fn heads_memory(&self) -> u64 {
        8 * (self.terms / crate::limits::TERM_RESTART as u64 + 2 * self.pages)
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Finds a term; its page comes from `source` if it is not in memory.
    pub fn get(&self, term: &[u8], source: &dyn BlockSource) -> Result<Option<TermInfo>> {
        let Some(page) = self.page_of(term) else { return Ok(None) };
        // A search begins with its header and the restarts at its end.
        let start = self.page_offset(page);
        self.file.load_lines(start, PAGE_HEAD);
        self.file.load_lines(start + (TERM_PAGE - RESTARTS_LOADED) as u64, RESTARTS_LOADED);
        let mut buffer = Vec::new();
        let bytes = match self.file.resident_range(PAGE + page * PAGE, TERM_PAGE) {
            Some(bytes) => bytes,
            None => {
                self.read_page(page, source, &mut buffer)?;
                &buffer
            }
        };
        let heads = self.heads.get().map(|heads| heads.of_page(page));
        Page::parse(&self.file, page, bytes, self.documents)?.find(term, heads.unwrap_or(&[]))
    }

    /// Keeps all pages in memory, in `arena` if there is one.
    pub(super) fn keep(&self, arena: Option<&mut Arena>) -> Result<()> {
        self.file.load_into(arena)?;
        let mut heads = RestartHeads { heads: Vec::new(), starts: vec![0] };
        let mut buffer = Vec::new();
        for page in 0..self.pages {
            self.read_page(page, &FILES, &mut buffer)?;
            let page = Page::parse(&self.file, page, &buffer, self.documents)?;
            for restart in 0..page.restarts {
                heads.heads.push(head(page.first_term(restart)?));
            }
            heads.starts.push(heads.heads.len());
        }
        // Another thread may have done so in the meantime: both are the same.
        let _ = self.heads.set(heads);
        Ok(())
    }

    /// All terms in order.
    pub fn stream(&self) -> TermStream<'_> {
        self.stream_from(&FILES)
    }

    /// The same; pages that are not in memory come from `source`.
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

    /// The page in which `term` stands if it stands anywhere.
    pub fn page_of(&self, term: &[u8]) -> Option<u64> {
        self.index.find(term)
    }

    /// Name of the file, for messages.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Offset of a page in the file.
    pub fn page_offset(&self, page: u64) -> u64 {
        PAGE + page * PAGE
    }

    /// The file.
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

/// Moves over all terms in order.
pub struct TermStream<'a> {
    reader: &'a TermsReader,
    source: &'a dyn BlockSource,
    page: u64,
    cursor: Option<Entries>,
    term: Vec<u8>,
    buffer: Vec<u8>,
    /// Terms before this one are passed over; empty if there are none to be.
    target: Vec<u8>,
}

impl TermStream<'_> {
    /// Where pages come from that are not in memory.
    pub(super) fn source(&self) -> &dyn BlockSource {
        self.source
    }

    /// The next term; `None` behind the last. What was returned before is gone.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(&[u8], TermInfo)>> {
        Ok(self.advance()?.map(|info| (self.term.as_slice(), info)))
    }

    /// Moves to the next term, which is [`TermStream::term`] then; `None` behind the last.
    pub fn advance(&mut self) -> Result<Option<TermInfo>> {
        loop {
            if let Some(entries) = &mut self.cursor {
                let page = Page::parse(&self.reader.file, self.page, &self.buffer, self.reader.documents)?;
                page.jump(entries, &self.target)?;
                while let Some(info) = page.next(entries, &mut self.term)? {
                    if self.term >= self.target {
                        self.target.clear();
                        return Ok(Some(info));
                    }
                }
                page.check_end(entries)?;
                self.page = self.page_behind();
            }
            if self.page == self.reader.pages {
                self.cursor = None;
                return Ok(None);
            }
            self.reader.read_page(self.page, self.source, &mut self.buffer)?;
            let page = Page::parse(&self.reader.file, self.page, &self.buffer, self.reader.documents)?;
            self.cursor = Some(page.entries(page.restart_before(0, &self.target)?)?);
        }
    }

    /// The term to which the stream has moved.
    pub fn term(&self) -> &[u8] {
        &self.term
    }

    /// Skips the terms before `target`, which is greater than the last term that was returned. Pages in between
    /// are not read.
    pub fn seek(&mut self, target: &[u8]) {
        self.target.clear();
        self.target.extend_from_slice(target);
        if self.cursor.is_none() {
            self.page = self.reader.page_of(target).unwrap_or(self.reader.pages);
        }
    }

    /// The page to read when the present one is at its end.
    fn page_behind(&self) -> u64 {
        if self.target.is_empty() {
            return self.page + 1;
        }
        // A separator may be behind the last term of its page, and the target between them.
        self.reader.page_of(&self.target).unwrap_or(self.reader.pages).max(self.page + 1)
    }

    /// The page that the last returned term stands in.
    pub fn page(&self) -> u64 {
        self.page
    }
}

impl RestartHeads {
    fn of_page(&self, page: u64) -> &[u64] {
        let page = page as usize;
        &self.heads[self.starts[page]..self.starts[page + 1]]
    }
}

/// One page, checked as it is read.
struct Page<'a> {
    file: &'a SealedFile,
    at: u64,
    bytes: &'a [u8],
    terms: usize,
    restarts: usize,
    skips: u64,
    documents: u32,
}

/// A place between two entries of a page.
struct Entries {
    at: usize,
    number: usize,
    skips: u64,
    /// Bytes of the term before.
    len: usize,
    /// What the dictionary says of the term before.
    info: TermInfo,
}

/// A term as it is written: bytes that it shares with the one before, and its own.
struct Entry<'a> {
    shared: usize,
    suffix: &'a [u8],
}

impl<'a> Page<'a> {
    fn parse(file: &'a SealedFile, page: u64, bytes: &'a [u8], documents: u32) -> Result<Page<'a>> {
        let at = PAGE + page * PAGE;
        let mut view = View::new(file.name(), at, bytes);
        let (terms, restarts) = (usize::from(view.u16()?), usize::from(view.u16()?));
        let skips = view.u64()?;
        if terms == 0 || restarts != terms.div_ceil(crate::limits::TERM_RESTART) {
            return Err(view.corrupt("impossible number of terms or restarts"));
        }
        if PAGE_HEAD + restarts * RESTART > bytes.len() {
            return Err(view.corrupt("restarts do not fit the page"));
        }
        Ok(Page { file, at, bytes, terms, restarts, skips, documents })
    }

    /// The last restart that is not greater than `term`, or the first; `heads` are the first bytes of all, if
    /// they are known.
    fn restart_of(&self, term: &[u8], heads: &[u64]) -> Result<usize> {
        if heads.len() != self.restarts {
            return self.restart_before(0, term);
        }
        let head = head(term);
        let before = heads.partition_point(|other| *other < head);
        let same = heads[before..].iter().take_while(|other| **other == head).count();
        let mut restart = before.saturating_sub(1);
        for next in before..before + same {
            if self.first_term(next)? > term {
                break;
            }
            restart = next;
        }
        Ok(restart)
    }

    /// The last restart from `first` on that is not greater than `term`, or `first`.
    fn restart_before(&self, first: usize, term: &[u8]) -> Result<usize> {
        let (mut low, mut high) = (first, self.restarts);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.first_term(middle)? <= term { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Moves on to the last restart that is not behind `target`.
    fn jump(&self, entries: &mut Entries, target: &[u8]) -> Result<()> {
        let next = entries.number.div_ceil(crate::limits::TERM_RESTART);
        if !target.is_empty() && next < self.restarts && self.first_term(next)? <= target {
            *entries = self.entries(self.restart_before(next, target)?)?;
        }
        Ok(())
    }

    fn find(&self, term: &[u8], heads: &[u64]) -> Result<Option<TermInfo>> {
        let mut entries = self.entries(self.restart_of(term, heads)?)?;
        // Bytes that `term` has in common with the entry before, which is less.
        let mut common = 0;
        while let Some(entry) = self.entry(&mut entries)? {
            if entry.shared > common {
                // As the one before, up to the byte that made it less.
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

    fn entries(&self, restart: usize) -> Result<Entries> {
        let place = &self.bytes[self.bytes.len() - (self.restarts - restart) * RESTART..];
        let at = usize::from(u16_at(place, 0).expect("a restart has six bytes"));
        let mut view = View::new(self.file.name(), self.at, &place[2..RESTART]);
        let skips = self.skips.checked_add(u64::from(view.u32()?));
        let skips = skips.ok_or_else(|| self.corrupt(at, "place in skips overflows"))?;
        if at < PAGE_HEAD || at > self.entries_end() {
            return Err(self.corrupt(at, "restart lies outside the page"));
        }
        let info = TermInfo { documents: 0, occurrences: 0, skips: 0..0, blocks: None };
        Ok(Entries { at, number: restart * crate::limits::TERM_RESTART, skips, len: 0, info })
    }

    fn first_term(&self, restart: usize) -> Result<&'a [u8]> {
        let at = self.entries(restart)?.at;
        let mut view = self.view(at)?;
        if view.u8()? != 0 {
            return Err(self.corrupt(at, "a restart shares a prefix"));
        }
        let len = usize::from(view.u8()?);
        view.bytes(len)
    }

    /// Reads the entry at the place and moves on; `term` holds the entry before, and then this one.
    fn next(&self, entries: &mut Entries, term: &mut Vec<u8>) -> Result<Option<TermInfo>> {
        let Some(entry) = self.entry(entries)? else { return Ok(None) };
        term.truncate(entry.shared);
        term.extend_from_slice(entry.suffix);
        Ok(Some(entries.info.clone()))
    }

    /// Reads the entry at the place and moves on.
    #[inline(always)]
    fn entry(&self, entries: &mut Entries) -> Result<Option<Entry<'a>>> {
        if entries.number == self.terms {
            return Ok(None);
        }
        let mut view = self.view(entries.at)?;
        let (shared, own) = (usize::from(view.u8()?), usize::from(view.u8()?));
        let restart = entries.number.is_multiple_of(crate::limits::TERM_RESTART);
        if shared > entries.len
            || (restart && shared > 0)
            || shared + own > TERM_BYTES_MAX
            || shared + own == 0
        {
            return Err(self.corrupt(entries.at, "impossible lengths of a term"));
        }
        let suffix = view.bytes(own)?;
        let documents = view.varint32()?;
        let more = view.varint()?;
        let skips_len = view.varint()?;
        let occurrences = u64::from(documents).checked_add(more);
        let end = entries.skips.checked_add(skips_len).filter(|end| *end <= OFFSET_MAX);
        let (Some(occurrences), Some(end)) = (occurrences, end) else {
            return Err(self.corrupt(entries.at, "numbers of a term overflow"));
        };
        if documents == 0 || documents > self.documents || skips_len == 0 {
            return Err(self.corrupt(entries.at, "impossible numbers of a term"));
        }
        let info = &mut entries.info;
        (info.documents, info.occurrences, info.skips) = (documents, occurrences, entries.skips..end);
        info.blocks = match is_inline(documents) {
            true => None,
            false => Some([self.range(&mut view)?, self.range(&mut view)?]),
        };
        (entries.number, entries.skips, entries.len) = (entries.number + 1, end, shared + own);
        entries.at = (view.offset() - self.at) as usize;
        Ok(Some(Entry { shared, suffix }))
    }

    /// The place of a list in a file of blocks.
    fn range(&self, view: &mut View<'_>) -> Result<Range<u64>> {
        let (start, len) = (view.varint()?, view.varint()?);
        let end = start.checked_add(len).filter(|end| len > 0 && *end <= OFFSET_MAX);
        Ok(start..end.ok_or_else(|| view.corrupt("impossible place of a list"))?)
    }

    /// Checks that nothing but zeros stands between the last entry and the restarts.
    fn check_end(&self, entries: &Entries) -> Result<()> {
        match self.bytes[entries.at..self.entries_end()].iter().position(|&byte| byte != 0) {
            Some(place) => Err(self.corrupt(entries.at + place, "padding is not zero")),
            None => Ok(()),
        }
    }

    fn view(&self, at: usize) -> Result<View<'a>> {
        let bytes = self.bytes.get(at..self.entries_end());
        let bytes = bytes.ok_or_else(|| self.corrupt(at, "entry lies outside the page"))?;
        Ok(View::new(self.file.name(), self.at + at as u64, bytes))
    }

    fn entries_end(&self) -> usize {
        self.bytes.len() - self.restarts * RESTART
    }

    fn corrupt(&self, at: usize, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.at + at as u64, what)
    }
}

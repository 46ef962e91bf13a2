//! Lists in pages: their skip pointers and filters, and the pages that are in memory.

use crate::intersection::filter::{BloomFilters, PageIds};
use crate::intersection::page::{self, PAGE_BYTES, PageBounds};
use std::sync::Arc;
use tierdex::io::{CellMut, PAGE, ReadFile, SealedFile};
use tierdex::{Result, codec::Codec};

/// A list. Clones share the data in memory.
#[derive(Clone)]
pub struct PagedList {
    file: Arc<SealedFile>,
    skips: Arc<SkipPointers>,
    resident: ResidentPages,
}

/// Which pages of a list are in memory.
#[derive(Clone)]
enum ResidentPages {
    None,
    /// Some pages, by their numbers.
    Some(Arc<[Option<Box<[u8]>>]>),
    /// All pages, in consecutive cells.
    All(Arc<Vec<CellMut>>),
}

/// The part of a list that is always in memory.
pub(super) struct SkipPointers {
    pub(super) codec: Codec,
    /// Number of the first page of the list in the file.
    pub(super) first_page: u64,
    /// The first id of each page.
    pub(super) firsts: Vec<u32>,
    /// Number of ids before each page, and of all ids.
    pub(super) before: Vec<u64>,
    /// The largest id; 0 for an empty list.
    pub(super) last: u32,
    pub(super) filters: BloomFilters,
}

impl PagedList {
    /// A list whose pages are in `file`, whose page table is loaded.
    pub(super) fn new(file: &Arc<SealedFile>, skips: SkipPointers) -> PagedList {
        PagedList { file: Arc::clone(file), skips: Arc::new(skips), resident: ResidentPages::None }
    }

    /// Number of ids.
    #[expect(clippy::len_without_is_empty, reason = "an empty list is no special case")]
    pub fn len(&self) -> u64 {
        self.skips.before[self.skips.firsts.len()]
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.skips.firsts.len()
    }

    /// The first id of each page.
    pub fn firsts(&self) -> &[u32] {
        &self.skips.firsts
    }

    /// The smallest and the largest id; `None` for an empty list.
    pub fn id_range(&self) -> Option<(u32, u32)> {
        self.skips.firsts.first().map(|first| (*first, self.skips.last))
    }

    /// Reads the pages that `select` selects and keeps them in memory; all other pages are released.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged.
    pub fn keep_pages(&mut self, mut select: impl FnMut(usize) -> bool) -> Result<()> {
        let read = |page: usize| {
            let bytes = select(page).then(|| self.file.read(self.offset(page), PAGE_BYTES));
            Ok(bytes.transpose()?.map(Vec::into_boxed_slice))
        };
        let pages = (0..self.pages()).map(read).collect::<Result<Vec<_>>>()?;
        self.resident = ResidentPages::Some(pages.into());
        Ok(())
    }

    /// The same list with all pages in memory, verified by the caller.
    pub(super) fn in_cells(&self, cells: Vec<CellMut>) -> PagedList {
        PagedList { resident: ResidentPages::All(Arc::new(cells)), ..self.clone() }
    }

    /// Whether an intersection has read the whole list into cells.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.resident, ResidentPages::All(_))
    }

    /// A page, if it is in memory.
    pub(super) fn resident_page(&self, page: usize) -> Option<&[u8]> {
        match &self.resident {
            ResidentPages::None => None,
            ResidentPages::Some(pages) => pages[page].as_deref(),
            ResidentPages::All(cells) => {
                let pages_a_cell = cells.first()?.len() / PAGE_BYTES;
                let at = page % pages_a_cell * PAGE_BYTES;
                cells.get(page / pages_a_cell)?.get(at..at + PAGE_BYTES)
            }
        }
    }

    /// The file, for a read queue.
    pub(super) fn file(&self) -> &Arc<dyn ReadFile> {
        self.file.file()
    }

    /// Offset of a page in the file.
    pub(super) fn offset(&self, page: usize) -> u64 {
        (self.skips.first_page + page as u64) * PAGE
    }

    /// Verifies the checksums of pages that were read, from `page` on.
    pub(super) fn check(&self, page: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.file.check(self.skips.first_page + page as u64, bytes)?)
    }

    /// The ids of a page.
    pub(super) fn ids_of(&self, page: usize) -> PageIds {
        let before = self.skips.before[page];
        PageIds { before, count: (self.skips.before[page + 1] - before) as usize }
    }

    /// The page with the id at `position`, which is less than the number of ids.
    pub(super) fn page_at(&self, position: u64) -> usize {
        self.skips.before.partition_point(|before| *before <= position) - 1
    }

    /// Decodes a verified page. `out` has the number of its ids.
    pub(super) fn decode(&self, page: usize, bytes: &[u8], out: &mut [u32]) -> Result<()> {
        let next = self.skips.firsts.get(page + 1);
        let most = next.map_or(self.skips.last, |next| next - 1);
        let bounds = PageBounds { first: self.skips.firsts[page], most, exact: next.is_none() };
        page::decode_page(self.skips.codec, bytes, bounds, out, self.file.name(), self.offset(page))
    }

    /// The page that contains `id` if the list does, searched from page `from` on. The first id of page
    /// `from` must not be larger than `id`, unless `from` is 0. `None` if `id` is outside the list.
    pub(super) fn find_page(&self, from: usize, id: u32) -> Option<usize> {
        let firsts = self.firsts();
        if id > self.skips.last || *firsts.get(from)? > id {
            return None;
        }
        Some(gallop(firsts, from, |first| first <= id) - 1)
    }

    /// Whether a page may contain `id` according to its filter.
    pub(super) fn may_hold(&self, page: usize, id: u32) -> bool {
        self.skips.filters.may_hold(self.ids_of(page), id)
    }
}

/// The first position from `from` on for which `before` is false, by galloping search. `before` must be
/// monotonic: true, then false.
#[inline]
pub(super) fn gallop(values: &[u32], from: usize, before: impl Fn(u32) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while low + step <= values.len() && before(values[low + step - 1]) {
        low += step;
        step *= 2;
    }
    let end = values.len().min(low + step);
    low + values[low..end].partition_point(|value| before(*value))
}

/// Copies of the lists, the shortest first.
pub(super) fn by_length(lists: &[PagedList]) -> Vec<PagedList> {
    let mut sorted = lists.to_vec();
    sorted.sort_by_key(PagedList::len);
    sorted
}

//! Lists in pages: their skip pointers and filters, and the pages that are in memory.

use crate::intersection::filter::{BloomFilters, PageIds};
use crate::intersection::page::{self, ID_MAX, PAGE_BYTES, PAGE_IDS_MAX, PageBounds};
use crate::intersection::write::{LIST_FILE_IDENTITY, TAIL_BYTES};
use std::sync::Arc;
use tierdex::io::{CellMut, Disk, PAGE, ReadFile, Seal, SealedFile};
use tierdex::{Error, Result, codec::Codec, internal::bytes::ByteReader};

/// Fewest bytes that the directory of the file has for a list.
const LIST_ENTRY_BYTES_MIN: u64 = 5;

/// Opens the lists of a file with the given seal. Reads skip pointers, filters and checksums, but no pages
/// of lists.
///
/// # Errors
/// When the file is damaged or cannot be read.
pub fn open_lists(disk: &dyn Disk, name: &str, seal: Seal) -> Result<Vec<PagedList>> {
    let file = SealedFile::open(disk, name, LIST_FILE_IDENTITY, seal)?;
    file.load_tables(None)?;
    let payload = file.payload();
    let corrupt = |what: &str| Error::corrupt(name, payload.end, what);
    let tail_at = payload.end.checked_sub(TAIL_BYTES as u64).filter(|at| *at >= PAGE);
    let tail_at = tail_at.ok_or_else(|| corrupt("the file has no lists"))?;
    let tail = file.read(tail_at, TAIL_BYTES)?;
    let mut view = ByteReader::new(name, tail_at, &tail);
    let [lists, pages, at, len] = [view.u64()?, view.u64()?, view.u64()?, view.u64()?];
    let pages_end = pages.checked_add(1).and_then(|end| end.checked_mul(PAGE));
    if pages_end != Some(at) || at.checked_add(len) != Some(tail_at) || lists > len / LIST_ENTRY_BYTES_MIN {
        return Err(corrupt("the directory of the lists does not fit the file"));
    }
    let len = usize::try_from(len).map_err(|_| corrupt("the directory does not fit the address space"))?;
    let directory = file.read(at, len)?;
    let file = Arc::new(file);
    let mut view = ByteReader::new(name, at, &directory);
    let mut first_page = 1;
    let mut read = Vec::with_capacity(lists as usize);
    for _ in 0..lists {
        let skips = SkipPointers::read(&mut view, &file, first_page, pages + 1)?;
        first_page += skips.firsts.len() as u64;
        read.push(PagedList { skips: Arc::new(skips), resident: ResidentPages::None });
    }
    view.finish()?;
    if first_page != pages + 1 {
        return Err(corrupt("the numbers of pages of the lists and of the file differ"));
    }
    Ok(read)
}

/// A list. Clones share the data in memory.
#[derive(Clone)]
pub struct PagedList {
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
struct SkipPointers {
    file: Arc<SealedFile>,
    codec: Codec,
    /// Number of the first page of the list in the file.
    first_page: u64,
    /// The first id of each page.
    firsts: Box<[u32]>,
    /// Number of ids before each page, and of all ids.
    before: Box<[u64]>,
    last: u32,
    filter: Option<BloomFilters>,
}

impl SkipPointers {
    /// Parses a directory entry. `end` is the end of the pages in the file.
    fn read(
        view: &mut ByteReader<'_>,
        file: &Arc<SealedFile>,
        first_page: u64,
        end: u64,
    ) -> Result<SkipPointers> {
        let codec = Codec::from_id(view.u8()?).filter(|codec| codec.is_delta() || *codec == Codec::Raw);
        let codec = codec.ok_or_else(|| view.corrupt("unknown codec of a list"))?;
        let bits = u32::from(view.u8()?);
        let (ids, pages, last) = (view.varint()?, view.varint()?, view.varint()?);
        let wrong = pages > end.saturating_sub(first_page) || pages > view.remaining() as u64 / 2;
        if wrong || bits > BloomFilters::BITS_PER_ID_MAX || last > u64::from(ID_MAX) {
            return Err(view.corrupt("impossible sizes of a list"));
        }
        let mut firsts: Vec<u32> = Vec::with_capacity(pages as usize);
        let mut before = Vec::with_capacity(pages as usize + 1);
        before.push(0);
        let (mut sum, mut floor) = (0, 0);
        for _ in 0..pages {
            let first = firsts.last().map_or(0, |first| u64::from(*first)) + u64::from(view.varint32()?);
            let count = view.varint()?;
            let fits = first >= floor && (1..=PAGE_IDS_MAX as u64).contains(&count);
            if !fits || first + count - 1 > last {
                return Err(view.corrupt("skip pointers do not increase as ids do"));
            }
            firsts.push(first as u32);
            floor = first + count;
            sum += count;
            before.push(sum);
        }
        if sum != ids {
            return Err(view.corrupt("the numbers of ids of a list and of its pages differ"));
        }
        let filter = match bits {
            0 => None,
            _ => {
                let len = usize::try_from(BloomFilters::bytes_of(bits, ids)).unwrap_or(usize::MAX);
                Some(BloomFilters::from_bytes(bits, view.bytes(len)?))
            }
        };
        Ok(SkipPointers {
            file: Arc::clone(file),
            codec,
            first_page,
            firsts: firsts.into(),
            before: before.into(),
            last: last as u32,
            filter,
        })
    }
}

impl PagedList {
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

    /// Bytes of the skip pointers and of the filters in memory.
    pub fn memory(&self) -> (u64, u64) {
        let filter = self.skips.filter.as_ref().map_or(0, |filter| filter.bytes().len() as u64);
        (12 * self.pages() as u64, filter)
    }

    /// Whether the list has Bloom filters.
    pub fn has_filters(&self) -> bool {
        self.skips.filter.is_some()
    }

    /// Reads the pages that `select` selects and keeps them in memory; all other pages are released.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged.
    pub fn keep_pages(&mut self, mut select: impl FnMut(usize) -> bool) -> Result<()> {
        let read = |page: usize| {
            let bytes = select(page).then(|| self.skips.file.read(self.offset(page), PAGE_BYTES));
            Ok(bytes.transpose()?.map(Vec::into_boxed_slice))
        };
        let pages = (0..self.pages()).map(read).collect::<Result<Vec<_>>>()?;
        self.resident = ResidentPages::Some(pages.into());
        Ok(())
    }

    /// The same list with all pages in memory, verified by the caller.
    pub(super) fn in_cells(&self, cells: Vec<CellMut>) -> PagedList {
        PagedList { skips: Arc::clone(&self.skips), resident: ResidentPages::All(Arc::new(cells)) }
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
        self.skips.file.file()
    }

    /// Offset of a page in the file.
    pub(super) fn offset(&self, page: usize) -> u64 {
        (self.skips.first_page + page as u64) * PAGE
    }

    /// Verifies the checksums of pages that were read, from `page` on.
    pub(super) fn check(&self, page: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.skips.file.check(self.skips.first_page + page as u64, bytes)?)
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
        page::decode_page(self.skips.codec, bytes, bounds, out, self.skips.file.name(), self.offset(page))
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
        self.skips.filter.as_ref().is_none_or(|filter| filter.may_hold(self.ids_of(page), id))
    }

    /// False positive rate of the filters; 1 without filters.
    pub(super) fn false_positive_rate(&self) -> f64 {
        self.skips.filter.as_ref().map_or(1.0, BloomFilters::false_positive_rate)
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

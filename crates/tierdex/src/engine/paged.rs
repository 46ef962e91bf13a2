//! Block source of an engine: suspends an evaluation until the pages that it reads are in the cache.
//!
//! An evaluation is a coroutine with a stack of its own and calls [`BlockSource::read`] as if reads were
//! synchronous. The source pins the pages of the range in the cache. While one of them is in flight, it
//! suspends the coroutine, and the thread resumes another evaluation. At checkpoints it also ends time
//! slices, stops evaluations that were cancelled or are past their deadline, and hands over documents to
//! idle threads.

use super::pool::{MemoryPool, Reservation};
use super::{
    active::ActiveRequest, active::PageCount, priority::Priority, queue::RequestQueue, read_ahead::ReadAhead,
};
use crate::segment::read::{BlockSource, PagesBody};
use crate::{Error, Result};
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use std::{collections::VecDeque, ops::Range, rc::Rc, sync::Arc};
use tierdex_cache::{PageCache, PageReader, Pin, ReadCosts};
use tierdex_io::{PAGE, SealedFile};

/// Why an evaluation is suspended.
#[derive(Clone, Debug)]
pub(super) enum Wait {
    /// Its time slice has ended.
    Turn,
    /// Reads into these frames are in flight.
    Pages(Rc<RefCell<Vec<u32>>>),
    /// It waits for memory, until [`MemoryPool::changes`] exceeds this count.
    Memory(u64),
}

/// State that the evaluations of a thread share.
pub(super) struct ThreadContext {
    pub(super) reader: RefCell<Box<PageReader>>,
    pub(super) costs: ReadCosts,
    pub(super) limits: ReadAhead,
    pub(super) pool: Arc<MemoryPool>,
    pub(super) queue: Arc<RequestQueue>,
}

/// Time slice of an evaluation: a single request waits for each other evaluation of its thread no longer
/// than this.
const TIME_SLICE: Duration = Duration::from_micros(200);

/// Age, waiting included, at which an evaluation may be divided: waking a thread takes about 50 µs.
const DIVIDE_AFTER: Duration = Duration::from_micros(400);

/// Documents handed over to another evaluation, at least.
const DIVIDE_DOCUMENTS_MIN: usize = 1 << 16;

/// Checkpoints between two readings of the clock.
const CLOCK_CHECKPOINTS: u32 = 8;

/// Reads through the page cache of the engine, for one evaluation.
pub(super) struct PagedSource<'e> {
    cache: &'e PageCache,
    thread: &'e ThreadContext,
    yielder: &'e Yielder<(), Wait>,
    pinned: RefCell<Vec<PinnedPage<'e>>>,
    pinned_max: usize,
    /// File and number of the page that was prefetched last: the next block is usually on the same page.
    last_prefetched: Cell<(u64, u64)>,
    /// Pages prefetched since the last read.
    ahead: Cell<usize>,
    ahead_max: Cell<usize>,
    /// Frames that the evaluation waits for; the vector is reused.
    waits: Rc<RefCell<Vec<u32>>>,
    request: &'e Arc<ActiveRequest>,
    began: Instant,
    /// Instant of the first checkpoint, and the time worked until then.
    prepared: Cell<Option<(Instant, Duration)>>,
    /// Time worked until the last suspension.
    worked: Cell<Duration>,
    /// Instant of the last resumption.
    resumed: Cell<Instant>,
    /// Checkpoints left until the clock is read again.
    until_clock: Cell<u32>,
    copies_pages: Cell<bool>,
    /// Pages that were pinned, and those of them that were not cached, since the last count.
    pages: Cell<PageCount>,
    /// The positions in `pinned` of the pages that were read last.
    last_found: Cell<[u32; READ_LISTS]>,
}

/// Lists that are read in turn, for which the position of the last page is known.
const READ_LISTS: usize = 4;

/// A pinned page, prefetched or read.
struct PinnedPage<'e> {
    file: u64,
    page: u64,
    pin: Pin<'e>,
    /// The page was read: it is unpinned first.
    used: bool,
}

impl<'e> PagedSource<'e> {
    /// The source of an evaluation that `yielder` suspends. It pins at most `pinned_max` pages.
    pub(super) fn new(
        cache: &'e PageCache,
        thread: &'e ThreadContext,
        yielder: &'e Yielder<(), Wait>,
        request: &'e Arc<ActiveRequest>,
        pinned_max: usize,
    ) -> PagedSource<'e> {
        let now = Instant::now();
        PagedSource {
            cache,
            thread,
            yielder,
            pinned: RefCell::default(),
            pinned_max: pinned_max.max(1),
            last_prefetched: Cell::new((u64::MAX, 0)),
            ahead: Cell::new(0),
            ahead_max: Cell::new(thread.limits.first_pages.min(pinned_max.max(1))),
            waits: Rc::default(),
            request,
            began: now,
            prepared: Cell::new(None),
            worked: Cell::new(Duration::ZERO),
            resumed: Cell::new(now),
            until_clock: Cell::new(CLOCK_CHECKPOINTS),
            copies_pages: Cell::new(true),
            pages: Cell::default(),
            last_found: Cell::default(),
        }
    }

    /// Sets whether lists buffer the rest of a page ([`BlockSource::copies_pages`]).
    pub(super) fn set_copies_pages(&self, copies: bool) {
        self.copies_pages.set(copies);
    }

    /// The pool that its memory is reserved from.
    pub(super) fn pool(&self) -> &MemoryPool {
        &self.thread.pool
    }

    /// A checkpoint that reads the clock: [`BlockSource::checkpoint`].
    fn timed_checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        self.until_clock.set(CLOCK_CHECKPOINTS);
        let now = Instant::now();
        if self.request.stop.is_due_at(|| now) {
            return Err(Error::Interrupted);
        }
        let end = self.divide(rest, now);
        if now - self.resumed.get() >= TIME_SLICE {
            self.suspend(Wait::Turn)?;
        }
        Ok(end)
    }

    /// Hands the second half of the documents over to an idle thread, if the evaluation has run long enough.
    /// Returns the end of the live documents.
    fn divide(&self, rest: Range<u32>, now: Instant) -> u32 {
        if rest.len() < 2 * DIVIDE_DOCUMENTS_MIN {
            return rest.end;
        }
        let Some((prepared, work)) = self.prepared.get() else {
            self.prepared.set(Some((now, self.worked.get() + (now - self.resumed.get()))));
            return rest.end;
        };
        // The other evaluation repeats the preparation: for a prefix, it reads all skip records.
        if now - self.began < DIVIDE_AFTER || now - prepared < work {
            return rest.end;
        }
        if !self.thread.queue.is_thread_idle() {
            return rest.end;
        }
        // The other evaluation must not wait for the memory of this one.
        let memory = self.request.planned.get().map_or(0, |planned| planned.memory);
        let Some(reserved) = self.thread.pool.try_evaluation(memory) else { return rest.end };
        let middle = rest.start + (rest.end - rest.start) / 2;
        let task = || self.request.divide(middle..rest.end, Some(reserved));
        if self.thread.queue.push_task_if_idle(task) { middle } else { rest.end }
    }

    /// The pages that were pinned since the last call.
    pub(super) fn take_page_count(&self) -> PageCount {
        self.pages.take()
    }

    fn count_page(&self, pin: &Pin<'e>) {
        let PageCount { pages, missed } = self.pages.get();
        self.pages.set(PageCount { pages: pages + 1, missed: missed + u64::from(!pin.is_settled()) });
    }

    /// Pins pages, and requests reads of those that are not in the cache. False if no frame is free for one.
    fn pin(&self, pinned: &mut Vec<PinnedPage<'e>>, file: &Arc<SealedFile>, pages: Range<u64>) -> bool {
        let hold = |page, pin| {
            self.count_page(&pin);
            pinned.push(PinnedPage { file: file.number(), page, pin, used: false });
        };
        self.thread.reader.borrow_mut().request(self.cache, file, pages, self.request.rank, hold)
    }

    /// The position of a page. A list whose pages were pinned together is usually read in their order: the
    /// positions that were found last are tried first.
    fn find(&self, pinned: &[PinnedPage<'e>], file: u64, page: u64) -> Option<usize> {
        let is_page =
            |at: usize| pinned.get(at).is_some_and(|pinned| pinned.page == page && pinned.file == file);
        let mut last = self.last_found.get();
        let near = (0..last.len()).find_map(|list| {
            let at = last[list] as usize;
            [at, at + 1].into_iter().find(|at| is_page(*at)).map(|at| (list, at))
        });
        let (list, at) = match near {
            Some(found) => found,
            None => {
                let at = (0..pinned.len()).rev().find(|at| is_page(*at))?;
                last.rotate_right(1);
                (0, at)
            }
        };
        last[list] = at as u32;
        self.last_found.set(last);
        Some(at)
    }

    /// Unpins used pages if `more` pages would exceed the maximum. False if they still do.
    fn unpin(&self, pinned: &mut Vec<PinnedPage<'e>>, more: u64) -> bool {
        let fits = |pinned: &Vec<PinnedPage<'e>>| pinned.len() as u64 + more <= self.pinned_max as u64;
        if !fits(pinned) {
            pinned.retain(|pinned| !pinned.used);
        }
        fits(pinned)
    }

    /// Suspends the evaluation until the reads of these pinned pages have ended, with or without success.
    fn wait(&self, file: &SealedFile, pages: Range<u64>) -> Result<()> {
        loop {
            let pinned = self.pinned.borrow();
            let of_page = |page| self.find(&pinned, file.number(), page).map(|at| &pinned[at].pin);
            if !self.set_waits(pages.clone().filter_map(of_page)) {
                return Ok(());
            }
            drop(pinned);
            self.suspend(Wait::Pages(self.waits.clone()))?;
        }
    }

    /// Sets the frames that the evaluation waits for to those of these pins that are being read. False if
    /// there are none.
    fn set_waits<'p>(&self, pins: impl Iterator<Item = &'p Pin<'e>>) -> bool
    where
        'e: 'p,
    {
        let mut waits = self.waits.borrow_mut();
        waits.clear();
        waits.extend(pins.filter(|pin| !pin.is_settled()).map(Pin::frame));
        !waits.is_empty()
    }

    /// Pins the pages after those that are pinned, which begin at index `at`, if less than half of the
    /// maximum are.
    fn pin_next(&self, file: &Arc<SealedFile>, pages: &[u32], at: usize, pins: &mut VecDeque<Pin<'e>>) {
        if pins.len() > self.pinned_max / 2 {
            return;
        }
        let mut reader = self.thread.reader.borrow_mut();
        while let Some(page) = pages.get(at + pins.len()).filter(|_| pins.len() < self.pinned_max) {
            let page = u64::from(*page);
            let hold = |_, pin| {
                self.count_page(&pin);
                pins.push_back(pin);
            };
            if !reader.request(self.cache, file, page..page + 1, self.request.rank, hold) {
                break;
            }
        }
    }

    /// Suspends the evaluation.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the request was cancelled or its deadline has passed.
    fn suspend(&self, wait: Wait) -> Result<()> {
        self.worked.set(self.worked.get() + self.resumed.get().elapsed());
        self.yielder.suspend(wait);
        let now = Instant::now();
        self.resumed.set(now);
        if self.request.stop.is_due_at(|| now) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Reserves `bytes` of memory; waits until they are available.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the request was cancelled or its deadline has passed.
    pub(super) fn reserve(&self, bytes: u64, priority: Priority) -> Result<Reservation> {
        let pool = &self.thread.pool;
        if let Some(reserved) = pool.try_evaluation(bytes) {
            return Ok(reserved);
        }
        // The cache may have to shrink by these frames.
        self.pinned.borrow_mut().clear();
        self.last_prefetched.set((u64::MAX, 0));
        let waiter = pool.join_wait_queue(priority);
        loop {
            let seen = pool.changes();
            if let Some(reserved) = waiter.try_reserve(bytes) {
                return Ok(reserved);
            }
            self.suspend(Wait::Memory(seen))?;
        }
    }

    /// Appends the part of `range` that is on `pages`. False if no frame is free.
    fn copy(
        &self,
        file: &Arc<SealedFile>,
        range: &Range<u64>,
        pages: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut pinned = self.pinned.borrow_mut();
        if self.copy_pinned(&mut pinned, file, range, pages.clone(), out)? {
            return Ok(true);
        }
        if !pages.clone().all(|page| self.find(&pinned, file.number(), page).is_some()) {
            let more = pages.end - pages.start;
            if !self.unpin(&mut pinned, more) {
                // The oldest unread pages: most of them belong to pruned blocks.
                let excess = (pinned.len() + more as usize).saturating_sub(self.pinned_max);
                pinned.drain(..excess);
                self.last_prefetched.set((u64::MAX, 0));
            }
            for page in pages.clone() {
                let is_pinned = self.find(&pinned, file.number(), page).is_some();
                if !is_pinned && !self.pin(&mut pinned, file, page..page + 1) {
                    return Ok(false);
                }
            }
        }
        drop(pinned);
        self.wait(file, pages.clone())?;
        if self.copy_pinned(&mut self.pinned.borrow_mut(), file, range, pages, out)? {
            return Ok(true);
        }
        Err(Error::Failed("a page was unpinned before it was read".to_string()))
    }

    /// Appends the part of `range` that is on `pages`. False, without effect, if one of them is not pinned or
    /// not read yet.
    fn copy_pinned(
        &self,
        pinned: &mut [PinnedPage<'e>],
        file: &SealedFile,
        range: &Range<u64>,
        pages: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let before = out.len();
        for page in pages {
            let at = self.find(pinned, file.number(), page).filter(|at| pinned[*at].pin.is_settled());
            let Some(at) = at else {
                out.truncate(before);
                return Ok(false);
            };
            pinned[at].used = true;
            let bytes = pinned[at].pin.page()?;
            out.extend_from_slice(&bytes[part_of_page(range, page)]);
        }
        Ok(true)
    }
}

/// The part of a page that is in a range of the file.
fn part_of_page(range: &Range<u64>, page: u64) -> Range<usize> {
    let start = page * PAGE;
    (range.start.max(start) - start) as usize..(range.end.min(start + PAGE) - start) as usize
}

/// Which of at most 64 pages are pinned, as bits.
fn pinned_mask(pinned: &[PinnedPage<'_>], file: u64, pages: Range<u64>) -> u64 {
    let of_file = pinned.iter().filter(|pinned| pinned.file == file && pages.contains(&pinned.page));
    of_file.fold(0, |mask, pinned| mask | 1 << (pinned.page - pages.start))
}

fn pages(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE..range.end.div_ceil(PAGE)
}

impl BlockSource for PagedSource<'_> {
    fn prefetches(&self) -> bool {
        true
    }

    fn read_costs(&self) -> Option<ReadCosts> {
        Some(self.thread.costs)
    }

    fn copies_pages(&self) -> bool {
        self.copies_pages.get()
    }

    fn prefetch(&self, file: &Arc<SealedFile>, range: Range<u64>) -> bool {
        let pages = pages(&range);
        let last = (file.number(), pages.end.saturating_sub(1));
        if self.last_prefetched.get() == last && pages.end == pages.start + 1 {
            return true;
        }
        let is_payload = range.start >= file.payload().start && range.end <= file.payload().end;
        if !is_payload || range.is_empty() {
            return true;
        }
        let mut pinned = self.pinned.borrow_mut();
        let is_single = pages.end == pages.start + 1;
        let mut first = pages.start;
        while first < pages.end {
            let end = pages.end.min(first + u64::from(u64::BITS));
            let mask = pinned_mask(&pinned, file.number(), first..end);
            // The pages up to the next one that is pinned.
            let missing = u64::from(mask.trailing_zeros()).min(end - first);
            if missing == 0 {
                first += u64::from(mask.trailing_ones());
                continue;
            }
            let left = self.ahead_max.get().saturating_sub(self.ahead.get()) as u64;
            self.unpin(&mut pinned, missing.min(left));
            let count = missing.min(left).min((self.pinned_max - pinned.len().min(self.pinned_max)) as u64);
            let before = pinned.len();
            let all = self.pin(&mut pinned, file, first..first + count);
            self.ahead.set(self.ahead.get() + pinned.len() - before);
            if !all || count < missing {
                return false;
            }
            first += missing;
            if let Some(pinned) = pinned.last().filter(|pinned| is_single && pinned.pin.is_settled())
                && let Ok(bytes) = pinned.pin.page()
            {
                tierdex_codec::prefetch(&bytes[part_of_page(&range, pages.start)]);
            }
        }
        self.last_prefetched.set(last);
        true
    }

    #[inline]
    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        let left = self.until_clock.get();
        self.until_clock.set(left.wrapping_sub(1));
        if left > 0 { Ok(rest.end) } else { self.timed_checkpoint(rest) }
    }

    fn for_each_page(&self, file: &Arc<SealedFile>, pages: &[u32], body: &mut PagesBody<'_>) -> Result<()> {
        // The first half is used while the second is read.
        let (half, mut pins) = (self.pinned_max.div_ceil(2), VecDeque::new());
        self.pinned.take();
        self.last_prefetched.set((u64::MAX, 0));
        let mut at = 0;
        while at < pages.len() {
            self.pin_next(file, pages, at, &mut pins);
            let here = pins.len().min(half);
            if here == 0 {
                // All frames are pinned: read the page without the cache.
                let bytes = file.read(u64::from(pages[at]) * PAGE, PAGE as usize)?;
                if !body(at, &[&bytes])? {
                    break;
                }
                at += 1;
                continue;
            }
            while self.set_waits(pins.range(..here)) {
                self.suspend(Wait::Pages(self.waits.clone()))?;
            }
            let cells = pins.range(..here).map(Pin::page).collect::<tierdex_io::Result<Vec<_>>>()?;
            if !body(at, &cells.iter().map(|cell| &**cell).collect::<Vec<_>>())? {
                break;
            }
            drop(cells);
            pins.drain(..here);
            at += here;
        }
        Ok(())
    }

    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        if range.is_empty() {
            return Ok(());
        }
        if range.start < file.payload().start || range.end > file.payload().end {
            return Err(Error::corrupt(
                file.name(),
                range.start,
                "the range extends past the payload of the file",
            ));
        }
        if self.ahead.take() > 0 {
            self.ahead_max.set((2 * self.ahead_max.get()).min(self.pinned_max));
        }
        // Not more: the memory of an evaluation is counted.
        out.reserve_exact(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
        let all = pages(&range);
        let chunk = self.pinned_max.div_ceil(2);
        for first in all.clone().step_by(chunk) {
            let pages = first..all.end.min(first + chunk as u64);
            let copied = self.copy(file, &range, pages, out);
            if !matches!(copied, Ok(true)) {
                out.clear();
                copied?;
                // All frames are pinned: read the range without the cache, into a buffer that also holds
                // the rest of its pages.
                let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                out.extend_from_slice(&file.read(range.start, len)?);
                return Ok(());
            }
        }
        Ok(())
    }
}

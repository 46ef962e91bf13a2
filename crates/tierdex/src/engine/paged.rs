//! Block source of an engine: suspends an evaluation until the pages that it reads are in the cache.
//!
//! An evaluation is a coroutine with a stack of its own and calls [`BlockSource::read`] as if reads were
//! synchronous. The source pins the pages of the range in the cache. While one of them is in flight, it
//! suspends the coroutine, and the thread resumes another evaluation. At checkpoints it also ends time
//! slices, stops evaluations that were cancelled or are past their deadline, and hands over documents to
//! idle threads.

use super::pool::{MemoryPool, Reservation};
use super::{active::ActiveRequest, priority::Priority, queue::RequestQueue};
use crate::{Error, Result, segment::read::BlockSource};
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use std::{ops::Range, rc::Rc, sync::Arc};
use tierdex_cache::{PageCache, PageReader, Pin};
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
    pub(super) reader: RefCell<PageReader>,
    pub(super) pool: Arc<MemoryPool>,
    pub(super) queue: Arc<RequestQueue>,
}

/// Pages that an evaluation prefetches before its first read; the number doubles with each further prefetch.
/// Before the first blocks are evaluated, little is known about which blocks will be skipped.
const PREFETCH_PAGES_FIRST: usize = 32;

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
}

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
            ahead_max: Cell::new(PREFETCH_PAGES_FIRST.min(pinned_max.max(1))),
            waits: Rc::default(),
            request,
            began: now,
            prepared: Cell::new(None),
            worked: Cell::new(Duration::ZERO),
            resumed: Cell::new(now),
            until_clock: Cell::new(CLOCK_CHECKPOINTS),
            copies_pages: Cell::new(true),
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
    /// Returns the end of the documents that are left.
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

    /// Pins a page, and requests a read if it is not in the cache. False if no frame is free.
    fn pin(&self, pinned: &mut Vec<PinnedPage<'e>>, file: &Arc<SealedFile>, page: u64) -> bool {
        let hold = |page, pin| pinned.push(PinnedPage { file: file.number(), page, pin, used: false });
        self.thread.reader.borrow_mut().request(self.cache, file, page..page + 1, hold)
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
            let frames = pages.clone().filter_map(|page| {
                let at = find(&pinned, file.number(), page)?;
                (!pinned[at].pin.is_settled()).then(|| pinned[at].pin.frame())
            });
            let mut waits = self.waits.borrow_mut();
            waits.clear();
            waits.extend(frames);
            if waits.is_empty() {
                return Ok(());
            }
            drop((pinned, waits));
            self.suspend(Wait::Pages(self.waits.clone()))?;
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
        if !pages.clone().all(|page| find(&pinned, file.number(), page).is_some()) {
            let more = pages.end - pages.start;
            if !self.unpin(&mut pinned, more) {
                // The oldest unread pages: most of them belong to pruned blocks.
                let excess = (pinned.len() + more as usize).saturating_sub(self.pinned_max);
                pinned.drain(..excess);
                self.last_prefetched.set((u64::MAX, 0));
            }
            for page in pages.clone() {
                let is_pinned = find(&pinned, file.number(), page).is_some();
                if !is_pinned && !self.pin(&mut pinned, file, page) {
                    return Ok(false);
                }
            }
        }
        drop(pinned);
        self.wait(file, pages.clone())?;
        let mut pinned = self.pinned.borrow_mut();
        for page in pages {
            let Some(at) = find(&pinned, file.number(), page) else {
                return Err(Error::Failed("a page was unpinned before it was read".to_string()));
            };
            pinned[at].used = true;
            let bytes = pinned[at].pin.page()?;
            let start = page * PAGE;
            let from = range.start.max(start) - start;
            let to = range.end.min(start + PAGE) - start;
            out.extend_from_slice(&bytes[from as usize..to as usize]);
        }
        Ok(true)
    }
}

/// The position of a page, searched from the end: it is usually one of the last.
fn find(pinned: &[PinnedPage<'_>], file: u64, page: u64) -> Option<usize> {
    pinned.iter().rposition(|pinned| pinned.page == page && pinned.file == file)
}

fn pages(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE..range.end.div_ceil(PAGE)
}

impl BlockSource for PagedSource<'_> {
    fn prefetches(&self) -> bool {
        true
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
        for page in pages {
            if find(&pinned, file.number(), page).is_some() {
                continue;
            }
            let fits = self.ahead.get() < self.ahead_max.get() && self.unpin(&mut pinned, 1);
            if !fits || !self.pin(&mut pinned, file, page) {
                return false;
            }
            self.ahead.set(self.ahead.get() + 1);
            if let Some(pinned) = pinned.last().filter(|pinned| pinned.pin.is_settled())
                && let Ok(bytes) = pinned.pin.page()
            {
                let start = page * PAGE;
                let from = range.start.max(start) - start;
                let to = range.end.min(start + PAGE) - start;
                tierdex_codec::prefetch(&bytes[from as usize..to as usize]);
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

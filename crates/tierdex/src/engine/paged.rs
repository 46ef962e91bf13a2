//! Evaluation that is suspended until the pages which it needs are in the cache.
//!
//! An evaluation runs on a stack of its own (a coroutine), so that it is written as if reading took no time.
//! Its source pins the pages of what it reads, and suspends it as long as one of them is on its way. The
//! thread goes on with another evaluation then.

use super::active::ActiveRequest;
use super::queue::Queue;
use super::request::Priority;
use super::reservations::{Reservation, Reservations};
use super::ticket::CancelHandle;
use crate::error::{Error, Result};
use crate::segment::read::BlockSource;
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex_cache::{Frames, PageReader, Pin};
use tierdex_io::{PAGE, SealedFile};

/// What an evaluation waits for.
#[derive(Clone, Debug)]
pub(super) enum Wait {
    /// Nothing: others may go on first.
    Turn,
    /// Pages in these frames.
    Pages(Rc<RefCell<Vec<u32>>>),
    /// Memory: until [`Reservations::changes`] exceeds this count.
    Memory(u64),
}

/// What the evaluations of a thread share.
pub(super) struct ThreadContext {
    pub(super) reader: RefCell<PageReader>,
    pub(super) memory: Reservations,
    pub(super) queue: Arc<Queue>,
}

/// Pages that an evaluation prefetches together at first, and twice as many each further time: before the
/// first have been evaluated, it knows little of which can be skipped.
const AHEAD_FIRST: usize = 32;

/// How long an evaluation works before others of its thread go on: a single request waits for each of them
/// no longer than this.
const SLICE: Duration = Duration::from_micros(200);

/// How long after its begin, waiting included, an evaluation may be divided: to wake a thread takes some 50
/// µs.
const DIVIDE_AFTER: Duration = Duration::from_micros(400);

/// Documents that are given to another evaluation, at least.
const DIVIDE_MIN: usize = 1 << 16;

/// Checkpoints from one look at the clock to the next.
const CLOCK_EVERY: u32 = 8;

/// When an evaluation is to stop.
pub(super) struct Stop {
    pub(super) flag: CancelHandle,
    pub(super) deadline: Option<Instant>,
}

impl Stop {
    /// Whether it was cancelled, or its deadline has passed.
    pub(super) fn is_due(&self) -> bool {
        self.is_due_at(Instant::now)
    }

    fn is_due_at(&self, now: impl FnOnce() -> Instant) -> bool {
        self.flag.is_cancelled() || self.deadline.is_some_and(|deadline| deadline <= now())
    }
}

/// Reads pages through the cache.
pub(super) struct PagedSource<'e> {
    frames: &'e Frames,
    thread: &'e ThreadContext,
    yielder: &'e Yielder<(), Wait>,
    /// Pages that are pinned.
    pinned: RefCell<Vec<PinnedPage<'e>>>,
    pinned_max: usize,
    /// The page that was prefetched last, and its file: the next block is mostly there too.
    last_prefetched: Cell<(u64, u64)>,
    /// Pages that were prefetched since the last read, and how many may be.
    ahead: Cell<usize>,
    ahead_max: Cell<usize>,
    waits: Rc<RefCell<Vec<u32>>>,
    request: &'e Arc<ActiveRequest>,
    began: Instant,
    /// When it first looked at documents, and how long it had worked by then.
    prepared: Cell<Option<(Instant, Duration)>>,
    /// Time worked up to the last suspension, instant of the last resumption, and checkpoints left until the
    /// clock is read again.
    worked: Cell<Duration>,
    resumed: Cell<Instant>,
    until_clock: Cell<u32>,
}

/// A page that was prefetched or read.
struct PinnedPage<'e> {
    file: u64,
    page: u64,
    pin: Pin<'e>,
    /// It was read, and may not be needed again.
    used: bool,
}

impl<'e> PagedSource<'e> {
    /// For an evaluation that `yielder` suspends, and that pins `pinned_max` pages at most.
    pub(super) fn new(
        frames: &'e Frames,
        (thread, yielder): (&'e ThreadContext, &'e Yielder<(), Wait>),
        request: &'e Arc<ActiveRequest>,
        pinned_max: usize,
    ) -> PagedSource<'e> {
        let now = Instant::now();
        PagedSource {
            frames,
            thread,
            yielder,
            pinned: RefCell::default(),
            pinned_max: pinned_max.max(1),
            last_prefetched: Cell::new((u64::MAX, 0)),
            ahead: Cell::new(0),
            ahead_max: Cell::new(AHEAD_FIRST.min(pinned_max.max(1))),
            waits: Rc::default(),
            request,
            began: now,
            prepared: Cell::new(None),
            worked: Cell::new(Duration::ZERO),
            resumed: Cell::new(now),
            until_clock: Cell::new(CLOCK_EVERY),
        }
    }

    /// See [`BlockSource::checkpoint`].
    fn look_at_clock(&self, rest: Range<u32>) -> Result<u32> {
        self.until_clock.set(CLOCK_EVERY);
        let now = Instant::now();
        if self.request.stop.is_due_at(|| now) {
            return Err(Error::Interrupted);
        }
        let end = self.divide(rest, now);
        if now - self.resumed.get() >= SLICE {
            self.suspend(Wait::Turn)?;
        }
        Ok(end)
    }

    /// Gives the second half of the documents to a thread that sleeps, if they are worth it. Returns the end
    /// of the first half.
    fn divide(&self, rest: Range<u32>, now: Instant) -> u32 {
        if rest.len() < 2 * DIVIDE_MIN {
            return rest.end;
        }
        let Some((prepared, work)) = self.prepared.get() else {
            self.prepared.set(Some((now, self.worked.get() + (now - self.resumed.get()))));
            return rest.end;
        };
        // The other one prepares the query anew: for a prefix it collects the documents of all terms.
        if now - self.began < DIVIDE_AFTER || now - prepared < work {
            return rest.end;
        }
        let middle = rest.start + (rest.end - rest.start) / 2;
        let gives = || self.request.divide(middle..rest.end);
        if self.thread.queue.push_task_if_idle(gives) { middle } else { rest.end }
    }

    /// Pins a page, and has it read if it is not in the cache. False when it found no frame.
    fn pin(&self, pinned: &mut Vec<PinnedPage<'e>>, file: &Arc<SealedFile>, page: u64) -> bool {
        let hold = |page, pin| pinned.push(PinnedPage { file: file.number(), page, pin, used: false });
        self.thread.reader.borrow_mut().request(self.frames, file, page..page + 1, hold)
    }

    /// Unpins pages that were read, if else no `more` could be pinned. False when that is not enough.
    fn unpin(&self, pinned: &mut Vec<PinnedPage<'e>>, more: u64) -> bool {
        let fits = |pinned: &Vec<PinnedPage<'e>>| pinned.len() as u64 + more <= self.pinned_max as u64;
        if !fits(pinned) {
            pinned.retain(|pinned| !pinned.used);
        }
        fits(pinned)
    }

    /// Suspends the evaluation until these pages, which are pinned, are there or cannot be had.
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

    /// Lets others go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the evaluation is to stop.
    fn suspend(&self, wait: Wait) -> Result<()> {
        self.worked.set(self.worked.get() + self.resumed.get().elapsed());
        self.yielder.suspend(wait);
        let now = Instant::now();
        self.resumed.set(now);
        if self.request.stop.is_due_at(|| now) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Waits until the evaluation may take `bytes` of memory.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when it is to stop.
    pub(super) fn reserve(&self, bytes: u64, priority: Priority) -> Result<Reservation<'e>> {
        let waiter = self.thread.memory.wait(priority);
        loop {
            if let Some(reserved) = waiter.try_reserve(bytes) {
                return Ok(reserved);
            }
            self.suspend(Wait::Memory(self.thread.memory.changes()))?;
        }
    }

    /// Appends the part of a range that is in some pages. False when they find no frame.
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
                // The oldest prefetched pages that are still unread mostly belong to pruned blocks.
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

/// The position of a page: mostly one of the last.
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
        }
        self.last_prefetched.set(last);
        true
    }

    #[inline]
    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        let left = self.until_clock.get();
        self.until_clock.set(left.wrapping_sub(1));
        if left > 0 { Ok(rest.end) } else { self.look_at_clock(rest) }
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
        let all = pages(&range);
        let together = self.pinned_max.div_ceil(2);
        for first in all.clone().step_by(together) {
            let some = first..all.end.min(first + together as u64);
            let copied = self.copy(file, &range, some, out);
            if !matches!(copied, Ok(true)) {
                out.clear();
                copied?;
                // All frames are pinned: it is read beside the cache.
                let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                return Ok(file.read_into(range.start, len, out)?);
            }
        }
        Ok(())
    }
}

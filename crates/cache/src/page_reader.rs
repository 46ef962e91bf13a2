//! Reads pages into a [`PageCache`] by the read queue of a thread. No thread waits for a read under a lock.

use crate::page_cache::{GapFrame, PageCache, PageLookup, Pin};
use crate::page_table::GROUP_PAGES;
use crate::read_costs::{READ_PAGES_MAX, ReadCosts};
use std::{collections::VecDeque, ops::Range, sync::Arc, sync::atomic::Ordering};
use tierdex_io::{Completion, Error, ErrorKind, PAGE, ReadQueue, ReadTarget, Result, SealedFile};

/// Reads that wait for a free place in the queue, at most: beyond that the thread waits for a completion.
const WAITING_READS_MAX: usize = 32;

/// The pages in flight that nobody has requested take at most the frames of the cache divided by this.
const GAP_FRAMES_DIVISOR: usize = 16;

/// Pins pages for one thread and reads those that are not cached. Dropping it waits for the reads in flight.
pub struct PageReader {
    cache: Arc<PageCache>,
    queue: ReadQueue,
    /// Reads in flight, at most.
    reads_max: usize,
    /// Missing pages whose reads have not been submitted yet.
    wanted: Vec<PageRequest>,
    /// The files of `wanted`.
    files: Vec<Arc<SealedFile>>,
    /// Reads that wait for a free place in the queue, by ascending rank, then in their order.
    waiting: VecDeque<WaitingRead>,
    /// Reads in flight; the index is the tag of the read.
    in_flight: Vec<Option<InFlightPages>>,
    /// Decides which requested pages are read together.
    costs: ReadCosts,
    /// Number of pages in flight that nobody has requested.
    in_gaps: usize,
    /// The frames of a completed read with the results of their checks; the vector is reused.
    checked: Vec<(u32, Result<()>)>,
}

/// A missing page, and the frame that it is read into. The file is an index in [`PageReader::files`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PageRequest {
    file: usize,
    page: u64,
    frame: u32,
    rank: u64,
}

/// A read that was not submitted yet, and the frames that it fills.
struct WaitingRead {
    pages: InFlightPages,
    frames: Vec<u32>,
    /// The lowest rank of its pages.
    rank: u64,
}

/// The pages of a read in flight: consecutive pages of a file.
struct InFlightPages {
    file: Arc<SealedFile>,
    first_page: u64,
    /// Number of pages that nobody has requested.
    in_gaps: usize,
    /// The frames that are freed after the read, as their pages have other frames.
    cached: Vec<u32>,
}

impl PageReader {
    /// Reads into `cache` by `queue`. Two requested pages are read together, with the pages between them, if
    /// that costs less than two reads.
    pub fn new(cache: Arc<PageCache>, queue: ReadQueue, costs: ReadCosts) -> PageReader {
        // Memory of the thread, not of the evaluation that first requests many pages.
        let (wanted, in_flight) = (Vec::with_capacity(2 * costs.read_pages_max()), Vec::new());
        let (files, checked) = (Vec::new(), Vec::with_capacity(costs.read_pages_max()));
        let waiting = VecDeque::with_capacity(WAITING_READS_MAX);
        let reads_max = (queue.depth() * READ_PAGES_MAX / costs.read_pages_max()).max(1);
        PageReader { cache, queue, reads_max, wanted, files, waiting, in_flight, costs, in_gaps: 0, checked }
    }

    /// What reads cost.
    pub fn costs(&self) -> ReadCosts {
        self.costs
    }

    /// Pins the frames of `pages`, and calls `pinned` with each pin. Pages that are not cached are read when
    /// [`PageReader::send`] is called; of the reads that wait for a free place, those of lower `rank` are
    /// first. False when there was no frame for a page: neither that page nor those after it are pinned.
    pub fn request<'f>(
        &mut self,
        cache: &'f PageCache,
        file: &Arc<SealedFile>,
        pages: Range<u64>,
        rank: u64,
        mut pinned: impl FnMut(u64, Pin<'f>),
    ) -> bool {
        let mut first = pages.start;
        while first < pages.end {
            let group = first..pages.end.min((first / GROUP_PAGES + 1) * GROUP_PAGES);
            first = group.end;
            let found = |page, found| match found {
                PageLookup::Pinned(pin) => pinned(page, pin),
                PageLookup::Fill(pin) => {
                    let of_file = self.files.iter().rposition(|other| Arc::ptr_eq(other, file));
                    let of_file = of_file.unwrap_or_else(|| {
                        self.files.push(Arc::clone(file));
                        self.files.len() - 1
                    });
                    self.wanted.push(PageRequest { file: of_file, page, frame: pin.frame(), rank });
                    pinned(page, pin);
                }
            };
            if !cache.lookup(file.number(), group, found) {
                return false;
            }
        }
        true
    }

    /// Reads those of `pages` that are not cached and for which a frame is free; evicts nothing. First
    /// processes completed reads, and waits until the queue has a free place. Returns the number of these
    /// pages. `class` is as in [`Policy::visit`](crate::Policy::visit).
    pub fn fill_free_frames(&mut self, file: &Arc<SealedFile>, pages: Range<u64>, class: usize) -> usize {
        while self.poll(self.is_full() || !self.waiting.is_empty()) {}
        let (cache, mut reads) = (Arc::clone(&self.cache), Vec::<(u64, Vec<u32>)>::new());
        let most = self.costs.read_pages_max();
        let mut first = pages.start;
        while first < pages.end {
            let group = first..pages.end.min((first / GROUP_PAGES + 1) * GROUP_PAGES);
            first = group.end;
            cache.take_free_frames(file.number(), group, class, |page, frame| match reads.last_mut() {
                Some((first, frames)) if page == *first + frames.len() as u64 && frames.len() < most => {
                    frames.push(frame);
                }
                _ => reads.push((page, vec![frame])),
            });
        }
        let mut filled = 0;
        for (first_page, frames) in reads {
            filled += frames.len();
            // After a failed read of several pages each is read by itself, as nobody has requested all.
            let in_gaps = if frames.len() > 1 { frames.len() } else { 0 };
            self.in_gaps += in_gaps;
            let pages = InFlightPages { file: Arc::clone(file), first_page, in_gaps, cached: Vec::new() };
            self.wait_for_place(WaitingRead { pages, frames, rank: u64::MAX });
        }
        self.submit_waiting();
        filled
    }

    /// Submits the reads of the missing pages: one read for adjacent pages, and also for pages with a short
    /// gap between them. The pages of the gap are then cached too. A page of the gap that is cached already
    /// is read into a frame that is freed afterwards, so that a list that is cached in part needs no more
    /// reads than one that is not.
    pub fn send(&mut self) {
        let (mut wanted, files) = (std::mem::take(&mut self.wanted), std::mem::take(&mut self.files));
        wanted.sort_unstable();
        let mut rest = wanted.drain(..).peekable();
        while let Some(PageRequest { file, page: first_page, frame, mut rank }) = rest.next() {
            let (mut frames, mut requested) = (vec![frame], 1);
            let (mut gap_frames, mut cached) = (Vec::new(), Vec::new());
            while let Some(next) = rest.peek().filter(|next| next.file == file) {
                let end = first_page + frames.len() as u64;
                let gap = next.page - end;
                let in_gaps = self.in_gaps + (frames.len() - requested) + gap as usize;
                let fits = self.costs.joins(frames.len() as u64, gap);
                let fits = fits && (gap == 0 || in_gaps <= self.cache.frames() / GAP_FRAMES_DIVISOR);
                if !fits {
                    break;
                }
                if gap > 0 {
                    let file = files[file].number();
                    let filled = self.cache.take_gap_frames(file, end..next.page, &mut gap_frames);
                    for GapFrame { frame, is_cached } in gap_frames.drain(..) {
                        frames.push(frame);
                        cached.extend(is_cached.then_some(frame));
                    }
                    if !filled {
                        break;
                    }
                }
                frames.push(next.frame);
                (requested, rank) = (requested + 1, rank.min(next.rank));
                rest.next();
            }
            let in_gaps = frames.len() - requested;
            self.in_gaps += in_gaps;
            let pages = InFlightPages { file: Arc::clone(&files[file]), first_page, in_gaps, cached };
            self.wait_for_place(WaitingRead { pages, frames, rank });
        }
        drop(rest);
        self.wanted = wanted;
        self.submit_waiting();
    }

    fn wait_for_place(&mut self, read: WaitingRead) {
        let at = self.waiting.partition_point(|other| other.rank <= read.rank);
        self.waiting.insert(at, read);
    }

    fn is_full(&self) -> bool {
        self.queue.pending() >= self.reads_max
    }

    /// Submits reads as long as there may be more in flight, so that the thread does not wait here while
    /// evaluations are ready; or until no more than [`WAITING_READS_MAX`] are left, which waits for reads.
    fn submit_waiting(&mut self) {
        loop {
            if self.is_full() {
                let completed = (self.waiting.len() > WAITING_READS_MAX).then(|| self.queue.next(true));
                let Some(completion) = completed.flatten() else { return };
                self.complete_read(completion);
                continue;
            }
            let Some(WaitingRead { pages, frames, .. }) = self.waiting.pop_front() else { return };
            // No other thread uses a frame whose page is loading.
            let cells = self.cache.cells().write_all(frames).expect("the cells of pages that are loading");
            let tag = self.in_flight.iter().position(Option::is_none).unwrap_or_else(|| {
                self.in_flight.push(None);
                self.in_flight.len() - 1
            });
            let (file, offset) = (Arc::clone(pages.file.file()), pages.first_page * PAGE);
            self.in_flight[tag] = Some(pages);
            self.queue.submit(&file, offset, ReadTarget::from(cells), tag as u64);
        }
    }

    /// Submits requested reads and processes completed ones; if `wait`, waits until at least one completes.
    /// False when none has completed.
    pub fn poll(&mut self, wait: bool) -> bool {
        self.send();
        let mut ended = self.queue.next(wait);
        let any = ended.is_some();
        while let Some(completion) = ended {
            self.complete_read(completion);
            self.submit_waiting();
            ended = self.queue.next(false);
        }
        any
    }

    /// Whether pages are requested whose reads have not completed.
    pub fn is_reading(&self) -> bool {
        !self.wanted.is_empty() || !self.waiting.is_empty() || self.queue.pending() > 0
    }

    /// Waits for all reads of this reader. To be called before the thread waits for anything else, as other
    /// threads may wait for these pages.
    pub fn finish(&mut self) {
        while self.poll(true) {}
    }

    /// Waits until the page of one of these frames was read or could not be, whichever thread reads it.
    pub fn wait_for(&mut self, frames: impl Iterator<Item = u32> + Clone) {
        self.cache.counters().waits.fetch_add(1, Ordering::Relaxed);
        if !self.poll(true) {
            self.cache.wait_for_any(frames);
        }
    }

    /// Verifies the checksums of the pages of a completed read, and then makes the pages usable.
    fn complete_read(&mut self, completion: Completion) {
        let Completion { tag, target, result, fell_back } = completion;
        let Some(pages) = self.in_flight[tag as usize].take() else { return };
        let counters = self.cache.counters();
        counters.reads.fetch_add(1, Ordering::Relaxed);
        counters.reads_fell_back.fetch_add(u64::from(fell_back), Ordering::Relaxed);
        counters.bytes_read.fetch_add(*result.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
        self.in_gaps -= pages.in_gaps;
        let frames = target.parts().indexes();
        if pages.in_gaps > 0 && result.is_err() {
            let frames: Vec<u32> = frames.collect();
            drop(target);
            return self.read_each(pages, frames);
        }
        let InFlightPages { file, first_page, cached, .. } = pages;
        let (mut left, mut checked) = (result, std::mem::take(&mut self.checked));
        checked.extend(frames.zip(target.pieces()).zip(first_page..).map(|((frame, piece), page)| {
            let check = |len: &mut usize| {
                let bytes = &piece[..(*len).min(piece.len())];
                *len -= bytes.len();
                check_page(&file, page, bytes)
            };
            (frame, left.as_mut().map_err(|error| error.clone()).and_then(check))
        }));
        drop(target);
        cached.iter().for_each(|frame| self.cache.free_gap_frame(*frame));
        self.cache.complete_pages(checked.drain(..).filter(|(frame, _)| !cached.contains(frame)));
        self.checked = checked;
    }

    /// Reads each page again by a read of its own, after one read of all has failed: a damaged page that
    /// nobody has requested must not fail the requested ones.
    fn read_each(&mut self, pages: InFlightPages, frames: Vec<u32>) {
        let InFlightPages { file, first_page, cached, .. } = pages;
        for (frame, page) in frames.into_iter().zip(first_page..) {
            if cached.contains(&frame) {
                self.cache.free_gap_frame(frame);
                continue;
            }
            let file = Arc::clone(&file);
            let pages = InFlightPages { file, first_page: page, in_gaps: 0, cached: Vec::new() };
            self.wait_for_place(WaitingRead { pages, frames: vec![frame], rank: 0 });
        }
    }
}

/// Verifies the checksum of a page, and that all its bytes were read.
fn check_page(file: &SealedFile, page: u64, bytes: &[u8]) -> Result<()> {
    let start = page * PAGE;
    let wanted = file.payload().end.min(start + PAGE);
    if start + (bytes.len() as u64) < wanted {
        return Err(Error::new(ErrorKind::Corrupt, "read", file.name(), "the file ends early"));
    }
    file.check(page, bytes)
}

impl Drop for PageReader {
    fn drop(&mut self) {
        self.finish();
    }
}

//! Reads pages into a [`PageCache`], with an engine per thread. No thread waits for a read under a lock.

use crate::page_cache::{GapFrame, PageCache, PageKey, PageLookup, Pin};
use std::{ops::Range, sync::Arc, sync::atomic::Ordering};
use tierdex_io::{CellMut, Completion, Error, ErrorKind, PAGE, ReadQueue, ReadTarget, Result, SealedFile};

/// Pages of a read, at most.
pub const READ_PAGES_MAX: usize = 64;

/// Pages of gaps that a reader has in flight take at most this part of the frames: the others are for
/// requested pages.
const GAP_FRAMES_DIVISOR: usize = 16;

/// Reads pages for one thread. Dropping it waits for the reads in flight.
pub struct PageReader {
    cache: Arc<PageCache>,
    engine: ReadQueue,
    /// Pages that are requested but not submitted.
    wanted: Vec<PageRequest>,
    /// Reads in flight, by tag.
    in_flight: Vec<Option<InFlightPages>>,
    /// Pages between two requested pages that are read with them, at most.
    gap_max: u64,
    /// Pages of gaps in flight.
    in_gaps: usize,
}

/// A page, and the frame that it is read into.
struct PageRequest {
    file: Arc<SealedFile>,
    page: u64,
    frame: u32,
    cell: CellMut,
}

/// A read in flight.
struct InFlightPages {
    file: Arc<SealedFile>,
    first_page: u64,
    /// The frames that its pages are read into.
    frames: Vec<u32>,
    /// Number of the pages that were not requested.
    in_gaps: usize,
    /// The frames of those that are cached in other frames.
    cached: Vec<u32>,
}

impl PageReader {
    /// Reads into `cache` by `engine`, and at most `gap_max` unrequested pages between two requested ones
    /// ([`measure_gap`](crate::measure_gap)).
    pub fn new(cache: Arc<PageCache>, engine: ReadQueue, gap_max: u64) -> PageReader {
        PageReader { cache, engine, wanted: Vec::new(), in_flight: Vec::new(), gap_max, in_gaps: 0 }
    }

    /// Pins these pages, and calls `pinned` with the pin of each. Pages that are not in the cache are read
    /// when [`PageReader::send`] is called. False when a page found no frame; the pages after it are not
    /// pinned.
    pub fn request<'f>(
        &mut self,
        cache: &'f PageCache,
        file: &Arc<SealedFile>,
        pages: Range<u64>,
        mut pinned: impl FnMut(u64, Pin<'f>),
    ) -> bool {
        for page in pages {
            match cache.lookup(PageKey::of(file.number(), page)) {
                None => return false,
                Some(PageLookup::Pinned(pin)) => pinned(page, pin),
                Some(PageLookup::Fill(pin, cell)) => {
                    self.wanted.push(PageRequest { file: Arc::clone(file), page, frame: pin.frame(), cell });
                    pinned(page, pin);
                }
            }
        }
        true
    }

    /// Submits reads of the requested pages, adjacent pages together. Pages of a short gap are read too, and
    /// cached. One that is cached already is read into a frame that is then freed: otherwise lists that are
    /// cached in part would need more reads than those that are not.
    pub fn send(&mut self) {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.sort_unstable_by_key(|wanted| (wanted.file.number(), wanted.page));
        let mut rest = wanted.drain(..).peekable();
        while let Some(PageRequest { file, page: first_page, frame, cell }) = rest.next() {
            let (mut frames, mut cells, mut requested) = (vec![frame], vec![cell], 1);
            let (mut gap_frames, mut cached) = (Vec::new(), Vec::new());
            while let Some(next) = rest.peek().filter(|next| next.file.number() == file.number()) {
                let end = first_page + frames.len() as u64;
                let gap = next.page - end;
                let in_gaps = self.in_gaps + (frames.len() - requested) + gap as usize;
                let fits = gap <= self.gap_max && next.page - first_page < READ_PAGES_MAX as u64;
                let fits = fits && (gap == 0 || in_gaps <= self.cache.frames() / GAP_FRAMES_DIVISOR);
                if !fits {
                    break;
                }
                let filled = self.cache.fill_gap(file.number(), end..next.page, &mut gap_frames);
                for GapFrame { frame, cell, is_cached } in gap_frames.drain(..) {
                    frames.push(frame);
                    cells.push(cell);
                    cached.extend(is_cached.then_some(frame));
                }
                if !filled {
                    break;
                }
                if let Some(next) = rest.next() {
                    frames.push(next.frame);
                    cells.push(next.cell);
                    requested += 1;
                }
            }
            let in_gaps = frames.len() - requested;
            self.in_gaps += in_gaps;
            self.submit(InFlightPages { file, first_page, frames, in_gaps, cached }, cells);
        }
        drop(rest);
        self.wanted = wanted;
    }

    fn submit(&mut self, pages: InFlightPages, cells: Vec<CellMut>) {
        let Some(target) = ReadTarget::across(cells) else { return };
        let tag = self.in_flight.iter().position(Option::is_none).unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        let (file, offset) = (Arc::clone(pages.file.file()), pages.first_page * PAGE);
        self.in_flight[tag] = Some(pages);
        self.engine.submit(&file, offset, target, tag as u64);
    }

    /// Processes completed reads; if `wait`, waits until a read completes. False when none has.
    pub fn poll(&mut self, wait: bool) -> bool {
        self.send();
        let mut ended = self.engine.next(wait);
        let any = ended.is_some();
        while let Some(completion) = ended {
            self.complete_read(completion);
            ended = self.engine.next(false);
        }
        any
    }

    /// Completes all reads. To be called before the thread waits for anything else, as other threads may
    /// wait for these pages.
    pub fn finish(&mut self) {
        while self.poll(true) {}
    }

    /// Waits until one of these frames is settled, whichever thread reads its page.
    pub fn wait_for(&mut self, frames: impl Iterator<Item = u32> + Clone) {
        self.cache.counters().waits.fetch_add(1, Ordering::Relaxed);
        if !self.poll(true) {
            self.cache.wait_for(frames);
        }
    }

    /// A read has completed. Its pages are checked before they are readable.
    fn complete_read(&mut self, completion: Completion) {
        let Completion { tag, target, result, fell_back } = completion;
        let Some(pages) = self.in_flight[tag as usize].take() else { return };
        let counters = self.cache.counters();
        counters.reads.fetch_add(1, Ordering::Relaxed);
        counters.reads_fell_back.fetch_add(u64::from(fell_back), Ordering::Relaxed);
        counters.bytes_read.fetch_add(*result.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
        self.in_gaps -= pages.in_gaps;
        if pages.in_gaps > 0 && result.is_err() {
            drop(target);
            return self.read_each(pages);
        }
        let InFlightPages { file, first_page, frames, cached, .. } = pages;
        let mut left = result;
        let checked: Vec<Result<()>> = target
            .pieces()
            .zip(first_page..)
            .map(|(piece, page)| {
                let len = left.as_mut().map_err(|error| error.clone())?;
                let bytes = &piece[..(*len).min(piece.len())];
                *len -= bytes.len();
                check(&file, page, bytes)
            })
            .collect();
        drop(target);
        for (frame, result) in frames.into_iter().zip(checked) {
            match cached.contains(&frame) {
                true => self.cache.release(frame),
                false => self.cache.complete(frame, result),
            }
        }
    }

    /// Reads each page by itself, after a read of all has failed: a page of a gap must not make requests of
    /// other pages fail.
    fn read_each(&mut self, InFlightPages { file, first_page, frames, cached, .. }: InFlightPages) {
        for (frame, page) in frames.into_iter().zip(first_page..) {
            if cached.contains(&frame) {
                self.cache.release(frame);
                continue;
            }
            // The failed read has released its cells, and nobody reads a page before it is settled.
            let cell =
                self.cache.cells().write(frame as usize).expect("the cell of a page that is not settled");
            let file = Arc::clone(&file);
            let pages =
                InFlightPages { file, first_page: page, frames: vec![frame], in_gaps: 0, cached: Vec::new() };
            self.submit(pages, vec![cell]);
        }
    }
}

/// Checks the bytes that were read of a page.
fn check(file: &SealedFile, page: u64, bytes: &[u8]) -> Result<()> {
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

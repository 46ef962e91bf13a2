//! Reading pages into the cache of pages: a thread's own engine, which is never waited for under a lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tierdex_io::{CellMut, Completion, Error, ErrorKind, PAGE, ReadEngine, ReadTarget, Result, SealedFile};

use crate::frames::{Claim, Frames, PageKey, Pin};

/// Pages that are read at once, at most.
pub const READ_PAGES_MAX: usize = 64;

/// Reads pages for one thread. Dropped, it waits for the reads that are on their way.
pub struct PageReader {
    frames: Arc<Frames>,
    engine: ReadEngine,
    /// Pages that are to be read.
    wanted: Vec<Wanted>,
    /// Reads on their way, by tag.
    flights: Vec<Option<Flight>>,
}

/// A page, and the frame that it goes to.
struct Wanted {
    file: Arc<SealedFile>,
    page: u64,
    frame: u32,
    cell: CellMut,
}

/// A read on its way.
struct Flight {
    file: Arc<SealedFile>,
    first_page: u64,
    /// Where its pages go.
    frames: Vec<u32>,
}

impl PageReader {
    /// Reads into `frames` by `engine`.
    pub fn new(frames: Arc<Frames>, engine: ReadEngine) -> PageReader {
        PageReader { frames, engine, wanted: Vec::new(), flights: Vec::new() }
    }

    /// Pins these pages, and calls `pinned` with the pin of each; those that are not there are read when
    /// [`PageReader::send`] is called. False when a page found no frame: those behind it are not pinned.
    pub fn request<'f>(
        &mut self,
        frames: &'f Frames,
        file: &Arc<SealedFile>,
        pages: Range<u64>,
        mut pinned: impl FnMut(u64, Pin<'f>),
    ) -> bool {
        for page in pages {
            match frames.claim(PageKey::of(file.number(), page)) {
                None => return false,
                Some(Claim::Pinned(pin)) => pinned(page, pin),
                Some(Claim::Fill(pin, cell)) => {
                    self.wanted.push(Wanted { file: Arc::clone(file), page, frame: pin.frame(), cell });
                    pinned(page, pin);
                }
            }
        }
        true
    }

    /// Begins to read the pages that were requested, neighbours together.
    pub fn send(&mut self) {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.sort_unstable_by_key(|wanted| (wanted.file.number(), wanted.page));
        let mut rest = wanted.drain(..).peekable();
        while let Some(Wanted { file, page: first_page, frame, cell }) = rest.next() {
            let (mut frames, mut cells) = (vec![frame], vec![cell]);
            let follows = |next: &Wanted, count: usize| {
                next.file.number() == file.number()
                    && next.page == first_page + count as u64
                    && count < READ_PAGES_MAX
            };
            while let Some(next) = rest.next_if(|next| follows(next, frames.len())) {
                frames.push(next.frame);
                cells.push(next.cell);
            }
            let Some(target) = ReadTarget::across(cells) else { continue };
            let tag = self.flights.iter().position(Option::is_none).unwrap_or_else(|| {
                self.flights.push(None);
                self.flights.len() - 1
            });
            let file_read = Arc::clone(file.file());
            self.flights[tag] = Some(Flight { file, first_page, frames });
            self.engine.submit(&file_read, first_page * PAGE, target, tag as u64);
        }
        drop(rest);
        self.wanted = wanted;
    }

    /// Takes what has been read; if `wait`, waits until a read has ended. False when none has.
    pub fn poll(&mut self, wait: bool) -> bool {
        self.send();
        let mut ended = self.engine.next(wait);
        let any = ended.is_some();
        while let Some(completion) = ended {
            self.land(completion);
            ended = self.engine.next(false);
        }
        any
    }

    /// Reads all that was requested. To be called before the thread waits for anything else: other threads
    /// may wait for these pages.
    pub fn finish(&mut self) {
        while self.poll(true) {}
    }

    /// Waits until one of these frames is settled, whoever reads its page.
    pub fn wait_for(&mut self, frames: impl Iterator<Item = u32> + Clone) {
        self.frames.counters().waits.fetch_add(1, Ordering::Relaxed);
        if !self.poll(true) {
            self.frames.wait_for(frames);
        }
    }

    /// A read has ended: its pages are checked before they are readable.
    fn land(&mut self, completion: Completion) {
        let Completion { tag, target, result, fell_back } = completion;
        let Some(Flight { file, first_page, frames }) = self.flights[tag as usize].take() else { return };
        let counters = self.frames.counters();
        counters.reads.fetch_add(1, Ordering::Relaxed);
        counters.reads_fell_back.fetch_add(u64::from(fell_back), Ordering::Relaxed);
        counters.bytes_read.fetch_add(*result.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
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
            self.frames.landed(frame, result);
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

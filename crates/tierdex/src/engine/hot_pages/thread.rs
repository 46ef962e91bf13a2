//! The thread that reads and writes hot pages.

use super::file::{HotPage, HotPagesReader, PageNumbers, hot_page};
use super::state::HotPages;
use crate::engine::{priority::Priority, shared::EngineShared};
use crate::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tierdex_cache::{HEAT_CLASSES, PageReader};
use tierdex_io::{ErrorKind, PAGE, SealedFile};

/// Time between two writes of the file.
const INTERVAL: Duration = Duration::from_secs(60);

/// Pause while interactive requests are evaluated or wait.
const PAUSE: Duration = Duration::from_millis(1);

/// Pages of a read, at most, and frames of the cache for each of them, at least: queries have most frames.
const READ_PAGES: usize = 16;
const FRAMES_PER_PAGE: usize = 64;

/// Writes the hot pages of an engine, after it has read those of the engine before.
pub(in crate::engine) struct HotPagesThread<'x> {
    shared: &'x EngineShared,
    hot: &'x HotPages,
}

/// An open file that the file of hot pages names.
struct HotFile {
    /// The numbers that its pages have there.
    pages: Range<u64>,
    /// It may be closed before its pages are read.
    file: Weak<SealedFile>,
}

impl<'x> HotPagesThread<'x> {
    pub(in crate::engine) fn new(shared: &'x EngineShared, hot: &'x HotPages) -> HotPagesThread<'x> {
        HotPagesThread { shared, hot }
    }

    /// Reads hot pages by `reader`, and then writes them until the engine is closed.
    pub(in crate::engine) fn run(&self, mut reader: PageReader) {
        let warmed = self.warm(&mut reader);
        drop(reader);
        self.shared.pool.wake();
        let was_closed = matches!(warmed, Err(Error::Interrupted));
        // Nothing else sets it.
        let _ = self.hot.warmed.set(warmed);
        if was_closed {
            return;
        }
        let mut written = 0;
        loop {
            let closed = self.hot.sleep(INTERVAL);
            let answered = self.shared.queue.answered();
            // Without a request the list would be the same.
            if answered != written && self.write().is_ok() {
                written = answered;
            }
            if closed {
                return;
            }
        }
    }

    /// Reads the pages that the file names, until a page is evicted: then the cache is full.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the engine is closed; an error of the file.
    fn warm(&self, reader: &mut PageReader) -> Result<()> {
        let mut list = match self.hot.file.read() {
            Err(Error::Storage(error)) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read?,
        };
        let files = self.open_files(&mut list)?;
        for class in 0..HEAT_CLASSES {
            let mut end = 0_u64;
            loop {
                let (gap, pages) = list.run()?;
                if pages == 0 {
                    break;
                }
                let first = end.saturating_add(gap);
                end = first.saturating_add(pages);
                let file = files.partition_point(|file| file.pages.end <= first);
                let Some(file) = files.get(file).filter(|file| file.pages.contains(&first)) else { continue };
                if !self.warm_run(reader, file, first..end.min(file.pages.end), class)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The files that the list names and that are open and not resident, in its order.
    fn open_files(&self, list: &mut HotPagesReader) -> Result<Vec<HotFile>> {
        let mut open = HashMap::new();
        for segment in self.shared.snapshots().iter().flat_map(|snapshot| snapshot.index().segments()) {
            for file in segment.paged_files().filter(|file| file.resident().is_none()) {
                open.insert((file.seal().len, file.seal().crc), file.clone());
            }
        }
        let is_paged = !open.is_empty();
        let (mut files, mut numbers) = (Vec::with_capacity(open.len()), PageNumbers::default());
        for _ in 0..list.files()? {
            let seal = list.seal()?;
            let first = numbers.add(seal);
            if let Some(file) = open.remove(&(seal.len, seal.crc)) {
                let end = first.saturating_add(file.payload().end.div_ceil(PAGE));
                files.push(HotFile { pages: first..end, file: Arc::downgrade(&file) });
            }
        }
        if is_paged && files.is_empty() {
            return Err(Error::Failed("it names no file of this index".to_string()));
        }
        Ok(files)
    }

    /// Reads a run of pages into free frames. False after an eviction.
    fn warm_run(
        &self,
        reader: &mut PageReader,
        file: &HotFile,
        run: Range<u64>,
        class: usize,
    ) -> Result<bool> {
        let cache = &self.shared.cache;
        let most = READ_PAGES.min(cache.frames() / FRAMES_PER_PAGE).max(1);
        for first in run.clone().step_by(most) {
            self.pause(reader)?;
            let Some(open) = file.file.upgrade() else { return Ok(true) };
            if cache.counts().evictions > 0 {
                return Ok(false);
            }
            let pages = first - file.pages.start..run.end.min(first + most as u64) - file.pages.start;
            let filled = reader.fill_free_frames(&open, pages, class);
            // The cache may have to shrink by the frames of the reads that have completed.
            self.shared.pool.wake();
            self.hot.pages_warmed.fetch_add(filled as u64, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Waits while interactive requests are evaluated or queued.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the engine is closed.
    fn pause(&self, reader: &mut PageReader) -> Result<()> {
        let queue = &self.shared.queue;
        let running = &queue.counters(Priority::Interactive).running;
        let is_busy = || running.load(Ordering::Relaxed) > 0 || queue.has_interactive();
        while !self.hot.is_closed() {
            if !is_busy() {
                return Ok(());
            }
            // Before each sleep: a request that came after the last read may wait for its pages.
            reader.finish();
            self.shared.pool.wake();
            self.hot.sleep(PAUSE);
        }
        Err(Error::Interrupted)
    }

    /// Writes the pages of the newest commit that are cached.
    fn write(&self) -> Result<()> {
        let (mut seals, mut numbers, mut firsts) = (Vec::new(), PageNumbers::default(), HashMap::new());
        for segment in self.shared.snapshots().iter().flat_map(|snapshot| snapshot.index().segments()) {
            for file in segment.paged_files() {
                seals.push(file.seal());
                firsts.insert(file.number(), numbers.add(file.seal()));
            }
        }
        let cache = &self.shared.cache;
        let mut pages: Vec<HotPage> = Vec::with_capacity(cache.frames());
        cache.visit_pages(|class, file, page| {
            // Never more than its capacity: each frame has one page.
            pages.extend(firsts.get(&file).map(|first| hot_page(class, first + page)));
        });
        pages.sort_unstable();
        self.hot.file.write(&seals, &pages)
    }
}

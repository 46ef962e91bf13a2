//! The prefetcher: a worker thread that reads lists into the cache.
//!
//! The worker has a read queue and repeats:
//!
//! 1. While the read queue accepts reads, submit those of the lists that are being read. When all are
//!    submitted, take the next list, so that its reads start while earlier ones are in flight; the next chunk
//!    of a list that is larger than the cache goes first. A read covers adjacent pages of one part of a list
//!    (documents, frequencies, ...) and as many cells as they need; the cell in which two parts meet is
//!    filled by two reads.
//! 2. Wait for a read. Check its pages against the checksums of their file before any other thread can see
//!    them. Then give up write access to its cells.
//! 3. When the last read of a list has completed, publish the result: the list is ready, or has failed with
//!    the first error.
//! 4. With no read in flight and no task, sleep.
//! 5. After a stop request, fail all lists that need more reads: reads in flight complete, and no more are
//!    submitted.

use std::{ops::Range, panic::AssertUnwindSafe, panic::catch_unwind, sync::Arc, thread, thread::JoinHandle};

use tierdex_io::{CellMut, Completion, Error, ErrorKind, ReadQueue, ReadTarget, Result, panic_message};

use crate::cache::lookahead::Lookahead;
use crate::cache::request::{ListRequest, RequestedRange};
use crate::cache::state::{FetchTask, ListCacheState};
use crate::cache::{bounce_buffer::StreamChunk, list::FetchedList, list_cache::ListCache};

/// The worker of a cache. Dropping it waits for the reads in flight and submits no more, even for lists
/// that are partly read; threads that wait for these get an error.
pub struct Prefetcher {
    cache: Arc<ListCache>,
    thread: Option<JoinHandle<()>>,
}

/// A query in the queue. Its lists stay in the cache until it is dropped, whether or not they were used;
/// then the query has ended.
///
/// A thread that waits for a query must not hold an earlier query that has not ended, as this one may be
/// waiting for it.
pub struct QueuedQuery {
    cache: Arc<ListCache>,
    number: u64,
}

/// Bytes of a read, at most: larger reads are no faster.
pub const READ_BYTES_MAX: u64 = 1 << 20;

struct FetchWorker {
    cache: Arc<ListCache>,
    read_queue: ReadQueue,
    /// Lists and chunks being read, by number.
    fills: Vec<Option<ListFill>>,
    /// Reads in flight, by tag.
    in_flight: Vec<Option<InFlightListRead>>,
}

/// A list or a chunk being read.
struct ListFill {
    request: ListRequest,
    into: FillTarget,
    /// The next read; `None` when all are submitted.
    next: Option<NextPages>,
    /// The cell for the bytes after those that fit into `rest`.
    cell: u32,
    /// The rest of the last cell of earlier reads.
    rest: Option<CellMut>,
    in_flight: usize,
    error: Option<Error>,
    reads: u64,
    bytes_read: u64,
}

/// The destination of a fill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FillTarget {
    Entry(u32),
    Bounce,
}

/// Pages of a part that are still to be read.
#[derive(Clone)]
struct NextPages {
    part: usize,
    /// File offsets, not empty.
    pages: Range<u64>,
}

/// A read in flight.
#[derive(Clone, Copy)]
struct InFlightListRead {
    fill: usize,
    part: usize,
    offset: u64,
}

impl Prefetcher {
    /// Starts the worker of a cache.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] as long as the cache has another prefetcher, even one whose worker has stopped;
    /// else the error of starting a thread.
    pub fn start(cache: &Arc<ListCache>, read_queue: ReadQueue, lookahead: Lookahead) -> Result<Prefetcher> {
        let mut state = cache.lock();
        if state.has_prefetcher {
            return Err(Error::new(ErrorKind::Busy, "start", "prefetcher", "the cache has one"));
        }
        (state.has_prefetcher, state.worker_runs, state.stopping) = (true, true, false);
        state.panic = None;
        state.pace.lookahead = lookahead;
        drop(state);
        let mut prefetcher = Prefetcher { cache: Arc::clone(cache), thread: None };
        let mut worker = FetchWorker::new(Arc::clone(cache), read_queue);
        let thread = thread::Builder::new().name("fetch-lists".to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| worker.run_worker()));
            worker.finish_worker(ended.err().map(|panic| panic_message(&*panic)));
        });
        prefetcher.thread = Some(thread.map_err(|error| Error::from_os("start", "prefetcher", &error))?);
        Ok(prefetcher)
    }

    /// Appends a query to the queue: its lists are fetched after those of earlier queries, ahead of its
    /// evaluation (mode `hybrid-prefetch`). Each query takes the memory of its requests and about 200 bytes
    /// until it is dropped.
    pub fn push(&self, requests: Vec<ListRequest>) -> QueuedQuery {
        let mut state = self.cache.lock();
        let number = state.queue.push(requests, false);
        self.cache.unlock_and_notify(state);
        QueuedQuery { cache: Arc::clone(&self.cache), number }
    }

    /// Fetches a list after those of all queries in the queue (mode `hybrid`). No thread waits for it, and
    /// it is not pinned. The request is ignored when too few cells are available, or when 1,024 of these
    /// are in the queue.
    pub fn fetch_detached(&self, request: ListRequest) {
        let mut state = self.cache.lock();
        state.push_detached(request);
        self.cache.unlock_and_notify(state);
    }

    /// The cache that the worker fills.
    pub fn cache(&self) -> &Arc<ListCache> {
        &self.cache
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        state.stopping = true;
        drop(state);
        self.cache.wake_all();
        // A worker that panicked has reported that already.
        self.thread.take().map(JoinHandle::join);
        let mut state = self.cache.lock();
        (state.has_prefetcher, state.worker_runs) = (false, false);
        state.fail_waiting_tasks();
        drop(state);
        self.cache.wake_all();
    }
}

impl QueuedQuery {
    /// Waits until list `list` can be read.
    ///
    /// # Errors
    /// The error of reading it.
    ///
    /// # Panics
    /// When there is no such list.
    pub fn wait(&self, list: usize) -> Result<FetchedList> {
        self.cache.wait(self.number, list)
    }
}

impl Drop for QueuedQuery {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        state.end_query(self.number);
        self.cache.unlock_and_notify(state);
    }
}

impl FetchWorker {
    fn new(cache: Arc<ListCache>, read_queue: ReadQueue) -> FetchWorker {
        FetchWorker { cache, read_queue, fills: Vec::new(), in_flight: Vec::new() }
    }

    fn run_worker(&mut self) {
        loop {
            while !self.read_queue.is_full() && (self.submit_next() || self.take_task(false)) {}
            if self.read_queue.pending() > 0 {
                let mut ended = self.read_queue.next(true);
                while let Some(completion) = ended {
                    self.complete_read(completion);
                    ended = self.read_queue.next(false);
                }
            } else if self.fills.iter().all(Option::is_none) && !self.take_task(true) {
                return;
            }
        }
    }

    /// Ends the worker. A worker that panicked, which only a defect causes, fails its lists and stops the
    /// prefetcher.
    fn finish_worker(self, panic: Option<String>) {
        let FetchWorker { cache, read_queue, fills, .. } = self;
        // Waits for the reads in flight, before their cells are used for anything else.
        drop(read_queue);
        let mut state = cache.lock();
        state.stopping |= panic.is_some();
        state.panic = panic;
        let why = state.stopped_error();
        drop(state);
        for mut fill in fills.into_iter().flatten() {
            fill.fail_fill(why.clone());
            fill.publish_result(&cache);
        }
        cache.lock().worker_runs = false;
        cache.wake_all();
    }

    /// Submits the next read of a fill, or fails the fill after a stop request. False when no fill has a
    /// read left.
    fn submit_next(&mut self) -> bool {
        let Some(number) =
            self.fills.iter().position(|fill| fill.as_ref().is_some_and(|fill| fill.next.is_some()))
        else {
            return false;
        };
        let Some(fill) = self.fills[number].as_mut() else { return false };
        match self.cache.check_running().and_then(|()| fill.next_read(&self.cache)) {
            Ok(Some((part, offset, target))) => {
                fill.in_flight += 1;
                let tag = free_slot_index(&mut self.in_flight);
                self.in_flight[tag] = Some(InFlightListRead { fill: number, part, offset });
                self.read_queue.submit(fill.request.parts()[part].file().file(), offset, target, tag as u64);
            }
            Ok(None) => {}
            Err(error) => {
                fill.fail_fill(error);
                self.finish_if_done(number);
            }
        }
        true
    }

    /// A read has completed. Its bytes are checked before other threads can see them.
    fn complete_read(&mut self, completion: Completion) {
        let Completion { tag, target, result, .. } = completion;
        let Some(InFlightListRead { fill: number, part, offset }) = self.in_flight[tag as usize].take()
        else {
            return;
        };
        let Some(fill) = self.fills[number].as_mut() else { return };
        let bytes = *result.as_ref().unwrap_or(&0);
        let checked =
            result.and_then(|len| check_read_pages(&fill.request.parts()[part], offset, &target, len));
        drop(target);
        fill.reads += 1;
        fill.bytes_read += bytes as u64;
        fill.in_flight -= 1;
        if let Err(error) = checked {
            fill.fail_fill(error);
        }
        self.finish_if_done(number);
    }

    /// Publishes the result of a fill if it is complete.
    fn finish_if_done(&mut self, number: usize) {
        let is_done = |fill: &mut ListFill| fill.in_flight == 0 && fill.next.is_none();
        if let Some(fill) = self.fills[number].take_if(is_done) {
            fill.publish_result(&self.cache);
        }
    }

    /// Takes a task; with `waits`, waits for one. False when there is none, and after a stop request.
    fn take_task(&mut self, waits: bool) -> bool {
        let mut state = self.cache.lock();
        state.admit_lists();
        let mut taken = next_fill(&mut state, &self.cache);
        while taken.is_none() && waits && !state.stopping {
            state = self.cache.wait_for_work(state);
            state.admit_lists();
            taken = next_fill(&mut state, &self.cache);
        }
        // A list that waited for the worker may now be admitted.
        self.cache.unlock_and_notify(state);
        let Some(fill) = taken else { return false };
        let number = free_slot_index(&mut self.fills);
        self.fills[number] = Some(fill);
        true
    }
}

/// Starts the next task. None is started after a stop request.
fn next_fill(state: &mut ListCacheState, cache: &ListCache) -> Option<ListFill> {
    if state.stopping {
        return None;
    }
    if let Some(chunk) = state.bounce.task.take() {
        return Some(ListFill::of_chunk(chunk, cache));
    }
    state.take_task().map(ListFill::of_entry)
}

/// The first free slot; appends one if there is none.
fn free_slot_index<T>(slots: &mut Vec<Option<T>>) -> usize {
    slots.iter().position(Option::is_none).unwrap_or_else(|| {
        slots.push(None);
        slots.len() - 1
    })
}

/// Checks the bytes of a part that were read from file offset `offset` on: `len` bytes, which must be all
/// that the part needs.
fn check_read_pages(part: &RequestedRange, offset: u64, target: &ReadTarget, len: usize) -> Result<()> {
    let file = part.file();
    let wanted = part.range().end.min(offset + target.range().len() as u64);
    if offset + (len as u64) < wanted {
        return Err(Error::corrupt(file.name(), offset, "the file ends early"));
    }
    let mut page = offset / tierdex_io::PAGE;
    let mut left = len;
    for piece in target.pieces() {
        let bytes = &piece[..left.min(piece.len())];
        file.check(page, bytes)?;
        page += piece.len() as u64 / tierdex_io::PAGE;
        left -= bytes.len();
    }
    Ok(())
}

impl ListFill {
    fn of_entry(task: FetchTask) -> ListFill {
        let FetchTask { entry, request, .. } = task;
        let pages = request.parts()[0].pages();
        ListFill::new(request, FillTarget::Entry(entry), 0, pages, entry)
    }

    fn of_chunk(chunk: StreamChunk, cache: &ListCache) -> ListFill {
        let StreamChunk { request, part, pages } = chunk;
        ListFill::new(request, FillTarget::Bounce, part, pages, cache.bounce_cells().start as u32)
    }

    fn new(request: ListRequest, into: FillTarget, part: usize, pages: Range<u64>, cell: u32) -> ListFill {
        ListFill {
            request,
            into,
            next: Some(NextPages { part, pages }),
            cell,
            rest: None,
            in_flight: 0,
            error: None,
            reads: 0,
            bytes_read: 0,
        }
    }

    /// The next read: its part, its file offset, and its target; `None` when all are submitted.
    fn next_read(&mut self, cache: &ListCache) -> Result<Option<(usize, u64, ReadTarget)>> {
        let Some(NextPages { part, pages }) = self.next.take() else { return Ok(None) };
        let end = pages.end.min(pages.start + READ_BYTES_MAX);
        let (mut cells, mut left) = (Vec::new(), (end - pages.start) as usize);
        while left > 0 {
            let mut cell = self.next_cell(part, cache)?;
            if cell.len() > left {
                self.rest = Some(cell.split_off(left));
            }
            left -= cell.len();
            cells.push(cell);
        }
        let more = (end < pages.end).then_some(NextPages { part, pages: end..pages.end });
        self.next = more.or_else(|| self.pages_of_part(part + 1));
        // No thread writes to a cell of a ready list.
        self.rest = self.rest.take().filter(|_| self.next.is_some());
        Ok(ReadTarget::across(cells).map(|target| (part, pages.start, target)))
    }

    /// The cell after those that were read so far, or the rest of the last one.
    fn next_cell(&mut self, part: usize, cache: &ListCache) -> Result<CellMut> {
        if let Some(rest) = self.rest.take() {
            return Ok(rest);
        }
        let cell = self.cell;
        self.cell = match self.into {
            FillTarget::Entry(_) => cache.links().next_cell(cell),
            FillTarget::Bounce => cell + 1,
        };
        cache.cells().write(cell as usize).ok_or_else(|| {
            let why = format!("cell {cell} of the cache is in other use");
            Error::new(ErrorKind::Busy, "read", self.request.parts()[part].file().name(), why)
        })
    }

    /// All pages of a part, if there is such a part; a chunk has only one.
    fn pages_of_part(&self, part: usize) -> Option<NextPages> {
        let pages = self.request.parts().get(part).filter(|_| self.into != FillTarget::Bounce)?.pages();
        Some(NextPages { part, pages })
    }

    /// Publishes the result, and wakes the threads that wait for it.
    fn publish_result(self, cache: &ListCache) {
        let result = self.error.map_or(Ok(()), Err);
        let mut state = cache.lock();
        state.stats.reads += self.reads;
        state.stats.bytes_read += self.bytes_read;
        match self.into {
            FillTarget::Entry(entry) => state.finish_fill(entry, result),
            FillTarget::Bounce => {
                state.stats.failures += u64::from(result.is_err());
                state.bounce.result = Some(result);
                state.changed = true;
            }
        }
        cache.unlock_and_notify(state);
    }

    /// Keeps the first error, and submits nothing more.
    fn fail_fill(&mut self, error: Error) {
        (self.next, self.rest) = (None, None);
        self.error.get_or_insert(error);
    }
}

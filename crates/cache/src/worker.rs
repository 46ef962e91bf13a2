//! Threads that fetch.
//!
//! *You have* engines and jobs. *You get* lists in the cache. Each worker has an engine to itself and does, again and again:
//!
//! 1. For as long as the engine takes reads, send those of what is at hand. When all are sent, take what is ordered, pieces
//!    of streams before lists: it begins while what was taken before is still on its way. A read is of adjacent pages of a
//!    part, as many as there are, into one segment after the other; reads of two parts share the segment in which they meet.
//! 2. Wait for a read. Check its pages against their file, while nobody else can see them. Then give its cells back.
//! 3. When the last read of a list has ended, say so: the list is ready, or has failed with the first error.
//! 4. With nothing on the way and nothing ordered, sleep.
//! 5. Once all is to stop, lists that need more reads have failed: what is in flight lands, and nothing more is sent.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tierdex_io::{CellMut, Completion, Error, ErrorKind, ReadEngine, ReadTarget, Result, panic_message};

use crate::cache::Cache;
use crate::job::{Job, Part};
use crate::list::{Begun, List};
use crate::lookahead::Lookahead;
use crate::queue::Places;
use crate::state::{Order, State};
use crate::stream::Piece;

/// The workers of a cache. Dropped, it waits for the reads that are on their way and begins no more, also of lists of which
/// a part is there; who waits for these gets an error.
pub struct Prefetcher {
    cache: Arc<Cache>,
    threads: Vec<JoinHandle<()>>,
}

/// A query in the queue. Its lists stay in the cache until it is dropped, whether or not they were used: then it has ended.
///
/// A thread that waits for a query must not have an earlier one that has not ended, for which this one may be waiting.
pub struct Query {
    cache: Arc<Cache>,
    number: u64,
    places: Places,
}

/// The most bytes of a read: more are no faster.
pub const READ_BYTES_MAX: u64 = 1 << 20;

struct Worker {
    cache: Arc<Cache>,
    engine: ReadEngine,
    /// Lists and pieces on their way, by number.
    fills: Vec<Option<Fill>>,
    /// Reads on their way, by tag.
    flights: Vec<Option<Flight>>,
}

/// A list or a piece on its way.
struct Fill {
    job: Job,
    into: Into,
    /// The next read; none when all are sent.
    next: Option<Step>,
    /// The cell into which comes what has no room in `rest`.
    cell: u32,
    /// What reads before have left of their last cell.
    rest: Option<CellMut>,
    in_flight: usize,
    error: Option<Error>,
    reads: u64,
    reads_fell_back: u64,
    bytes_read: u64,
}

/// Where a fill goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Chain(u32),
    Window,
}

/// Pages of a part that are still to be read.
#[derive(Clone)]
struct Step {
    part: usize,
    /// File offsets, not empty.
    pages: Range<u64>,
}

/// A read on its way.
#[derive(Clone, Copy)]
struct Flight {
    fill: usize,
    part: usize,
    offset: u64,
}

impl Prefetcher {
    /// Starts a worker for each engine.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when there are none; [`ErrorKind::Busy`] as long as the cache has another prefetcher, also one
    /// whose workers have gone; else what the system says to a new thread.
    pub fn start(cache: &Arc<Cache>, engines: Vec<ReadEngine>, lookahead: Lookahead) -> Result<Prefetcher> {
        let refused = |kind, why| Err(Error::new(kind, "start", "prefetcher", why));
        if engines.is_empty() {
            return refused(ErrorKind::Denied, "it has no engine");
        }
        let mut state = cache.lock();
        if state.owned {
            return refused(ErrorKind::Busy, "the cache has one");
        }
        (state.owned, state.workers, state.stopping) = (true, engines.len(), false);
        state.panic = None;
        state.pace.lookahead = lookahead;
        cache.note_workers(&state);
        drop(state);
        let mut prefetcher = Prefetcher { cache: Arc::clone(cache), threads: Vec::new() };
        for (number, engine) in engines.into_iter().enumerate() {
            let mut worker = Worker::new(Arc::clone(cache), engine);
            let thread = thread::Builder::new().name(format!("fetch-{number}"));
            let spawned = thread.spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| worker.run()));
                worker.leave(ended.err().map(|panic| panic_message(&*panic)));
            });
            let spawned = spawned.map_err(|error| Error::from_os("start", "prefetcher", &error));
            prefetcher.threads.push(spawned?);
        }
        Ok(prefetcher)
    }

    /// Puts a query into the queue: its lists are fetched behind those of the queries before it, ahead of its turn
    /// (modes `hybrid-prefetch` and `direct`). Each query takes the memory of its jobs and about 200 bytes until it is dropped.
    pub fn push(&self, jobs: Vec<Job>) -> Query {
        let mut state = self.cache.lock();
        let (number, places) = state.push(jobs, false);
        self.cache.publish(state);
        Query { cache: Arc::clone(&self.cache), number, places }
    }

    /// Has a list fetched behind the queries that are in the queue. Nobody waits for it, and nothing holds it when it is
    /// there; without room, and behind 1,024 others of these, it is left out (mode `hybrid`).
    pub fn request(&self, job: Job) {
        let mut state = self.cache.lock();
        state.request(job);
        self.cache.publish(state);
    }

    /// Orders a list at once, and does not wait for it. It is fetched behind what is ordered already, of the queue at most
    /// one list a worker, and before all that still waits in the queue. A list that finds no room beside
    /// what is pinned is a stream: this waits for nobody's pins, and can be called whatever the caller has pinned or begun.
    pub fn begin(&self, job: Job) -> Begun {
        self.begin_all(&[job]).remove(0)
    }

    /// [`Prefetcher::begin`] for several lists, of which a worker knows all before it sends the first read.
    pub fn begin_all(&self, jobs: &[Job]) -> Vec<Begun> {
        self.cache.begin_all(jobs)
    }

    /// [`Prefetcher::begin`], and waits.
    ///
    /// # Errors
    /// Why it could not be read; the next one to ask tries anew.
    pub fn fetch(&self, job: &Job) -> Result<List> {
        self.begin(job.clone()).wait()
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        state.stopping = true;
        self.cache.note_workers(&state);
        drop(state);
        self.cache.wake_all();
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so, and left.
            let _ = thread.join();
        }
        let mut state = self.cache.lock();
        (state.owned, state.workers) = (false, 0);
        self.cache.note_workers(&state);
        state.abandon();
        drop(state);
        self.cache.wake_all();
    }
}

impl Query {
    /// How many lists it has.
    pub fn lists(&self) -> usize {
        self.places.len()
    }

    /// Waits until list `list` can be read.
    ///
    /// # Errors
    /// Why it could not be read.
    ///
    /// # Panics
    /// When there is no such list.
    pub fn wait(&self, list: usize) -> Result<List> {
        self.assert_has(list);
        self.cache.wait(self.number, list)
    }

    /// Whether [`Query::wait`] would give list `list`, or say why not, without sleeping; a stream is read only then.
    /// Takes no lock and makes no system call.
    ///
    /// # Panics
    /// When there is no such list.
    pub fn is_ready(&self, list: usize) -> bool {
        self.assert_has(list);
        self.cache.is_settled(self.places.get(list))
    }

    /// Whether list `list` stands in the cache, pinned: what is ready is that, a stream, or an error. Takes no lock and
    /// makes no system call.
    ///
    /// # Panics
    /// When there is no such list.
    pub fn is_here(&self, list: usize) -> bool {
        self.assert_has(list);
        self.cache.is_here(self.places.get(list))
    }

    fn assert_has(&self, list: usize) {
        assert!(list < self.lists(), "list {list} of a query of {}", self.lists());
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        state.end(self.number, &self.places);
        self.cache.publish(state);
    }
}

impl Worker {
    fn new(cache: Arc<Cache>, engine: ReadEngine) -> Worker {
        Worker { cache, engine, fills: Vec::new(), flights: Vec::new() }
    }

    fn run(&mut self) {
        loop {
            while !self.engine.is_full() && (self.send() || self.take_order()) {}
            if self.engine.pending() > 0 {
                let mut ended = self.engine.next(true);
                while let Some(completion) = ended {
                    self.land(completion);
                    ended = self.engine.next(false);
                }
            } else if self.fills.iter().all(Option::is_none) && !self.sleep() {
                return;
            }
        }
    }

    /// Says that it has gone. One that panicked, as only a defect lets it, fails what it had, and all is over.
    fn leave(self, panic: Option<String>) {
        let Worker { cache, engine, fills, .. } = self;
        // What is in flight lands before its cells can be anybody else's.
        drop(engine);
        let mut state = cache.lock();
        state.stopping |= panic.is_some();
        // Of several the first.
        state.panic = state.panic.take().or(panic);
        let why = state.stopped();
        drop(state);
        for mut fill in fills.into_iter().flatten() {
            fill.fail(why.clone());
            fill.end(&cache);
        }
        let mut state = cache.lock();
        state.workers -= 1;
        cache.note_workers(&state);
        drop(state);
        cache.wake_all();
    }

    /// Sends the next read of a fill, or gives the fill up when all is to stop. False when none has one.
    fn send(&mut self) -> bool {
        let Some(number) =
            self.fills.iter().position(|fill| fill.as_ref().is_some_and(|fill| fill.next.is_some()))
        else {
            return false;
        };
        let Some(fill) = self.fills[number].as_mut() else { return false };
        if self.cache.is_over() {
            fill.fail(self.cache.lock().stopped());
            self.end_if_over(number);
            return true;
        }
        match fill.next_read(&self.cache) {
            Ok(Some((part, offset, target))) => {
                fill.in_flight += 1;
                let tag = vacant(&mut self.flights);
                self.flights[tag] = Some(Flight { fill: number, part, offset });
                self.engine.submit(fill.job.parts()[part].file().file(), offset, target, tag as u64);
            }
            Ok(None) => {}
            Err(error) => {
                fill.fail(error);
                self.end_if_over(number);
            }
        }
        true
    }

    /// A read has ended: nobody can see its bytes before they are checked.
    fn land(&mut self, completion: Completion) {
        let Completion { tag, target, result, fell_back } = completion;
        let Some(Flight { fill: number, part, offset }) = self.flights[tag as usize].take() else { return };
        let Some(fill) = self.fills[number].as_mut() else { return };
        let bytes = *result.as_ref().unwrap_or(&0);
        let checked = result.and_then(|len| check(&fill.job.parts()[part], offset, &target, len));
        drop(target);
        fill.reads += 1;
        fill.reads_fell_back += u64::from(fell_back);
        fill.bytes_read += bytes as u64;
        fill.in_flight -= 1;
        if let Err(error) = checked {
            fill.fail(error);
        }
        self.end_if_over(number);
    }

    /// Says how a fill ended, if it has.
    fn end_if_over(&mut self, number: usize) {
        let over = |fill: &mut Fill| fill.in_flight == 0 && fill.next.is_none();
        if let Some(fill) = self.fills[number].take_if(over) {
            fill.end(&self.cache);
        }
    }

    /// Takes an order, if there is one.
    fn take_order(&mut self) -> bool {
        let cache = Arc::clone(&self.cache);
        let mut state = cache.lock();
        state.advance();
        let taken = take(&mut state, &cache);
        // What stood behind it may now be ordered.
        cache.publish(state);
        self.begin(taken)
    }

    /// Sleeps until there is an order, and takes it. False when all is over.
    fn sleep(&mut self) -> bool {
        let cache = Arc::clone(&self.cache);
        let mut state = cache.lock();
        loop {
            if state.stopping {
                return false;
            }
            state.advance();
            if let Some(fill) = take(&mut state, &cache) {
                cache.publish(state);
                return self.begin(Some(fill));
            }
            state = cache.sleep(state);
        }
    }

    fn begin(&mut self, fill: Option<Fill>) -> bool {
        let Some(fill) = fill else { return false };
        let number = vacant(&mut self.fills);
        self.fills[number] = Some(fill);
        true
    }
}

/// What is ordered. Once all is to stop, nothing new is begun.
fn take(state: &mut State, cache: &Cache) -> Option<Fill> {
    if state.stopping {
        return None;
    }
    if let Some(piece) = state.window.order.take() {
        return Some(Fill::piece(piece, cache));
    }
    state.take_order().map(Fill::chain)
}

/// The first free place, made if there is none.
fn vacant<T>(places: &mut Vec<Option<T>>) -> usize {
    places.iter().position(Option::is_none).unwrap_or_else(|| {
        places.push(None);
        places.len() - 1
    })
}

/// Checks what was read from file offset `offset` on for a part: `len` bytes, which must be all that the part needs.
fn check(part: &Part, offset: u64, target: &ReadTarget, len: usize) -> Result<()> {
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

impl Fill {
    fn chain(order: Order) -> Fill {
        let Order { chain, job, .. } = order;
        let pages = job.parts()[0].pages();
        Fill::new(job, Into::Chain(chain), 0, pages, chain)
    }

    fn piece(piece: Piece, cache: &Cache) -> Fill {
        let Piece { job, part, pages } = piece;
        Fill::new(job, Into::Window, part, pages, cache.window_cells().start as u32)
    }

    fn new(job: Job, into: Into, part: usize, pages: Range<u64>, cell: u32) -> Fill {
        Fill {
            job,
            into,
            next: Some(Step { part, pages }),
            cell,
            rest: None,
            in_flight: 0,
            error: None,
            reads: 0,
            reads_fell_back: 0,
            bytes_read: 0,
        }
    }

    /// The next read: of which part, from which file offset on, and into what; none when all are sent.
    fn next_read(&mut self, cache: &Cache) -> Result<Option<(usize, u64, ReadTarget)>> {
        let Some(Step { part, pages }) = self.next.take() else { return Ok(None) };
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
        let more = (end < pages.end).then_some(Step { part, pages: end..pages.end });
        self.next = more.or_else(|| self.of_part(part + 1));
        // Nobody writes to a cell of a list that is ready.
        self.rest = self.rest.take().filter(|_| self.next.is_some());
        Ok(ReadTarget::across(cells).map(|target| (part, pages.start, target)))
    }

    /// The cell behind what was read so far, or the rest of it.
    fn next_cell(&mut self, part: usize, cache: &Cache) -> Result<CellMut> {
        if let Some(rest) = self.rest.take() {
            return Ok(rest);
        }
        let cell = self.cell;
        self.cell = match self.into {
            Into::Chain(_) => cache.links().next(cell),
            Into::Window => cell + 1,
        };
        cache.cells().write(cell as usize).ok_or_else(|| {
            let why = format!("cell {cell} of the cache is in other use");
            Error::new(ErrorKind::Busy, "read", self.job.parts()[part].file().name(), why)
        })
    }

    /// All of a part, if there is that one; a piece has one only.
    fn of_part(&self, part: usize) -> Option<Step> {
        let pages = self.job.parts().get(part).filter(|_| self.into != Into::Window)?.pages();
        Some(Step { part, pages })
    }

    /// Says how it ended.
    fn end(self, cache: &Cache) {
        let result = self.error.map_or(Ok(()), Err);
        let mut state = cache.lock();
        state.stats.reads += self.reads;
        state.stats.reads_fell_back += self.reads_fell_back;
        state.stats.bytes_read += self.bytes_read;
        match self.into {
            Into::Chain(chain) => state.fill_ended(chain, result),
            Into::Window => {
                state.stats.failures += u64::from(result.is_err());
                state.window.result = Some(result);
                state.news = true;
            }
        }
        cache.publish(state);
    }

    /// Keeps the first error, and sends nothing more.
    fn fail(&mut self, error: Error) {
        (self.next, self.rest) = (None, None);
        self.error.get_or_insert(error);
    }
}

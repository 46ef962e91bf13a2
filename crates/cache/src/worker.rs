//! Threads that fetch.
//!
//! *You have* engines and jobs. *You get* lists in the cache. Each worker has an engine to itself and does, again and again:
//!
//! 1. Take what is ordered, pieces of streams first, for as long as the engine takes reads: the next list begins while the
//!    one before is still on its way. A read is up to a segment long: all the adjacent pages that belong into it.
//! 2. Wait for a read. Check its pages against their file, while nobody else can see them; then give the cell back.
//! 3. When the last read of a list has ended, say so: the list is ready, or has failed with the first error.
//! 4. With nothing on the way and nothing ordered, sleep.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tierdex_io::{Completion, Engine, Error, ErrorKind, Result, Target};

use crate::cache::{Cache, stopped};
use crate::job::{Job, Part};
use crate::list::List;
use crate::lookahead::Lookahead;
use crate::segments::Place;
use crate::state::{Order, State};
use crate::stream::Piece;

/// The workers of a cache. Dropped, it ends what is on its way; who waits for more gets an error.
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
    lists: usize,
}

struct Worker {
    cache: Arc<Cache>,
    engine: Engine,
    /// Lists and pieces on their way, by number.
    fills: Vec<Option<Fill>>,
    /// Reads on their way, by tag.
    flights: Vec<Option<Flight>>,
}

/// A list or a piece on its way.
struct Fill {
    job: Job,
    into: Into,
    part: usize,
    /// The file offset of the next read, and the end of the pages of the part or piece.
    offset: u64,
    end: u64,
    /// The cell of the next read.
    cell: u32,
    in_flight: usize,
    unsent: bool,
    error: Option<Error>,
    reads: u64,
    bytes_read: u64,
}

/// Where a fill goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Chain(u32),
    Window,
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
    /// [`ErrorKind::Denied`] when there are none; [`ErrorKind::Busy`] when the cache has workers already; else what the
    /// system says to a new thread.
    pub fn start(cache: &Arc<Cache>, engines: Vec<Engine>, lookahead: Lookahead) -> Result<Prefetcher> {
        let refused = |kind, why| Err(Error::new(kind, "start", "prefetcher", why));
        if engines.is_empty() {
            return refused(ErrorKind::Denied, "it has no engine");
        }
        let mut state = cache.lock();
        if state.workers > 0 {
            return refused(ErrorKind::Busy, "the cache has one");
        }
        (state.workers, state.stopping) = (engines.len(), false);
        state.pace.lookahead = lookahead;
        drop(state);
        let mut prefetcher = Prefetcher { cache: Arc::clone(cache), threads: Vec::new() };
        for (number, engine) in engines.into_iter().enumerate() {
            let mut worker = Worker::new(Arc::clone(cache), engine);
            let thread = thread::Builder::new().name(format!("fetch-{number}"));
            let spawned = thread.spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| worker.run()));
                worker.leave(ended.is_err());
            });
            let spawned = spawned.map_err(|error| Error::from_os("start", "prefetcher", &error));
            prefetcher.threads.push(spawned?);
        }
        Ok(prefetcher)
    }

    /// Puts a query into the queue: its lists are fetched behind those of the queries before it, ahead of its turn
    /// (modes `hybrid-prefetch` and `direct`). Each query takes the memory of its jobs and about 100 bytes until it is dropped.
    pub fn push(&self, jobs: Vec<Job>) -> Query {
        let mut state = self.cache.lock();
        let lists = jobs.len();
        let number = state.push(jobs, false);
        self.cache.publish(state);
        Query { cache: Arc::clone(&self.cache), number, lists }
    }

    /// Has a list fetched behind the queries that are in the queue. Nobody waits for it, and nothing holds it when it is
    /// there; without room it is left out (mode `hybrid`).
    pub fn request(&self, job: Job) {
        let mut state = self.cache.lock();
        state.push(vec![job], true);
        self.cache.publish(state);
    }

    /// Fetches a list at once, before those of the queue, and waits for it. A list that finds no room beside what is pinned
    /// is a stream: it waits for nobody's pins, and can be called whatever the caller has pinned.
    ///
    /// # Errors
    /// Why it could not be read; the next one to ask tries anew.
    pub fn fetch(&self, job: &Job) -> Result<List> {
        self.cache.fetch(job)
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.cache.lock().stopping = true;
        self.cache.wake_all();
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so, and left.
            let _ = thread.join();
        }
        let mut state = self.cache.lock();
        state.workers = 0;
        state.abandon(&stopped());
        drop(state);
        self.cache.wake_all();
    }
}

impl Query {
    /// How many lists it has.
    pub fn lists(&self) -> usize {
        self.lists
    }

    /// Waits until list `list` can be read.
    ///
    /// # Errors
    /// Why it could not be read.
    ///
    /// # Panics
    /// When there is no such list.
    pub fn wait(&self, list: usize) -> Result<List> {
        assert!(list < self.lists, "list {list} of a query of {}", self.lists);
        self.cache.wait(self.number, list)
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        state.end(self.number);
        self.cache.publish(state);
    }
}

impl Worker {
    fn new(cache: Arc<Cache>, engine: Engine) -> Worker {
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
    fn leave(self, panicked: bool) {
        let Worker { cache, engine, fills, .. } = self;
        // What is in flight lands before its cells can be anybody else's.
        drop(engine);
        cache.lock().stopping |= panicked;
        for mut fill in fills.into_iter().flatten() {
            fill.fail(stopped());
            fill.end(&cache);
        }
        cache.lock().workers -= 1;
        cache.wake_all();
    }

    /// Sends the next read of a fill. False when none has one.
    fn send(&mut self) -> bool {
        let Some(number) = self.fills.iter().position(|fill| fill.as_ref().is_some_and(|fill| fill.unsent))
        else {
            return false;
        };
        let Some(fill) = self.fills[number].as_mut() else { return false };
        let part = fill.job.parts()[fill.part].clone();
        let cells = self.cache.cells();
        let Some(cell) = cells.write(fill.cell as usize) else {
            let why = format!("cell {} of the cache is in other use", fill.cell);
            fill.fail(Error::new(ErrorKind::Busy, "read", part.file().name(), why));
            self.end_if_over(number);
            return true;
        };
        let len = (fill.end - fill.offset).min(cells.cell_bytes() as u64);
        let flight = Flight { fill: number, part: fill.part, offset: fill.offset };
        fill.in_flight += 1;
        fill.advance(&self.cache, len);
        let tag = vacant(&mut self.flights);
        self.flights[tag] = Some(flight);
        let target = Target::new(cell, 0..len as usize);
        self.engine.submit(part.file().file(), flight.offset, target, tag as u64);
        true
    }

    /// A read has ended: nobody can see its bytes before they are checked.
    fn land(&mut self, completion: Completion) {
        let Completion { tag, target, result } = completion;
        let Some(Flight { fill: number, part, offset }) = self.flights[tag as usize].take() else { return };
        let Some(fill) = self.fills[number].as_mut() else { return };
        let bytes = *result.as_ref().unwrap_or(&0);
        let checked = result.and_then(|len| check(&fill.job.parts()[part], offset, &target, len));
        drop(target);
        fill.in_flight -= 1;
        fill.reads += 1;
        fill.bytes_read += bytes as u64;
        if let Err(error) = checked {
            fill.fail(error);
        }
        self.end_if_over(number);
    }

    /// Says how a fill ended, if it has.
    fn end_if_over(&mut self, number: usize) {
        let over = |fill: &mut Fill| fill.in_flight == 0 && !fill.unsent;
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
    state.orders.pop_front().map(|order| Fill::chain(order, cache))
}

/// The first free place, made if there is none.
fn vacant<T>(places: &mut Vec<Option<T>>) -> usize {
    places.iter().position(Option::is_none).unwrap_or_else(|| {
        places.push(None);
        places.len() - 1
    })
}

/// Checks what was read from file offset `offset` on for a part: `len` bytes, which must be all that the part needs.
fn check(part: &Part, offset: u64, target: &Target, len: usize) -> Result<()> {
    let file = part.file();
    let wanted = part.range().end.min(offset + target.range().len() as u64);
    if offset + (len as u64) < wanted {
        return Err(Error::corrupt(file.name(), offset, "the file ends early"));
    }
    file.check(offset / tierdex_io::PAGE, &target.bytes()[..len])
}

impl Fill {
    fn chain(order: Order, cache: &Cache) -> Fill {
        let Order { chain, job } = order;
        let pages = job.parts()[0].pages();
        let fill = Fill::new(job, Into::Chain(chain), 0, pages, chain);
        fill.note_part(cache);
        fill
    }

    fn piece(piece: Piece, cache: &Cache) -> Fill {
        let Piece { job, part, pages } = piece;
        Fill::new(job, Into::Window, part, pages, cache.window_cells().start as u32)
    }

    fn new(job: Job, into: Into, part: usize, pages: std::ops::Range<u64>, cell: u32) -> Fill {
        let (offset, end) = (pages.start, pages.end);
        Fill {
            job,
            into,
            part,
            offset,
            end,
            cell,
            in_flight: 0,
            unsent: true,
            error: None,
            reads: 0,
            bytes_read: 0,
        }
    }

    /// Goes on behind a read of `len` bytes.
    fn advance(&mut self, cache: &Cache, len: u64) {
        self.offset += len;
        let part_over = self.offset == self.end;
        if self.into == Into::Window {
            self.cell += 1;
            self.unsent = !part_over;
            return;
        }
        if part_over && self.part + 1 == self.job.parts().len() {
            self.unsent = false;
            return;
        }
        self.cell = cache.links().next(self.cell);
        if part_over {
            self.part += 1;
            let pages = self.job.parts()[self.part].pages();
            (self.offset, self.end) = (pages.start, pages.end);
            self.note_part(cache);
        }
    }

    /// Notes in the links which part begins in the next cell.
    fn note_part(&self, cache: &Cache) {
        let part = &self.job.parts()[self.part];
        cache.links().set_place(self.cell, Place { skip: part.skip(), len: part.len() });
    }

    /// Says how it ended.
    fn end(self, cache: &Cache) {
        let result = self.error.map_or(Ok(()), Err);
        let mut state = cache.lock();
        state.stats.reads += self.reads;
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
        self.unsent = false;
        self.error.get_or_insert(error);
    }
}

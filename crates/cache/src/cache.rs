//! The cache: cells, their metadata, and how threads wait for each other.
//!
//! # Why nobody waits for ever
//!
//! 1. A worker waits for its own reads, which end, and sleeps only when nothing is ordered.
//! 2. Chains are given out in the order of the queue, so what stands in the way of the oldest query is held by itself, by a
//!    worker that fills it, or by somebody outside of the queue. It waits for workers only (1), and what then has no room
//!    is streamed: the oldest query is always served.
//! 3. All other queries wait for older ones. A thread that ends a query before it waits for a later one lets the oldest
//!    end, and with it, one after the other, all.
//! 4. Who asks outside of the queue ([`crate::Prefetcher::begin`]) gets room at once or streams, whatever it has pinned or
//!    begun, and waits for its own reads (1), or does not. What it has begun is a pin like any other, given back when it
//!    is dropped, and no query waits for it (2). It is an order, too: those of the queue are not counted against it, and
//!    while the oldest query waits for what is loading there are no new ones. So no number of them keeps a query waiting.
//! 5. The window of streams is held while one piece is read and copied, never while waiting for anything but that (1).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tierdex_io::{Cells, Error, ErrorKind, Result};

use crate::chains::{ChainState, Chains, States};
use crate::job::Job;
use crate::list::{Begun, List, Pinned};
use crate::lookahead::Sample;
use crate::policy::PolicyKind;
use crate::queue::{CHAINS_MAX, Place};
use crate::segments::Links;
use crate::state::State;
use crate::stats::Stats;
use crate::stream::{Piece, window_segments};

/// A cache of lists in cells of memory, shared by threads that query and threads that fetch.
///
/// One lock guards the metadata; it is taken a few times a list, and never for a block. When what is asked for is there,
/// no thread sleeps or is woken, and no system call is made.
pub struct Cache {
    cells: Arc<Cells>,
    links: Arc<Links>,
    states: Arc<States>,
    /// Cells in which lists stand; those behind them are the window of streams.
    segments: usize,
    state: Mutex<State>,
    /// No worker is there, or all are to go: who waits is told so.
    over: AtomicBool,
    /// Workers sleep here.
    work: Condvar,
    /// Query threads sleep here.
    done: Condvar,
}

/// Memory of what [`Cells`] know of a cell.
const CELL_STATE_BYTES: usize = size_of::<u32>();

/// What is being waited for has not come: the workers have gone, of themselves if one has panicked.
pub(crate) fn stopped(panic: Option<&str>) -> Error {
    let why = "the prefetcher has stopped";
    let why = panic.map_or(why.to_owned(), |panic| format!("{why}: {panic}"));
    Error::new(ErrorKind::Other, "read", "postings", why)
}

impl Cache {
    /// A cache in `cells`, which nobody else uses from now on. All memory that it will ever need is allocated here.
    ///
    /// Of the cells a 32nd, at least one and at most 256 KiB or one cell, are set apart as the window for lists that find no room.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when there are fewer than 2 cells, or more than 2^32 - 4.
    pub fn new(cells: Arc<Cells>, policy: PolicyKind) -> Result<Arc<Cache>> {
        let segments = cells.len() - window_segments(cells.len(), cells.cell_bytes()).min(cells.len());
        let count = u32::try_from(segments).ok().filter(|count| (1..CHAINS_MAX).contains(count));
        let Some(count) = count else {
            let why = format!("it has {} segments, and needs 2 or more", cells.len());
            return Err(Error::new(
                ErrorKind::Denied,
                "make",
                format!("cache {}", cells.region().kind()),
                why,
            ));
        };
        let (links, free) = Links::new(count);
        let links = Arc::new(links);
        let state = State::new(Arc::clone(&links), free, policy.policy(count), cells.cell_bytes());
        let (states, state) = (Arc::clone(state.states()), Mutex::new(state));
        let (over, work, done) = (AtomicBool::new(true), Condvar::new(), Condvar::new());
        Ok(Arc::new(Cache { cells, links, states, segments, state, over, work, done }))
    }

    /// The list of a job, if it is there, pinned until it is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when what is there by its key has other parts.
    pub fn lookup(self: &Arc<Self>, job: &Job) -> Result<Option<Pinned>> {
        let chain = self.lock().lookup(job)?;
        Ok(chain.map(|chain| Pinned::new(Arc::clone(self), chain)))
    }

    /// Bytes of memory beside the region for each cell, at most: see [`Stats::metadata_bytes`].
    pub fn metadata_bytes_max(policy: PolicyKind) -> usize {
        let chains = Links::BYTES_PER_SEGMENT + Chains::BYTES_PER_SEGMENT_MAX;
        CELL_STATE_BYTES + chains + policy.bytes_per_segment_max()
    }

    /// What it did so far, and has now.
    pub fn stats(&self) -> Stats {
        let states = self.cells.len() * CELL_STATE_BYTES;
        let stats = self.lock().stats();
        Stats {
            window_segments: (self.cells.len() - self.segments) as u64,
            metadata_bytes: stats.metadata_bytes + states as u64,
            ..stats
        }
    }

    /// Begins to note the lookahead each time a query ends: the last `samples` of them, none when 0.
    pub fn record_lookahead(&self, samples: usize) {
        self.lock().record.start(samples);
    }

    /// What was noted, the oldest first.
    pub fn lookahead_samples(&self) -> Vec<Sample> {
        self.lock().record.samples()
    }

    /// The memory.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// The cells of the window.
    pub(crate) fn window_cells(&self) -> std::ops::Range<usize> {
        self.segments..self.cells.len()
    }

    /// The metadata. A thread that panicked with it has changed it wholly or not at all where that matters: only sums of
    /// accounts could be off.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits what can now be admitted, gives the lock back and wakes who waits for what has happened. Wakes nobody,
    /// and so makes no system call, when nobody sleeps or nothing has happened.
    pub(crate) fn publish(&self, mut state: MutexGuard<'_, State>) {
        state.advance();
        let ordered = state.has_orders();
        let wakes_workers = state.sleeping > 0 && (ordered || state.stopping);
        let wakes_queries = std::mem::take(&mut state.news) && state.waiting > 0;
        drop(state);
        if wakes_workers {
            self.work.notify_all();
        }
        if wakes_queries {
            self.done.notify_all();
        }
    }

    /// Tells what has happened, and sleeps until a worker is wanted.
    pub(crate) fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if std::mem::take(&mut state.news) && state.waiting > 0 {
            self.done.notify_all();
        }
        state.sleeping += 1;
        let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.sleeping -= 1;
        state
    }

    /// Sleeps as long as `waits` and workers are there.
    fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        waits: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>> {
        if waits(&state) {
            state.stats.waits += 1;
        }
        while waits(&state) {
            if state.stopping || state.workers == 0 {
                return Err(state.stopped());
            }
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        Ok(state)
    }

    /// Lists for somebody outside of the queue: see [`crate::Prefetcher::begin_all`].
    pub(crate) fn begin_all(self: &Arc<Self>, jobs: &[Job]) -> Vec<Begun> {
        let mut state = self.lock();
        let places: Vec<Place> = jobs.iter().map(|job| state.claim(job)).collect();
        self.publish(state);
        let begun = jobs.iter().zip(places).map(|(job, place)| match place {
            Place::Streamed => Ok(List::stream(self, job)),
            Place::Refused => Err(job.other_parts()),
            // The pin is the claim's, and is dropped with the list.
            Place::Chain(chain) => Ok(List::Pinned(Pinned::new(Arc::clone(self), chain))),
        });
        begun.map(Begun::new).collect()
    }

    /// Waits until a chain that is pinned is ready. One that is already takes no lock.
    pub(crate) fn settle(&self, chain: u32) -> Result<()> {
        if self.states.get(chain) == ChainState::Ready {
            return Ok(());
        }
        let loading = |state: &State| state.state(chain) == ChainState::Loading;
        let error = self.wait_while(self.lock(), loading)?.error(chain);
        error.map_or(Ok(()), Err)
    }

    /// Whether nobody waits for a list any more that is there, if it is in a chain then in one that is pinned.
    pub(crate) fn is_settled(&self, place: Option<Place>) -> bool {
        let settled = match place {
            None => false,
            Some(Place::Chain(chain)) => self.states.get(chain) != ChainState::Loading,
            Some(Place::Streamed | Place::Refused) => true,
        };
        settled || self.is_over()
    }

    /// Whether a list stands in the cache, if it is in a chain then in one that is pinned.
    pub(crate) fn is_here(&self, place: Option<Place>) -> bool {
        matches!(place, Some(Place::Chain(chain)) if self.states.get(chain) == ChainState::Ready)
    }

    /// Whether no worker is there, or all are to go.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Notes whether there are workers, after a change of that.
    pub(crate) fn note_workers(&self, state: &State) {
        self.over.store(state.stopping || state.workers == 0, Ordering::Release);
    }

    /// Waits for a list of a query: see [`crate::Query::wait`].
    pub(crate) fn wait(self: &Arc<Self>, query: u64, list: usize) -> Result<List> {
        let on_its_way = |state: &State| match state.list(query, list).1 {
            None => true,
            Some(Place::Chain(chain)) => state.state(chain) == ChainState::Loading,
            Some(Place::Streamed | Place::Refused) => false,
        };
        let mut state = self.wait_while(self.lock(), on_its_way)?;
        let (job, place) = state.list(query, list);
        let chain = match place {
            Some(Place::Chain(chain)) => chain,
            Some(Place::Refused) => return Err(job.other_parts()),
            Some(Place::Streamed) | None => return Ok(List::stream(self, job)),
        };
        if let Some(error) = state.error(chain) {
            return Err(error);
        }
        state.pin(chain);
        drop(state);
        Ok(List::Pinned(Pinned::new(Arc::clone(self), chain)))
    }

    /// Replaces `out` by a piece of a list, read through the window.
    pub(crate) fn stream(&self, piece: Piece, out: &mut Vec<u8>) -> Result<()> {
        let mut state = self.wait_while(self.lock(), |state| state.window.taken)?;
        state.window.taken = true;
        let mut left = (piece.pages.end - piece.pages.start) as usize;
        state.window.order = Some(piece);
        self.publish(state);
        let result = self.piece_ended();
        out.clear();
        out.reserve_exact(left);
        for cell in self.window_cells().take_while(|_| result.is_ok()) {
            let bytes = self.cells.read(cell).ok_or_else(|| stopped(None));
            let Ok(bytes) = bytes else { break };
            out.extend_from_slice(&bytes[..left.min(bytes.len())]);
            left -= left.min(bytes.len());
        }
        let mut state = self.lock();
        state.window.taken = false;
        state.news = true;
        self.publish(state);
        result
    }

    /// Waits for the piece that was ordered. What a worker has begun it ends, so that the window is never left in its hands.
    fn piece_ended(&self) -> Result<()> {
        let mut state = self.lock();
        state.stats.waits += 1;
        loop {
            if let Some(result) = state.window.result.take() {
                return result;
            }
            let withdrawn = state.stopping && state.window.order.take().is_some();
            if withdrawn || state.workers == 0 {
                return Err(state.stopped());
            }
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Wakes all, to see that it is over.
    pub(crate) fn wake_all(&self) {
        self.work.notify_all();
        self.done.notify_all();
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache of {:?}", self.cells)
    }
}

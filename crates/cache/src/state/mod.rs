//! All that stands under the lock: which chains there are, who holds them, and who is next.
//!
//! How a list of a query is admitted, in the order of the queue, by whichever thread has changed something:
//!
//! 1. Its chain is there, ready or loading: it is pinned. If that has other parts, the list is refused.
//! 2. It is longer than the cache: it will be streamed.
//! 3. The workers have enough to do: it waits. So chains are evicted no sooner than needed.
//! 4. What is free and what could be evicted is too little. The oldest query waits until nothing is loading, and then will
//!    stream the list; all others wait until a query ends. For these it is too little also if less than half of the cache would
//!    be left once somebody has asked outside of the queue, as what is asked for there is wanted sooner; less and less of that
//!    as queries end and nobody asks again.
//! 5. Chains are evicted until there is room, at the pace of the lookahead; the oldest query waits for no pace.
//! 6. A chain is taken, pinned for the query and for the worker that will fill it, and ordered.
//!
//! Who asks outside of the queue waits for nobody's room: what has none at once is streamed. However much that is, it holds
//! up no list of the queue: at 3 only their own orders are counted, and those outside are none as long as 4 lasts.

use std::collections::VecDeque;
use std::sync::Arc;

use tierdex_io::Error;

use crate::cache::stopped;
use crate::chains::{ChainState, Chains, States};
use crate::job::Job;
use crate::lookahead::{Lookahead, Pace, Record, Sample};
use crate::policy::Policy;
use crate::queue::{Place, Places, Queue, Turn};
use crate::segments::{Free, Links};
use crate::stats::Stats;
use crate::stream::Window;

/// So many lists that nobody waits for may wait.
const REQUESTS_MAX: usize = 1024;

/// Queries behind others leave this part of all segments to those outside of the queue, when one of them has asked.
const RESERVE_PART: u32 = 2;

/// With each query that ends, what is left to them is less by this part.
const RESERVE_ENDS: u32 = 64;

/// A chain to be filled.
pub(crate) struct Order {
    pub(crate) chain: u32,
    pub(crate) job: Job,
    /// Whether it is for a query.
    queued: bool,
}

/// The metadata of a cache.
pub(crate) struct State {
    links: Arc<Links>,
    free: Free,
    chains: Chains,
    policy: Box<dyn Policy>,
    segments: u32,
    segment_bytes: usize,
    /// Segments of chains that are ready and not pinned.
    evictable: u32,
    /// Chains that are loading.
    loading: u32,
    /// Segments that queries behind others leave to those outside of the queue.
    reserve: u32,
    /// The oldest query waits until nothing is loading: nobody outside of the queue may prolong that.
    oldest_waits: bool,
    queue: Queue,
    pub(crate) pace: Pace,
    pub(crate) record: Record,
    orders: VecDeque<Order>,
    /// How many of them are for queries.
    queued: usize,
    pub(crate) window: Window,
    /// A prefetcher is there. Its workers may have gone before it.
    pub(crate) owned: bool,
    /// Worker threads that run, and those of them that sleep.
    pub(crate) workers: usize,
    pub(crate) sleeping: usize,
    /// Query threads that sleep.
    pub(crate) waiting: usize,
    /// Something happened that a query thread may wait for.
    pub(crate) news: bool,
    pub(crate) stopping: bool,
    /// What a worker's panic says, if it was one that made an end.
    pub(crate) panic: Option<String>,
    pub(crate) stats: Stats,
}

/// Whether there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Now,
    Later,
    Never,
}

/// Who asks for room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// A query behind others: waits for them.
    Ahead,
    /// The oldest query: waits for what is loading only.
    Oldest,
    /// Somebody outside of the queue: waits for nobody.
    Outside,
}

impl State {
    pub(crate) fn new(links: Arc<Links>, free: Free, policy: Box<dyn Policy>, segment_bytes: usize) -> State {
        let segments = free.count();
        State {
            links,
            free,
            chains: Chains::new(segments),
            policy,
            segments,
            segment_bytes,
            evictable: 0,
            loading: 0,
            reserve: 0,
            oldest_waits: false,
            queue: Queue::default(),
            pace: Pace::new(Lookahead::Adaptive, segments),
            record: Record::default(),
            orders: VecDeque::new(),
            queued: 0,
            window: Window::default(),
            owned: false,
            workers: 0,
            sleeping: 0,
            waiting: 0,
            news: false,
            stopping: false,
            panic: None,
            stats: Stats::default(),
        }
    }

    /// The chain of a job that is ready, pinned; an error when it has other parts.
    pub(crate) fn lookup(&mut self, job: &Job) -> Result<Option<u32>, Error> {
        let chain = self.chains.find(job.key()).filter(|chain| self.state(*chain) == ChainState::Ready);
        if chain.is_some_and(|chain| self.is_other(chain, job)) {
            return Err(job.other_parts());
        }
        match chain {
            Some(chain) => {
                self.stats.hits += 1;
                self.use_chain(chain);
            }
            None => self.stats.misses += 1,
        }
        Ok(chain)
    }

    /// Whether a chain has other parts than a job of its key, which is then refused.
    fn is_other(&mut self, chain: u32, job: &Job) -> bool {
        let is_other = self.chains.record(chain).print != job.print();
        self.stats.failures += u64::from(is_other);
        is_other
    }

    /// The state of a chain that is pinned.
    pub(crate) fn state(&self, chain: u32) -> ChainState {
        self.chains.state(chain)
    }

    /// What chains are good for.
    pub(crate) fn states(&self) -> &Arc<States> {
        self.chains.states()
    }

    /// Why a chain that is pinned failed.
    pub(crate) fn error(&self, chain: u32) -> Option<Error> {
        self.chains.error(chain).cloned()
    }

    /// One more holds a chain.
    pub(crate) fn pin(&mut self, chain: u32) {
        let ready = self.state(chain) == ChainState::Ready;
        let record = self.chains.record_mut(chain);
        if record.pins == 0 && ready {
            self.evictable -= record.count;
        }
        record.pins += 1;
    }

    /// One fewer does. What no one holds can be evicted, and is given back if it failed.
    pub(crate) fn unpin(&mut self, chain: u32) {
        let state = self.state(chain);
        let record = self.chains.record_mut(chain);
        record.pins -= 1;
        match state {
            ChainState::Ready if record.pins == 0 => self.evictable += record.count,
            ChainState::Failed if record.pins == 0 => {
                let segments = self.chains.forget(chain);
                self.links.give_back(&mut self.free, segments);
            }
            _ => {}
        }
    }

    /// A worker has filled a chain.
    pub(crate) fn fill_ended(&mut self, chain: u32, result: Result<(), Error>) {
        self.loading -= 1;
        self.news = true;
        match result {
            Ok(()) => {
                self.stats.fetched += 1;
                self.chains.finish(chain);
            }
            Err(error) => {
                self.stats.failures += 1;
                self.policy.remove(chain);
                self.chains.fail(chain, error);
                let segments = self.chains.segments(chain);
                let head = self.links.give_back_all_but_head(&mut self.free, segments);
                self.chains.shrink(head);
            }
        }
        self.unpin(chain);
    }

    /// Adds a query to the queue: its number, and where its lists will be.
    pub(crate) fn push(&mut self, jobs: Vec<Job>, detached: bool) -> (u64, Places) {
        self.queue.push(jobs, detached)
    }

    /// Adds a list that nobody waits for to the queue, unless there are enough of them, or nobody is there to fetch it.
    pub(crate) fn request(&mut self, job: Job) {
        if !self.stopping && self.workers > 0 && self.queue.detached() < REQUESTS_MAX {
            self.push(vec![job], true);
        }
    }

    /// The job of a query's list, and where it is, if it is admitted.
    pub(crate) fn list(&self, query: u64, list: usize) -> (&Job, Option<Place>) {
        self.queue.list(query, list)
    }

    /// A query ends: its chains are no longer held for it.
    pub(crate) fn end(&mut self, query: u64, places: &Places) {
        let queries = self.queue.lookahead();
        let counted = self.queue.end(query);
        self.oldest_waits = false;
        // Unless somebody asks again.
        self.reserve -= self.reserve.div_ceil(RESERVE_ENDS);
        self.pace.pop(counted);
        for place in places.iter() {
            if let Place::Chain(chain) = place {
                self.unpin(chain);
            }
        }
        let sample = Sample { ended: self.queue.ended(), queries, segments: self.pace.rolling_sum() };
        self.record.add(sample);
    }

    /// Whether there is work for a worker.
    pub(crate) fn has_orders(&self) -> bool {
        !self.orders.is_empty() || self.window.order.is_some()
    }

    /// The next chain to be filled.
    pub(crate) fn take_order(&mut self) -> Option<Order> {
        let order = self.orders.pop_front()?;
        self.queued -= usize::from(order.queued);
        Some(order)
    }

    /// The workers have gone: what they were to do is not done.
    pub(crate) fn abandon(&mut self) {
        let why = self.stopped();
        while let Some(Order { chain, .. }) = self.take_order() {
            self.fill_ended(chain, Err(why.clone()));
        }
        self.queue.end_detached();
    }

    /// Why what was to be done is not done.
    pub(crate) fn stopped(&self) -> Error {
        stopped(self.panic.as_deref())
    }

    /// A list for somebody outside of the queue, at once: its chain, pinned, or to be streamed, or refused.
    pub(crate) fn claim(&mut self, job: &Job) -> Place {
        let place = self.place(job, Claim::Outside, true).unwrap_or(Place::Streamed);
        if place == Place::Streamed {
            self.stats.streamed += 1;
        }
        self.reserve = self.segments / RESERVE_PART;
        place
    }

    /// Admits as many lists of the queue as can be.
    pub(crate) fn advance(&mut self) {
        while !self.stopping && self.admit_next() {}
        self.stats.lookahead_max = self.stats.lookahead_max.max(self.queue.lookahead());
    }

    fn admit_next(&mut self) -> bool {
        let Some(Turn { job, detached, ahead }) = self.queue.turn() else { return false };
        if self.pace.is_too_far(ahead) {
            return false;
        }
        let claim = if ahead == 0 { Claim::Oldest } else { Claim::Ahead };
        // Who had a list requested has looked it up before.
        let Some(place) = self.place(&job, claim, !detached) else { return false };
        self.oldest_waits &= ahead > 0;
        let mut counted = 0;
        match place {
            Place::Chain(chain) if detached => self.unpin(chain),
            Place::Chain(chain) => {
                counted = u64::from(self.chains.record(chain).count);
                self.pace.push(counted);
            }
            Place::Streamed => self.stats.streamed += u64::from(!detached),
            Place::Refused => {}
        }
        self.queue.admit(if detached { Place::Streamed } else { place }, counted);
        self.news = true;
        true
    }

    /// Where a list is to be; none as long as it has to wait. A hit or a miss only if it `counts`.
    fn place(&mut self, job: &Job, claim: Claim, counts: bool) -> Option<Place> {
        if let Some(chain) = self.chains.find(job.key()) {
            if self.is_other(chain, job) {
                return Some(Place::Refused);
            }
            self.stats.hits += u64::from(counts);
            self.use_chain(chain);
            return Some(Place::Chain(chain));
        }
        let needed = u32::try_from(job.segments(self.segment_bytes)).unwrap_or(u32::MAX);
        if needed <= self.segments && claim != Claim::Outside && self.queued >= self.workers {
            return None;
        }
        let room = self.room(needed, claim);
        if room == Room::Later {
            return None;
        }
        self.stats.misses += u64::from(counts);
        if room == Room::Never {
            return Some(Place::Streamed);
        }
        let segments = self.links.take(&mut self.free, needed)?;
        self.links.set_parts(segments.head, job.parts().iter().map(|part| (part.skip(), part.len())));
        let chain = self.chains.insert((job.key(), job.print()), segments);
        self.policy.insert(chain, job.key().hash(), needed);
        self.loading += 1;
        self.pin(chain);
        self.pin(chain);
        let queued = claim != Claim::Outside;
        self.queued += usize::from(queued);
        self.orders.push_back(Order { chain, job: job.clone(), queued });
        Some(Place::Chain(chain))
    }

    /// Evicts until `needed` segments are free, if that can be.
    fn room(&mut self, needed: u32, claim: Claim) -> Room {
        if needed > self.segments {
            return Room::Never;
        }
        let reserve = if claim == Claim::Ahead { self.reserve.min(self.segments - needed) } else { 0 };
        if self.free.count() + self.evictable < needed.saturating_add(reserve) {
            let waits = claim == Claim::Ahead || (claim == Claim::Oldest && self.loading > 0);
            self.oldest_waits |= waits && claim == Claim::Oldest;
            return if waits { Room::Later } else { Room::Never };
        }
        if claim == Claim::Outside && self.oldest_waits {
            return Room::Never;
        }
        if self.free.count() < needed {
            self.tell_what_is_expected();
        }
        while self.free.count() < needed {
            let chains = &self.chains;
            let may_go =
                |chain: u32| chains.record(chain).pins == 0 && chains.state(chain) == ChainState::Ready;
            let Some(victim) = self.policy.victim(&may_go) else { return Room::Never };
            let candidate = self.chains.record(victim).count;
            if claim == Claim::Ahead && self.pace.waits(self.free.count(), candidate) {
                return Room::Later;
            }
            self.evict(victim);
        }
        Room::Now
    }

    fn tell_what_is_expected(&mut self) {
        let window = self.policy.window();
        if window > 0 {
            let waiting = self.queue.waiting().take(window);
            self.policy.expect(&mut waiting.filter_map(|job| self.chains.find(job.key())));
        }
    }

    fn evict(&mut self, chain: u32) {
        self.policy.remove(chain);
        let segments = self.chains.remove(chain);
        self.evictable -= segments.count;
        self.links.give_back(&mut self.free, segments);
        self.stats.evictions += 1;
    }

    fn use_chain(&mut self, chain: u32) {
        self.policy.touch(chain);
        self.pin(chain);
    }

    /// The accounts.
    pub(crate) fn stats(&self) -> Stats {
        let links = Links::BYTES_PER_SEGMENT * self.segments as usize;
        Stats {
            segment_bytes: self.segment_bytes as u64,
            segments: self.segments.into(),
            segments_free: self.free.count().into(),
            segments_evictable: self.evictable.into(),
            loading: self.loading.into(),
            queries: self.queue.len(),
            lookahead: self.queue.lookahead(),
            rolling_sum: self.pace.rolling_sum(),
            metadata_bytes: (links + self.chains.bytes() + self.policy.bytes()) as u64,
            ..self.stats
        }
    }
}

#[cfg(test)]
mod tests;

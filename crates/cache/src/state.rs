//! All that stands under the lock: which chains there are, who holds them, and who is next.
//!
//! How a list of a query is admitted, in the order of the queue, by whichever thread has changed something:
//!
//! 1. Its chain is there, ready or loading: it is pinned. If that has other parts, the list is refused.
//! 2. It is longer than the cache: it will be streamed.
//! 3. The workers have enough to do: it waits. So chains are evicted no sooner than needed.
//! 4. What is free and what could be evicted is too little. The oldest query waits until nothing is loading, and then will
//!    stream the list; all others wait until a query ends.
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
            Some(chain) => self.use_chain(chain),
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
            Ok(()) => self.chains.finish(chain),
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
        let place = self.place(job, Claim::Outside).unwrap_or(Place::Streamed);
        if place == Place::Streamed {
            self.stats.streamed += 1;
        }
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
        let Some(place) = self.place(&job, claim) else { return false };
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

    /// Where a list is to be; none as long as it has to wait.
    fn place(&mut self, job: &Job, claim: Claim) -> Option<Place> {
        if let Some(chain) = self.chains.find(job.key()) {
            if self.is_other(chain, job) {
                return Some(Place::Refused);
            }
            self.use_chain(chain);
            return Some(Place::Chain(chain));
        }
        let needed = u32::try_from(job.segments(self.segment_bytes)).unwrap_or(u32::MAX);
        if needed <= self.segments && claim != Claim::Outside && self.queued >= self.workers {
            return None;
        }
        match self.room(needed, claim) {
            Room::Later => return None,
            Room::Never => {
                self.stats.misses += 1;
                return Some(Place::Streamed);
            }
            Room::Now => self.stats.misses += 1,
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
        if self.free.count() + self.evictable < needed {
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
        self.stats.hits += 1;
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
mod tests {
    use super::*;
    use crate::chains::Key;
    use crate::job::Part;
    use crate::policy::PolicyKind;
    use tierdex_io::{Identity, MemDisk, PAGE, SealedFile, SealedWriter};

    /// A cache of `segments` segments of one page each, and one worker that does as the test says.
    struct Desk {
        state: State,
        file: Arc<SealedFile>,
        places: Vec<Places>,
    }

    impl Desk {
        fn new(segments: u32, policy: PolicyKind, lookahead: Lookahead) -> Desk {
            let disk = MemDisk::new();
            let identity = Identity { kind: 1, field: 0, segment: 1 };
            let mut writer = SealedWriter::create(&disk, "a", identity).unwrap();
            writer.write(&vec![0; 64 * PAGE as usize]).unwrap();
            let seal = writer.finish().unwrap();
            let file = Arc::new(SealedFile::open(&disk, "a", identity, seal).unwrap());
            let (links, free) = Links::new(segments);
            let mut state = State::new(Arc::new(links), free, policy.policy(segments), PAGE as usize);
            state.workers = 1;
            state.pace.lookahead = lookahead;
            Desk { state, file, places: Vec::new() }
        }

        fn job(&self, list: u64, segments: u64) -> Job {
            let part = Part::new(Arc::clone(&self.file), PAGE..PAGE * (1 + segments)).unwrap();
            Job::new(Key(list, 0), vec![part]).unwrap()
        }

        /// A query of lists and their sizes.
        fn push(&mut self, lists: &[(u64, u64)]) -> u64 {
            let jobs = lists.iter().map(|(list, segments)| self.job(*list, *segments)).collect();
            let (number, places) = self.state.push(jobs, false);
            assert_eq!(number, self.places.len() as u64);
            self.places.push(places);
            number
        }

        fn end(&mut self, query: u64) {
            self.state.end(query, &self.places[query as usize]);
        }

        /// Lets the worker fill what it gets, until it gets nothing more.
        fn work(&mut self) {
            self.state.advance();
            while let Some(Order { chain, .. }) = self.state.take_order() {
                self.state.advance();
                self.state.fill_ended(chain, Ok(()));
                self.state.advance();
            }
            let stats = self.state.stats();
            assert_eq!(stats.loading, 0);
        }

        fn place(&self, query: u64, list: usize) -> Option<Place> {
            self.state.list(query, list).1
        }

        fn is_there(&self, list: u64) -> bool {
            self.state.chains.find(Key(list, 0)).is_some()
        }
    }

    #[test]
    fn the_worker_waits_as_in_figure_7_8() {
        let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
        let [t0, t1, t2] = [(0, 4), (1, 1), (2, 4)].map(|list| desk.push(&[list]));
        desk.work();
        assert_eq!(desk.state.pace.rolling_sum(), 5);
        assert!(desk.place(t0, 0).is_some() && desk.place(t1, 0).is_some() && desk.place(t2, 0).is_none());
        desk.end(t0);
        assert_eq!(desk.state.pace.rolling_sum(), 1);
        assert!(desk.is_there(0));
        desk.work();
        assert!(desk.place(t2, 0).is_some() && !desk.is_there(0));
        assert_eq!((desk.state.pace.rolling_sum(), desk.state.stats().evictions), (5, 1));
    }

    #[test]
    fn a_repeated_term_counts_again_as_in_figure_7_9() {
        let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
        let [first, second] = [(0, 4), (0, 4)].map(|list| desk.push(&[list]));
        desk.work();
        assert_eq!(desk.state.pace.rolling_sum(), 8);
        desk.end(first);
        assert_eq!(desk.state.pace.rolling_sum(), 4);
        let [t1, t2] = [(1, 4), (2, 1)].map(|list| desk.push(&[list]));
        desk.work();
        assert!(desk.place(t1, 0).is_some() && desk.place(t2, 0).is_none(), "t0 is in use, t1 waits");
        desk.end(second);
        desk.work();
        assert!(desk.place(t2, 0).is_some() && !desk.is_there(0));
    }

    #[test]
    fn the_worker_waits_as_in_figure_7_10() {
        let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
        let [t0, t1, _again, t2] = [(0, 2), (1, 5), (0, 2), (2, 2)].map(|list| desk.push(&[list]));
        desk.work();
        desk.end(t0);
        desk.work();
        assert_eq!(desk.state.pace.rolling_sum(), 7);
        assert!(desk.place(t2, 0).is_none() && desk.is_there(1), "t1 is least recently used, and in use");
        desk.end(t1);
        desk.work();
        assert!(desk.place(t2, 0).is_some() && desk.is_there(0) && !desk.is_there(1));
    }

    #[test]
    fn the_rolling_sum_sets_a_pace_that_pins_do_not() {
        for (lookahead, goes_on) in [(Lookahead::Adaptive, false), (Lookahead::Pins, true)] {
            let mut desk = Desk::new(8, PolicyKind::Lru, lookahead);
            let old = desk.push(&[(9, 5)]);
            desk.work();
            desk.end(old);
            let repeated = [(); 4].map(|()| desk.push(&[(0, 1)]));
            let next = desk.push(&[(1, 3)]);
            desk.work();
            assert_eq!(desk.place(next, 0).is_some(), goes_on, "{lookahead:?}");
            // 4 + 2 taken + 5 > 8, and so on until 1 + 2 + 5.
            for (query, ended) in repeated.into_iter().zip(1..) {
                desk.end(query);
                desk.work();
                assert_eq!(desk.place(next, 0).is_some(), goes_on || ended >= 3, "{lookahead:?}, {ended}");
            }
        }
    }

    #[test]
    fn a_fixed_lookahead_counts_queries() {
        let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Queries(2));
        let queries: Vec<u64> = (0..8).map(|list| desk.push(&[(list, 1)])).collect();
        for oldest in 0..8 {
            desk.work();
            let admitted = queries[oldest..].iter().filter(|query| desk.place(**query, 0).is_some()).count();
            assert_eq!(admitted, 3.min(8 - oldest));
            desk.end(queries[oldest]);
        }
        assert_eq!(desk.state.stats().lookahead_max, 2);
    }

    #[test]
    fn queries_that_have_ended_are_not_ahead() {
        let mut desk = Desk::new(16, PolicyKind::Lru, Lookahead::Queries(2));
        let queries: Vec<u64> = (0..12).map(|list| desk.push(&[(list, 1)])).collect();
        let admitted =
            |desk: &Desk| (0..12).rev().find(|query| desk.place(queries[*query], 0).is_some()).unwrap();
        desk.work();
        assert_eq!(admitted(&desk), 2);
        // Several threads answer, and the oldest query is slow.
        for next in 3..12 {
            desk.state.end(queries[next - 2], &desk.places[next - 2]);
            desk.work();
            assert_eq!((admitted(&desk), desk.state.stats().lookahead), (next, 2));
        }
    }

    #[test]
    fn queries_that_have_ended_behind_one_that_is_held_take_no_room() {
        let mut desk = Desk::new(16, PolicyKind::Lru, Lookahead::Adaptive);
        let held = desk.push(&[(0, 1), (1, 1)]);
        let mut last = desk.push(&[(1, 1)]);
        for list in 0..5000 {
            let query = desk.push(&[(2 + list % 20, 1)]);
            desk.work();
            assert!(desk.place(last, 0).is_some());
            desk.end(std::mem::replace(&mut last, query));
            if list == 3000 {
                // One that is given up before its turn, and one that nobody waits for.
                let job = desk.job(40, 1);
                let (_, places) = desk.state.push(vec![job], true);
                desk.places.push(places);
                let given_up = desk.push(&[(3, 1)]);
                desk.end(given_up);
            }
            assert!(desk.state.queue.entries() <= 2 * 4 + 64);
        }
        let stats = desk.state.stats();
        assert_eq!((stats.queries, desk.state.queue.ended()), (2, 5002));
        assert!((0..2).all(|list| desk.place(held, list).is_some()) && desk.place(last, 0).is_some());
        desk.end(held);
        desk.end(last);
        assert_eq!(desk.state.queue.entries(), 0);
    }

    #[test]
    fn the_oldest_query_streams_what_finds_no_room_beside_its_own() {
        let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Adaptive);
        let query = desk.push(&[(0, 2), (1, 2), (2, 2), (3, 5), (1, 2)]);
        let next = desk.push(&[(2, 2), (4, 2)]);
        desk.work();
        let cached: Vec<bool> =
            (0..5).map(|list| matches!(desk.place(query, list), Some(Place::Chain(_)))).collect();
        assert_eq!(cached, [true, true, false, false, true]);
        assert_eq!(desk.place(next, 0), None);
        desk.end(query);
        desk.work();
        assert!((0..2).all(|list| matches!(desk.place(next, list), Some(Place::Chain(_)))));
        let stats = desk.state.stats();
        assert_eq!((stats.streamed, stats.misses, stats.hits), (2, 6, 1));
    }

    #[test]
    fn who_asks_outside_waits_for_nobody_and_stops_nobody() {
        let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Adaptive);
        let query = desk.push(&[(0, 3)]);
        desk.work();
        let (job, other) = (desk.job(7, 2), desk.job(8, 1));
        assert_eq!(desk.state.claim(&job), Place::Streamed);
        let Place::Chain(outside) = desk.state.claim(&other) else { panic!("there is room") };
        desk.work();
        desk.end(query);
        // The next oldest query finds a pin from outside in its way, which may last for ever.
        let query = desk.push(&[(1, 4)]);
        desk.work();
        assert_eq!(desk.place(query, 0), Some(Place::Streamed));
        desk.end(query);
        desk.state.unpin(outside);
        let query = desk.push(&[(1, 4)]);
        desk.work();
        assert!(matches!(desk.place(query, 0), Some(Place::Chain(_))));
    }

    #[test]
    fn nobody_outside_prolongs_the_wait_of_the_oldest_query() {
        let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Adaptive);
        let query = desk.push(&[(0, 2), (1, 3)]);
        let (one, other) = (desk.job(7, 1), desk.job(8, 1));
        desk.state.advance();
        let Order { chain, .. } = desk.state.take_order().unwrap();
        desk.state.advance();
        assert_eq!(desk.place(query, 1), None, "the first list is loading: something may come free");
        assert_eq!(
            desk.state.claim(&one),
            Place::Streamed,
            "there is room, but the oldest query waits for it"
        );
        desk.state.fill_ended(chain, Ok(()));
        desk.state.advance();
        assert_eq!(desk.place(query, 1), Some(Place::Streamed));
        assert!(matches!(desk.state.claim(&other), Place::Chain(_)));
    }

    #[test]
    fn nothing_outside_stands_between_the_queue_and_the_workers() {
        let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
        let outside: Vec<Place> = (10..14).map(|list| desk.state.claim(&desk.job(list, 1))).collect();
        let query = desk.push(&[(0, 1), (1, 1)]);
        desk.state.advance();
        // The worker has four lists to fetch, and takes one after the other; the query's first is next.
        assert!(outside.iter().all(|place| matches!(place, Place::Chain(_))));
        assert!(matches!(desk.place(query, 0), Some(Place::Chain(_))) && desk.place(query, 1).is_none());
        for _ in 0..5 {
            let more = desk.state.claim(&desk.job(20, 1));
            let Order { chain, .. } = desk.state.take_order().unwrap();
            desk.state.fill_ended(chain, Ok(()));
            desk.state.advance();
            let Place::Chain(more) = more else { continue };
            desk.state.unpin(more);
        }
        assert!(matches!(desk.place(query, 1), Some(Place::Chain(_))));
    }

    #[test]
    fn a_failed_list_is_tried_anew_by_the_next() {
        let mut desk = Desk::new(8, PolicyKind::S3Fifo, Lookahead::Adaptive);
        let [first, second] = [(0, 4), (0, 4)].map(|list| desk.push(&[list]));
        desk.state.advance();
        let Order { chain, .. } = desk.state.take_order().unwrap();
        desk.state.fill_ended(chain, Err(Error::corrupt("a", 1, "x")));
        let stats = desk.state.stats();
        assert_eq!((stats.segments_free, stats.failures), (7, 1), "all but the head are given back");
        for query in [first, second] {
            assert_eq!(desk.place(query, 0), Some(Place::Chain(chain)));
            assert!(desk.state.error(chain).is_some());
        }
        let third = desk.push(&[(0, 4)]);
        desk.work();
        assert!(desk.place(third, 0).is_some_and(|place| place != Place::Chain(chain)));
        [first, second, third].into_iter().for_each(|query| desk.end(query));
        let stats = desk.state.stats();
        assert_eq!((stats.segments_free, stats.segments_evictable, stats.rolling_sum), (4, 4, 0));
    }

    #[test]
    fn the_window_spares_what_waits() {
        for (policy, spared) in [(PolicyKind::Window, true), (PolicyKind::Lru, false)] {
            let mut desk = Desk::new(3, policy, Lookahead::Adaptive);
            for list in 0..3 {
                let query = desk.push(&[(list, 1)]);
                desk.work();
                desk.end(query);
            }
            // List 0 is the least recently used, and will be needed.
            let queries = [(3, 1), (0, 1)].map(|list| desk.push(&[list]));
            desk.work();
            assert_eq!(desk.state.stats().hits == 1, spared, "{policy}");
            queries.into_iter().for_each(|query| desk.end(query));
        }
    }

    #[test]
    fn detached_lists_are_fetched_and_held_by_nobody() {
        let mut desk = Desk::new(4, PolicyKind::Sieve, Lookahead::Adaptive);
        let jobs = [desk.job(0, 3), desk.job(1, 5), desk.job(2, 1)];
        jobs.into_iter().for_each(|job| desk.state.request(job));
        desk.work();
        let stats = desk.state.stats();
        assert_eq!((stats.queries, stats.segments_evictable, stats.streamed), (0, 4, 0));
        assert!(desk.is_there(0) && !desk.is_there(1) && desk.is_there(2));
    }

    #[test]
    fn requests_are_left_out_when_there_are_enough_or_all_is_over() {
        let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Queries(0));
        let held = [desk.push(&[(0, 1)]), desk.push(&[(1, 1)])];
        for list in 0..2000 {
            let job = desk.job(2 + list, 1);
            desk.state.request(job);
        }
        assert_eq!(desk.state.stats().queries, 2 + 1024);
        held.into_iter().for_each(|query| desk.end(query));
        desk.work();
        assert_eq!(desk.state.stats().queries, 0);
        desk.state.stopping = true;
        let job = desk.job(7, 1);
        desk.state.request(job);
        assert_eq!(desk.state.stats().queries, 0);
    }
}

//! The queries that wait, in order.
//!
//! An entry is a query: several lists. They are *admitted* one after the other, queries and their lists in order: each is
//! given a chain, or is to be streamed. The queue knows what was admitted; who admits is [`crate::state`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::job::Job;
use crate::segments::NONE;

/// Where the bytes of a list will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this chain, which the entry has pinned unless it is detached.
    Chain(u32),
    /// Nowhere: they are streamed.
    Streamed,
    /// Nowhere: what is in the cache by this key is another list.
    Refused,
}

/// Where the lists of a query are, those that were admitted. It changes under the lock; the query sees it without.
#[derive(Clone)]
pub(crate) struct Places(Arc<[AtomicU32]>);

/// In place of a chain: not admitted.
const WAITS: u32 = NONE;

/// In place of a chain: to be streamed.
const STREAMED: u32 = NONE - 1;

/// In place of a chain: refused.
const REFUSED: u32 = NONE - 2;

/// All chains have smaller numbers.
pub(crate) const CHAINS_MAX: u32 = REFUSED;

/// A query.
struct Entry {
    number: u64,
    jobs: Vec<Job>,
    places: Places,
    /// How many of them were admitted.
    admitted: usize,
    /// Segments that were added to the rolling sum for it.
    counted: u64,
    /// Nobody waits for it: it ends when all is admitted.
    detached: bool,
    ended: bool,
}

/// A list whose turn it is to be admitted.
pub(crate) struct Turn {
    pub(crate) job: Job,
    pub(crate) detached: bool,
    /// How many queries before it have not ended.
    pub(crate) ahead: u64,
}

/// Queries, numbered from 0 in the order in which they came.
#[derive(Default)]
pub(crate) struct Queue {
    /// By number. Those that have ended go in heaps: one that is held for long leaves no more of them behind it than
    /// there are others, and [`ENDED_MAX`].
    entries: VecDeque<Entry>,
    /// How many have not ended, and how many of them are detached.
    open: usize,
    detached: usize,
    /// The number of the next query to come.
    next: u64,
    /// All lists of queries with lower numbers are admitted.
    turn: u64,
    /// How many of these have not ended.
    admitted: u64,
    ended: u64,
}

/// So many entries that have ended are no matter.
const ENDED_MAX: usize = 64;

impl Queue {
    /// Adds a query; gives its number, and where its lists will be.
    pub(crate) fn push(&mut self, jobs: Vec<Job>, detached: bool) -> (u64, Places) {
        let places = Places(jobs.iter().map(|_| AtomicU32::new(WAITS)).collect());
        let (number, shared) = (self.next, places.clone());
        self.entries.push_back(Entry {
            number,
            jobs,
            places,
            admitted: 0,
            counted: 0,
            detached,
            ended: false,
        });
        self.next += 1;
        self.open += 1;
        self.detached += usize::from(detached);
        (number, shared)
    }

    /// The next list to admit.
    pub(crate) fn turn(&mut self) -> Option<Turn> {
        loop {
            let at = self.at(self.turn);
            let entry = self.entries.get(at)?;
            if let Some(job) = entry.jobs.get(entry.admitted) {
                return Some(Turn { job: job.clone(), detached: entry.detached, ahead: self.admitted });
            }
            self.pass(at);
        }
    }

    /// Admits the list whose turn it is. `counted` segments were added to the rolling sum.
    pub(crate) fn admit(&mut self, place: Place, counted: u64) {
        let at = self.at(self.turn);
        let entry = &mut self.entries[at];
        entry.places.set(entry.admitted, place);
        entry.admitted += 1;
        entry.counted += counted;
        if entry.admitted == entry.jobs.len() {
            let (ends, number) = (entry.detached, entry.number);
            self.pass(at);
            if ends {
                self.end(number);
            }
        }
    }

    /// Goes behind an entry all of whose lists are admitted, or that has ended.
    fn pass(&mut self, at: usize) {
        let Entry { number, ended, .. } = self.entries[at];
        self.turn = number + 1;
        self.admitted += u64::from(!ended);
    }

    /// The lists that are not admitted, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Job> {
        self.entries.range(self.at(self.turn)..).flat_map(|entry| &entry.jobs[entry.admitted..])
    }

    /// The job of a list, and where it is, if it is admitted.
    pub(crate) fn list(&self, number: u64, list: usize) -> (&Job, Option<Place>) {
        let entry = &self.entries[self.at(number)];
        (&entry.jobs[list], entry.places.get(list))
    }

    /// A query ends, whether or not all its lists were admitted. Gives what was added to the rolling sum for it.
    pub(crate) fn end(&mut self, number: u64) -> u64 {
        let at = self.at(number);
        let entry = &mut self.entries[at];
        debug_assert!(entry.number == number && !entry.ended);
        entry.ended = true;
        (entry.jobs, entry.admitted) = (Vec::new(), 0);
        let counted = entry.counted;
        self.ended += 1;
        self.open -= 1;
        self.detached -= usize::from(entry.detached);
        self.admitted -= u64::from(number < self.turn);
        while self.entries.front().is_some_and(|entry| entry.ended) {
            self.entries.pop_front();
        }
        // So many have ended since the last time that each of them has paid for a step or two.
        if self.entries.len() > 2 * self.open + ENDED_MAX {
            self.entries.retain(|entry| !entry.ended);
        }
        counted
    }

    /// Ends all that nobody waits for.
    pub(crate) fn end_detached(&mut self) {
        let detached = self.entries.iter().filter(|entry| entry.detached && !entry.ended);
        let numbers: Vec<u64> = detached.map(|entry| entry.number).collect();
        for number in numbers {
            self.end(number);
        }
    }

    /// Where the entry with this number stands, or the next one that there is, or would.
    fn at(&self, number: u64) -> usize {
        if number == self.next {
            return self.entries.len();
        }
        // Unless some between them have gone, they stand as far apart as their numbers.
        let first = self.entries.front().map_or(number, |entry| entry.number);
        let near = number.saturating_sub(first) as usize;
        match self.entries.get(near) {
            Some(entry) if entry.number == number => near,
            _ => self.entries.partition_point(|entry| entry.number < number),
        }
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// How many queries have not ended.
    pub(crate) fn len(&self) -> u64 {
        self.open as u64
    }

    /// How many of them nobody waits for.
    pub(crate) fn detached(&self) -> usize {
        self.detached
    }

    /// How many have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// How many queries beyond the oldest were admitted wholly and have not ended.
    pub(crate) fn lookahead(&self) -> u64 {
        self.admitted.saturating_sub(1)
    }
}

impl Places {
    /// How many lists it has.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Where a list is; none as long as it waits.
    pub(crate) fn get(&self, list: usize) -> Option<Place> {
        match self.0[list].load(Ordering::Acquire) {
            WAITS => None,
            STREAMED => Some(Place::Streamed),
            REFUSED => Some(Place::Refused),
            chain => Some(Place::Chain(chain)),
        }
    }

    /// Where those are that were admitted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Place> {
        (0..self.len()).filter_map(|list| self.get(list))
    }

    fn set(&self, list: usize, place: Place) {
        let number = match place {
            Place::Chain(chain) => chain,
            Place::Streamed => STREAMED,
            Place::Refused => REFUSED,
        };
        self.0[list].store(number, Ordering::Release);
    }
}

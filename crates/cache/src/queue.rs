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
}

/// Where the lists of a query are, those that were admitted. It changes under the lock; the query sees it without.
#[derive(Clone)]
pub(crate) struct Places(Arc<[AtomicU32]>);

/// In place of a chain: not admitted.
const WAITS: u32 = NONE;

/// In place of a chain: to be streamed. There are fewer chains.
const STREAMED: u32 = NONE - 1;

/// A query.
struct Entry {
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
    /// How many places behind the oldest query that has not ended.
    pub(crate) ahead: u64,
}

/// Queries, numbered from 0 in the order in which they came.
#[derive(Default)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    /// The number of the first entry: the oldest that has not ended.
    oldest: u64,
    /// The number of the first entry that has a list which is not admitted.
    turn: u64,
    ended: u64,
}

impl Queue {
    /// Adds a query; gives its number, and where its lists will be.
    pub(crate) fn push(&mut self, jobs: Vec<Job>, detached: bool) -> (u64, Places) {
        let places = Places(jobs.iter().map(|_| AtomicU32::new(WAITS)).collect());
        let shared = places.clone();
        self.entries.push_back(Entry { jobs, places, admitted: 0, counted: 0, detached, ended: false });
        (self.oldest + self.entries.len() as u64 - 1, shared)
    }

    /// The next list to admit.
    pub(crate) fn turn(&mut self) -> Option<Turn> {
        loop {
            let ahead = self.turn - self.oldest;
            let entry = self.entries.get(ahead as usize)?;
            if let Some(job) = entry.jobs.get(entry.admitted).filter(|_| !entry.ended) {
                return Some(Turn { job: job.clone(), detached: entry.detached, ahead });
            }
            self.turn += 1;
        }
    }

    /// Admits the list whose turn it is. `counted` segments were added to the rolling sum.
    pub(crate) fn admit(&mut self, place: Place, counted: u64) {
        let entry = &mut self.entries[(self.turn - self.oldest) as usize];
        entry.places.set(entry.admitted, place);
        entry.admitted += 1;
        entry.counted += counted;
        if entry.admitted == entry.jobs.len() {
            let (ends, number) = (entry.detached, self.turn);
            self.turn += 1;
            if ends {
                self.end(number);
            }
        }
    }

    /// The lists that are not admitted, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Job> {
        let from = (self.turn - self.oldest) as usize;
        self.entries.range(from.min(self.entries.len())..).flat_map(|entry| &entry.jobs[entry.admitted..])
    }

    /// The job of a list, and where it is, if it is admitted.
    pub(crate) fn list(&self, number: u64, list: usize) -> (&Job, Option<Place>) {
        let entry = &self.entries[(number - self.oldest) as usize];
        (&entry.jobs[list], entry.places.get(list))
    }

    /// A query ends, whether or not all its lists were admitted. Gives what was added to the rolling sum for it.
    pub(crate) fn end(&mut self, number: u64) -> u64 {
        let entry = &mut self.entries[(number - self.oldest) as usize];
        debug_assert!(!entry.ended);
        entry.ended = true;
        (entry.jobs, entry.admitted) = (Vec::new(), 0);
        let counted = entry.counted;
        self.ended += 1;
        while self.entries.front().is_some_and(|entry| entry.ended) {
            self.entries.pop_front();
            self.oldest += 1;
        }
        self.turn = self.turn.max(self.oldest);
        counted
    }

    /// Ends all that nobody waits for.
    pub(crate) fn end_detached(&mut self) {
        for number in self.oldest..self.oldest + self.entries.len() as u64 {
            // Those at the front may have gone with one before them.
            let entry = number.checked_sub(self.oldest).and_then(|at| self.entries.get(at as usize));
            if entry.is_some_and(|entry| entry.detached && !entry.ended) {
                self.end(number);
            }
        }
    }

    /// How many queries have not ended.
    pub(crate) fn len(&self) -> u64 {
        self.oldest + self.entries.len() as u64 - self.ended
    }

    /// How many have.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// How many queries beyond the oldest were admitted wholly.
    pub(crate) fn lookahead(&self) -> u64 {
        (self.turn - self.oldest).saturating_sub(1)
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
            chain => Some(Place::Chain(chain)),
        }
    }

    /// Where those are that were admitted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Place> {
        (0..self.len()).filter_map(|list| self.get(list))
    }

    fn set(&self, list: usize, place: Place) {
        let number = if let Place::Chain(chain) = place { chain } else { STREAMED };
        self.0[list].store(number, Ordering::Release);
    }
}

//! The prefetch queue: queries in the order in which they were pushed.
//!
//! A query consists of several lists. Queries, and the lists of each, are *admitted* in order: a list is
//! assigned a cache entry, or will be streamed. The queue records admissions; `state` decides them.

use std::collections::VecDeque;

use super::request::ListRequest;

/// How the bytes of a list will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// From this cache entry, which is pinned for the query unless the query is detached.
    Cached(u32),
    /// Through the bounce buffer, without being cached.
    Streamed,
    /// Not at all: the list in the cache under this key has other parts.
    Rejected,
}

/// A query in the queue.
struct QueueEntry {
    number: u64,
    requests: Vec<ListRequest>,
    /// The admissions of the first lists, as many as are admitted.
    admissions: Vec<Admission>,
    /// Cells that were added to the rolling sum for it.
    paced_cells: u64,
    /// No thread waits for it: it ends when all its lists are admitted.
    detached: bool,
    ended: bool,
}

/// The next list to be admitted.
pub(crate) struct NextList {
    pub(crate) request: ListRequest,
    pub(crate) detached: bool,
    /// Number of queries before the query of the list that have not ended: 0 for the oldest query. Limited
    /// by the lookahead.
    pub(crate) queries_before: u64,
}

/// Queries, numbered from 0 in the order in which they were pushed.
#[derive(Default)]
pub(crate) struct PrefetchQueue {
    /// By number. Ended queries are removed in bulk: at most as many of them remain behind an open query as
    /// there are open queries, and [`ENDED_QUERIES_MAX`].
    entries: VecDeque<QueueEntry>,
    /// Number of queries that have not ended, and how many of them are detached.
    open: usize,
    pub(crate) detached: usize,
    /// The number of the next query to be pushed.
    next: u64,
    /// All lists of queries with lower numbers are admitted.
    turn: u64,
    /// How many of the queries with a number below `turn` have not ended.
    admitted: u64,
    /// Number of queries that have ended.
    pub(crate) ended: u64,
}

/// Maximum number of ended queries in the queue. Beyond it they are removed.
const ENDED_QUERIES_MAX: usize = 64;

impl PrefetchQueue {
    /// Appends a query. Returns its number.
    pub(crate) fn push(&mut self, requests: Vec<ListRequest>, detached: bool) -> u64 {
        let (number, admissions) = (self.next, Vec::with_capacity(requests.len()));
        let entry = QueueEntry { number, requests, admissions, paced_cells: 0, detached, ended: false };
        self.entries.push_back(entry);
        self.next += 1;
        self.open += 1;
        self.detached += usize::from(detached);
        number
    }

    /// The next list to be admitted.
    pub(crate) fn next_list(&mut self) -> Option<NextList> {
        loop {
            let at = self.index_of(self.turn);
            let entry = self.entries.get(at)?;
            if let Some(request) = entry.requests.get(entry.admissions.len()) {
                return Some(NextList {
                    request: request.clone(),
                    detached: entry.detached,
                    queries_before: self.admitted,
                });
            }
            self.move_past(at);
        }
    }

    /// Admits the next list. `paced_cells` cells were added to the rolling sum for it.
    pub(crate) fn admit_next(&mut self, admission: Admission, paced_cells: u64) {
        let at = self.index_of(self.turn);
        let entry = &mut self.entries[at];
        entry.admissions.push(admission);
        entry.paced_cells += paced_cells;
        if entry.admissions.len() == entry.requests.len() {
            let (ends, number) = (entry.detached, entry.number);
            self.move_past(at);
            if ends {
                self.end_query(number);
            }
        }
    }

    /// Moves on from a query whose lists are all admitted, or that has ended.
    fn move_past(&mut self, at: usize) {
        let QueueEntry { number, ended, .. } = self.entries[at];
        self.turn = number + 1;
        self.admitted += u64::from(!ended);
    }

    /// The request for a list, and its admission, if there is one.
    pub(crate) fn list(&self, number: u64, list: usize) -> (&ListRequest, Option<Admission>) {
        let entry = &self.entries[self.index_of(number)];
        (&entry.requests[list], entry.admissions.get(list).copied())
    }

    /// Ends a query, whether or not all its lists are admitted. Returns the admissions, and what was added to
    /// the rolling sum for it.
    pub(crate) fn end_query(&mut self, number: u64) -> (Vec<Admission>, u64) {
        let at = self.index_of(number);
        let entry = &mut self.entries[at];
        debug_assert!(entry.number == number && !entry.ended);
        entry.ended = true;
        entry.requests = Vec::new();
        let (admissions, paced_cells) = (std::mem::take(&mut entry.admissions), entry.paced_cells);
        self.ended += 1;
        self.open -= 1;
        self.detached -= usize::from(entry.detached);
        self.admitted -= u64::from(number < self.turn);
        while self.entries.front().is_some_and(|entry| entry.ended) {
            self.entries.pop_front();
        }
        // Amortized: more than half of the queries here have ended, all of them since the last removal.
        if self.entries.len() > 2 * self.open + ENDED_QUERIES_MAX {
            self.entries.retain(|entry| !entry.ended);
        }
        (admissions, paced_cells)
    }

    /// Ends all detached queries.
    pub(crate) fn end_detached(&mut self) {
        let detached = self.entries.iter().filter(|entry| entry.detached && !entry.ended);
        let numbers: Vec<u64> = detached.map(|entry| entry.number).collect();
        for number in numbers {
            self.end_query(number);
        }
    }

    /// The index of the query with this number, or of the next one.
    fn index_of(&self, number: u64) -> usize {
        if number == self.next {
            return self.entries.len();
        }
        // Unless queries between them were removed, their indexes differ by as much as their numbers.
        let first = self.entries.front().map_or(number, |entry| entry.number);
        let index = number.saturating_sub(first) as usize;
        match self.entries.get(index) {
            Some(entry) if entry.number == number => index,
            _ => self.entries.partition_point(|entry| entry.number < number),
        }
    }

    /// Number of queries in the queue, ended ones included.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Number of queries that have not ended.
    pub(crate) fn len(&self) -> u64 {
        self.open as u64
    }

    /// Number of queries behind the oldest whose lists are all admitted and that have not ended.
    pub(crate) fn lookahead(&self) -> u64 {
        self.admitted.saturating_sub(1)
    }
}

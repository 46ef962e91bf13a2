//! How many tokens each document has: the sum of its frequencies in all lists.
//!
//! Each thread sums up for documents of its own. It goes over them in windows whose sums stay in the cache of its core:
//! of the long lists it makes the stretches of a window, list after list, before it goes to the next window; then it goes
//! over them again with shorter lists and wider windows. The shortest lists are made whole. So that windows are wide, a sum
//! is one byte, which carries what is too much for it.

use super::list::{List, Stretches};
use super::{Collection, Progress, Steps};
use std::iter::Peekable;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use tierdex::Result;
use tierdex::index::Stop;

/// Documents of a window, for the longest lists and for shorter ones.
const WINDOWS: [u32; 3] = [1 << 14, 1 << 17, 1 << 19];

/// A list is long enough for windows in each of which it has so many postings on average.
const LONG: u64 = 32;

/// Lists that are made together, window after window, at most.
const LISTS: usize = 1 << 15;

/// Makes all lists and sums up, by `threads` threads.
pub(super) fn count(
    of: &Collection,
    threads: usize,
    stop: &Stop,
    progress: Progress<'_>,
) -> Result<Vec<u32>> {
    let mut lengths = vec![0; of.documents as usize];
    let width = lengths.len().div_ceil(threads.max(1));
    let parts = (0..).step_by(width).zip(lengths.chunks_mut(width));
    let parts = parts.map(|(first, lengths)| Part {
        of,
        first,
        low: vec![0; lengths.len()],
        lengths,
        documents: Vec::new(),
    });
    let parts: Vec<Part<'_>> = parts.collect();
    let others = parts.len().saturating_sub(1);
    let parts = Mutex::new(parts);
    std::thread::scope(|scope| {
        let work = || count_parts(&parts, stop, &mut |_| ());
        // What the system gives no threads for, the others do.
        let others = (0..others).map_while(|_| Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = others.collect();
        // All threads are about as far as this one.
        let threads = others.len() as u64 + 1;
        count_parts(&parts, stop, &mut |done| progress(done * threads))?;
        others.into_iter().try_for_each(|thread| thread.join().expect("counting does not panic"))
    })?;
    Ok(lengths)
}

/// Counts parts until none is left, and says how many postings these had so far.
fn count_parts(parts: &Mutex<Vec<Part<'_>>>, stop: &Stop, progress: Progress<'_>) -> Result<()> {
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut done = 0;
    while let Some(mut part) = next() {
        let before = done;
        part.count(stop, &mut |counted| {
            done = before + counted;
            progress(done);
        })?;
    }
    Ok(())
}

/// The documents of one thread.
struct Part<'a> {
    of: &'a Collection,
    first: u32,
    lengths: &'a mut [u32],
    /// The lowest byte of each sum; the others are in `lengths`.
    low: Vec<u8>,
    /// Those of a stretch.
    documents: Vec<u32>,
}

impl<'a> Part<'a> {
    fn count(&mut self, stop: &Stop, progress: Progress<'_>) -> Result<()> {
        let mut steps = Steps::from(0);
        let mut tell = |made| steps.add(made, progress);
        let mut rank = 1;
        for width in WINDOWS {
            let windows = u64::from(self.of.documents.div_ceil(width));
            let long = |rank: &u32| u64::from(self.of.documents(*rank)) >= LONG * windows;
            loop {
                let longer = (rank..=self.of.vocabulary()).take(LISTS).take_while(long);
                let mut lists: Vec<_> = longer.map(|rank| self.list(rank)).collect();
                if lists.is_empty() {
                    break;
                }
                rank += lists.len() as u32;
                for start in (u64::from(self.first)..self.end()).step_by(width as usize) {
                    let end = start + u64::from(width);
                    lists.iter_mut().for_each(|list| self.add(list, end, &mut tell));
                    stop.check()?;
                }
            }
        }
        for rank in rank..=self.of.vocabulary() {
            let mut list = self.list(rank);
            self.add(&mut list, self.end(), &mut tell);
            stop.check()?;
        }
        self.lengths.iter_mut().zip(&self.low).for_each(|(length, &low)| *length += u32::from(low));
        Ok(())
    }

    /// Behind the last document.
    fn end(&self) -> u64 {
        u64::from(self.first) + self.lengths.len() as u64
    }

    /// A list, and its stretches from the first one on that reaches into the part.
    fn list(&self, rank: u32) -> (List<'a>, Peekable<Stretches>) {
        let list = self.of.list(rank);
        let mut stretches = list.stretches().peekable();
        while stretches.next_if(|stretch| stretch.documents.end <= self.first).is_some() {}
        (list, stretches)
    }

    /// Adds frequencies to the lengths: those of the next stretches that begin before the documents `end`.
    fn add(
        &mut self,
        (list, stretches): &mut (List<'a>, Peekable<Stretches>),
        end: u64,
        made: &mut impl FnMut(u64),
    ) {
        let end = end.min(self.end());
        while let Some(stretch) = stretches.next_if(|stretch| u64::from(stretch.documents.start) < end) {
            let (documents, frequencies) = list.drawn(&stretch);
            // Apart, so that the documents are made by vectors.
            self.documents.clear();
            self.documents.extend(documents);
            for (&document, &frequency) in self.documents.iter().zip(frequencies) {
                let place = document.wrapping_sub(self.first) as usize;
                // Documents of others wrap around or lie behind the end.
                if let Some(low) = self.low.get_mut(place) {
                    let carry;
                    (*low, carry) = low.overflowing_add(frequency);
                    if carry {
                        self.lengths[place] += 1 << u8::BITS;
                    }
                }
            }
            // What two parts make is told by the first one.
            if stretch.documents.start >= self.first {
                made(u64::from(stretch.postings));
            }
        }
    }
}

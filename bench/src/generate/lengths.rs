//! Document lengths: the sum of a document's frequencies over all lists.
//!
//! Each thread computes the lengths of a range of documents. It processes the range in windows whose sums
//! stay in the cache of its core: for the longest lists it generates the buckets of a window, list after
//! list, before it advances to the next window; then it repeats this with shorter lists and wider windows.
//! The shortest lists are generated as a whole. To keep windows wide, a sum is one byte; overflows are
//! carried into the full length.

use crate::generate::collection::{Collection, Progress, ProgressSteps};
use crate::generate::list::{Buckets, GeneratedList};
use std::{iter::Peekable, sync::Mutex, sync::PoisonError, thread::Builder};
use tierdex::{Result, StopSignal};

/// Number of documents of a window: for the longest lists, for shorter ones, for the shortest with windows.
const WINDOW_DOCUMENTS: [u32; 3] = [1 << 14, 1 << 17, 1 << 19];

/// A list is processed by windows if a window has at least this many of its postings on average.
const WINDOW_POSTINGS_MIN: u64 = 32;

/// Largest number of lists that are processed together.
const LISTS_TOGETHER_MAX: usize = 1 << 15;

/// Generates all lists on `threads` threads and returns the length of each document.
pub(super) fn compute_lengths(
    of: &Collection,
    threads: usize,
    stop: &StopSignal,
    progress: Progress<'_>,
) -> Result<Vec<u32>> {
    let mut lengths = vec![0; of.documents as usize];
    let width = lengths.len().div_ceil(threads.max(1));
    let parts = (0..).step_by(width).zip(lengths.chunks_mut(width));
    let parts = parts.map(|(first, lengths)| DocumentSlice {
        of,
        first,
        low: vec![0; lengths.len()],
        lengths,
        documents: Vec::new(),
    });
    let parts: Vec<DocumentSlice<'_>> = parts.collect();
    let others = parts.len().saturating_sub(1);
    let parts = Mutex::new(parts);
    std::thread::scope(|scope| {
        let work = || process_slices(&parts, stop, &mut |_| ());
        // If the system refuses threads, the others do their work.
        let others = (0..others).map_while(|_| Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = others.collect();
        // Assumes that all threads progress equally.
        let threads = others.len() as u64 + 1;
        process_slices(&parts, stop, &mut |done| progress(done * threads))?;
        others.into_iter().try_for_each(|thread| thread.join().expect("counting does not panic"))
    })?;
    Ok(lengths)
}

/// Processes slices until none is left, and reports their postings.
fn process_slices(
    parts: &Mutex<Vec<DocumentSlice<'_>>>,
    stop: &StopSignal,
    progress: Progress<'_>,
) -> Result<()> {
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut done = 0;
    while let Some(mut part) = next() {
        let before = done;
        part.add_all_lists(stop, &mut |counted| {
            done = before + counted;
            progress(done);
        })?;
    }
    Ok(())
}

/// A range of documents, whose lengths one thread computes.
struct DocumentSlice<'a> {
    of: &'a Collection,
    first: u32,
    lengths: &'a mut [u32],
    /// The lowest byte of each sum. Carries are in `lengths`.
    low: Vec<u8>,
    /// Documents of one bucket, a scratch buffer.
    documents: Vec<u32>,
}

/// A list, and those of its buckets whose frequencies were not added yet.
struct ListInProgress<'a> {
    list: GeneratedList<'a>,
    buckets: Peekable<Buckets>,
}

impl<'a> DocumentSlice<'a> {
    fn add_all_lists(&mut self, stop: &StopSignal, progress: Progress<'_>) -> Result<()> {
        let mut steps = ProgressSteps::from(0);
        let mut tell = |made| steps.add(made, progress);
        let mut rank = 1;
        for width in WINDOW_DOCUMENTS {
            let windows = u64::from(self.of.documents.div_ceil(width));
            let long = |rank: &u32| u64::from(self.of.documents(*rank)) >= WINDOW_POSTINGS_MIN * windows;
            loop {
                let longer = (rank..=self.of.vocabulary()).take(LISTS_TOGETHER_MAX).take_while(long);
                let mut lists: Vec<_> = longer.map(|rank| self.list_from_here(rank)).collect();
                if lists.is_empty() {
                    break;
                }
                rank += lists.len() as u32;
                for start in (u64::from(self.first)..self.end()).step_by(width as usize) {
                    let end = start + u64::from(width);
                    lists.iter_mut().for_each(|list| self.add_buckets(list, end, &mut tell));
                    stop.check()?;
                }
            }
        }
        for rank in rank..=self.of.vocabulary() {
            let mut list = self.list_from_here(rank);
            self.add_buckets(&mut list, self.end(), &mut tell);
            stop.check()?;
        }
        self.lengths.iter_mut().zip(&self.low).for_each(|(length, &low)| *length += u32::from(low));
        Ok(())
    }

    /// The end of the range.
    fn end(&self) -> u64 {
        u64::from(self.first) + self.lengths.len() as u64
    }

    /// A list, and its buckets from the first one that overlaps the range.
    fn list_from_here(&self, rank: u32) -> ListInProgress<'a> {
        let list = self.of.list(rank);
        let mut buckets = list.buckets().peekable();
        while buckets.next_if(|bucket| bucket.documents.end <= self.first).is_some() {}
        ListInProgress { list, buckets }
    }

    /// Adds the frequencies of the next buckets that begin before document `end` to the lengths.
    fn add_buckets(&mut self, list: &mut ListInProgress<'a>, end: u64, made: &mut impl FnMut(u64)) {
        let ListInProgress { list, buckets } = list;
        let end = end.min(self.end());
        while let Some(bucket) = buckets.next_if(|bucket| u64::from(bucket.documents.start) < end) {
            let (documents, frequencies) = list.draw(&bucket);
            // A loop of its own, so that it is vectorized.
            self.documents.clear();
            self.documents.extend(documents);
            for (&document, &frequency) in self.documents.iter().zip(frequencies) {
                let index = document.wrapping_sub(self.first) as usize;
                // The index of a document outside the range is too large, also by wrapping around.
                if let Some(low) = self.low.get_mut(index) {
                    let carry;
                    (*low, carry) = low.overflowing_add(frequency);
                    if carry {
                        self.lengths[index] += 1 << u8::BITS;
                    }
                }
            }
            // A bucket that overlaps two ranges is reported for the first of them.
            if bucket.documents.start >= self.first {
                made(u64::from(bucket.postings));
            }
        }
    }
}

//! How many tokens each document has: the sum of its frequencies in all lists.
//!
//! Each thread sums up for documents of its own. It goes over them in windows whose sums stay in the cache of its core:
//! of the long lists it makes the stretches of a window, list after list, before it goes to the next window. Short lists
//! are made whole.

use super::list::{List, Postings, Stretch};
use super::{Collection, Progress, Steps};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use tierdex::Result;
use tierdex::index::Stop;

/// Documents of a window.
const WINDOW: u32 = 1 << 16;

/// A list is long if it has so many postings in a window on average.
const LONG: u64 = 32;

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
    let parts = parts.map(|(first, lengths)| Part { of, first, lengths, postings: Postings::default() });
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
    postings: Postings,
}

impl Part<'_> {
    fn count(&mut self, stop: &Stop, progress: Progress<'_>) -> Result<()> {
        let windows = u64::from(self.of.documents.div_ceil(WINDOW));
        let is_long = |rank: &u32| u64::from(self.of.documents(*rank)) >= LONG * windows;
        let long = (1..=self.of.vocabulary()).take_while(is_long).count() as u32;
        let mut steps = Steps::from(0);
        let end = self.first + self.lengths.len() as u32;
        let mut lists: Vec<_> = (1..=long)
            .map(|rank| {
                let list = self.of.list(rank);
                let first = self.first;
                let stretches = list.stretches().skip_while(move |stretch| stretch.documents.end <= first);
                (list, stretches.peekable())
            })
            .collect();
        for window_end in
            (self.first..end).step_by(WINDOW as usize).map(|at| end.min(at.saturating_add(WINDOW)))
        {
            for (list, stretches) in &mut lists {
                while let Some(stretch) = stretches.next_if(|stretch| stretch.documents.start < window_end) {
                    steps.add(self.add(list, &stretch), progress);
                }
            }
            stop.check()?;
        }
        for rank in long + 1..=self.of.vocabulary() {
            let list = self.of.list(rank);
            let reaches = |stretch: &Stretch| stretch.documents.start < end;
            for stretch in list.stretches().take_while(reaches) {
                if stretch.documents.end > self.first {
                    steps.add(self.add(&list, &stretch), progress);
                }
            }
            stop.check()?;
        }
        Ok(())
    }

    /// Adds a stretch's frequencies to the lengths; returns how many postings that were.
    fn add(&mut self, list: &List<'_>, stretch: &Stretch) -> u64 {
        self.postings.clear();
        list.fill(stretch, &mut self.postings);
        let mut added = 0;
        for (document, frequency) in self.postings.iter() {
            // Documents of others wrap around or lie behind the end.
            if let Some(length) = self.lengths.get_mut(document.wrapping_sub(self.first) as usize) {
                *length += frequency;
                added += 1;
            }
        }
        added
    }
}

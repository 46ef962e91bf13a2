//! How many documents hold any of several terms, or all of them if each is frequent: by bits of windows.

use super::Scored;
use super::all::best_of_all;
use super::any::within;
use super::scratch::Scratch;
use crate::error::Result;
use crate::rank::TopK;
use tierdex_codec::{collect_bits, ones};

/// Documents that are marked at a time.
const WINDOW: usize = 1 << 15;

/// Number of documents below `documents` that hold any of `terms`.
pub fn count_any(terms: &mut [Scored<'_>], documents: u32, scratch: &mut Scratch) -> Result<u64> {
    if terms.len() == 2 && !are_frequent(terms, documents) {
        // Those of either, but for those of both, which are quicker to find.
        let all = terms.iter().map(|term| u64::from(term.documents)).sum::<u64>();
        return Ok(all - best_of_all(terms, true, 0, scratch, &mut TopK::default())?);
    }
    let mut marks = scratch.marks.pop().unwrap_or_default();
    let mut count = 0;
    for first in (0..documents).step_by(WINDOW) {
        let last = documents.min(first.saturating_add(WINDOW as u32)) - 1;
        for term in terms.iter_mut() {
            term.advance(first);
            marks.add(term, (first, last))?;
        }
        count += marks.take();
    }
    scratch.marks.push(marks);
    Ok(count)
}

/// Terms of which each stands in more than one of so many documents are counted window by window.
const FREQUENT: u32 = 8;

/// Whether [`count_frequent`] is the way to count the documents that hold all of `terms`.
pub fn are_frequent(terms: &[Scored<'_>], documents: u32) -> bool {
    terms.iter().all(|term| term.documents > documents / FREQUENT)
}

/// Number of documents below `documents` that hold all of `terms`, of which there is at least one.
pub fn count_frequent(terms: &mut [Scored<'_>], documents: u32, scratch: &mut Scratch) -> Result<u64> {
    let [mut all, mut these] = [(); 2].map(|()| scratch.marks.pop().unwrap_or_default());
    let mut count = 0;
    for first in (0..documents).step_by(WINDOW) {
        let last = documents.min(first.saturating_add(WINDOW as u32)) - 1;
        for (number, term) in terms.iter_mut().enumerate() {
            term.advance(first);
            if number == 0 {
                all.add(term, (first, last))?;
            } else {
                these.add(term, (first, last))?;
                all.keep_common(&mut these);
            }
        }
        count += all.take();
    }
    scratch.marks.extend([all, these]);
    Ok(count)
}

/// Documents of a window, the first of which is a multiple of eight.
pub(super) struct Marks {
    /// A byte each, 0 or 1: no mark waits for the one before.
    bytes: Box<[u8; WINDOW]>,
    /// Whether a byte has been marked.
    some: bool,
    /// A bit each, for those that come as bits.
    bits: Box<[u8; WINDOW / 8]>,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { bytes: Box::new([0; _]), some: false, bits: Box::new([0; _]) }
    }
}

impl Marks {
    /// Marks the term's documents from `first`, that of the window, to `last`.
    fn add(&mut self, term: &mut Scored<'_>, (first, last): (u32, u32)) -> Result<()> {
        for block in term.block..term.blocks.len() {
            if term.blocks.first(block) > last {
                break;
            }
            if let Some(bitmap) = term.blocks.bitmap(block)? {
                let (before, from) = match bitmap.first().checked_sub(first) {
                    Some(after) => (0, after as usize / 8),
                    None => ((first - bitmap.first()) as usize / 8, 0),
                };
                let marks = self.bits[from..].iter_mut();
                marks.zip(&bitmap.bits()[before..]).for_each(|(mark, bits)| *mark |= bits);
                continue;
            }
            let documents = term.blocks.documents(block)?;
            for document in &documents[within(documents, first, last)] {
                self.bytes[(document - first) as usize % WINDOW] = 1;
            }
            self.some = true;
        }
        Ok(())
    }

    /// Makes bits of all marks.
    fn collect(&mut self) {
        if self.some {
            collect_bits(&mut *self.bytes, &mut *self.bits);
            self.some = false;
        }
    }

    /// Keeps the documents that are among the others as well. None of these are left.
    fn keep_common(&mut self, others: &mut Marks) {
        self.collect();
        others.collect();
        for (bits, others) in self.bits.iter_mut().zip(others.bits.iter_mut()) {
            *bits &= *others;
            *others = 0;
        }
    }

    /// The number of marked documents. None are left.
    fn take(&mut self) -> u64 {
        self.collect();
        let count = ones(&*self.bits);
        self.bits.fill(0);
        count as u64
    }
}

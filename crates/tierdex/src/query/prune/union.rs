//! How many documents hold any of several terms.

use super::Scored;
use super::all::best_of_all;
use super::any::within;
use super::scratch::Scratch;
use crate::error::Result;
use crate::rank::TopK;

/// Documents whose bits are set at a time.
const WINDOW: usize = 1 << 15;

/// Number of documents below `documents` that hold any of `terms`.
pub fn count_any(terms: &mut [Scored<'_>], documents: u32, scratch: &mut Scratch) -> Result<u64> {
    if let [first, second] = terms {
        // Those of either, but for those of both, which are quicker to find.
        let all = u64::from(first.documents) + u64::from(second.documents);
        return Ok(all - best_of_all(terms, true, 0, scratch, &mut TopK::default())?);
    }
    let mut bits = [0u64; WINDOW / 64];
    let mut count = 0;
    for first in (0..documents).step_by(WINDOW) {
        let last = documents.min(first.saturating_add(WINDOW as u32)) - 1;
        for term in terms.iter_mut() {
            term.advance(first);
            set(term, (first, last), &mut bits)?;
        }
        count += bits.iter_mut().map(|word| u64::from(std::mem::take(word).count_ones())).sum::<u64>();
    }
    Ok(count)
}

/// Sets the bits of the term's documents from `first` to `last`.
fn set(term: &mut Scored<'_>, (first, last): (u32, u32), bits: &mut [u64; WINDOW / 64]) -> Result<()> {
    for block in term.block..term.blocks.len() {
        if term.blocks.first(block) > last {
            break;
        }
        let documents = term.blocks.documents(block)?;
        for document in &documents[within(documents, first, last)] {
            let place = (document - first) as usize % WINDOW;
            bits[place / 64] |= 1 << (place % 64);
        }
    }
    Ok(())
}

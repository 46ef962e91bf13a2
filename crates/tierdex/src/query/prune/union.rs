//! How many documents hold any of several terms.

use super::Scored;
use super::all::best_of_all;
use super::any::within;
use super::scratch::Scratch;
use crate::error::Result;
use crate::rank::TopK;
use tierdex_codec::ones;

/// Documents that are marked at a time, each in a byte of its own: no mark waits for the one before.
const WINDOW: usize = 1 << 15;

/// Number of documents below `documents` that hold any of `terms`.
pub fn count_any(terms: &mut [Scored<'_>], documents: u32, scratch: &mut Scratch) -> Result<u64> {
    if let [first, second] = terms {
        // Those of either, but for those of both, which are quicker to find.
        let all = u64::from(first.documents) + u64::from(second.documents);
        return Ok(all - best_of_all(terms, true, 0, scratch, &mut TopK::default())?);
    }
    let mut marks = vec![0; WINDOW];
    let mut count = 0;
    for first in (0..documents).step_by(WINDOW) {
        let last = documents.min(first.saturating_add(WINDOW as u32)) - 1;
        for term in terms.iter_mut() {
            term.advance(first);
            mark(term, (first, last), &mut marks)?;
        }
        count += ones(&marks) as u64;
        marks.fill(0);
    }
    Ok(count)
}

/// Marks the term's documents from `first` to `last`.
fn mark(term: &mut Scored<'_>, (first, last): (u32, u32), marks: &mut [u8]) -> Result<()> {
    let marks: &mut [u8; WINDOW] = marks.try_into().expect("a window");
    for block in term.block..term.blocks.len() {
        if term.blocks.first(block) > last {
            break;
        }
        let documents = term.blocks.documents(block)?;
        for document in &documents[within(documents, first, last)] {
            marks[(document - first) as usize % WINDOW] = 1;
        }
    }
    Ok(())
}

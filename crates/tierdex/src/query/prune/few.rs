//! Documents that hold any of several terms, all of which stand in few documents: their lists are merged whole.

use super::Scored;
use super::scratch::Scratch;
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;

/// Postings that are few for each window of documents: passing over the windows would take as long.
const FEW_IN_WINDOW: u64 = 24;

/// Postings of all terms together that are few in any case.
const FEW: u64 = 4 * BLOCK as u64;

/// Whether terms with so many postings together are worth merging whole. Each list is gone through once for each that
/// follows it.
pub fn few(terms: usize, postings: u64, documents: u32) -> bool {
    let windows = u64::from(documents) / super::sums::WINDOW as u64;
    terms <= 8 && postings <= FEW.max(windows * FEW_IN_WINDOW).min(1 << 16)
}

/// Offers the documents that hold any of `terms` to `top`, numbered from `base` on. Scores are summed in the order of
/// `terms`. Returns how many documents there are.
pub fn best_of_few(
    terms: &mut [Scored<'_>],
    base: u32,
    scratch: &mut Scratch,
    top: &mut TopK,
) -> Result<u64> {
    let [so_far, next, merged] = &mut scratch.batches;
    so_far.clear();
    for term in terms {
        next.clear();
        for block in 0..term.blocks.len() {
            let (documents, scores) = term.read(block)?;
            next.push_all(documents, scores);
        }
        if so_far.len() == 0 {
            std::mem::swap(so_far, next);
        } else {
            merged.merge(so_far, next);
            std::mem::swap(so_far, merged);
        }
    }
    for (documents, scores) in so_far.documents.chunks(BLOCK).zip(so_far.scores.chunks(BLOCK)) {
        top.offer_all(base, documents, scores);
    }
    Ok(so_far.len() as u64)
}

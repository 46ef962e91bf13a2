//! Documents that match any of several terms which few documents hold: the lists are merged whole.

use super::node::Node;
use super::refine::Refiners;
use super::search::Search;
use super::tuning::{MERGED_IN_WINDOW, MERGED_LISTS, MERGED_MAX, WINDOW};
use crate::error::Result;

/// Whether so many lists with so many postings together are worth merging whole.
pub fn is_small(lists: usize, postings: u64, documents: u32) -> bool {
    let windows = u64::from(documents).div_ceil(WINDOW as u64);
    lists <= MERGED_LISTS && postings <= (windows * MERGED_IN_WINDOW).min(MERGED_MAX)
}

/// Offers the documents that hold any of the terms and that the refiners let pass. Returns how many there
/// are.
pub(super) fn small_merge(
    nodes: &mut [Node<'_>],
    refiners: &mut Refiners<'_, '_>,
    search: &mut Search<'_>,
) -> Result<u64> {
    let [mut so_far, mut next, mut merged] = [(); 3].map(|()| search.scratch.batch());
    for node in nodes {
        let Node::Term(term) = node else { continue };
        next.clear();
        for block in 0..term.blocks.len() {
            let (documents, scores) = term.read(block)?;
            next.push_all(documents, scores);
        }
        if so_far.len() == 0 {
            std::mem::swap(&mut so_far, &mut next);
        } else {
            merged.merge(&so_far, &next);
            std::mem::swap(&mut so_far, &mut merged);
        }
    }
    if !search.count {
        so_far.retain(search.min_score());
    }
    refiners.select(&mut so_far, search)?;
    search.offer(&so_far);
    let found = so_far.len() as u64;
    [so_far, next, merged].into_iter().for_each(|batch| search.scratch.give_batch(batch));
    Ok(found)
}

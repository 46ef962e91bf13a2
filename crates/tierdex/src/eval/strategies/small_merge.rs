//! Disjunction of several terms with few postings: all postings are scored, and the lists merged pairwise.

use crate::eval::state::{DocRange, Search};
use crate::{Error, Result, eval::nodes::Node, eval::nodes::RefiningClause};

/// Offers the documents that contain any of the terms and match none of the exclusions to the collector.
/// Returns their number.
pub(crate) fn small_merge(
    nodes: &mut [Node<'_>],
    exclusions: &mut [RefiningClause<'_>],
    search: &mut Search<'_>,
) -> Result<u64> {
    let postings: u64 = nodes.iter().map(Node::cost).sum();
    let [mut lists, mut merged] = [(); 2].map(|()| search.scratch.take_batch(postings as usize));
    let mut list_ends = std::mem::take(&mut search.scratch.order);
    list_ends.clear();
    nodes
        .iter_mut()
        .try_fold(true, |all, node| Ok::<bool, Error>(all && node.prefetch(DocRange::ALL, 0, true)?))?;
    for node in nodes {
        let Node::Term(term) = node else { continue };
        for block in 0..term.blocks.len() {
            search.checkpoint(search.end)?;
            let (documents, scores) = term.read_block(block)?;
            lists.push_all(documents, scores);
        }
        list_ends.push(lists.len());
    }
    // Merge adjacent lists pairwise until one is left. All are in one batch; `list_ends` has the end of each.
    while list_ends.len() > 1 {
        merged.clear();
        let mut start = 0;
        for pair in 0..list_ends.len().div_ceil(2) {
            let middle = list_ends[2 * pair];
            let end = list_ends.get(2 * pair + 1).copied().unwrap_or(middle);
            merged.push_union(&lists, start..middle, middle..end);
            list_ends[pair] = merged.len();
            start = end;
        }
        list_ends.truncate(list_ends.len().div_ceil(2));
        std::mem::swap(&mut lists, &mut merged);
    }
    search.scratch.order = list_ends;
    if !search.covers_segment() {
        lists.clip_to(search.range());
    }
    if !search.counts_matches {
        lists.retain_at_least(search.min_score());
    }
    for exclusion in exclusions {
        exclusion.refine_batch(&mut lists, 0, search.scratch)?;
    }
    search.offer_all(&lists.documents, &lists.scores);
    let found = lists.len() as u64;
    [merged, lists].into_iter().for_each(|batch| search.scratch.give_batch(batch));
    Ok(found)
}

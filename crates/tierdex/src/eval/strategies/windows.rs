//! Evaluates any query, one window of documents after the other: the strategy if no other one applies.

use crate::eval::state::{DocRange, ScoreWindow, Search, prefetch_ahead, window_from};
use crate::eval::tuning::{COUNTED_DOCS, WINDOW_DOCS};
use crate::{Result, cursor::NO_DOCUMENT, eval::nodes::Node, limits::BLOCK, query::Clauses};

/// Offers the documents that match to the collector, except those that cannot be hits. Returns the number of
/// matches if they are counted, else the number of documents evaluated.
pub(crate) fn evaluate_windows(
    clauses: &mut Clauses<Node<'_>>,
    has_positive_scores: bool,
    search: &mut Search<'_>,
) -> Result<u64> {
    let (mut window, mut evaluated) = (search.scratch.take_window(), 0);
    for_each_range(clauses, search, WindowPass::Matches, |clauses, range, search| {
        let bound = clauses.max_score(range)?;
        if !bound.is_some_and(|bound| search.counts_matches || search.may_enter(bound, range.first)) {
            return Ok(true);
        }
        window.restart(range);
        clauses.add_scores(&mut window, search.scratch)?;
        let matches = if has_positive_scores { None } else { Some(offer_window_zeros(&mut window, search)) };
        let survivors = window.drain_at_least(search.min_score());
        evaluated += matches.unwrap_or(survivors.positive() as u64);
        search.offer_all(survivors.values(), survivors.sums());
        Ok(true)
    })?;
    search.scratch.give_window(window);
    Ok(evaluated)
}

/// Offers the documents that pass filters and exclusions and match no scored clause to the collector, with
/// score 0, as long as such documents may be hits.
pub(crate) fn offer_zero_scores(clauses: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<()> {
    let (mut bits, mut other) = (search.scratch.take_bits(), search.scratch.take_bits());
    for_each_range(clauses, search, WindowPass::ZeroScores, |clauses, range, search| {
        if !search.may_enter(0, range.first) {
            return Ok(false);
        }
        bits.restart(range);
        clauses.mark_zero_scored(&mut bits, &mut other, search.scratch)?;
        offer_zeros(bits.documents(), search);
        Ok(true)
    })?;
    search.scratch.give_bits(bits);
    search.scratch.give_bits(other);
    Ok(())
}

/// The ranges of documents in which a pass over a segment looks for matches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowPass {
    /// Ranges with matches. Another thread may take over the documents that are left.
    Matches,
    /// As `Matches`, in longer ranges, whose matches are only counted.
    Count,
    /// Ranges with documents that pass the filters, in a second pass after the matches of scored clauses. No
    /// other thread takes over documents: it would search them for matches again.
    ZeroScores,
}

impl WindowPass {
    fn next_doc(self, clauses: &mut Clauses<Node<'_>>, from: u32) -> u32 {
        match self {
            WindowPass::Matches | WindowPass::Count => clauses.next_lower_bound(from),
            WindowPass::ZeroScores => clauses.next_passing_filters(from),
        }
    }
}

/// Calls `body` with the ranges of a pass, until it returns false.
pub(crate) fn for_each_range<'a>(
    clauses: &mut Clauses<Node<'a>>,
    search: &mut Search<'_>,
    pass: WindowPass,
    mut body: impl FnMut(&mut Clauses<Node<'a>>, DocRange, &mut Search<'_>) -> Result<bool>,
) -> Result<()> {
    let mut prefetched_to = if clauses.prefetches() { 0 } else { u32::MAX };
    let mut next = pass.next_doc(clauses, search.first);
    while next != NO_DOCUMENT && next < search.end {
        search.checkpoint(if pass == WindowPass::ZeroScores { search.end } else { next })?;
        let size = if pass == WindowPass::Count { COUNTED_DOCS } else { WINDOW_DOCS };
        let range = window_from(next, size, search.end);
        if range.first >= prefetched_to {
            let prefetch = |range| clauses.prefetch(range, pass != WindowPass::Count);
            prefetched_to = prefetch_ahead(range.first, search.end, prefetch)?.max(range.last);
        }
        if !body(clauses, range, search)? {
            break;
        }
        next = if range.last + 1 < search.end { pass.next_doc(clauses, range.last + 1) } else { NO_DOCUMENT };
    }
    Ok(())
}

/// Offers the matches of a window that score 0 to the collector, and returns the number of all its matches.
fn offer_window_zeros(window: &mut ScoreWindow, search: &mut Search<'_>) -> u64 {
    let first = window.origin();
    let matches = window.collect_matches().count();
    if search.may_enter(0, window.range().first) {
        let (bits, sums) = window.matches_and_sums();
        offer_zeros(bits.documents().filter(|document| sums[(document - first) as usize] == 0), search);
    }
    matches
}

/// Offers ascending documents with score 0 to the collector.
fn offer_zeros(documents: impl Iterator<Item = u32>, search: &mut Search<'_>) {
    let (mut block, mut len) = ([0; BLOCK], 0);
    for document in documents {
        block[len] = document;
        len += 1;
        if len == BLOCK {
            search.offer_all(&block, &[0; BLOCK]);
            len = 0;
        }
    }
    search.offer_all(&block[..len], &[0; BLOCK][..len]);
}

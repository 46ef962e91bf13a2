//! Evaluates any query window by window: the fallback for queries without a better strategy.

use super::node::Node;
use super::range::{prefetch_ahead, range_from};
use super::search::Search;
use super::tuning::WINDOW;
use super::window::ScoreWindow;
use crate::cursor::NO_DOCUMENT;
use crate::error::Result;
use crate::limits::BLOCK;

/// Offers the documents that match, except those that cannot be hits. Returns the number of matches if they
/// are counted, else the number of documents evaluated.
pub(super) fn windows(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
    let (mut window, mut evaluated) = (search.scratch.window(), 0);
    for_each_range(root, search, true, |root, range, search| {
        let bound = root.max_score(range)?;
        if !bound.is_some_and(|bound| search.count || search.may_enter(bound, range.0)) {
            root.skip_range(range.0, range.1);
            return Ok(true);
        }
        window.restart(range);
        root.add(&mut window, search.scratch)?;
        let matches = if root.always_scores() { None } else { Some(offer_unscored(&mut window, search)) };
        let survivors = window.drain_at_least(search.min_score());
        evaluated += matches.unwrap_or(survivors.positive() as u64);
        for (documents, sums) in survivors.values().chunks(BLOCK).zip(survivors.sums().chunks(BLOCK)) {
            search.top.offer_all(search.base, documents, sums);
        }
        search.top.raise_threshold();
        Ok(true)
    })?;
    search.scratch.give_window(window);
    Ok(evaluated)
}

/// Offers the documents that match with score 0, while they may be hits.
pub(super) fn offer_zero_scores(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<()> {
    let mut window = search.scratch.window();
    // Not divisible: another evaluation would repeat the first pass over its part.
    for_each_range(root, search, false, |root, range, search| {
        if !search.may_enter(0, range.0) {
            return Ok(false);
        }
        window.restart(range);
        root.add(&mut window, search.scratch)?;
        offer_unscored(&mut window, search);
        window.drain_at_least(u32::MAX);
        Ok(true)
    })?;
    search.scratch.give_window(window);
    Ok(())
}

/// Calls `body` with ranges that contain all matches, until it returns false. If `is_divisible`, another
/// evaluation may take over the tail.
fn for_each_range<'a>(
    root: &mut Node<'a>,
    search: &mut Search<'_>,
    is_divisible: bool,
    mut body: impl FnMut(&mut Node<'a>, (u32, u32), &mut Search<'_>) -> Result<bool>,
) -> Result<()> {
    let mut prefetched_to = if root.prefetches() { 0 } else { u32::MAX };
    let mut next = root.next_lower_bound(search.first);
    while next != NO_DOCUMENT && next < search.end {
        search.checkpoint(if is_divisible { next } else { search.end })?;
        let range = range_from(next, WINDOW, search.end);
        if range.0 >= prefetched_to {
            let prefetch = |range| root.prefetch(range, true);
            prefetched_to = prefetch_ahead(range.0, search.end, prefetch)?.max(range.1);
        }
        if !body(root, range, search)? {
            break;
        }
        next = if range.1 + 1 < search.end { root.next_lower_bound(range.1 + 1) } else { NO_DOCUMENT };
    }
    Ok(())
}

/// Offers the documents of the window that score 0, and returns the number of its documents.
fn offer_unscored(window: &mut ScoreWindow, search: &mut Search<'_>) -> u64 {
    let first = window.origin();
    let mut zeros = Vec::new();
    let matches = window.collect_matches().count();
    if search.may_enter(0, window.range().0) {
        let (bits, sums) = window.matches_and_sums();
        zeros.extend(bits.documents().filter(|document| sums[(document - first) as usize] == 0));
        let scores = vec![0; zeros.len()];
        for (documents, scores) in zeros.chunks(BLOCK).zip(scores.chunks(BLOCK)) {
            search.top.offer_all(search.base, documents, scores);
        }
        search.top.raise_threshold();
    }
    matches
}

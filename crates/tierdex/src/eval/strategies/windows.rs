//! Evaluates any query, one range of documents after the other: candidates are found in windows, or in the
//! blocks of the rarest list.

use crate::eval::state::{DocRange, ScoreWindow, Search, prefetch_ahead, window_from};
use crate::eval::tuning::{COUNTED_DOCS, WINDOW_DOCS};
use crate::{Result, cursor::NO_DOCUMENT, eval::nodes::Node, limits::BLOCK};

/// Offers the documents that match to the collector, except those that cannot be hits. Returns the number of
/// matches if they are counted, else the number of documents evaluated.
pub(crate) fn evaluate_windows(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
    let visits_all = search.counts_matches || search.options.exhaustive;
    let sums_windows = search.sums_windows;
    let mut window = sums_windows.then(|| search.scratch.take_window());
    let mut batch = search.scratch.take_batch(if sums_windows { 0 } else { WINDOW_DOCS });
    let mut evaluated = 0;
    let pass = if sums_windows { RangePass::AllMatches } else { RangePass::Candidates };
    for_each_range(root, search, pass, |root, range, search| {
        if let Some(window) = &mut window {
            window.restart(range);
            root.add_scores(window, 0, search.scratch)?;
            search.deleted().inspect(|deleted| window.remove(deleted));
            evaluated += offer_window(window, search);
            return Ok(range.last);
        }
        batch.clear();
        let min_score = if visits_all { 0 } else { search.min_score_from(range.first) };
        let last = root.collect(range, search.end, min_score, &mut batch, search.scratch)?;
        evaluated += match search.counts_matches {
            true => search.count_live(&batch.documents),
            false => batch.len() as u64,
        };
        search.offer_all(&batch.documents, &batch.scores);
        Ok(last)
    })?;
    search.scratch.give_batch(batch);
    window.into_iter().for_each(|window| search.scratch.give_window(window));
    Ok(evaluated)
}

/// Counts the matches: collects those of a range of documents in a bitset, and counts its bits.
pub(crate) fn count_by_bitsets(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
    let (mut bits, mut count) = (search.scratch.take_bits(), 0);
    for_each_range(root, search, RangePass::Count, |root, range, search| {
        bits.restart(range);
        root.mark_matches(&mut bits, search.scratch)?;
        search.deleted().inspect(|deleted| bits.remove(deleted));
        count += bits.count();
        Ok(range.last)
    })?;
    search.scratch.give_bits(bits);
    Ok(count)
}

/// Counts the matches: finds those of blocks of the lists that propose candidates.
pub(crate) fn count_by_blocks(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
    let (mut batch, mut count) = (search.scratch.take_batch(WINDOW_DOCS), 0);
    for_each_range(root, search, RangePass::CountBlocks, |root, range, search| {
        batch.clear();
        root.collect_unscored(range, &mut batch, search.scratch)?;
        count += search.count_live(&batch.documents);
        Ok(range.last)
    })?;
    search.scratch.give_batch(batch);
    Ok(count)
}

/// Offers the documents that pass filters and exclusions and match no scored clause to the collector, with
/// score 0, as long as such documents may be hits.
pub(crate) fn offer_zero_scores(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<()> {
    let Node::AllOf(all) = &mut *root else { return Ok(()) };
    let is_led_by_list = all.filter_block_end(search.first).is_some();
    let mut batch = search.scratch.take_batch(if is_led_by_list { BLOCK } else { WINDOW_DOCS });
    for_each_range(root, search, RangePass::ZeroScores, |root, range, search| {
        if let Node::AllOf(all) = root
            && search.may_enter(0, range.first)
        {
            batch.clear();
            all.collect_zero_scored(range, &mut batch, search.scratch)?;
            search.offer_all(&batch.documents, &batch.scores);
            return Ok(range.last);
        }
        Ok(search.end)
    })?;
    search.scratch.give_batch(batch);
    Ok(())
}

/// The ranges of documents in which a pass over a segment looks for matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RangePass {
    /// Windows, or blocks of the list that proposes candidates, which are pruned.
    Candidates,
    /// Windows in which all matches are scored.
    AllMatches,
    /// Longer ranges, whose matches are only counted.
    Count,
    /// Blocks of the list that proposes candidates, whose matches are only counted.
    CountBlocks,
    /// Windows, or blocks of the rarest filter, in a second pass after the matches of scored clauses. No
    /// other thread takes over documents: it would search them for matches again.
    ZeroScores,
}

impl RangePass {
    fn next_document(self, root: &mut Node<'_>, from: u32) -> u32 {
        match root {
            Node::AllOf(all) if self == RangePass::ZeroScores => all.next_passing_filters(from),
            root => root.next_lower_bound(from),
        }
    }

    /// The range of documents of the next step, from a document on.
    fn range(self, root: &mut Node<'_>, from: u32, end: u32) -> DocRange {
        let window =
            window_from(from, if self == RangePass::Count { COUNTED_DOCS } else { WINDOW_DOCS }, end);
        let last = match (self, root) {
            (RangePass::AllMatches | RangePass::Count, _) => window.last,
            (RangePass::ZeroScores, Node::AllOf(all)) => all.filter_block_end(from).unwrap_or(window.last),
            (_, root) => root.block_end(from).max(window.last),
        };
        DocRange { last: last.min(end - 1), ..window }
    }
}

/// Calls `body` with the ranges of a pass; it returns the last document that it evaluated.
fn for_each_range<'a>(
    root: &mut Node<'a>,
    search: &mut Search<'_>,
    pass: RangePass,
    mut body: impl FnMut(&mut Node<'a>, DocRange, &mut Search<'_>) -> Result<u32>,
) -> Result<()> {
    let mut prefetched_to = if root.prefetches() { 0 } else { u32::MAX };
    let mut next = pass.next_document(root, search.first);
    while next != NO_DOCUMENT && next < search.end {
        search.checkpoint(if pass == RangePass::ZeroScores { search.end } else { next })?;
        let range = pass.range(root, next, search.end);
        if range.first >= prefetched_to {
            let prunes = pass == RangePass::Candidates && !search.counts_matches;
            let min_score = if prunes { search.min_score() } else { 0 };
            let scored = !matches!(pass, RangePass::Count | RangePass::CountBlocks);
            let prefetch = |range| root.prefetch(range, min_score, scored);
            prefetched_to = prefetch_ahead(range.first, search.end, prefetch)?.max(range.last);
        }
        let last = body(root, range, search)?;
        next = if last + 1 < search.end { pass.next_document(root, last + 1) } else { NO_DOCUMENT };
    }
    Ok(())
}

/// Offers the matches of a window to the collector, except those that cannot be hits, and returns the number
/// of all.
fn offer_window(window: &mut ScoreWindow, search: &mut Search<'_>) -> u64 {
    let first = window.origin();
    let mut matches = 0;
    if !window.unscored.is_empty() {
        matches = window.collect_matches().count();
        if search.may_enter(0, window.range().first) {
            let (bits, sums) = window.matches_and_sums();
            offer_zeros(bits.documents().filter(|document| sums[(document - first) as usize] == 0), search);
        }
    }
    let survivors = window.drain_at_least(search.min_score());
    search.offer_all(survivors.values(), survivors.sums());
    matches.max(survivors.positive() as u64)
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

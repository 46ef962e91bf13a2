//! Counts matches with bitsets.

use crate::eval::state::{Search, prefetch_ahead, window_from};
use crate::{Result, cursor::NO_DOCUMENT, eval::nodes::Node, eval::tuning::COUNTED_DOCS, query::Clauses};

/// Counts the matches of any clauses: collects those of a range of documents in a bitset, and counts its bits.
pub(crate) fn count_by_bitsets(clauses: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<u64> {
    let (mut bits, mut other) = (search.scratch.take_bits(), search.scratch.take_bits());
    let mut prefetched_to = if clauses.prefetches() { 0 } else { u32::MAX };
    let (mut count, mut next) = (0, clauses.next_lower_bound(search.first));
    while next != NO_DOCUMENT && next < search.end {
        search.checkpoint(next)?;
        let range = window_from(next, COUNTED_DOCS, search.end);
        if range.first >= prefetched_to {
            let prefetch = |range| clauses.prefetch(range, false);
            prefetched_to = prefetch_ahead(range.first, search.end, prefetch)?.max(range.last);
        }
        bits.restart(range);
        clauses.mark_group(&mut bits, &mut other, search.scratch)?;
        count += bits.count();
        next =
            if range.last + 1 < search.end { clauses.next_lower_bound(range.last + 1) } else { NO_DOCUMENT };
    }
    search.scratch.give_bits(bits);
    search.scratch.give_bits(other);
    Ok(count)
}

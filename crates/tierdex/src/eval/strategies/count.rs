//! Counts matches: by a conjunction if the rarest clause is sparse, otherwise by bitsets.

use crate::eval::state::{Search, prefetch_ahead, range_from};
use crate::eval::strategies::conjunction::{conjunction, required};
use crate::{
    Result, cursor::NO_DOCUMENT, eval::nodes::Node, eval::strategies::refiners::Refiners,
    eval::tuning::COUNTED, query::Clauses,
};

/// Counts the candidates of the required clauses that are left after the exclusions.
pub(crate) fn by_conjunction(clauses: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<u64> {
    let mut refiners = Refiners::new(&mut [], &mut clauses.must_not, &mut []);
    conjunction(&mut required(&mut clauses.must, &mut clauses.filter), &mut refiners, search)
}

/// Counts the matches of ranges of documents as bitsets.
pub(crate) fn by_bits(clauses: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<u64> {
    let (mut bits, mut other) = (search.scratch.bits(), search.scratch.bits());
    let mut prefetched_to = if clauses.prefetches() { 0 } else { u32::MAX };
    let (mut count, mut next) = (0, clauses.next_lower_bound(search.first));
    while next != NO_DOCUMENT && next < search.end {
        search.checkpoint(next)?;
        let range = range_from(next, COUNTED, search.end);
        if range.first >= prefetched_to {
            let prefetch = |range| clauses.prefetch(range, false);
            prefetched_to = prefetch_ahead(range.first, search.end, prefetch)?.max(range.last);
        }
        bits.restart(range);
        clauses.mark_alone(&mut bits, &mut other, search.scratch)?;
        count += bits.count();
        next =
            if range.last + 1 < search.end { clauses.next_lower_bound(range.last + 1) } else { NO_DOCUMENT };
    }
    search.scratch.give_bits(bits);
    search.scratch.give_bits(other);
    Ok(count)
}

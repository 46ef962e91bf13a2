//! Counts matches with bitsets.

use crate::eval::strategies::windows::{WindowPass, for_each_range};
use crate::{Result, eval::nodes::Node, eval::state::Search, query::Clauses};

/// Counts the matches of any clauses: collects those of a range of documents in a bitset, and counts its
/// bits.
pub(crate) fn count_by_bitsets(clauses: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<u64> {
    let (mut bits, mut other) = (search.scratch.take_bits(), search.scratch.take_bits());
    let mut count = 0;
    for_each_range(clauses, search, WindowPass::Count, |clauses, range, search| {
        bits.restart(range);
        clauses.mark_group(&mut bits, &mut other, search.scratch)?;
        count += bits.count();
        Ok(true)
    })?;
    search.scratch.give_bits(bits);
    search.scratch.give_bits(other);
    Ok(count)
}

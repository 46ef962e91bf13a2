//! Counts matches: by a conjunction if the rarest clause is sparse, otherwise by bitsets.

use super::conjunction::{conjunction, required};
use super::group::GroupNode;
use super::node::Node;
use super::range::{prefetch_ahead, range_from};
use super::refine::Refiners;
use super::search::Search;
use super::tuning::{COUNTED, DENSE};
use crate::cursor::NO_DOCUMENT;
use crate::error::Result;

/// The number of matching documents, modulo 2^64. For a part of a segment it may be negative, because counts
/// of the whole segment are added by one part only: only the sum over all parts is meaningful.
pub(super) fn count(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
    match root {
        Node::Term(term) => Ok(search.count_once(term.postings())),
        Node::Set(set) => Ok(search.count_once(set.cost)),
        Node::Phrase(_) => {
            conjunction(&mut required(&mut [], std::slice::from_mut(root)), &mut Refiners::none(), search)
        }
        Node::Group(group) => count_group(group, search),
    }
}

fn count_group(group: &mut GroupNode<'_>, search: &mut Search<'_>) -> Result<u64> {
    let dense = u64::from(search.documents) / DENSE;
    let is_dense = |node: &Node<'_>| node.cost() > dense;
    let requires = !(group.must.is_empty() && group.filter.is_empty());
    if group.minimum > 1 || requires && group.minimum > 0 {
        return by_bits(group, search);
    }
    if !requires {
        if let ([one, other], []) = (&mut group.should[..], &group.must_not[..])
            && !(is_dense(one) && is_dense(other))
            && let (Node::Term(_), Node::Term(_)) = (&one, &other)
        {
            // |A or B| = |A| + |B| - |A and B|; the intersection is cheaper to count than the union.
            let all = search.count_once(one.cost() + other.cost());
            let mut both = required(&mut [], &mut group.should);
            return Ok(all.wrapping_sub(conjunction(&mut both, &mut Refiners::none(), search)?));
        }
        return by_bits(group, search);
    }
    if let ([], [required_one], [excluded]) =
        (&mut group.must[..], &mut group.filter[..], &group.must_not[..])
        && let (Node::Term(_), Node::Term(_)) = (&*required_one, excluded)
    {
        let all = search.count_once(required_one.cost());
        group.filter.append(&mut group.must_not);
        return Ok(all.wrapping_sub(count_group(group, search)?));
    }
    let all_dense = group.must.iter().chain(&group.filter).chain(&group.must_not).all(is_dense);
    if all_dense {
        return by_bits(group, search);
    }
    // Candidates of the required clauses are counted after the exclusions.
    let mut refiners = Refiners::new(&mut [], &mut group.must_not, &mut []);
    let mut required = required(&mut group.must, &mut group.filter);
    conjunction(&mut required, &mut refiners, search)
}

fn by_bits(group: &mut GroupNode<'_>, search: &mut Search<'_>) -> Result<u64> {
    let (mut bits, mut other) = (search.scratch.bits(), search.scratch.bits());
    let mut prefetched_to = if group.nodes().any(Node::prefetches) { 0 } else { u32::MAX };
    let (mut count, mut next) = (0, group.next_lower_bound(search.first));
    while next != NO_DOCUMENT && next < search.end {
        search.checkpoint(next)?;
        let range = range_from(next, COUNTED, search.end);
        if range.0 >= prefetched_to {
            let prefetch = |range| group.prefetch(range, false);
            prefetched_to = prefetch_ahead(range.0, search.end, prefetch)?.max(range.1);
        }
        bits.restart(range);
        group.mark_alone(&mut bits, &mut other, search.scratch)?;
        count += bits.count();
        next = if range.1 + 1 < search.end { group.next_lower_bound(range.1 + 1) } else { NO_DOCUMENT };
    }
    search.scratch.give_bits(bits);
    search.scratch.give_bits(other);
    Ok(count)
}

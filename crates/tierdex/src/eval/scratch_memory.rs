//! Bytes of the scratch buffers that a strategy takes from [`Scratch`](super::state::scratch::Scratch) at the
//! same time: windows, bitsets and batches of candidates.
//!
//! `mark_use`, `add_use` and `refine_use` count the buffers that [`Node`](super::nodes::Node) takes in
//! `mark_matches`, `add_scores` and `refine_batch`. The nodes of a list are evaluated one after the other and
//! return their buffers, so only the largest use counts ([`max_use`]).

use super::segment_view::SegmentView;
use super::state::scratch::{CANDIDATE_BYTES, SURVIVORS_BYTES, bits_bytes, window_bytes};
use super::strategy::{Strategy, StrategyKind};
use super::tuning::{COUNTED_DOCS, LEAD_BLOCKS_AHEAD_MAX, WINDOW_DOCS};
use crate::{limits::BLOCK, query::Clauses, query::plan_node::PlanNode};
use std::ops::Add;

/// Numbers of scratch buffers that are in use at the same time.
#[derive(Clone, Copy, Default)]
struct ScratchUse {
    /// Score windows.
    windows: usize,
    /// Bitsets.
    bits: usize,
    /// Digits of bit-sliced counters ([`BitCounters`](super::state::BitCounters)).
    counters: usize,
    /// Batches, each as long as the batch that is refined.
    batches: usize,
}

impl ScratchUse {
    const TWO_BITS: ScratchUse = ScratchUse { windows: 0, bits: 2, counters: 0, batches: 0 };
    const WINDOW: ScratchUse = ScratchUse { windows: 1, bits: 0, counters: 0, batches: 0 };

    /// The bitsets that a group passes to [`Clauses::mark_group`].
    fn group_bits(group: &Clauses<PlanNode>) -> ScratchUse {
        let bits = if group.requires() || !group.must_not.is_empty() { 2 } else { 1 };
        ScratchUse { bits, ..ScratchUse::default() }
    }

    fn batches(batches: usize) -> ScratchUse {
        ScratchUse { batches, ..ScratchUse::default() }
    }

    /// The buffers of two steps that run one after the other.
    fn or(self, other: ScratchUse) -> ScratchUse {
        self.combine(other, usize::max)
    }

    /// The buffers of two steps of which one runs inside the other.
    fn and(self, other: ScratchUse) -> ScratchUse {
        self.combine(other, Add::add)
    }

    fn combine(self, other: ScratchUse, operation: fn(usize, usize) -> usize) -> ScratchUse {
        ScratchUse {
            windows: operation(self.windows, other.windows),
            bits: operation(self.bits, other.bits),
            counters: operation(self.counters, other.counters),
            batches: operation(self.batches, other.batches),
        }
    }

    /// Bytes, for windows and bitsets of `range` documents and batches of `batch` candidates.
    fn bytes(self, range: usize, batch: usize) -> usize {
        let ScratchUse { windows, bits, counters, batches } = self;
        windows * window_bytes(range)
            + bits * bits_bytes(range)
            + counters * range.div_ceil(8)
            + batches * CANDIDATE_BYTES * batch
    }
}

fn max_use<'n>(
    nodes: impl IntoIterator<Item = &'n PlanNode>,
    of: impl Fn(&'n PlanNode) -> ScratchUse,
) -> ScratchUse {
    nodes.into_iter().map(of).fold(ScratchUse::default(), ScratchUse::or)
}

fn mark_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Phrase { .. } => ScratchUse::batches(1),
        PlanNode::Group(group) if group.are_alternatives() => max_use(&group.should, mark_use),
        PlanNode::Group(group) => ScratchUse::group_bits(group).and(mark_group_use(group)),
        _ => ScratchUse::default(),
    }
}

fn mark_group_use(group: &Clauses<PlanNode>) -> ScratchUse {
    // A counter has a bitset for each binary digit; adding and comparing take two more.
    let digits = usize::BITS - group.should.len().leading_zeros();
    let counters = if group.minimum > 1 { digits as usize + 2 } else { 0 };
    let scored = if group.minimum > 0 { &group.should[..] } else { &[] };
    let all = group.must.iter().chain(&group.filter).chain(scored).chain(&group.must_not);
    ScratchUse { counters, ..max_use(all, mark_use) }
}

fn add_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Phrase { .. } => ScratchUse::batches(1),
        PlanNode::Prefix { weight, .. } | PlanNode::All { weight } if *weight > 0.0 => {
            ScratchUse { bits: 1, ..ScratchUse::default() }
        }
        PlanNode::Group(group) => add_group_use(group),
        _ => ScratchUse::default(),
    }
}

fn add_group_use(group: &Clauses<PlanNode>) -> ScratchUse {
    if group.are_alternatives() {
        return max_use(&group.should, add_use);
    }
    let sums = ScratchUse::WINDOW.and(max_use(group.must.iter().chain(&group.should), add_use));
    ScratchUse::group_bits(group).and(mark_group_use(group).or(sums))
}

fn refine_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Phrase { .. } => ScratchUse::batches(2),
        PlanNode::Group(group) => {
            let others = group.must.iter().chain(&group.filter).chain(&group.must_not);
            let counted = ScratchUse::batches(usize::from(group.minimum > 0));
            ScratchUse::batches(1)
                .and(max_use(others, refine_use).or(counted.and(max_use(&group.should, refine_use))))
        }
        _ => ScratchUse::default(),
    }
}

/// Maximum bytes of the scratch buffers that a strategy takes at the same time.
pub(super) fn scratch_bytes(strategy: &Strategy, view: SegmentView<'_>) -> usize {
    let clauses = &strategy.clauses;
    let window = WINDOW_DOCS.min(view.segment.documents() as usize);
    let refiners = max_use(clauses.filter.iter().chain(&clauses.must_not), refine_use);
    let summed = ScratchUse::WINDOW.bytes(window, 0) + SURVIVORS_BYTES;
    let zeros = if strategy.offers_zero_scores {
        ScratchUse::TWO_BITS.and(max_use(clauses.all(), mark_use)).bytes(window, BLOCK)
    } else {
        0
    };
    zeros
        + match strategy.kind {
            StrategyKind::Nothing | StrategyKind::Dictionary => 0,
            StrategyKind::ImpactOrdered => ScratchUse::batches(1).and(refiners).bytes(window, BLOCK),
            StrategyKind::Conjunction | StrategyKind::CountConjunction | StrategyKind::CountDifference => {
                conjunction_bytes(clauses, view, window)
            }
            StrategyKind::MaxScore => {
                let selected = if strategy.counts_matches
                    && !(clauses.filter.is_empty() && clauses.must_not.is_empty())
                {
                    let refiners = clauses.filter.iter().chain(&clauses.must_not);
                    ScratchUse::TWO_BITS.and(max_use(refiners, mark_use))
                } else {
                    refiners
                };
                let nodes = max_use(&clauses.should, add_use).or(max_use(&clauses.should, refine_use));
                summed + ScratchUse::batches(1).and(selected.or(nodes)).bytes(window, window)
            }
            StrategyKind::SmallMerge => {
                let postings: u64 = clauses.should.iter().map(|node| view.cost(node)).sum();
                ScratchUse::batches(2).and(refiners).bytes(window, postings as usize)
            }
            StrategyKind::Windows => summed + add_group_use(clauses).bytes(window, BLOCK),
            StrategyKind::CountBits => {
                let range = COUNTED_DOCS.min(view.segment.documents() as usize);
                ScratchUse::group_bits(clauses).and(mark_group_use(clauses)).bytes(range, BLOCK)
            }
        }
}

/// Maximum bytes of the scratch buffers of a conjunction. If the rarest clause is a group or a set, it is
/// evaluated in windows.
fn conjunction_bytes(clauses: &Clauses<PlanNode>, view: SegmentView<'_>, window: usize) -> usize {
    let required = || clauses.must.iter().chain(&clauses.filter);
    let batch = ScratchUse::batches(1).and(max_use(clauses.all(), refine_use)).bytes(window, BLOCK);
    let rarest = required().map(|node| view.cost(node)).min().unwrap_or(0);
    let may_lead = |node: &&PlanNode| {
        let is_list = matches!(node, PlanNode::Term { .. } | PlanNode::Phrase { .. });
        !is_list && view.cost(node) == rarest
    };
    if required().any(|node| may_lead(&node)) {
        let lead = max_use(required().filter(may_lead), |node| mark_use(node).or(add_use(node)));
        return batch + ScratchUse::WINDOW.and(lead).bytes(window, BLOCK) + CANDIDATE_BYTES * window;
    }
    // For each prefetched block of the rarest list: its number and the upper bound of its scores.
    let ahead = rarest.div_ceil(BLOCK as u64).min(LEAD_BLOCKS_AHEAD_MAX as u64).next_power_of_two();
    batch + ahead as usize * size_of::<(u32, u32)>()
}

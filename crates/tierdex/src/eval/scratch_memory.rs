//! Bytes of the scratch buffers that a strategy takes from [`Scratch`](super::state::scratch::Scratch) at the
//! same time: windows, bitsets and batches of candidates. Each function counts_matches what the method of a node of
//! the same name takes; nodes take buffers one after the other, so the maximum of them counts_matches.

use super::segment_view::SegmentView;
use super::state::scratch::{CANDIDATE_BYTES, SURVIVORS_BYTES, bits_bytes, window_bytes};
use super::strategy::{Strategy, StrategyKind};
use super::tuning::{COUNTED_DOCUMENTS, LEAD_BLOCKS_AHEAD_MAX, WINDOW_DOCUMENTS};
use crate::limits::BLOCK;
use crate::query::Clauses;
use crate::query::plan_node::PlanNode;

/// Buffers that are in use at the same time.
#[derive(Clone, Copy, Default)]
struct ScratchUse {
    windows: usize,
    bits: usize,
    /// Bitsets without marks.
    counters: usize,
    /// Batches, as long as the batch that is refined.
    batches: usize,
}

impl ScratchUse {
    const TWO_BITS: ScratchUse = ScratchUse { windows: 0, bits: 2, counters: 0, batches: 0 };
    const WINDOW: ScratchUse = ScratchUse { windows: 1, bits: 0, counters: 0, batches: 0 };

    /// The bitsets of [`Clauses::mark_group`].
    fn group_bits(group: &Clauses<PlanNode>) -> ScratchUse {
        let bits = if group.requires() || !group.must_not.is_empty() { 2 } else { 1 };
        ScratchUse { bits, ..ScratchUse::default() }
    }

    fn batches(batches: usize) -> ScratchUse {
        ScratchUse { batches, ..ScratchUse::default() }
    }

    /// Either of them at a time.
    fn or(self, other: ScratchUse) -> ScratchUse {
        ScratchUse {
            windows: self.windows.max(other.windows),
            bits: self.bits.max(other.bits),
            counters: self.counters.max(other.counters),
            batches: self.batches.max(other.batches),
        }
    }

    /// Both at a time.
    fn and(self, other: ScratchUse) -> ScratchUse {
        ScratchUse {
            windows: self.windows + other.windows,
            bits: self.bits + other.bits,
            counters: self.counters + other.counters,
            batches: self.batches + other.batches,
        }
    }

    /// Bytes, for ranges of this number of documents and batches of this length.
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
    // A counter has a bitset for each binary digit; two hold what is added or compared.
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

/// Maximum bytes of the scratch buffers of a strategy.
pub(super) fn scratch_bytes(strategy: &Strategy<PlanNode>, view: SegmentView<'_>) -> usize {
    let clauses = &strategy.clauses;
    let window = WINDOW_DOCUMENTS.min(view.segment.documents() as usize);
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
                let range = COUNTED_DOCUMENTS.min(view.segment.documents() as usize);
                ScratchUse::group_bits(clauses).and(mark_group_use(clauses)).bytes(range, BLOCK)
            }
        }
}

/// Scratch buffers of a conjunction. A group or set that may be its lead is evaluated in windows.
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
    // Each with its number and bound.
    let ahead = rarest.div_ceil(BLOCK as u64).min(LEAD_BLOCKS_AHEAD_MAX as u64).next_power_of_two();
    batch + ahead as usize * size_of::<(u32, u32)>()
}

//! Bytes of the scratch buffers that a strategy takes from [`Scratch`](super::state::scratch::Scratch) at the
//! same time: windows, bitsets and batches of candidates. Each function counts what the method of a node of
//! the same name takes; nodes take buffers one after the other, so the maximum of them counts.

use super::segment_view::SegmentView;
use super::state::scratch::{BATCHED, SURVIVORS_BYTES, bits_bytes, window_bytes};
use super::strategy::{Strategy, StrategyKind};
use super::tuning::{COUNTED, LEAD_BLOCKS_AHEAD_MAX, WINDOW};
use crate::limits::BLOCK;
use crate::query::Clauses;
use crate::query::plan_node::PlanNode;

/// Buffers that are in use at the same time.
#[derive(Clone, Copy, Default)]
struct Taken {
    windows: usize,
    bits: usize,
    /// Bitsets without marks.
    counters: usize,
    /// Batches, as long as the batch that is refined.
    batches: usize,
}

impl Taken {
    const TWO_BITS: Taken = Taken { windows: 0, bits: 2, counters: 0, batches: 0 };
    const WINDOW: Taken = Taken { windows: 1, bits: 0, counters: 0, batches: 0 };

    /// The bitsets of [`Clauses::mark_alone`].
    fn bits_of(group: &Clauses<PlanNode>) -> Taken {
        let bits = if group.requires() || !group.must_not.is_empty() { 2 } else { 1 };
        Taken { bits, ..Taken::default() }
    }

    fn batches(batches: usize) -> Taken {
        Taken { batches, ..Taken::default() }
    }

    /// Either of them at a time.
    fn or(self, other: Taken) -> Taken {
        Taken {
            windows: self.windows.max(other.windows),
            bits: self.bits.max(other.bits),
            counters: self.counters.max(other.counters),
            batches: self.batches.max(other.batches),
        }
    }

    /// Both at a time.
    fn and(self, other: Taken) -> Taken {
        Taken {
            windows: self.windows + other.windows,
            bits: self.bits + other.bits,
            counters: self.counters + other.counters,
            batches: self.batches + other.batches,
        }
    }

    /// Bytes, for ranges of this number of documents and batches of this length.
    fn bytes(self, range: usize, batch: usize) -> usize {
        let Taken { windows, bits, counters, batches } = self;
        windows * window_bytes(range)
            + bits * bits_bytes(range)
            + counters * range.div_ceil(8)
            + batches * BATCHED * batch
    }
}

fn any_of<'n>(nodes: impl IntoIterator<Item = &'n PlanNode>, of: impl Fn(&'n PlanNode) -> Taken) -> Taken {
    nodes.into_iter().map(of).fold(Taken::default(), Taken::or)
}

fn mark(node: &PlanNode) -> Taken {
    match node {
        PlanNode::Phrase { .. } => Taken::batches(1),
        PlanNode::Group(group) if group.are_alternatives() => any_of(&group.should, mark),
        PlanNode::Group(group) => Taken::bits_of(group).and(mark_alone(group)),
        _ => Taken::default(),
    }
}

fn mark_alone(group: &Clauses<PlanNode>) -> Taken {
    // A counter has a bitset for each binary digit; two hold what is added or compared.
    let digits = usize::BITS - group.should.len().leading_zeros();
    let counters = if group.minimum > 1 { digits as usize + 2 } else { 0 };
    let scored = if group.minimum > 0 { &group.should[..] } else { &[] };
    let all = group.must.iter().chain(&group.filter).chain(scored).chain(&group.must_not);
    Taken { counters, ..any_of(all, mark) }
}

fn add(node: &PlanNode) -> Taken {
    match node {
        PlanNode::Phrase { .. } => Taken::batches(1),
        PlanNode::Prefix { weight, .. } | PlanNode::All { weight } if *weight > 0.0 => {
            Taken { bits: 1, ..Taken::default() }
        }
        PlanNode::Group(group) => add_group(group),
        _ => Taken::default(),
    }
}

fn add_group(group: &Clauses<PlanNode>) -> Taken {
    if group.are_alternatives() {
        return any_of(&group.should, add);
    }
    let sums = Taken::WINDOW.and(any_of(group.must.iter().chain(&group.should), add));
    Taken::bits_of(group).and(mark_alone(group).or(sums))
}

fn refine(node: &PlanNode) -> Taken {
    match node {
        PlanNode::Phrase { .. } => Taken::batches(2),
        PlanNode::Group(group) => {
            let others = group.must.iter().chain(&group.filter).chain(&group.must_not);
            let counted = Taken::batches(usize::from(group.minimum > 0));
            Taken::batches(1).and(any_of(others, refine).or(counted.and(any_of(&group.should, refine))))
        }
        _ => Taken::default(),
    }
}

/// Maximum bytes of the scratch buffers of a strategy.
pub(super) fn scratch_bytes(strategy: &Strategy<PlanNode>, view: SegmentView<'_>) -> usize {
    let clauses = &strategy.clauses;
    let window = WINDOW.min(view.segment.documents() as usize);
    let refiners = any_of(clauses.filter.iter().chain(&clauses.must_not), refine);
    let summed = Taken::WINDOW.bytes(window, 0) + SURVIVORS_BYTES;
    let zeros = if strategy.offers_zero_scores {
        Taken::TWO_BITS.and(any_of(clauses.all(), mark)).bytes(window, BLOCK)
    } else {
        0
    };
    zeros
        + match strategy.kind {
            StrategyKind::Nothing | StrategyKind::Dictionary => 0,
            StrategyKind::ImpactOrdered => Taken::batches(1).and(refiners).bytes(window, BLOCK),
            StrategyKind::Conjunction | StrategyKind::CountConjunction | StrategyKind::CountDifference => {
                conjunction(clauses, view, window)
            }
            StrategyKind::MaxScore => {
                let selected =
                    if strategy.counts && !(clauses.filter.is_empty() && clauses.must_not.is_empty()) {
                        let refiners = clauses.filter.iter().chain(&clauses.must_not);
                        Taken::TWO_BITS.and(any_of(refiners, mark))
                    } else {
                        refiners
                    };
                let nodes = any_of(&clauses.should, add).or(any_of(&clauses.should, refine));
                summed + Taken::batches(1).and(selected.or(nodes)).bytes(window, window)
            }
            StrategyKind::SmallMerge => {
                let postings: u64 = clauses.should.iter().map(|node| view.cost(node)).sum();
                Taken::batches(2).and(refiners).bytes(window, postings as usize)
            }
            StrategyKind::Windows => summed + add_group(clauses).bytes(window, BLOCK),
            StrategyKind::CountBits => {
                let range = COUNTED.min(view.segment.documents() as usize);
                Taken::bits_of(clauses).and(mark_alone(clauses)).bytes(range, BLOCK)
            }
        }
}

/// Scratch buffers of a conjunction. A group or set that may be its lead is evaluated in windows.
fn conjunction(clauses: &Clauses<PlanNode>, view: SegmentView<'_>, window: usize) -> usize {
    let required = || clauses.must.iter().chain(&clauses.filter);
    let batch = Taken::batches(1).and(any_of(clauses.all(), refine)).bytes(window, BLOCK);
    let rarest = required().map(|node| view.cost(node)).min().unwrap_or(0);
    let may_lead = |node: &&PlanNode| {
        let is_list = matches!(node, PlanNode::Term { .. } | PlanNode::Phrase { .. });
        !is_list && view.cost(node) == rarest
    };
    if required().any(|node| may_lead(&node)) {
        let lead = any_of(required().filter(may_lead), |node| mark(node).or(add(node)));
        return batch + Taken::WINDOW.and(lead).bytes(window, BLOCK) + BATCHED * window;
    }
    // Each with its number and bound.
    let ahead = rarest.div_ceil(BLOCK as u64).min(LEAD_BLOCKS_AHEAD_MAX as u64).next_power_of_two();
    batch + ahead as usize * size_of::<(u32, u32)>()
}

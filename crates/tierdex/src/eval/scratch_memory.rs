//! Bytes of the scratch buffers that a strategy takes from [`Scratch`](super::state::scratch::Scratch) at the
//! same time: windows, bitsets and batches of candidates.
//!
//! `mark_use`, `add_use`, `collect_use` and `refine_use` count the buffers that [`Node`](super::nodes::Node)
//! takes in `mark_matches`, `add_scores`, `collect` and `refine_batch`. The clauses of a group are evaluated
//! one after the other and return their buffers, so only the largest use counts ([`max_use`]).

use super::nodes::any_of::{is_sparse, merged_candidates_max};
use super::segment_view::SegmentView;
use super::state::scratch::{CANDIDATE_BYTES, SURVIVORS_BYTES, bits_bytes, window_bytes};
use super::strategies::conjunction::PrefetchedBlock;
use super::strategy::{Strategy, StrategyKind};
use super::tuning::{COUNTED_DOCS, LEAD_BLOCKS_AHEAD_MAX, LOOK_UP_COST_POSTINGS, WINDOW_DOCS};
use crate::{limits::BLOCK, query::Clauses, query::plan_node::PlanNode};
use std::ops::Add;

/// Numbers of scratch buffers that are in use at the same time.
#[derive(Clone, Copy)]
struct ScratchUse {
    /// Score windows.
    windows: usize,
    /// Bitsets.
    bits: usize,
    /// Digits of bit-sliced counters ([`BitCounters`](super::state::BitCounters)).
    counters: usize,
    /// Batches, each as long as the batch that is refined.
    batches: usize,
    /// Batches of the candidates of a block.
    blocks: usize,
}

impl ScratchUse {
    const NONE: ScratchUse = ScratchUse { windows: 0, bits: 0, counters: 0, batches: 0, blocks: 0 };
    const WINDOW: ScratchUse = ScratchUse { windows: 1, ..ScratchUse::NONE };
    const BATCH: ScratchUse = ScratchUse { batches: 1, ..ScratchUse::NONE };
    const BLOCK: ScratchUse = ScratchUse { blocks: 1, ..ScratchUse::NONE };

    const fn bits(bits: usize) -> ScratchUse {
        ScratchUse { bits, ..ScratchUse::NONE }
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
            blocks: operation(self.blocks, other.blocks),
        }
    }

    /// The same buffers, if the batches are as long as a window.
    fn in_window(self) -> ScratchUse {
        ScratchUse { batches: 0, blocks: self.blocks + self.batches * WINDOW_DOCS / BLOCK, ..self }
    }

    /// Bytes, for windows and bitsets of `range` documents and batches of `batch` candidates.
    fn bytes(self, range: usize, batch: usize) -> usize {
        let ScratchUse { windows, bits, counters, batches, blocks } = self;
        windows * (window_bytes(range) + SURVIVORS_BYTES)
            + bits * bits_bytes(range)
            + counters * range.div_ceil(8)
            + CANDIDATE_BYTES * (batches * batch + blocks * BLOCK)
    }
}

fn max_use<'n>(
    nodes: impl IntoIterator<Item = &'n PlanNode>,
    of: impl Fn(&'n PlanNode) -> ScratchUse,
) -> ScratchUse {
    nodes.into_iter().map(of).fold(ScratchUse::NONE, ScratchUse::or)
}

fn mark_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Phrase { .. } => ScratchUse::BLOCK,
        PlanNode::Group(group) => mark_group_use(group),
        _ => ScratchUse::NONE,
    }
}

fn mark_group_use(group: &Clauses<PlanNode>) -> ScratchUse {
    let marked = max_use(group.all(), mark_use);
    match group.minimum {
        _ if group.only_clause().is_some() => marked,
        0 => {
            let looked_up = ScratchUse::BLOCK.and(max_use(group.all(), refine_use));
            ScratchUse::bits(2).and(marked.or(looked_up))
        }
        1 => marked,
        _ => {
            // A counter has a bitset for each binary digit; adding and comparing take two more.
            let counters = (usize::BITS - group.should.len().leading_zeros()) as usize + 2;
            ScratchUse { bits: 1, counters, ..ScratchUse::NONE }.and(marked)
        }
    }
}

fn add_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Term { .. } => ScratchUse::NONE,
        PlanNode::Group(group) => add_group_use(group),
        node => ScratchUse::BATCH.and(collect_use(node)).in_window(),
    }
}

fn add_group_use(group: &Clauses<PlanNode>) -> ScratchUse {
    if group.minimum == 1 || group.only_clause().is_some() {
        return max_use(group.all(), add_use);
    }
    let collected = ScratchUse::BATCH.and(collect_group_use(group)).in_window();
    if !group.must.iter().any(|node| matches!(node, PlanNode::Group(group) if group.minimum == 1)) {
        return collected;
    }
    let added = max_use(group.all(), add_use);
    collected.or(ScratchUse::WINDOW.and(mark_group_use(group).or(ScratchUse::bits(2).and(added))))
}

fn collect_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Term { .. } => ScratchUse::NONE,
        PlanNode::Phrase { .. } => ScratchUse::BLOCK,
        PlanNode::Group(group) => collect_group_use(group),
        _ => ScratchUse::bits(1),
    }
}

fn collect_group_use(group: &Clauses<PlanNode>) -> ScratchUse {
    if let Some(node) = group.only_clause() {
        return collect_use(node);
    }
    if group.minimum == 0 {
        // Only a filter is collected without scores.
        let unscored = ScratchUse::bits(1).and(max_use(&group.filter, mark_use));
        let lead = if group.filter.is_empty() { ScratchUse::NONE } else { unscored };
        return lead.or(max_use(&group.must, collect_use)).or(refine_clauses_use(group));
    }
    let summed = ScratchUse::WINDOW.and(max_use(&group.should, add_use));
    let looked_up = max_use(&group.should, |node| collect_use(node).or(copy_use(node)));
    let counted = if group.minimum == 1 { ScratchUse::NONE } else { keep_matches_use(group) };
    summed.or(looked_up).or(counted)
}

/// The buffers of alternatives that drop other candidates.
fn keep_matches_use(group: &Clauses<PlanNode>) -> ScratchUse {
    // So few candidates that looking them up is cheaper than reading all postings of a window. If a minimum
    // must match, they are copied with their counts and for each look-up.
    let copies = if group.minimum == 1 { 1 } else { 2 };
    let candidates = copies * group.should.len() * (WINDOW_DOCS + BLOCK / 2) / LOOK_UP_COST_POSTINGS;
    let blocks = candidates.div_ceil(BLOCK).max(copies);
    let batch = match group.should.iter().all(|node| matches!(node, PlanNode::Term { .. })) {
        true => ScratchUse { blocks, ..ScratchUse::NONE },
        false => ScratchUse { batches: copies, ..ScratchUse::NONE },
    };
    batch.and(max_use(&group.should, copy_use)).or(ScratchUse::bits(1).and(mark_group_use(group)))
}

/// The buffers of a conjunction whose clauses refine a batch.
fn refine_clauses_use(group: &Clauses<PlanNode>) -> ScratchUse {
    let dropping = max_use(group.must.iter().chain(&group.filter), refine_use);
    dropping.or(max_use(group.must_not.iter().chain(&group.should), copy_use))
}

/// The buffers of a required clause or filter that refines a batch.
fn refine_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Phrase { .. } => ScratchUse::BATCH.and(ScratchUse::BLOCK),
        PlanNode::Group(group) if group.minimum == 0 => refine_clauses_use(group),
        PlanNode::Group(group) => {
            keep_matches_use(group).or(ScratchUse::WINDOW.and(max_use(&group.should, add_use)))
        }
        _ => ScratchUse::NONE,
    }
}

/// The buffers of an exclusion or optional clause that refines a batch: groups find the matches in a copy.
fn copy_use(node: &PlanNode) -> ScratchUse {
    match node {
        PlanNode::Group(group) if group.minimum == 1 => max_use(&group.should, copy_use),
        PlanNode::Group(_) => ScratchUse::BATCH.and(refine_use(node)),
        node => refine_use(node),
    }
}

/// Maximum bytes of the scratch buffers that a strategy takes at the same time.
pub(super) fn scratch_bytes(strategy: &Strategy, view: SegmentView<'_>) -> usize {
    let clauses = &strategy.clauses;
    let window = WINDOW_DOCS.min(view.segment.documents() as usize);
    let refiners = max_use(clauses.all(), refine_use);
    let zeros = if strategy.offers_zero_scores {
        let collected = max_use(clauses.all(), |node| collect_use(node).or(copy_use(node)));
        let filter = clauses.filter.iter().min_by_key(|node| view.cost(node));
        let is_led_by_list = filter.is_some_and(|filter| view.is_led_by_list(filter));
        ScratchUse::BATCH.and(collected).bytes(window, if is_led_by_list { BLOCK } else { WINDOW_DOCS })
    } else {
        0
    };
    let used = match strategy.kind {
        StrategyKind::Nothing | StrategyKind::Dictionary => 0,
        StrategyKind::ImpactOrdered => ScratchUse::BATCH.and(refiners).bytes(window, BLOCK),
        StrategyKind::Conjunction | StrategyKind::CountBlocks
            if !matches!(view.lead(clauses), Some(PlanNode::Term { .. })) =>
        {
            ScratchUse::BATCH.and(collect_group_use(clauses)).bytes(window, WINDOW_DOCS)
        }
        StrategyKind::Conjunction | StrategyKind::CountBlocks | StrategyKind::CountDifference => {
            let rarest = clauses.must.iter().chain(&clauses.filter).map(|node| view.cost(node)).min();
            // For each prefetched block of the rarest list: its number and the upper bounds of its scores.
            let blocks = rarest.unwrap_or(0).div_ceil(BLOCK as u64).min(LEAD_BLOCKS_AHEAD_MAX as u64);
            let ahead = blocks.next_power_of_two() as usize * size_of::<PrefetchedBlock>();
            ScratchUse::BATCH.and(refiners).bytes(window, BLOCK) + ahead
        }
        StrategyKind::Windows if strategy.sums_windows => {
            ScratchUse::WINDOW.and(add_group_use(clauses)).bytes(window, WINDOW_DOCS)
        }
        StrategyKind::Windows => ScratchUse::BATCH.and(collect_group_use(clauses)).bytes(window, WINDOW_DOCS),
        StrategyKind::CountBits => {
            let range = COUNTED_DOCS.min(view.segment.documents() as usize);
            // The bitset of a range is at first empty: a conjunction marks its matches there.
            let own = usize::from(clauses.minimum > 0 || clauses.only_clause().is_some());
            ScratchUse::bits(own).and(mark_group_use(clauses)).bytes(range, WINDOW_DOCS)
        }
    };
    used.max(zeros) + CANDIDATE_BYTES * merged_candidates(view, clauses)
}

/// Maximum number of candidates in the buffers in which sparse alternatives are merged, summed over all
/// disjunctions: those of one alternative, those of all, and a copy of these with a minimum match.
fn merged_candidates(view: SegmentView<'_>, group: &Clauses<PlanNode>) -> usize {
    let documents = view.segment.documents();
    let costs = group.should.iter().map(|node| (view.cost(node), matches!(node, PlanNode::Group(_))));
    let merged = merged_candidates_max(costs.filter(|(cost, _)| is_sparse(*cost, documents)));
    let own = match group.minimum {
        0 => 0,
        1 => 2 * merged,
        _ => 3 * merged,
    };
    let nested = group.all().map(|node| match node {
        PlanNode::Group(group) => merged_candidates(view, group),
        _ => 0,
    });
    own + nested.sum::<usize>()
}

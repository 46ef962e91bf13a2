//! Estimates the memory of a query when it is planned: of its plan while it is queued, and of its
//! evaluation.
//!
//! An evaluation searches one segment after the other and opens all lists of the query in that segment. Each
//! takes a decoded block, its skip record if that is not resident, and two read buffers, for documents and
//! for frequencies. The sum of the read buffers is bounded: with few lists each reads far ahead, with many
//! each holds one block.

use crate::cursor::{BLOCK_BYTES_MAX, IN_ORDER_BYTES, POSITIONS_BUFFER};
use crate::eval::nodes::phrase::{PHRASE_BYTES, PHRASE_TERM_BYTES};
use crate::eval::nodes::term::{BLOCK_IMPACTS_BYTES, TERM_BYTES};
use crate::eval::open::{SkipDataUse, record_part};
use crate::eval::scratch_memory::scratch_bytes;
use crate::eval::search_plan::SearchPlan;
use crate::eval::segment_view::SegmentView;
use crate::eval::state::buffers::LookUpBuffers;
use crate::eval::state::scratch::{CANDIDATE_BYTES, RANGE_BYTES};
use crate::eval::strategies::initial_threshold::prescored_term;
use crate::eval::strategy::{EvaluationOptions, Strategy, StrategyKind};
use crate::eval::tuning::{DENSE_DIVISOR, LIST_BUFFERS_MAX, SORT_KEYS_MAX};
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, SUPERBLOCK};
use crate::query::plan_node::{Leaf, PlanNode};
use crate::rank::TermScorer;
use crate::segment::read::{BUFFER_MAX, BUFFER_MIN, READ_AHEAD, RecordPart, Segment, TermInfo};
use std::sync::Arc;
use tierdex_io::PAGE;

/// Maximum bytes of a list, beside its record, its read buffers and its block max scores.
const LIST_BYTES_MAX: u64 = TERM_BYTES as u64;

/// Parts of a list that are read: documents and frequencies.
const LIST_PARTS: u64 = 2;

/// Buffers for look-ups in a list; the lists beyond [`LIST_BUFFERS_MAX`] share one set.
const LOOK_UP_BYTES: usize = size_of::<LookUpBuffers>();

/// SegmentLists of a query whose blocks are copied with the rest of their pages, at most.
const PAGE_COPYING_LISTS_MAX: usize = 64;

/// Bytes per position of a document in a phrase with slop: vectors double their capacity.
const POSITION_BYTES: u64 = 12;

/// Postings of a superblock.
const SUPERBLOCK_POSTINGS: u64 = (BLOCK * SUPERBLOCK) as u64;

/// Sort keys of the blocks of a list of a million documents, and memory for the selection.
const BLOCK_ORDER_BYTES: u64 = 128 << 10;

/// Bytes that an evaluation retains for the next: the buffers of a level and of lists, sort keys,
/// and max scores of superblocks.
pub const RETAINED_BYTES: usize = RANGE_BYTES
    + LIST_BUFFERS_MAX * (TERM_BYTES + LOOK_UP_BYTES + BLOCK_IMPACTS_BYTES)
    + (2 * 8 + 4) * SORT_KEYS_MAX;

/// Smallest working memory of a query of this number of `terms`, in bytes, without skip data. Each term may
/// have a list of blocks; with `positions` the terms may form a phrase.
pub fn working_memory(terms: usize, positions: bool) -> u64 {
    let lists = terms as u64;
    let phrase = PHRASE_BYTES + terms * (PHRASE_TERM_BYTES + POSITIONS_BUFFER);
    let phrase = if positions { phrase as u64 } else { 0 };
    phrase
        + lists * LIST_BYTES_MAX
        + (LIST_PARTS * lists + 1) * BUFFER_MIN as u64
        + BLOCK_ORDER_BYTES
        + RANGE_BYTES as u64
}

/// Bytes of the text of an ordinary term, with allocation overhead.
const TERM_TEXT_BYTES: usize = 32;

/// Approximate memory of a term of a plan, in bytes.
pub fn leaf_memory(segments: usize) -> usize {
    let leaf = size_of::<Leaf>() + segments * (size_of::<Option<TermInfo>>() + size_of::<PlanNode>());
    size_of::<PlanNode>() + leaf + size_of::<TermScorer>() + TERM_TEXT_BYTES
}

/// Memory of the evaluation in one segment.
#[derive(Default)]
struct SegmentMemory {
    bytes: u64,
    /// Bytes used at one time only, so the maximum counts.
    expansion: u64,
    /// Number of read buffers.
    read_buffers: u64,
    /// Bytes of these if blocks are copied from pages.
    paged_bytes: u64,
}

/// Memory of the evaluation of a query.
#[derive(Clone, Copy, Debug)]
pub struct WorkingMemory {
    /// Bytes on each thread.
    pub bytes: u64,
    /// Of these, the read-ahead of each part of a list.
    pub read_ahead: usize,
}

impl SearchPlan {
    /// Approximate memory of the plan in bytes.
    pub fn memory(&self) -> usize {
        let leaf =
            |leaf: &Leaf| leaf_memory(leaf.infos.len()) + leaf.term.len().saturating_sub(TERM_TEXT_BYTES);
        self.query.leaves.iter().map(leaf).sum()
    }

    /// Memory of the evaluation, with as much read-ahead as fits in `allowance` bytes. The result exceeds
    /// `allowance` if that is too small for one block of each list.
    pub fn working_memory(&self, segments: &[Arc<Segment>], allowance: u64) -> WorkingMemory {
        let numbered = segments.iter().enumerate();
        let needs: Vec<SegmentMemory> =
            numbered.map(|(number, segment)| SegmentMemory::of(self, number, segment, true)).collect();
        let left = |need: &SegmentMemory| allowance.saturating_sub(need.bytes).checked_div(need.read_buffers);
        let buffer = needs.iter().filter_map(left).min().unwrap_or(0) / PAGE * PAGE;
        let buffer = buffer.clamp(BUFFER_MIN as u64, BUFFER_MAX as u64);
        let bytes = needs.iter().map(|need| need.bytes + need.read_buffers * buffer).max().unwrap_or(0);
        WorkingMemory { bytes, read_ahead: buffer as usize }
    }

    /// As [`SearchPlan::working_memory`], with blocks that are copied from pages of a cache, one at a time
    /// for each part of a list.
    pub fn paged_memory(&self, segments: &[Arc<Segment>]) -> u64 {
        let numbered = segments.iter().enumerate();
        let bytes = numbered.map(|(number, segment)| {
            let need = SegmentMemory::of(self, number, segment, false);
            need.bytes + need.paged_bytes
        });
        let first = prescored_term(&self.query, self.options.k);
        let first = first.map_or(0, |leaf| LIST_BYTES_MAX + CANDIDATE_BYTES as u64 * leaf.postings());
        bytes.max().unwrap_or(0).max(first)
    }

    /// Whether blocks are copied with the rest of their pages: with many lists, pages are pinned again.
    pub fn copies_pages(&self) -> bool {
        self.query.leaves.len() <= PAGE_COPYING_LISTS_MAX
    }
}

impl SegmentMemory {
    /// `reads_ahead`: lists that are read in order have large read buffers.
    fn of(plan: &SearchPlan, number: usize, segment: &Segment, reads_ahead: bool) -> SegmentMemory {
        let (view, strategy, options) = (plan.view(number, segment), plan.strategy(number), &plan.options);
        let mut need = SegmentMemory::default();
        let is_ordered = strategy.kind == StrategyKind::ImpactOrdered;
        // Of a list alone, at most the whole record is read.
        strategy.for_each_leaf(strategy.required_use(false), &mut |leaf, data_use| {
            need.add_list(view, leaf, data_use, options);
            if is_ordered && data_use == SkipDataUse::Impacts {
                need.add_block_order(view, leaf, options);
            }
        });
        strategy.clauses.all().for_each(|node| need.add_node(view, node));
        if reads_ahead && need.expansion > 0 {
            need.expansion += IN_ORDER_BYTES as u64 + READ_AHEAD;
        }
        // One more buffer to read skip records.
        need.read_buffers += need.read_buffers.min(1);
        let look_ups = count_look_up_lists(strategy).min(LIST_BUFFERS_MAX + 1) * LOOK_UP_BYTES;
        need.bytes += need.expansion + (look_ups + scratch_bytes(strategy, view)) as u64;
        need
    }

    fn add_list(
        &mut self,
        view: SegmentView<'_>,
        leaf: usize,
        data_use: SkipDataUse,
        options: &EvaluationOptions,
    ) {
        let Some(info) = view.term_info(leaf) else { return };
        self.bytes += LIST_BYTES_MAX;
        self.paged_bytes += paged_list_bytes(view, info);
        let leaf = &view.plan.leaves[leaf];
        let field = view.segment.field(leaf.field);
        if field.skips().resident().is_none() {
            let bounds = leaf.share_bounds(view.segment);
            let part = record_part(info, bounds.as_ref(), data_use, &options.tuning);
            let record = field.record_range(info, part);
            // A byte for each superblock, if entries are read one by one.
            self.bytes += record.end - record.start;
            if part == RecordPart::Head {
                self.bytes += u64::from(info.documents) / SUPERBLOCK_POSTINGS;
            }
        }
        self.read_buffers += if info.blocks.is_some() { LIST_PARTS } else { 0 };
    }

    /// Adds sort keys of the blocks of a list, with memory for the selection, and max scores of its
    /// superblocks.
    fn add_block_order(&mut self, view: SegmentView<'_>, leaf: usize, options: &EvaluationOptions) {
        let blocks = view.term_info(leaf).map_or(0, |info| u64::from(info.documents).div_ceil(BLOCK as u64));
        let ordered = blocks.min((options.tuning.superblocks_ordered * SUPERBLOCK) as u64);
        self.bytes += 2 * 8 * ordered + 4 * blocks.div_ceil(SUPERBLOCK as u64);
    }

    /// Adds the memory of a node beside its lists.
    fn add_node(&mut self, view: SegmentView<'_>, node: &PlanNode) {
        match node {
            PlanNode::Phrase { field, leaves, slop, .. } => {
                let positions = view.segment.field(*field).positions();
                let is_in_memory = positions.is_none_or(|file| file.resident().is_some());
                let buffer = if is_in_memory { 0 } else { POSITIONS_BUFFER };
                self.bytes += (PHRASE_BYTES + leaves.len() * (PHRASE_TERM_BYTES + buffer)) as u64;
                if *slop > 0 {
                    self.bytes += leaves.iter().map(|(_, leaf)| positions_bytes(view, *leaf)).sum::<u64>();
                }
            }
            PlanNode::Prefix { prefix, .. } => {
                let lists = 2 * prefix.terms * size_of::<TermInfo>() + PAGE as usize;
                self.expansion = self.expansion.max(lists as u64 + LIST_BYTES_MAX);
                self.bytes += u64::from(view.segment.documents()).div_ceil(8) + 8;
            }
            PlanNode::Group(group) => group.all().for_each(|node| self.add_node(view, node)),
            PlanNode::Term { .. } | PlanNode::All { .. } | PlanNode::Nothing => {}
        }
    }
}

/// Upper bound of the bytes for the positions of a document: its frequency is at most the length of the
/// longest document, and at most the occurrences left if every other document has one.
fn positions_bytes(view: SegmentView<'_>, leaf: usize) -> u64 {
    let Some(info) = view.term_info(leaf) else { return 0 };
    let field = view.segment.field(view.plan.leaves[leaf].field);
    let most = (info.occurrences + 1).saturating_sub(u64::from(info.documents));
    let longest = field.longest_document().unwrap_or(FIELD_TOKENS_MAX);
    POSITION_BYTES * most.min(u64::from(longest))
}

/// Number of lists in which candidates are looked up, or of which postings are selected.
fn count_look_up_lists(strategy: &Strategy<PlanNode>) -> usize {
    let Strategy { kind, clauses, .. } = strategy;
    match kind {
        StrategyKind::Windows | StrategyKind::CountBits => {
            clauses.all().map(|node| count_lists(node, true)).sum()
        }
        StrategyKind::SmallMerge => clauses.must_not.iter().map(|node| count_lists(node, false)).sum(),
        StrategyKind::CountConjunction | StrategyKind::CountDifference => {
            let all: usize = clauses.all().map(|node| count_lists(node, false)).sum();
            let leads = |node: &PlanNode| matches!(node, PlanNode::Term { .. });
            all - usize::from(clauses.must.iter().chain(&clauses.filter).all(leads))
        }
        _ => clauses.all().map(|node| count_lists(node, false)).sum(),
    }
}

/// Number of lists of a node, or of its phrases.
fn count_lists(node: &PlanNode, of_phrases: bool) -> usize {
    match node {
        PlanNode::Term { .. } => usize::from(!of_phrases),
        PlanNode::Phrase { leaves, .. } => leaves.len(),
        PlanNode::Group(group) => group.all().map(|node| count_lists(node, of_phrases)).sum(),
        PlanNode::Prefix { .. } | PlanNode::All { .. } | PlanNode::Nothing => 0,
    }
}

/// Read buffers of a list whose blocks are copied from pages: a block of documents and frequencies, twice as
/// long as its blocks are on average, and the rest of its page if that is copied too. Frequencies that are
/// longer than the documents, as in dense lists, are on pages of their own.
fn paged_list_bytes(view: SegmentView<'_>, info: &TermInfo) -> u64 {
    let documents = u64::from(info.documents);
    let blocks = documents.div_ceil(BLOCK as u64);
    let block = (2 * info.bytes() / blocks.max(1)).min(2 * BLOCK_BYTES_MAX as u64);
    let pages = match view.plan.leaves.len() {
        0..=PAGE_COPYING_LISTS_MAX if DENSE_DIVISOR * documents > u64::from(view.segment.documents()) => 2,
        0..=PAGE_COPYING_LISTS_MAX => 1,
        _ => 0,
    };
    info.bytes().min(block + pages * PAGE)
}

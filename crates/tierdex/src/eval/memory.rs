//! Computes the memory of a query when it is planned, before it is allocated: of its plan, and of its
//! evaluation by the strategies that were chosen.
//!
//! An evaluation searches one segment after the other and opens all lists of the strategy in that segment.
//! Each takes a decoded block, its skip record if that is not resident, and two read buffers, for documents
//! and for frequencies. Read buffers of files ([`SearchPlan::working_memory`]) divide what an allowance
//! leaves; those of a page cache ([`SearchPlan::paged_memory`]) hold one block.

use crate::cursor::{
    BLOCK_BYTES_MAX, IN_ORDER_BUFFER_BYTES, LIST_BYTES, POSITIONS_BUFFER_BYTES, POSITIONS_READ_BYTES,
};
use crate::eval::log::ListUse;
use crate::eval::nodes::column_set::column_set_bytes;
use crate::eval::nodes::phrase::{PHRASE_BYTES, PHRASE_TERM_BYTES};
use crate::eval::nodes::prefix_set::{prefix_set_bytes, record_bytes};
use crate::eval::nodes::term::{BLOCK_IMPACTS_BYTES, TERM_BYTES};
use crate::eval::open::{SkipDataUse, record_part};
use crate::eval::state::scratch::{CANDIDATE_BYTES, RANGE_BYTES};
use crate::eval::strategy::{Strategy, StrategyKind};
use crate::eval::tuning::{DENSE_DIVISOR, LIST_BUFFERS_MAX, SORT_KEYS_MAX, Tuning};
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, SUPERBLOCK, TERM_BYTES_MAX};
use crate::query::plan_node::{Leaf, PlanNode, PrefixClause};
use crate::segment::read::{
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, BlockList, OpenSegment, READ_AHEAD_BYTES, RecordPart, TermInfo,
};
use crate::{
    eval::SearchPlan, eval::SegmentView, eval::scratch_memory::scratch_bytes,
    eval::state::buffers::LookUpBuffers, eval::strategies::initial_threshold::prescored_term,
    rank::TermScorer,
};
use tierdex_io::PAGE;

/// Maximum bytes of an open list, without skip record, read buffers, look-up buffers and sort keys.
const LIST_BYTES_MAX: u64 = TERM_BYTES as u64;

/// Parts of a list, each with a read buffer: documents and frequencies.
const LIST_PARTS: u64 = 2;

/// Bytes of the buffers for look-ups in a list. The lists beyond the first [`LIST_BUFFERS_MAX`] share one
/// set.
const LOOK_UP_BYTES: usize = size_of::<LookUpBuffers>();

/// If a query has more terms than this, its lists copy single blocks from pages of the cache, not whole
/// pages.
const PAGE_COPYING_LISTS_MAX: usize = 64;

/// Bytes for each position of a term in a document, in a phrase with slop: 4, and up to three times that
/// while the vector of positions doubles its capacity.
const POSITION_BYTES: u64 = 12;

/// Bytes for a page in a read of many pages, as the lists of a prefix are read: the guard of its cell.
const PREFETCHED_PAGE_BYTES: u64 = 32;

/// Pages that an evaluation prefetches, at most.
const PREFETCHED_PAGES_MAX: u64 = 128;

/// Bytes of the sort keys of the blocks of a list of a million postings, and of the selection among them.
const BLOCK_ORDER_BYTES: u64 = 128 << 10;

/// Bytes of a line of an explained plan without its term, and of an explained segment without its lists.
const EXPLAINED_LINE_BYTES: usize = 128;
const EXPLAINED_SEGMENT_BYTES: usize = 4 << 10;

/// Bytes that a finished evaluation keeps allocated for the next one of its thread: windows, bitsets and
/// batches, buffers of lists, sort keys, and max scores of superblocks.
pub const RETAINED_BYTES: usize = RANGE_BYTES
    + LIST_BUFFERS_MAX * (TERM_BYTES + LOOK_UP_BYTES + BLOCK_IMPACTS_BYTES)
    + (2 * 8 + 4) * SORT_KEYS_MAX;

/// Bytes that suffice for the evaluation of any query of this number of `terms`, without skip data, if each
/// list buffers one block. With `positions` the terms may form a phrase.
pub fn working_memory(terms: usize, positions: bool) -> u64 {
    let lists = terms as u64;
    let phrase = PHRASE_BYTES + terms * (PHRASE_TERM_BYTES + POSITIONS_BUFFER_BYTES);
    let phrase = if positions { phrase as u64 } else { 0 };
    let buffers = (LIST_PARTS * lists + 1) * BUFFER_BYTES_MIN as u64;
    phrase + lists * LIST_BYTES_MAX + buffers + BLOCK_ORDER_BYTES + RANGE_BYTES as u64
}

/// Bytes of the text of a term that [`leaf_memory`] includes, with allocation overhead.
const TERM_TEXT_BYTES: usize = 32;

/// Approximate bytes of a term of a plan over this number of segments.
pub fn leaf_memory(segments: usize) -> usize {
    let leaf = size_of::<Leaf>() + segments * (size_of::<Option<TermInfo>>() + size_of::<PlanNode>());
    size_of::<PlanNode>() + leaf + size_of::<TermScorer>() + TERM_TEXT_BYTES
}

/// Bytes of the evaluation of a query in one segment.
#[derive(Default)]
struct SegmentMemory {
    bytes: u64,
    /// Bytes with which the lists of a prefix are read. The sets of prefixes are filled one after the other.
    expansion: u64,
    /// Number of read buffers, if lists are read from files.
    read_buffers: u64,
    /// Bytes of the read buffers, if blocks are copied from pages of a cache.
    paged_bytes: u64,
}

/// Memory of an evaluation that reads files without a page cache.
#[derive(Clone, Copy, Debug)]
pub struct WorkingMemory {
    /// Bytes of the evaluation on one thread.
    pub bytes: u64,
    /// Bytes of each read buffer; they are included in `bytes`.
    pub read_ahead: usize,
}

impl SearchPlan {
    /// Approximate bytes of the plan.
    pub fn memory(&self) -> usize {
        let leaf =
            |leaf: &Leaf| leaf_memory(leaf.infos.len()) + leaf.term.len().saturating_sub(TERM_TEXT_BYTES);
        self.query.leaves.iter().map(leaf).sum::<usize>() + prefixes_memory(&self.query.root)
    }

    /// Memory of the evaluation if it reads files, with read buffers as large as fit in `allowance` bytes.
    /// The result exceeds `allowance` if that is too small for one block of each list.
    pub fn working_memory(&self, segments: &[OpenSegment], allowance: u64) -> WorkingMemory {
        let numbered = segments.iter().enumerate();
        let needs: Vec<SegmentMemory> =
            numbered.map(|(number, segment)| SegmentMemory::of(self, number, segment, true)).collect();
        let left = |need: &SegmentMemory| allowance.saturating_sub(need.bytes).checked_div(need.read_buffers);
        let buffer = needs.iter().filter_map(left).min().unwrap_or(0) / PAGE * PAGE;
        let buffer = buffer.clamp(BUFFER_BYTES_MIN as u64, BUFFER_BYTES_MAX as u64);
        let bytes = needs.iter().map(|need| need.bytes + need.read_buffers * buffer).max().unwrap_or(0);
        WorkingMemory { bytes, read_ahead: buffer as usize }
    }

    /// Bytes of the evaluation if it copies blocks from the pages of a cache: the maximum of the segments,
    /// which are searched one after the other, and of the initial threshold before them.
    pub fn paged_memory(&self, segments: &[OpenSegment]) -> u64 {
        let numbered = segments.iter().enumerate();
        let bytes = numbered.map(|(number, segment)| {
            let need = SegmentMemory::of(self, number, segment, false);
            need.bytes + need.paged_bytes
        });
        let first = prescored_term(&self.query, self.options.k);
        let first = first.map_or(0, |leaf| LIST_BYTES_MAX + CANDIDATE_BYTES as u64 * leaf.postings());
        bytes.max().unwrap_or(0).max(first)
    }

    /// Bytes of an explanation of the evaluation, without hits, at most.
    pub fn explanation_memory(&self, segments: usize) -> u64 {
        explanation_memory(self.query.leaves.len(), segments)
    }

    /// Whether a list copies the rest of the page with each block. If not, the page is pinned again for the
    /// next block: slower, but many lists would take much memory.
    pub fn copies_pages(&self) -> bool {
        self.query.leaves.len() <= PAGE_COPYING_LISTS_MAX
    }
}

/// Bytes of the explanation of a query with this number of terms, without hits, at most: in each segment a
/// list, and a line or two of the plan, for each term.
pub fn explanation_memory(terms: usize, segments: usize) -> u64 {
    let of_term = size_of::<ListUse>() + 3 * (TERM_BYTES_MAX + EXPLAINED_LINE_BYTES);
    (segments * (EXPLAINED_SEGMENT_BYTES + terms * of_term)) as u64
}

/// Bytes of the dictionary entries of the prefixes of a plan.
fn prefixes_memory(node: &PlanNode) -> usize {
    match node {
        PlanNode::Prefix { prefix, .. } => prefix.memory(),
        PlanNode::Column { clause, .. } => clause.memory(),
        PlanNode::Group(group) => group.all().map(prefixes_memory).sum(),
        _ => 0,
    }
}

impl SegmentMemory {
    /// `reads_ahead`: lists are read from files, so that those of a prefix, which are read in order, have
    /// large read buffers.
    fn of(plan: &SearchPlan, number: usize, segment: &OpenSegment, reads_ahead: bool) -> SegmentMemory {
        let (view, strategy, tuning) =
            (plan.view(number, segment), plan.strategy(number), &plan.options.tuning);
        let mut need = SegmentMemory::default();
        let is_ordered = strategy.kind == StrategyKind::ImpactOrdered;
        strategy.for_each_leaf(strategy.required_use(!reads_ahead), &mut |leaf, data_use| {
            need.add_list(view, leaf, data_use, tuning);
            if is_ordered && data_use != SkipDataUse::MaxShares {
                need.add_block_order(view, leaf, tuning);
            }
        });
        let positions_buffer = if reads_ahead { POSITIONS_BUFFER_BYTES } else { POSITIONS_READ_BYTES };
        strategy.clauses.all().for_each(|node| need.add_node(view, node, positions_buffer));
        if reads_ahead && need.expansion > 0 {
            need.expansion += IN_ORDER_BUFFER_BYTES as u64 + READ_AHEAD_BYTES;
        }
        // One more, to read skip records.
        need.read_buffers += need.read_buffers.min(1);
        let look_ups = count_look_up_lists(strategy).min(LIST_BUFFERS_MAX + 1) * LOOK_UP_BYTES;
        need.bytes += need.expansion + (look_ups + scratch_bytes(strategy, view)) as u64;
        need
    }

    fn add_list(&mut self, view: SegmentView<'_>, leaf: usize, data_use: SkipDataUse, tuning: &Tuning) {
        let Some(info) = view.term_info(leaf) else { return };
        self.bytes += LIST_BYTES_MAX;
        self.paged_bytes += paged_list_bytes(view, info);
        let leaf = &view.plan.leaves[leaf];
        let field = view.segment.field_of_term(leaf.field);
        if field.skips_file().resident().is_none() {
            let positions = field.positions_file().is_some();
            self.bytes += match record_part(info, leaf, view.segment, data_use, tuning) {
                // The head stays until the entries were read, perhaps all.
                RecordPart::Head => {
                    let postings = info.document_frequency;
                    BlockList::head_bytes(postings, positions)
                        + BlockList::bytes_without_impacts(postings, positions)
                        + BlockList::bytes_without_impacts((BLOCK * SUPERBLOCK) as u32, positions)
                }
                part => {
                    let record = field.record_range(info, part);
                    record.end - record.start
                }
            };
        }
        self.read_buffers += if info.blocks.is_some() { LIST_PARTS } else { 0 };
    }

    /// Adds what impact order takes for a list: sort keys of its blocks, as much for the selection among
    /// them, and max scores of its superblocks.
    fn add_block_order(&mut self, view: SegmentView<'_>, leaf: usize, tuning: &Tuning) {
        let blocks =
            view.term_info(leaf).map_or(0, |info| u64::from(info.document_frequency).div_ceil(BLOCK as u64));
        let ordered = blocks.min((tuning.superblocks_ordered * SUPERBLOCK) as u64);
        self.bytes += 2 * 8 * ordered + 4 * blocks.div_ceil(SUPERBLOCK as u64);
    }

    /// Adds the memory of a node without its lists.
    fn add_node(&mut self, view: SegmentView<'_>, node: &PlanNode, positions_buffer: usize) {
        match node {
            PlanNode::Phrase { field, leaves, slop, .. } => {
                let positions = view.segment.field_of_term(*field).positions_file();
                let is_in_memory = positions.is_none_or(|file| file.resident().is_some());
                let buffer = if is_in_memory { 0 } else { positions_buffer };
                self.bytes += (PHRASE_BYTES + leaves.len() * (PHRASE_TERM_BYTES + buffer)) as u64;
                if *slop > 0 {
                    self.bytes += leaves.iter().map(|(_, leaf)| positions_bytes(view, *leaf)).sum::<u64>();
                }
            }
            PlanNode::Prefix { prefix, .. } => {
                // While the blocks of a list are added, those of another one are prefetched. While a skip
                // record is read, there are two copies of it.
                let longest =
                    record_bytes(prefix, view.number, view.segment.field_of_term(prefix.field)).max();
                let list = (PAGE + LIST_BYTES_MAX).max(2 * longest.unwrap_or(0) as u64);
                let reads = PREFETCHED_PAGE_BYTES * prefetched_pages(prefix, view);
                self.expansion = self.expansion.max(list + LIST_BYTES as u64 + reads);
                self.bytes += prefix_set_bytes(prefix, view.number, view.segment) as u64;
            }
            PlanNode::Group(group) => {
                group.all().for_each(|node| self.add_node(view, node, positions_buffer))
            }
            PlanNode::Column { clause, .. } => {
                if let Some(column) = view.segment.column(clause.column) {
                    // A directory that cannot be read is an error when the clause is opened.
                    let bytes = column_set_bytes(column, clause.ranges.len()).unwrap_or(0);
                    self.bytes += bytes as u64;
                }
            }
            PlanNode::Term { .. } | PlanNode::All { .. } | PlanNode::Nothing => {}
        }
    }
}

/// Upper bound of the bytes for the positions of a term in one document. Its frequency there is at most the
/// length of the longest document, and at most what is left of its occurrences if every other document has
/// one.
fn positions_bytes(view: SegmentView<'_>, leaf: usize) -> u64 {
    let Some(info) = view.term_info(leaf) else { return 0 };
    let field = view.segment.field_of_term(view.plan.leaves[leaf].field);
    let most = (info.occurrences + 1).saturating_sub(u64::from(info.document_frequency));
    let longest = field.longest_document().unwrap_or(FIELD_TOKENS_MAX);
    POSITION_BYTES * most.min(u64::from(longest))
}

/// Maximum number of pages of the lists of a prefix that are read together.
fn prefetched_pages(prefix: &PrefixClause, view: SegmentView<'_>) -> u64 {
    if view.segment.field_of_term(prefix.field).postings_file().resident().is_some() {
        return 0;
    }
    let lists = prefix.long_lists(view.number).unwrap_or_default().iter();
    let bytes: u64 = lists.map(TermInfo::block_bytes).sum();
    bytes.div_ceil(PAGE).min(PREFETCHED_PAGES_MAX)
}

/// Number of lists that take look-up buffers: candidates are looked up in them, or postings selected.
fn count_look_up_lists(strategy: &Strategy) -> usize {
    let Strategy { kind, clauses, .. } = strategy;
    match kind {
        StrategyKind::CountBits if clauses.minimum > 0 => {
            let is_term = |node: &&PlanNode| matches!(node, PlanNode::Term { .. });
            clauses.should.iter().filter(|node| !is_term(node)).map(count_lists).sum()
        }
        StrategyKind::CountBlocks | StrategyKind::CountDifference => {
            let all: usize = clauses.all().map(count_lists).sum();
            let leads = |node: &PlanNode| matches!(node, PlanNode::Term { .. });
            all - usize::from(clauses.must.iter().chain(&clauses.filter).all(leads))
        }
        _ => clauses.all().map(count_lists).sum(),
    }
}

/// Number of lists of a node.
fn count_lists(node: &PlanNode) -> usize {
    match node {
        PlanNode::Term { .. } => 1,
        PlanNode::Phrase { leaves, .. } => leaves.len(),
        PlanNode::Group(group) => group.all().map(count_lists).sum(),
        PlanNode::Prefix { .. } | PlanNode::Column { .. } | PlanNode::All { .. } | PlanNode::Nothing => 0,
    }
}

/// Bytes of the read buffers of a list whose blocks are copied from pages: a block of documents and
/// frequencies, twice as long as the average block of the list, and the rest of its page if that is copied
/// too. In dense lists frequencies are longer than documents and begin on another page: two pages.
fn paged_list_bytes(view: SegmentView<'_>, info: &TermInfo) -> u64 {
    let documents = u64::from(info.document_frequency);
    let blocks = documents.div_ceil(BLOCK as u64);
    let block = (2 * info.block_bytes() / blocks.max(1)).min(2 * BLOCK_BYTES_MAX as u64);
    let pages = match view.plan.leaves.len() {
        0..=PAGE_COPYING_LISTS_MAX if DENSE_DIVISOR * documents > u64::from(view.segment.documents()) => 2,
        0..=PAGE_COPYING_LISTS_MAX => 1,
        _ => 0,
    };
    info.block_bytes().min(block + pages * PAGE)
}

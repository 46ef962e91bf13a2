//! Estimates the memory of a query when it is planned: of its plan while it is queued, and of its
//! evaluation.
//!
//! An evaluation searches one segment after the other and opens all lists of the query in that segment. Each
//! takes a decoded block, its skip record if that is not resident, and two read buffers, for documents and
//! for frequencies. The sum of the read buffers is bounded: with few lists each reads far ahead, with many
//! each holds one block.

use super::open::RecordReads;
use super::phrase::{PHRASE_BYTES, PHRASE_TERM_BYTES};
use super::scratch::RANGE_BYTES;
use super::small_merge::is_small;
use super::term::TERM_BYTES;
use super::tuning::{KEYS_KEPT, LISTS_KEPT, Tuning};
use crate::cursor::{IN_ORDER_BYTES, POSITIONS_BUFFER};
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, SUPERBLOCK};
use crate::query::plan::{Leaf, PlanNode, QueryPlan};
use crate::rank::TermScorer;
use crate::segment::read::{BUFFER_MAX, BUFFER_MIN, READ_AHEAD, Segment, TermInfo};
use std::sync::Arc;
use tierdex_io::PAGE;

/// Maximum bytes of a list, beside its record, its read buffers and its block max scores.
const LIST: u64 = TERM_BYTES as u64;

/// Parts of a list that are read: documents and frequencies.
const PARTS: u64 = 2;

/// Bytes per position of a document in a phrase with slop: vectors double their capacity.
const POSITION: u64 = 12;

/// Windows, bitsets and batches of candidates of each level of a query below the first. Those of the first
/// are counted for each evaluation.
const LEVEL: u64 = RANGE_BYTES as u64;

/// Postings of a superblock.
const SUPERBLOCK_POSTINGS: u64 = (BLOCK * SUPERBLOCK) as u64;

/// Sort keys of the blocks of a list of a million documents, and memory for the selection.
const BLOCK_ORDER: u64 = 128 << 10;

/// Bytes that an evaluation retains for the next: the buffers of a level and of lists, sort keys,
/// and max scores of superblocks.
pub const RETAINED_BYTES: usize = RANGE_BYTES + LISTS_KEPT * TERM_BYTES + (2 * 8 + 4) * KEYS_KEPT;

/// Smallest working memory of a query of this number of `terms`, in bytes, without skip data. Each term may
/// have a list of blocks; with `positions` the terms may form a phrase.
pub fn working_memory(terms: usize, positions: bool) -> u64 {
    let lists = terms as u64;
    let phrase = PHRASE_BYTES + terms * (PHRASE_TERM_BYTES + POSITIONS_BUFFER);
    let phrase = if positions { phrase as u64 } else { 0 };
    phrase + lists * LIST + (PARTS * lists + 1) * BUFFER_MIN as u64 + BLOCK_ORDER + LEVEL
}

/// Bytes of the text of an ordinary term, with allocation overhead.
const TEXT: usize = 32;

/// Approximate memory of a term of a plan, in bytes.
pub fn leaf_memory(segments: usize) -> usize {
    let leaf = size_of::<Leaf>() + segments * size_of::<Option<TermInfo>>();
    size_of::<PlanNode>() + leaf + size_of::<TermScorer>() + TEXT
}

/// Memory of the evaluation in one segment.
#[derive(Default)]
struct SegmentMemory {
    bytes: u64,
    /// Bytes used at one time only, so the maximum counts.
    aside: u64,
    /// Number of read buffers.
    buffers: u64,
    /// Blocks of the longest list that are put in impact order at a time.
    blocks: u64,
    /// Superblocks of the longest list.
    superblocks: u64,
}

/// Memory of the evaluation of a query.
#[derive(Clone, Copy, Debug)]
pub struct WorkingMemory {
    /// Bytes on each thread.
    pub bytes: u64,
    /// Of these, the read-ahead of each part of a list.
    pub read_ahead: usize,
}

impl QueryPlan {
    /// Approximate memory of the plan in bytes.
    pub fn memory(&self) -> usize {
        let leaf = |leaf: &Leaf| leaf_memory(leaf.infos.len()) + leaf.term.len().saturating_sub(TEXT);
        self.leaves.iter().map(leaf).sum()
    }

    /// Memory of the evaluation, with as much read-ahead as fits in `allowance` bytes. The result exceeds
    /// `allowance` if that is too small for one block of each list.
    pub fn working_memory(
        &self,
        segments: &[Arc<Segment>],
        allowance: u64,
        tuning: &Tuning,
    ) -> WorkingMemory {
        let numbered = segments.iter().enumerate();
        let needs: Vec<SegmentMemory> =
            numbered.map(|(number, segment)| self.need(number, segment, tuning)).collect();
        let left = |need: &SegmentMemory| allowance.saturating_sub(need.bytes).checked_div(need.buffers);
        let buffer = needs.iter().filter_map(left).min().unwrap_or(0) / PAGE * PAGE;
        let buffer = buffer.clamp(BUFFER_MIN as u64, BUFFER_MAX as u64);
        let bytes = needs.iter().map(|need| need.bytes + need.buffers * buffer).max().unwrap_or(0);
        WorkingMemory { bytes, read_ahead: buffer as usize }
    }

    fn need(&self, number: usize, segment: &Segment, tuning: &Tuning) -> SegmentMemory {
        let mut need = SegmentMemory::default();
        for leaf in &self.leaves {
            leaf.add_to((number, segment), tuning, &mut need);
        }
        let levels = self.add_node(&self.root, (number, segment), &mut need);
        // One more buffer to read skip records.
        need.buffers += need.buffers.min(1);
        need.bytes += need.aside + levels.saturating_sub(1) * LEVEL;
        // Documents and scores of the merged lists, in two batches.
        need.bytes += 2 * 8 * self.merged(number, segment);
        // Sort keys of the blocks of one list, and memory for the selection.
        need.bytes += 4 * 8 * need.blocks;
        // Max scores of the superblocks of one list.
        need.bytes += 4 * need.superblocks;
        need
    }

    /// Postings of alternatives that are evaluated by merging.
    fn merged(&self, number: usize, segment: &Segment) -> u64 {
        let PlanNode::Group(group) = &self.root else { return 0 };
        let leaf = |node: &PlanNode| match node {
            PlanNode::Term(leaf) => self.leaves[*leaf].infos[number].as_ref(),
            _ => None,
        };
        let postings = group.should.iter().filter_map(leaf).map(|info| u64::from(info.documents)).sum();
        if group.minimum == 1 && is_small(postings, segment.documents()) { postings } else { 0 }
    }

    /// Adds the memory of a node beside its lists, and returns the number of its levels that have windows.
    fn add_node(&self, node: &PlanNode, segment: (usize, &Segment), need: &mut SegmentMemory) -> u64 {
        match node {
            PlanNode::Phrase { field, leaves, slop, .. } => {
                let is_in_memory =
                    segment.1.field(*field).positions().is_none_or(|file| file.resident().is_some());
                let buffer = if is_in_memory { 0 } else { POSITIONS_BUFFER };
                let lists = || leaves.iter().map(|(_, leaf)| &self.leaves[*leaf]);
                need.bytes += (PHRASE_BYTES + leaves.len() * (PHRASE_TERM_BYTES + buffer)) as u64;
                if *slop > 0 {
                    need.bytes += lists().map(|list| list.positions(segment)).sum::<u64>();
                }
                1
            }
            PlanNode::Prefix { terms, .. } => {
                let lists = 2 * terms * size_of::<TermInfo>() + IN_ORDER_BYTES;
                need.aside = need.aside.max(lists as u64 + READ_AHEAD + LIST);
                need.bytes += u64::from(segment.1.documents()).div_ceil(8) + 8;
                1
            }
            PlanNode::Group(group) => {
                let deepest = group.nodes().map(|node| self.add_node(node, segment, need)).max();
                1 + deepest.unwrap_or(0)
            }
            PlanNode::Term(_) | PlanNode::All { .. } | PlanNode::Nothing => 0,
        }
    }
}

impl Leaf {
    fn add_to(&self, (number, segment): (usize, &Segment), tuning: &Tuning, need: &mut SegmentMemory) {
        let Some(info) = &self.infos[number] else { return };
        need.bytes += LIST;
        let field = segment.field(self.field);
        if field.skips().resident().is_none() {
            let bounds = self.share_bounds(segment);
            let reads = RecordReads { ranked: true, alone: false, tuning: *tuning };
            let record = field.record_range(info, self.record_part(info, bounds.as_ref(), &reads));
            // A byte for each superblock, if entries are read one by one.
            need.bytes += record.end - record.start + u64::from(info.documents) / SUPERBLOCK_POSTINGS;
        }
        if info.blocks.is_none() {
            return;
        }
        let blocks = u64::from(info.documents).div_ceil(BLOCK as u64);
        need.superblocks = need.superblocks.max(blocks.div_ceil(SUPERBLOCK as u64));
        need.blocks = need.blocks.max(blocks.min((tuning.superblocks_ordered * SUPERBLOCK) as u64));
        need.buffers += PARTS;
    }

    /// Upper bound of the bytes for the positions of a document: its frequency is at most the length of the
    /// longest document, and at most the occurrences left if every other document has one.
    fn positions(&self, (number, segment): (usize, &Segment)) -> u64 {
        let Some(info) = &self.infos[number] else { return 0 };
        let most = (info.occurrences + 1).saturating_sub(u64::from(info.documents));
        let longest = segment.field(self.field).longest_document().unwrap_or(FIELD_TOKENS_MAX);
        POSITION * most.min(u64::from(longest))
    }
}

//! How a query was evaluated, as JSON.

use serde::Serialize;
use tierdex::explain::{Explanation, ListUse, SegmentExplanation};
use utoipa::ToSchema;

/// How a query was evaluated.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainedQuery {
    /// Number of documents that match, at least.
    pub total: u64,
    /// Whether all matches were counted.
    pub counted: bool,
    /// The score of the last hit, if there are k hits.
    pub threshold: Option<f32>,
    /// The segments, in order of their documents.
    pub segments: Vec<ExplainedSegment>,
}

/// How a query was evaluated in a segment.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainedSegment {
    /// Number of the segment in the names of its files.
    pub segment: u64,
    /// Name of the strategy.
    pub strategy: &'static str,
    /// Documents that are not deleted.
    pub documents: u32,
    /// Documents that match; if matches are not counted, matches that were scored.
    pub matches: u64,
    /// The score that a hit needed before the segment was searched.
    pub threshold_before: Option<f32>,
    /// The score that a hit needed after the segment was searched.
    pub threshold_after: Option<f32>,
    /// The nodes of the plan.
    pub nodes: Vec<ExplainedNode>,
    /// The posting lists.
    pub lists: Vec<ExplainedList>,
}

/// A node of a plan.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainedNode {
    /// Depth in the tree; 0 is the root.
    pub depth: usize,
    /// What it is.
    pub what: String,
}

/// The use of a posting list.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainedList {
    /// Name of the field.
    pub field: String,
    /// The term.
    pub term: String,
    /// Documents with the term in the segment.
    pub documents: u32,
    /// Inverse document frequency times (k1 + 1) times boost: no occurrence scores more.
    pub weight: f32,
    /// Upper bound of the scores in the list, if scores were needed.
    pub max_score: Option<f32>,
    /// Blocks of the list: those decoded, skipped by bound and skipped by range together.
    pub blocks: u64,
    /// Blocks that were decoded.
    pub decoded: u64,
    /// Decoded blocks of document numbers.
    pub decoded_docs: u64,
    /// Decoded blocks of frequencies.
    pub decoded_freqs: u64,
    /// Blocks that were skipped because no document in them can be a hit.
    pub by_bound: u64,
    /// Blocks that were skipped because no candidate is in their range of documents.
    pub by_range: u64,
    /// Candidates of other clauses that were looked up.
    pub looked_up: u64,
    /// Those that were kept.
    pub kept: u64,
    /// Bytes of skip data.
    pub skips_bytes: u64,
    /// Bytes of document numbers.
    pub docs_bytes: u64,
    /// Bytes of frequencies.
    pub freqs_bytes: u64,
    /// Bytes of document numbers in decoded blocks.
    pub docs_bytes_decoded: u64,
    /// Bytes of frequencies in decoded blocks.
    pub freqs_bytes_decoded: u64,
}

impl ExplainedQuery {
    /// The explanation, and whether all matches were counted.
    pub fn new(explanation: &Explanation, counted: bool) -> ExplainedQuery {
        ExplainedQuery {
            total: explanation.result.total,
            counted,
            threshold: explanation.threshold,
            segments: explanation.segments.iter().map(ExplainedSegment::from).collect(),
        }
    }
}

impl From<&SegmentExplanation> for ExplainedSegment {
    fn from(segment: &SegmentExplanation) -> ExplainedSegment {
        let nodes = segment.evaluation.nodes.iter();
        ExplainedSegment {
            segment: segment.id,
            strategy: segment.evaluation.strategy.name(),
            documents: segment.documents,
            matches: segment.matches,
            threshold_before: segment.threshold_before,
            threshold_after: segment.threshold_after,
            nodes: nodes.map(|(depth, what)| ExplainedNode { depth: *depth, what: what.clone() }).collect(),
            lists: segment.evaluation.lists.iter().map(ExplainedList::from).collect(),
        }
    }
}

impl From<&ListUse> for ExplainedList {
    fn from(list: &ListUse) -> ExplainedList {
        let blocks = &list.blocks;
        ExplainedList {
            field: list.field.clone(),
            term: list.term.clone(),
            documents: list.documents,
            weight: list.weight as f32,
            max_score: list.highest_bound,
            blocks: blocks.blocks,
            decoded: blocks.decoded,
            decoded_docs: blocks.documents,
            decoded_freqs: blocks.frequencies,
            by_bound: blocks.by_bound,
            by_range: blocks.by_range,
            looked_up: list.candidates,
            kept: list.kept,
            skips_bytes: list.skips_bytes,
            docs_bytes: blocks.docs_bytes,
            freqs_bytes: blocks.freqs_bytes,
            docs_bytes_decoded: blocks.docs_decoded,
            freqs_bytes_decoded: blocks.freqs_decoded,
        }
    }
}

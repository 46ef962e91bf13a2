//! The inputs of a plan beside the query: the segments of a commit, and the statistics that scores depend on.

use super::plan_node::{PrefixClause, TermPrefix};
use crate::rank::{CollectionStats, LengthNorms, Scorer, Statistics};
use crate::segment::read::{BlockSource, OpenSegment};
use std::sync::Arc;

/// The segments whose posting lists a query reads, and the source of the bytes that are not resident.
#[derive(Clone, Copy)]
pub struct SegmentLists<'a> {
    /// The segments of a commit.
    pub segments: &'a [OpenSegment],
    /// Returns pages of dictionaries and blocks of lists that are not resident.
    pub source: &'a dyn BlockSource,
    /// Prefixes of recent queries.
    pub(crate) kept: Option<&'a dyn PrefixStore>,
}

/// Keeps the prefixes of queries for later ones over the same segments.
pub(crate) trait PrefixStore {
    /// The kept clause of a prefix in a field.
    fn find(&self, field: usize, prefix: TermPrefix<'_>) -> Option<Arc<PrefixClause>>;

    /// Keeps a clause, if there is memory for it.
    fn keep(&self, clause: PrefixClause, segments: &[OpenSegment]) -> Arc<PrefixClause>;
}

/// The scorer of a search, and the statistics from which it weights terms.
#[derive(Clone, Copy)]
pub(crate) struct RankingInputs<'a> {
    /// Statistics of each field.
    pub(crate) collections: &'a [CollectionStats],
    /// BM25 length normalization of each field, for the parameters of the scorer.
    pub(crate) lengths: &'a [Arc<LengthNorms>],
    /// Document frequencies that replace those of the segments.
    pub(crate) statistics: Option<&'a Statistics>,
    pub(crate) scorer: Scorer,
}

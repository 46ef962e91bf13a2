//! What a query is planned over: the segments of a commit, and what the scores of their documents depend on.

use crate::rank::{CollectionStats, LengthNorms, Scorer, Statistics};
use crate::segment::read::{BlockSource, Segment};
use std::sync::Arc;

/// Segments, and the source of pages of their files that are not resident.
#[derive(Clone, Copy)]
pub struct SegmentLists<'a> {
    /// The segments of a commit.
    pub segments: &'a [Arc<Segment>],
    /// Reads what is not resident.
    pub source: &'a dyn BlockSource,
}

/// What scores depend on beside the documents.
#[derive(Clone, Copy)]
pub(crate) struct RankingInputs<'a> {
    /// Statistics of each field.
    pub(crate) collections: &'a [CollectionStats],
    /// Length normalization of each field, which follows from them for the parameters of BM25.
    pub(crate) lengths: &'a [Arc<LengthNorms>],
    /// Document frequencies that replace those of the segments.
    pub(crate) statistics: Option<&'a Statistics>,
    pub(crate) scorer: Scorer,
}

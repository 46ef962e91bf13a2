//! Explains how a query is evaluated: thresholds, evaluation log and reads, segment by segment.

use super::search_result::{PartialResult, SearchOptions, SearchResult};
use super::searcher::{PlannedQuery, Searcher};
use crate::eval::{Collector, DocumentRange, EvaluationLog, Scratch};
use crate::rank::{ScoreScale, SharedThreshold, Statistics, TopK};
use crate::segment::read::{FILES, OpenSegment};
use crate::{Result, query::Query};
use std::sync::Arc;

/// The result of a query and the log of its evaluation.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The result, equal to that of [`Searcher::search`].
    pub result: SearchResult,
    /// The score of the last hit, if there are `k` hits.
    pub threshold: Option<f32>,
    /// How each segment was evaluated, in the order in which they were searched, that of their documents.
    pub segments: Vec<SegmentExplanation>,
}

/// The evaluation of a segment.
#[derive(Clone, Debug)]
pub struct SegmentExplanation {
    /// The segment's number in the names of its files.
    pub id: u64,
    /// Number of documents of the segment that are not deleted.
    pub documents: u32,
    /// Number of documents that match; if matches are not counted, number of matches that were scored.
    pub matches: u64,
    /// The top-k threshold before the segment was searched; `None` if a hit with any score would have been
    /// among the best k.
    pub threshold_before: Option<f32>,
    /// The top-k threshold after the segment was searched.
    pub threshold_after: Option<f32>,
    /// Strategy, plan nodes and posting lists.
    pub evaluation: EvaluationLog,
    /// Reads of each file of the segment, with those of dictionary lookups.
    pub files: Vec<FileUse>,
}

/// The reads of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Name of the file.
    pub file: String,
    /// Number of reads.
    pub reads: u64,
    /// Bytes that were read, in whole pages.
    pub bytes: u64,
}

impl Searcher {
    /// Evaluates `query` on this thread, as [`Searcher::search`] but slower, and records how. Scores by the
    /// statistics of all shards if they are given.
    pub fn explain(
        &self,
        query: &Query,
        options: &SearchOptions,
        statistics: Option<&Statistics>,
    ) -> Result<Explanation> {
        let before: Vec<Vec<FileUse>> = self.index().segments().iter().map(reads_so_far).collect();
        let plan = self.plan_with_statistics(statistics, query, options, &FILES)?;
        let query = PlannedQuery { plan: &plan, options, source: &FILES };
        let mut scratch = Scratch::default();
        let threshold = self.shared_threshold(query, &mut scratch)?;
        match explain_from(self, query, threshold, before.clone(), &mut scratch)? {
            Some(explanation) => Ok(explanation),
            None => {
                let explained = explain_from(self, query, Arc::default(), before, &mut scratch)?;
                Ok(explained.expect("without an initial threshold hits are complete"))
            }
        }
    }
}

/// Explains a query that is evaluated from this initial threshold on; `None` if it was too high. `before` has
/// the reads of each segment before the query was planned.
fn explain_from(
    searcher: &Searcher,
    query: PlannedQuery<'_>,
    threshold: Arc<SharedThreshold>,
    before: Vec<Vec<FileUse>>,
    scratch: &mut Scratch,
) -> Result<Option<Explanation>> {
    let (index, PlannedQuery { plan, options, .. }) = (searcher.index(), query);
    let mut top = TopK::new(options.k, index.documents());
    top.share_threshold(threshold.clone());
    let documents = DocumentRange::new(searcher.documents());
    let mut segments = Vec::with_capacity(before.len());
    for (number, (segment, before)) in index.segments().iter().zip(before).enumerate() {
        let threshold_before = shown_threshold(&top, plan.query.scale);
        let mut evaluation = EvaluationLog::default();
        let collector = Collector::of(options.k, &mut top);
        let log = Some(&mut evaluation);
        let matches = searcher.search_segment(query, &documents, number, scratch, collector, log)?;
        segments.push(SegmentExplanation {
            id: segment.meta().id,
            documents: segment.live_documents(),
            matches,
            threshold_before,
            threshold_after: shown_threshold(&top, plan.query.scale),
            evaluation,
            files: read_difference(before, reads_so_far(segment)),
        });
    }
    let k = top.k();
    let total = segments.iter().map(|segment| segment.matches).sum();
    let result = PartialResult { hits: top.take(), total, complete: true };
    if result.was_initial_threshold_too_high(options.k, index, &threshold) {
        return Ok(None);
    }
    let result = result.into_result(options, plan.query.scale);
    let threshold = result.hits.last().filter(|_| result.hits.len() == k).map(|hit| hit.score);
    Ok(Some(Explanation { result, threshold, segments }))
}

fn shown_threshold(top: &TopK, scale: ScoreScale) -> Option<f32> {
    Some(top.threshold()).filter(|units| *units > 0).map(|units| scale.shown(units))
}

fn reads_so_far(segment: &OpenSegment) -> Vec<FileUse> {
    let files = segment.files();
    let uses = files.map(|file| FileUse {
        file: file.name().to_string(),
        reads: file.reads(),
        bytes: file.bytes_read(),
    });
    uses.collect()
}

/// The reads of each file from `before` to `after`, without files that were not read.
fn read_difference(before: Vec<FileUse>, after: Vec<FileUse>) -> Vec<FileUse> {
    let uses = before.into_iter().zip(after).map(|(before, after)| FileUse {
        file: after.file,
        reads: after.reads - before.reads,
        bytes: after.bytes - before.bytes,
    });
    uses.filter(|used| used.reads > 0).collect()
}

//! Explains how a query is evaluated: thresholds, evaluation log and reads, segment by segment.

use super::search_result::{PartialResult, SearchOptions, SearchResult};
use super::searcher::{PlannedQuery, Searcher};
use crate::eval::{Collector, DocumentRange, EvaluationLog, Scratch, SearchPlan};
use crate::rank::{ScoreScale, SharedThreshold, Statistics, TopK};
use crate::segment::read::{CountedSource, FILES, OpenSegment};
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

/// An evaluation that was recorded.
pub(crate) struct RecordedEvaluation {
    pub(crate) found: PartialResult,
    /// Number of hits that it could have.
    k: usize,
    pub(crate) segments: Vec<SegmentExplanation>,
}

impl RecordedEvaluation {
    /// The explanation of a query with this scale of scores.
    pub(crate) fn into_explanation(self, options: &SearchOptions, scale: ScoreScale) -> Explanation {
        let k = self.k;
        let result = self.found.into_result(options, scale);
        let threshold = result.hits.last().filter(|_| result.hits.len() == k).map(|hit| hit.score);
        Explanation { result, threshold, segments: self.segments }
    }
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
        let source = CountedSource::new(&FILES);
        let plan = self.plan_with_statistics(statistics, query, options, &source)?;
        Ok(self.record(&plan, options, &source)?.into_explanation(options, plan.query.scale))
    }

    /// Evaluates a query that was planned with the same source, and records how.
    pub(crate) fn record(
        &self,
        plan: &SearchPlan,
        options: &SearchOptions,
        source: &CountedSource<'_>,
    ) -> Result<RecordedEvaluation> {
        let query = PlannedQuery { plan, options, source };
        let mut scratch = Scratch::default();
        let threshold = self.shared_threshold(query, &mut scratch)?;
        let recorded = match record_from(self, query, threshold, &mut scratch)? {
            Some(recorded) => Some(recorded),
            None => record_from(self, query, Arc::default(), &mut scratch)?,
        };
        let mut recorded = recorded.expect("without an initial threshold hits are complete");
        for (segment, explained) in self.index().segments().iter().zip(&mut recorded.segments) {
            explained.files = files_read(segment, source);
        }
        Ok(recorded)
    }
}

/// Records the evaluation of a query from this initial threshold on; `None` if it was too high.
fn record_from(
    searcher: &Searcher,
    query: PlannedQuery<'_>,
    threshold: Arc<SharedThreshold>,
    scratch: &mut Scratch,
) -> Result<Option<RecordedEvaluation>> {
    let (index, PlannedQuery { plan, options, .. }) = (searcher.index(), query);
    let mut top = TopK::new(options.k, index.documents());
    top.share_threshold(threshold.clone());
    let documents = DocumentRange::new(searcher.documents());
    let mut segments = Vec::with_capacity(index.segments().len());
    for (number, segment) in index.segments().iter().enumerate() {
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
            files: Vec::new(),
        });
    }
    let k = top.k();
    let total = segments.iter().map(|segment| segment.matches).sum();
    let found = PartialResult { hits: top.take(), total, complete: true };
    let is_too_high = found.was_initial_threshold_too_high(options.k, index, &threshold);
    Ok((!is_too_high).then_some(RecordedEvaluation { found, k, segments }))
}

fn shown_threshold(top: &TopK, scale: ScoreScale) -> Option<f32> {
    Some(top.threshold()).filter(|units| *units > 0).map(|units| scale.shown(units))
}

/// The reads of each file of a segment, without files that were not read.
fn files_read(segment: &OpenSegment, source: &CountedSource<'_>) -> Vec<FileUse> {
    let uses = segment.files().map(|file| {
        let (reads, bytes) = source.reads_of(file);
        FileUse { file: file.name().to_string(), reads, bytes }
    });
    uses.filter(|used| used.reads > 0).collect()
}

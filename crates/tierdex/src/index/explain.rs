//! How a query was answered, segment by segment.

use super::searcher::{PartialResult, SearchOptions, SearchResult, Searcher};
use crate::error::Result;
use crate::eval::{DocumentRange, EvaluationLog, Scratch};
use crate::query::{Query, QueryPlan};
use crate::rank::{ScoreScale, TopK};
use crate::segment::read::{FILES, Segment};
use std::sync::Arc;

/// The answer to a query, and how it was found.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What [`Searcher::search`] gives.
    pub result: SearchResult,
    /// The score of the last hit, if there are as many hits as were asked for.
    pub threshold: Option<f32>,
    /// Segments in document order, which is the order in which they were searched.
    pub segments: Vec<SegmentExplanation>,
}

/// What happened in a segment.
#[derive(Clone, Debug)]
pub struct SegmentExplanation {
    /// The segment's number in the names of its files.
    pub id: u64,
    /// Documents in it.
    pub documents: u32,
    /// Documents that match, or that were met if they were not to be counted.
    pub matches: u64,
    /// What a hit had to score when the segment was begun; `None` if anything would do.
    pub threshold_before: Option<f32>,
    /// The same when it was done.
    pub threshold_after: Option<f32>,
    /// Plan, lists and needs.
    pub evaluation: EvaluationLog,
    /// What was read of the segment's files, the dictionary's look-ups included.
    pub files: Vec<FileUse>,
}

/// What was read of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Its name.
    pub file: String,
    /// Times that the disk was asked.
    pub reads: u64,
    /// Bytes of these, as whole pages.
    pub bytes: u64,
}

impl Searcher {
    /// Evaluates `query` on this thread and logs how. It takes longer than [`Searcher::search`].
    pub fn explain(&self, query: &Query, options: &SearchOptions) -> Result<Explanation> {
        let before: Vec<Vec<FileUse>> = self.index().segments().iter().map(reads_so_far).collect();
        let plan = self.plan(query, options, &FILES)?;
        let mut scratch = Scratch::default();
        let initial = self.initial_threshold((&plan, &FILES), options, &mut scratch)?;
        let explained = explain_from(self, &plan, (options, initial), before.clone(), &mut scratch)?;
        if initial > 0 && explained.result.hits.len() < options.k {
            return explain_from(self, &plan, (options, 0), before, &mut scratch);
        }
        Ok(explained)
    }
}

fn explain_from(
    searcher: &Searcher,
    plan: &QueryPlan,
    (options, initial): (&SearchOptions, u32),
    before: Vec<Vec<FileUse>>,
    scratch: &mut Scratch,
) -> Result<Explanation> {
    let index = searcher.index();
    let mut top = TopK::new(options.k, index.documents());
    top.set_initial_threshold(initial);
    let part = DocumentRange::new(searcher.documents());
    let mut segments = Vec::with_capacity(before.len());
    for (number, (segment, before)) in index.segments().iter().zip(before).enumerate() {
        let threshold_before = threshold(&top, plan.scale);
        let mut evaluation = EvaluationLog::default();
        let memory = (&mut *scratch, &mut top);
        let matches =
            searcher.segment((plan, &FILES), (number, &part), options, memory, Some(&mut evaluation))?;
        segments.push(SegmentExplanation {
            id: segment.meta().id,
            documents: segment.documents(),
            matches,
            threshold_before,
            threshold_after: threshold(&top, plan.scale),
            evaluation,
            files: since(before, reads_so_far(segment)),
        });
    }
    let k = top.k();
    let total = segments.iter().map(|segment| segment.matches).sum();
    let result = PartialResult { hits: top.take(), total, complete: true }.finish(options, plan.scale);
    let threshold = result.hits.last().filter(|_| result.hits.len() == k).map(|hit| hit.score);
    Ok(Explanation { result, threshold, segments })
}

fn threshold(top: &TopK, scale: ScoreScale) -> Option<f32> {
    Some(top.threshold()).filter(|units| *units > 0).map(|units| scale.shown(units))
}

fn reads_so_far(segment: &Arc<Segment>) -> Vec<FileUse> {
    let files = segment.files();
    let uses = files.map(|file| FileUse {
        file: file.name().to_string(),
        reads: file.reads(),
        bytes: file.bytes_read(),
    });
    uses.collect()
}

/// What was read in between; files of which nothing was are left out.
fn since(before: Vec<FileUse>, after: Vec<FileUse>) -> Vec<FileUse> {
    let uses = before.into_iter().zip(after).map(|(before, after)| FileUse {
        file: after.file,
        reads: after.reads - before.reads,
        bytes: after.bytes - before.bytes,
    });
    uses.filter(|used| used.reads > 0).collect()
}

//! How a query was answered, segment by segment.

use super::searcher::{Found, PartFound, SearchOptions, Searcher};
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
    pub found: Found,
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
    pub least_before: Option<f32>,
    /// The same when it was done.
    pub least_after: Option<f32>,
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

/// Answers `query` and notes how.
pub(super) fn explain(searcher: &Searcher, query: &Query, options: &SearchOptions) -> Result<Explanation> {
    let index = searcher.index();
    let before: Vec<Vec<FileUse>> = index.segments().iter().map(read_so_far).collect();
    let plan = searcher.plan(query, options, &FILES)?;
    let mut scratch = Scratch::default();
    let least = searcher.initial_threshold((&plan, &FILES), options, &mut scratch)?;
    let explained = explain_from(searcher, &plan, (options, least), before.clone(), &mut scratch)?;
    if least > 0 && explained.found.hits.len() < options.k {
        return explain_from(searcher, &plan, (options, 0), before, &mut scratch);
    }
    Ok(explained)
}

fn explain_from(
    searcher: &Searcher,
    plan: &QueryPlan,
    (options, expected): (&SearchOptions, u32),
    before: Vec<Vec<FileUse>>,
    scratch: &mut Scratch,
) -> Result<Explanation> {
    let index = searcher.index();
    let mut top = TopK::new(options.k, index.documents());
    top.set_initial_threshold(expected);
    let part = DocumentRange::new(searcher.documents());
    let mut segments = Vec::with_capacity(before.len());
    for (number, (segment, before)) in index.segments().iter().zip(before).enumerate() {
        let least_before = least(&top, plan.scale);
        let mut evaluation = EvaluationLog::default();
        let memory = (&mut *scratch, &mut top);
        let matches =
            searcher.segment((plan, &FILES), (number, &part), options, memory, Some(&mut evaluation))?;
        segments.push(SegmentExplanation {
            id: segment.meta().id,
            documents: segment.documents(),
            matches,
            least_before,
            least_after: least(&top, plan.scale),
            evaluation,
            files: since(before, read_so_far(segment)),
        });
    }
    let k = top.k();
    let total = segments.iter().map(|segment| segment.matches).sum();
    let found = PartFound { hits: top.take(), total, complete: true }.finish(options, plan.scale);
    let threshold = found.hits.last().filter(|_| found.hits.len() == k).map(|hit| hit.score);
    Ok(Explanation { found, threshold, segments })
}

fn least(top: &TopK, scale: ScoreScale) -> Option<f32> {
    Some(top.threshold()).filter(|least| *least > 0).map(|least| scale.shown(least))
}

fn read_so_far(segment: &Arc<Segment>) -> Vec<FileUse> {
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

//! Statistics of deleted documents: by analysing their stored values again, as when they were added; without
//! stored values, or if the analysis has changed, only the numbers of documents and tokens, from norms.
//! Verification computes them by a scan of all posting lists.

use super::batch::{BatchBuilder, DocumentRef};
use super::segment_terms::SegmentTerms;
use super::stop::StopSignal;
use crate::schema::{Schema, Stored};
use crate::segment::deleted_statistics::{
    DeletedStatistics, DeletedStatisticsBuilder, FieldDeletes, TermDeletes,
};
use crate::segment::read::{Segment, StoredReader};
use crate::text::ANALYSIS_VERSION;
use crate::{Error, Result, cursor::NO_DOCUMENT, segment::DeletedDocuments};
use std::{convert::Infallible, sync::Arc};

/// Bytes of the terms of a part of the deleted documents, while it is collected. Statistics of the parts are
/// merged.
pub(super) const PART_BYTES: usize = 16 << 20;

/// Number of documents for which a further thread is worth its start.
const THREAD_DOCUMENTS_MIN: usize = 64;

/// The statistics of documents of a segment, which ascend and are to be deleted; exact if the segment has
/// their values, and was written by the same version of the analysis.
///
/// Memory: [`PART_BYTES`] and a batch of documents for each thread, and twice the statistics.
pub(crate) fn statistics_of(
    segment: &Segment,
    schema: &Arc<Schema>,
    documents: &[u32],
    threads: usize,
    stop: &StopSignal,
) -> Result<DeletedStatistics> {
    let is_same_analysis = segment.meta().analysis == ANALYSIS_VERSION;
    let Some(stored) = segment.stored().filter(|_| is_same_analysis) else {
        return statistics_of_norms(segment, documents);
    };
    let of_thread = documents.len().div_ceil(threads.max(1)).max(THREAD_DOCUMENTS_MIN);
    let layers = std::thread::scope(|scope| {
        let analyse = |part| scope.spawn(move || analyse_again(segment, stored, schema, part, stop));
        let mut parts = documents.chunks(of_thread);
        let first = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(analyse).collect();
        let first = analyse_again(segment, stored, schema, first, stop);
        let others = others.into_iter().map(|part| {
            part.join().unwrap_or_else(|_| Err(Error::Failed("a thread of the writer failed".to_string())))
        });
        std::iter::once(first).chain(others).collect::<Result<Vec<_>>>()
    })?;
    sum_of(layers)
}

fn analyse_again(
    segment: &Segment,
    stored: &StoredReader,
    schema: &Arc<Schema>,
    documents: &[u32],
    stop: &StopSignal,
) -> Result<DeletedStatistics> {
    let unstored = Arc::new(Schema { stored: Stored::Nothing, ..(**schema).clone() });
    let mut analysis = DeletedAnalysis {
        fields: segment.fields().len(),
        batch: BatchBuilder::new(unstored, usize::MAX),
        layers: vec![],
    };
    let mut builder = DeletedStatisticsBuilder::new(analysis.fields);
    stored.for_each_of(documents, |_, mut members| {
        stop.check()?;
        if schema.stored == Stored::All {
            // What a document has beside its members is not indexed.
            members.pop();
        }
        let mut values = Vec::with_capacity(members.len());
        for (member, of_member) in members.iter().enumerate() {
            values.extend(of_member.iter().map(|value| (member, value.as_str())));
        }
        analysis.batch.add(DocumentRef { values: &values, ..DocumentRef::default() })?;
        if analysis.batch.is_full() { analysis.add_batch(&mut builder) } else { Ok(()) }
    })?;
    analysis.add_batch(&mut builder)?;
    analysis.layers.push(builder.finish()?);
    sum_of(analysis.layers)
}

fn sum_of(layers: Vec<DeletedStatistics>) -> Result<DeletedStatistics> {
    match <[DeletedStatistics; 1]>::try_from(layers) {
        Ok([one]) => Ok(one),
        Err(layers) => DeletedStatistics::merge(&layers.iter().collect::<Vec<_>>()),
    }
}

/// The analysis of deleted documents.
struct DeletedAnalysis {
    /// Number of fields of the segment, the first of the schema.
    fields: usize,
    batch: BatchBuilder,
    /// Statistics of the parts before.
    layers: Vec<DeletedStatistics>,
}

impl DeletedAnalysis {
    /// Adds the documents of the batch to `builder`, which begins a new part if it is large.
    fn add_batch(&mut self, builder: &mut DeletedStatisticsBuilder) -> Result<()> {
        let (sealed, mut positions) = (self.batch.seal()?, Vec::new());
        for (field, run) in sealed.runs.iter().take(self.fields).enumerate() {
            let lengths = run.lengths().iter().filter(|length| **length > 0);
            lengths.for_each(|length| builder.add_document(field, u64::from(*length)));
            for term in run.cursor() {
                let mut deletes = TermDeletes::default();
                let Ok(()) = term.for_each::<Infallible>(&mut positions, |_, frequency, _| {
                    deletes.add(TermDeletes { documents: 1, occurrences: u64::from(frequency) });
                    Ok(())
                });
                builder.add_term(field, term.term, deletes);
                if builder.memory() >= PART_BYTES {
                    let part = std::mem::replace(builder, DeletedStatisticsBuilder::new(self.fields));
                    self.layers.push(part.finish()?);
                }
            }
        }
        Ok(())
    }
}

/// Numbers of documents, and of tokens as far as norms tell them.
pub(super) fn statistics_of_norms(segment: &Segment, documents: &[u32]) -> Result<DeletedStatistics> {
    let fields = segment.fields().iter().map(|field| {
        let norms = field.norms()?;
        let lengths = documents.iter().map(|document| norms.length(*document) as u64);
        let with_field = lengths.filter(|length| *length > 0);
        Ok(with_field.fold(FieldDeletes::default(), |sum, tokens| FieldDeletes {
            documents: sum.documents + 1,
            tokens: sum.tokens + tokens,
        }))
    });
    Ok(DeletedStatistics::without_terms(fields.collect::<Result<_>>()?))
}

/// The statistics of deleted documents of a segment by a scan of all its posting lists.
pub(crate) fn scan_deleted(segment: &Segment, deleted: &DeletedDocuments) -> Result<DeletedStatistics> {
    let mut builder = DeletedStatisticsBuilder::new(segment.fields().len());
    for number in 0..segment.fields().len() {
        let mut lengths = vec![0_u64; segment.documents() as usize];
        let mut terms = SegmentTerms::open(std::iter::once(segment), number)?;
        let mut term = Vec::new();
        while SegmentTerms::copy_smallest(&terms, &mut term) {
            let [input] = terms.as_mut_slice() else { break };
            let Some(info) = input.take(&term)? else { break };
            let mut of_term = TermDeletes::default();
            input.lists.with_cursor(input.field, info, |cursor| {
                while cursor.advance(0)? != NO_DOCUMENT {
                    let (documents, frequencies) = cursor.rest_of_block()?;
                    let count = documents.len();
                    for (document, frequency) in documents.iter().zip(frequencies) {
                        if deleted.contains(*document) {
                            of_term.add(TermDeletes { documents: 1, occurrences: u64::from(*frequency) });
                            lengths[*document as usize] += u64::from(*frequency);
                        }
                    }
                    cursor.skip(count)?;
                }
                Ok(())
            })?;
            if of_term.documents > 0 {
                builder.add_term(number, &term, of_term);
            }
        }
        let with_field = lengths.iter().filter(|tokens| **tokens > 0);
        with_field.for_each(|tokens| builder.add_document(number, *tokens));
    }
    builder.finish()
}

//! Builds a segment from batches. Ids and stored text of a batch are written to disk at once; its sorted runs
//! stay in memory until the segment is full, and are then merged term by term, on several threads.

use super::encode::{EncodingThreads, TermRange, encode_ranges};
use super::{batch::SealedBatch, stop::StopSignal};
use crate::memtable::{MARK_BYTES, RunCursor, SortedRun};
use crate::segment::write::{
    ColumnBuffer, ColumnTarget, FieldTarget, FieldWriter, IdsWriter, KeysWriter, StoredWriter, TermsEncoder,
    write_column, write_lengths,
};
use crate::text::ANALYSIS_VERSION;
use crate::{
    Result, bytes::prefix_key, limits::DOCUMENTS_MAX, memtable::run::RunTerm, schema::Schema, schema::Stored,
    segment::KeySeed, segment::SegmentMeta, segment::layout::too_many_documents,
};
use std::cmp::{Ordering, Reverse};
use std::{collections::BinaryHeap, collections::binary_heap::PeekMut};
use tierdex_io::Disk;

/// A segment under construction.
pub(super) struct SegmentBuilder {
    id: u64,
    ids: IdsWriter,
    /// Of an index that is updatable.
    keys: Option<KeysWriter>,
    stored: Option<StoredWriter>,
    /// First document of each batch.
    bases: Vec<u32>,
    /// For each field, the runs of all batches.
    runs: Vec<Vec<SortedRun>>,
    /// The values of each column.
    columns: Vec<ColumnBuffer>,
    documents: u32,
    /// Bytes of memory that the runs and the values of columns take.
    memory: usize,
}

impl SegmentBuilder {
    /// `key_seed` is that of the index, if it is updatable.
    pub(super) fn create(
        disk: &dyn Disk,
        schema: &Schema,
        id: u64,
        key_seed: Option<KeySeed>,
    ) -> Result<SegmentBuilder> {
        Ok(SegmentBuilder {
            id,
            ids: IdsWriter::create(disk, id)?,
            keys: key_seed.map(KeysWriter::new),
            stored: (schema.stored != Stored::Nothing)
                .then(|| StoredWriter::create(disk, id, schema.stored_members()))
                .transpose()?,
            bases: Vec::new(),
            runs: schema.fields.iter().map(|_| Vec::new()).collect(),
            columns: schema.columns.iter().map(|_| ColumnBuffer::default()).collect(),
            documents: 0,
            memory: 0,
        })
    }

    /// Bytes of memory that the runs and columns of all batches and the keys take.
    pub(super) fn memory(&self) -> usize {
        self.memory + self.keys.as_ref().map_or(0, KeysWriter::memory)
    }

    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// Adds the documents of a batch after those of the batches before.
    pub(super) fn push(&mut self, mut batch: SealedBatch) -> Result<()> {
        let documents = u64::from(self.documents) + batch.documents() as u64;
        if documents > DOCUMENTS_MAX {
            return Err(too_many_documents());
        }
        self.memory += batch.memory();
        for id in batch.ids.iter() {
            self.ids.add(id.as_bytes())?;
            if let Some(keys) = &mut self.keys {
                keys.add(id.as_bytes());
            }
        }
        if let (Some(writer), Some(blocks)) = (&mut self.stored, &mut batch.stored) {
            writer.add_blocks(blocks)?;
        }
        self.bases.push(self.documents);
        for (runs, run) in self.runs.iter_mut().zip(batch.runs) {
            runs.push(run);
        }
        for (column, values) in self.columns.iter_mut().zip(&batch.columns) {
            column.append(values);
        }
        self.documents = documents as u32;
        Ok(())
    }

    /// Writes all files of the segment.
    pub(super) fn finish(
        self,
        disk: &dyn Disk,
        schema: &Schema,
        threads: EncodingThreads<'_>,
    ) -> Result<SegmentMeta> {
        let (id, documents, analysis) = (self.id, self.documents, ANALYSIS_VERSION);
        let mut meta = SegmentMeta { id, documents, analysis, fields: Vec::new(), files: Vec::new() };
        for (number, (field, runs)) in schema.fields.iter().zip(self.runs).enumerate() {
            let all = || runs.iter().flat_map(SortedRun::lengths).copied();
            let target = FieldTarget { disk, segment: self.id, number, field };
            let lengths = write_lengths(target, all)?;
            let merge = |writer: &mut FieldWriter<'_>| {
                encode_ranges(writer, threads, split_runs(&runs), |range, terms| {
                    merge_runs(&runs, &self.bases, range, terms, threads.stop)
                })
            };
            let (stats, files) = FieldWriter::write(target, &lengths.codes, lengths.tokens, merge)?;
            meta.fields.push(stats);
            meta.files.extend(files);
            meta.files.push(lengths.file);
        }
        for (number, (column, buffer)) in schema.columns.iter().zip(&self.columns).enumerate() {
            threads.stop.check()?;
            let target = ColumnTarget { disk, segment: self.id, number, column };
            meta.files.extend(write_column(target, &mut |body| buffer.for_each(body))?);
        }
        meta.files.push(self.ids.finish()?);
        meta.files.extend(self.stored.map(StoredWriter::finish).transpose()?);
        meta.files.extend(self.keys.map(|keys| keys.finish(disk, self.id)).transpose()?);
        Ok(meta)
    }
}

/// Bytes of runs, approximately, whose terms a thread encodes before it takes the next ones.
const RANGE_BYTES: usize = 2 << 20;

/// Ranges of terms that divide the postings of runs into parts of about [`RANGE_BYTES`].
fn split_runs(runs: &[SortedRun]) -> Vec<TermRange<'_>> {
    let mut marks: Vec<&[u8]> = runs.iter().flat_map(SortedRun::marked_terms).collect();
    marks.sort_unstable();
    TermRange::split(marks.chunks_exact(RANGE_BYTES / MARK_BYTES).map(|marks| marks[marks.len() - 1]))
}

/// The current term of a run, an entry of the heap that merges runs: ordered by term and then by run.
struct RunHead<'a> {
    /// [`prefix_key`] of the term.
    prefix: u64,
    term: RunTerm<'a>,
    run: usize,
    cursor: RunCursor<'a>,
}

impl<'a> RunHead<'a> {
    /// The first term of a run; `None` if the run has no terms.
    fn first(run: usize, mut cursor: RunCursor<'a>) -> Option<Reverse<RunHead<'a>>> {
        let term = cursor.next()?;
        Some(Reverse(RunHead { prefix: prefix_key(term.term), term, run, cursor }))
    }
}

impl RunHead<'_> {
    /// Compares terms, by prefix key first. Of two terms of up to eight bytes with equal keys, the shorter is
    /// the smaller.
    #[inline]
    fn compare_terms(&self, other: &Self) -> Ordering {
        let (own, others) = (self.term.term, other.term.term);
        self.prefix.cmp(&other.prefix).then_with(|| {
            if own.len() <= 8 && others.len() <= 8 { own.len().cmp(&others.len()) } else { own.cmp(others) }
        })
    }
}

impl Ord for RunHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare_terms(other).then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for RunHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunHead<'_> {}

/// Encodes a range of the terms of a field: merges the runs of its batches, which have adjacent ranges of
/// documents that start at `bases`.
fn merge_runs(
    runs: &[SortedRun],
    bases: &[u32],
    range: TermRange<'_>,
    terms: &mut TermsEncoder<'_, '_>,
    stop: &StopSignal,
) -> Result<()> {
    let cursors = runs.iter().map(|run| range.first.map_or(run.cursor(), |first| run.cursor_from(first)));
    let heads = cursors.enumerate().filter_map(|(run, cursor)| RunHead::first(run, cursor));
    let mut heads: BinaryHeap<_> = heads.collect();
    let mut same: Vec<(u32, RunTerm<'_>)> = Vec::new();
    let mut positions = Vec::new();
    while let Some(Reverse(first)) = heads.peek() {
        stop.check()?;
        let term = first.term.term;
        if range.is_before(term) {
            return Ok(());
        }
        same.clear();
        while let Some(mut head) = heads.peek_mut().filter(|head| head.0.term.term == term) {
            same.push((bases[head.0.run], head.0.term));
            match head.0.cursor.next() {
                Some(next) => {
                    head.0.prefix = prefix_key(next.term);
                    head.0.term = next;
                }
                None => drop(PeekMut::pop(head)),
            }
        }
        terms.term(term, |postings| {
            for (base, part) in &same {
                part.for_each(&mut positions, |document, frequency, positions| {
                    postings.add(base + document, frequency, positions)
                })?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

//! Merges adjacent segments into one, without their deleted documents. All lists are decoded and encoded
//! again, so that the merged segment has the same bytes as a segment that was written from its documents.
//! Only stored documents may be grouped into blocks in another way: blocks without deleted documents are
//! copied as they are.

mod columns;
mod live;
mod stored;

use self::live::LiveDocuments;
pub(super) use self::live::MergeInput;
use super::encode::{EncodingThreads, TermRange, encode_ranges};
use super::segment_terms::SegmentTerms;
use crate::cursor::{NO_DOCUMENT, PostingsCursor};
use crate::segment::read::{FILES, KeysInput, MergedKeys, Norms};
use crate::segment::write::{
    ColumnTarget, FieldTarget, FieldWriter, IdsWriter, PostingsWriter, TermsEncoder, write_keys, write_norms,
};
use crate::segment::{FileMeta, SegmentMeta, layout::too_many_documents};
use crate::{Error, Result, limits::DOCUMENTS_MAX, schema::NormKind, schema::Schema, schema::Stored};
use tierdex_io::Disk;

/// Merges `inputs`, whose documents follow one another, into the new segment `id`, which has keys if
/// `has_keys`. Returns `None`, and writes nothing, if all documents are deleted.
///
/// # Errors
/// [`Error::Failed`] if the merged segment would not have all live documents and their tokens.
pub(super) fn merge_segments(
    disk: &dyn Disk,
    schema: &Schema,
    inputs: &[MergeInput<'_>],
    id: u64,
    has_keys: bool,
    threads: EncodingThreads<'_>,
) -> Result<Option<SegmentMeta>> {
    let inputs = LiveDocuments::of_inputs(inputs)?;
    let documents: u64 = inputs.iter().map(|input| u64::from(input.documents())).sum();
    if documents > DOCUMENTS_MAX {
        return Err(too_many_documents());
    }
    if documents == 0 {
        return Ok(None);
    }
    let documents = documents as u32;
    let mut analyses = inputs.iter().map(|input| input.segment().meta().analysis);
    let first = analyses.next().unwrap_or_default();
    let analysis = if analyses.all(|other| other == first) { first } else { 0 };
    let mut meta = SegmentMeta { id, documents, analysis, fields: Vec::new(), files: Vec::new() };
    for (number, field) in schema.fields.iter().enumerate() {
        let (codes, exact) = merge_norms(&inputs, number, field.norms)?;
        let tokens = inputs.iter().map(|input| input.tokens(number, threads.stop)).sum::<Result<u64>>()?;
        let norms =
            write_norms(disk, id, number, if field.norms == NormKind::Exact { &exact } else { &codes })?;
        let target = FieldTarget { disk, segment: id, number, field };
        let ranges = TermSplits::of(&inputs, number, threads.count)?;
        let (stats, files) = FieldWriter::write(target, &codes, tokens, |writer| {
            encode_ranges(writer, threads, ranges.ranges(), |range, terms| {
                merge_terms(&inputs, number, range, terms, threads)
            })?;
            check_equal("tokens in a field", tokens, writer.occurrences())
        })?;
        meta.fields.push(stats);
        meta.files.extend(files);
        meta.files.push(norms);
    }
    for (number, column) in schema.columns.iter().enumerate() {
        let target = ColumnTarget { disk, segment: id, number, column };
        meta.files.extend(columns::merge_column(target, &inputs, threads.stop)?);
    }
    meta.files.push(merge_ids(disk, &inputs, id, documents, threads)?);
    if schema.stored != Stored::Nothing {
        let (file, added) = stored::merge_stored(disk, schema, &inputs, id, threads.stop)?;
        check_equal("stored documents", u64::from(documents), u64::from(added))?;
        meta.files.push(file);
    }
    if has_keys {
        meta.files.push(merge_keys(disk, &inputs, id, threads)?);
    }
    Ok(Some(meta))
}

/// Merges the external ids of the live documents, of which there are `documents`.
fn merge_ids(
    disk: &dyn Disk,
    inputs: &[LiveDocuments<'_>],
    id: u64,
    documents: u32,
    threads: EncodingThreads<'_>,
) -> Result<FileMeta> {
    let (mut ids, mut added) = (IdsWriter::create(disk, id)?, 0);
    for input in inputs {
        threads.stop.check()?;
        let mut numbers = 0..input.segment().documents();
        input.segment().ids().for_each(|id| match numbers.next() {
            Some(document) if input.number(document).is_some() => {
                added += 1;
                ids.add(id.as_bytes())
            }
            _ => Ok(()),
        })?;
    }
    check_equal("documents", u64::from(documents), added)?;
    ids.finish()
}

/// Merges the keys of the live documents.
fn merge_keys(
    disk: &dyn Disk,
    inputs: &[LiveDocuments<'_>],
    id: u64,
    threads: EncodingThreads<'_>,
) -> Result<FileMeta> {
    let inputs = inputs.iter().filter_map(|input| {
        let walk = input.segment().keys()?.walk(&FILES);
        Some(KeysInput { walk, document: Box::new(|document| input.number(document)) })
    });
    let mut merged = MergedKeys::new(inputs.collect())?;
    write_keys(disk, id, || {
        threads.stop.check()?;
        merged.next()
    })
}

/// A merge neither loses nor adds anything.
fn check_equal(what: &str, before: u64, after: u64) -> Result<()> {
    if before == after {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "segments with {before} {what} were merged to {after}: nothing was committed; check the index with \
         `tierdex check`"
    )))
}

/// The norms of a field in the live documents of all segments: as one-byte codes; and, if they are
/// exact, as bytes of the file `norms`. The length of a document without the field is 0.
fn merge_norms(inputs: &[LiveDocuments<'_>], number: usize, kind: NormKind) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut codes, mut exact) = (Vec::new(), Vec::new());
    let mut documents = 0;
    for input in inputs {
        if let Some(field) = input.segment().field(number) {
            let norms = field.norms()?;
            codes.extend(input.iter().map(|document| norms.code(document)));
            if let Norms::Exact(lengths) = norms {
                exact.extend(input.iter().flat_map(|document| lengths.get(document).to_le_bytes()));
            }
        }
        documents += input.documents() as usize;
        codes.resize(documents, 0);
        if kind == NormKind::Exact {
            exact.resize(size_of::<u32>() * documents, 0);
        }
    }
    Ok((codes, exact))
}

/// The terms at which the dictionary of a field is divided into ranges.
struct TermSplits<'a>(Vec<&'a [u8]>);

/// Bytes of lists in a range of terms, approximately. A range is large beside what a thread reads in vain
/// behind its end, up to 256 KiB of a file, and its encoded lists fit into the channel of a thread.
const RANGE_BYTES: u64 = 2 << 20;

/// Bytes of lists in a range of a small merge, at least: its threads have two ranges each. What they read in
/// vain is small there, as files end.
const RANGE_BYTES_MIN: u64 = 128 << 10;

impl<'a> TermSplits<'a> {
    fn of(inputs: &[LiveDocuments<'a>], number: usize, threads: usize) -> Result<TermSplits<'a>> {
        let fields = || inputs.iter().filter_map(|input| input.segment().field(number));
        let Some(largest) = fields().map(|field| field.terms()).max_by_key(|terms| terms.pages()) else {
            return Ok(TermSplits(Vec::new()));
        };
        let files = fields().flat_map(|field| {
            [field.skips_file(), field.postings_file()].into_iter().chain(field.positions_file())
        });
        let bytes = files.map(|file| file.payload().end).fold(0, u64::saturating_add);
        let of_small_merge = if threads > 1 { (bytes / RANGE_BYTES_MIN).min(2 * threads as u64) } else { 1 };
        let ranges = (bytes / RANGE_BYTES).max(of_small_merge).max(1);
        Ok(TermSplits(largest.separators(largest.pages().div_ceil(ranges).max(1) as usize)?.collect()))
    }

    fn ranges(&self) -> Vec<TermRange<'a>> {
        TermRange::split(self.0.iter().copied())
    }
}

/// Encodes a range of the terms of a field, each with its postings in all segments.
fn merge_terms(
    inputs: &[LiveDocuments<'_>],
    number: usize,
    range: TermRange<'_>,
    terms: &mut TermsEncoder<'_, '_>,
    threads: EncodingThreads<'_>,
) -> Result<()> {
    let segments = inputs.iter().map(LiveDocuments::segment);
    let mut opened = SegmentTerms::open_from(segments, number, range.first.unwrap_or_default())?;
    let (mut copy, mut term) = (ListCopy::default(), Vec::new());
    while SegmentTerms::copy_smallest(&opened, &mut term) && !range.is_before(&term) {
        threads.stop.check()?;
        terms.term(&term, |postings| {
            for input in &mut opened {
                if let Some(info) = input.take(&term)? {
                    let live = &inputs[input.number];
                    input.lists.with_cursor(input.field, info, |cursor| {
                        match input.field.field().positions {
                            true => copy_with_positions(cursor, live, postings),
                            false => copy.copy_list(cursor, live, postings),
                        }
                    })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Appends the postings of a list with positions in the live documents, under their new numbers.
fn copy_with_positions(
    cursor: &mut PostingsCursor<'_>,
    live: &LiveDocuments<'_>,
    postings: &mut PostingsWriter<'_, '_>,
) -> Result<()> {
    let mut document = cursor.advance(0)?;
    while document != NO_DOCUMENT {
        if let Some(number) = live.number(document) {
            let frequency = cursor.frequency()?;
            postings.add(number, frequency, cursor.positions()?)?;
        }
        cursor.skip(1)?;
        document = cursor.document();
    }
    Ok(())
}

/// Copies lists without positions. Has the scratch buffers: postings of a block under their new numbers.
#[derive(Default)]
struct ListCopy {
    documents: Vec<u32>,
    frequencies: Vec<u32>,
}

impl ListCopy {
    /// Appends the postings of a list in the live documents, under their new numbers.
    fn copy_list(
        &mut self,
        cursor: &mut PostingsCursor<'_>,
        live: &LiveDocuments<'_>,
        postings: &mut PostingsWriter<'_, '_>,
    ) -> Result<()> {
        cursor.advance(0)?;
        loop {
            let (documents, frequencies) = cursor.rest_of_block()?;
            let count = documents.len();
            if count == 0 {
                return Ok(());
            }
            self.documents.clear();
            self.frequencies.clear();
            for (document, frequency) in documents.iter().zip(frequencies) {
                if let Some(number) = live.number(*document) {
                    self.documents.push(number);
                    self.frequencies.push(*frequency);
                }
            }
            postings.extend(&self.documents, &self.frequencies)?;
            cursor.skip(count)?;
        }
    }
}

#[cfg(test)]
mod tests;

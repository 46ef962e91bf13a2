//! Merges adjacent segments into one. All lists are decoded and encoded again, so that the merged segment has
//! the same bytes as a segment that was written from all its documents.

use super::{segment_terms::SegmentTerms, stop::StopSignal};
use crate::cursor::{NO_DOCUMENT, PostingsCursor};
use crate::segment::layout::FileMeta;
use crate::segment::read::{FILES, KeysInput, MergedKeys, Norms, Segment, StoredReader, StoredValues};
use crate::segment::write::{
    FieldTarget, FieldWriter, IdsWriter, PostingsWriter, StoredBlocks, StoredWriter, write_keys, write_norms,
};
use crate::{
    Result, limits::DOCUMENTS_MAX, schema::NormKind, schema::Schema, schema::Stored, segment::SegmentMeta,
    segment::layout::too_many_documents,
};
use tierdex_io::Disk;

/// Merges `inputs`, whose documents follow one another, into the new segment `id`. They have keys if
/// `has_keys`.
pub(super) fn merge_segments(
    disk: &dyn Disk,
    schema: &Schema,
    inputs: &[Segment],
    id: u64,
    has_keys: bool,
    stop: &StopSignal,
) -> Result<SegmentMeta> {
    let documents: u64 = inputs.iter().map(|input| u64::from(input.documents())).sum();
    if documents > DOCUMENTS_MAX {
        return Err(too_many_documents());
    }
    let mut meta = SegmentMeta { id, documents: documents as u32, fields: Vec::new(), files: Vec::new() };
    for (number, field) in schema.fields.iter().enumerate() {
        let (codes, exact) = merge_norms(inputs, number, field.norms)?;
        let tokens = inputs.iter().map(|input| input.meta().stats(number).tokens).sum();
        let norms =
            write_norms(disk, id, number, if field.norms == NormKind::Exact { &exact } else { &codes })?;
        let target = FieldTarget { disk, segment: id, number, field };
        let (stats, files) = FieldWriter::write(target, &codes, tokens, |writer| {
            merge_terms(inputs, number, field.positions, writer, stop)
        })?;
        meta.fields.push(stats);
        meta.files.extend(files);
        meta.files.push(norms);
    }
    let mut ids = IdsWriter::create(disk, id)?;
    for input in inputs {
        stop.check()?;
        input.ids().for_each(|id| ids.add(id.as_bytes()))?;
    }
    meta.files.push(ids.finish()?);
    if schema.stored != Stored::Nothing {
        meta.files.push(merge_stored(disk, schema, inputs, id, stop)?);
    }
    if has_keys {
        meta.files.push(merge_keys(disk, inputs, id, stop)?);
    }
    Ok(meta)
}

/// Merges the keys of all segments.
fn merge_keys(disk: &dyn Disk, inputs: &[Segment], id: u64, stop: &StopSignal) -> Result<FileMeta> {
    let mut base = 0;
    let inputs = inputs.iter().filter_map(|input| {
        let start = base;
        base += input.documents();
        let document = Box::new(move |document| Some(start + document));
        Some(KeysInput { walk: input.keys()?.walk(&FILES), document })
    });
    let mut merged = MergedKeys::new(inputs.collect())?;
    write_keys(disk, id, || {
        stop.check()?;
        merged.next()
    })
}

/// The norms of a field in all segments one after the other: as one-byte codes; and, if they are exact, as
/// bytes of the file `norms`. The length of a document without the field is 0.
fn merge_norms(inputs: &[Segment], number: usize, kind: NormKind) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut codes, mut exact) = (Vec::new(), Vec::new());
    let mut documents = 0;
    for input in inputs {
        if let Some(field) = input.field(number) {
            let norms = field.norms()?;
            codes.extend((0..input.documents()).map(|document| norms.code(document)));
            if let Norms::Exact(lengths) = norms {
                exact.extend_from_slice(lengths.bytes());
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

/// Copies the compressed blocks of stored documents of all segments. Those of segments that were written with
/// fewer members or in an older version are written again.
fn merge_stored(
    disk: &dyn Disk,
    schema: &Schema,
    inputs: &[Segment],
    id: u64,
    stop: &StopSignal,
) -> Result<FileMeta> {
    let members = schema.stored_members();
    let mut writer = StoredWriter::create(disk, id, members)?;
    for stored in inputs.iter().filter_map(Segment::stored) {
        if !stored.has_current_blocks(members) {
            rewrite_stored(stored, schema, &mut writer, stop)?;
            continue;
        }
        for number in 0..stored.blocks() {
            stop.check()?;
            let block = stored.block(number)?;
            writer.add_block(block.documents, block.raw_len, &block.packed)?;
        }
    }
    writer.finish()
}

/// Appends the stored documents of a segment, with the members of a newer schema, which has more. A document
/// is in memory twice at most: as values and as the bytes of its block, then as these bytes and compressed.
fn rewrite_stored(
    stored: &StoredReader,
    schema: &Schema,
    writer: &mut StoredWriter,
    stop: &StopSignal,
) -> Result<()> {
    let mut blocks = StoredBlocks::default();
    for number in 0..stored.blocks() {
        stored.for_each_of_block(number, |values| {
            stop.check()?;
            add_to_blocks(values, schema, &mut blocks);
            blocks.finish_document()
        })?;
        writer.add_blocks(&mut blocks)?;
    }
    blocks.close_block()?;
    writer.add_blocks(&mut blocks)
}

/// Appends a document that was read with the members of an older schema.
fn add_to_blocks(mut values: StoredValues, schema: &Schema, blocks: &mut StoredBlocks) {
    // What a document has beside its members is behind them.
    let others = if schema.stored == Stored::All { values.pop() } else { None };
    values.resize(schema.members.len(), Vec::new());
    values.extend(others);
    for of_member in &values {
        blocks.add_values(of_member.iter().map(String::as_str));
    }
}

/// Appends all terms of a field to `writer`, each with its postings in all segments.
fn merge_terms(
    inputs: &[Segment],
    number: usize,
    positions: bool,
    writer: &mut FieldWriter<'_>,
    stop: &StopSignal,
) -> Result<()> {
    let mut inputs = SegmentTerms::open(inputs.iter(), number)?;
    loop {
        stop.check()?;
        let Some(term) = SegmentTerms::smallest(&inputs) else { return Ok(()) };
        writer.term(&term, |postings| {
            for input in &mut inputs {
                if let Some(info) = input.take(&term)? {
                    let cursor = input.lists.cursor(input.field, info)?;
                    copy_list(cursor, input.base, positions, postings)?;
                }
            }
            Ok(())
        })?;
    }
}

/// Appends all postings of a list, with `base` added to their documents.
fn copy_list(
    mut cursor: PostingsCursor<'_>,
    base: u32,
    positions: bool,
    postings: &mut PostingsWriter<'_, '_>,
) -> Result<()> {
    let mut document = cursor.advance(0)?;
    while document != NO_DOCUMENT {
        if positions {
            let frequency = cursor.frequency()?;
            postings.add(base + document, frequency, cursor.positions()?)?;
            cursor.skip(1)?;
        } else {
            let (documents, frequencies) = cursor.rest_of_block()?;
            let count = documents.len();
            for (&document, &frequency) in documents.iter().zip(frequencies) {
                postings.add(base + document, frequency, &[])?;
            }
            cursor.skip(count)?;
        }
        document = cursor.document();
    }
    Ok(())
}

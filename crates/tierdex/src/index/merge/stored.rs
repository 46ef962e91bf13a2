//! Merges stored documents.

use super::live::LiveDocuments;
use crate::index::stop::StopSignal;
use crate::segment::layout::FileMeta;
use crate::segment::read::{StoredReader, StoredValues};
use crate::segment::write::{StoredBlocks, StoredWriter};
use crate::{Result, schema::Schema, schema::Stored};
use tierdex_io::Disk;

/// Writes the live stored documents of all segments; returns their number. Compressed blocks are
/// copied, unless they have a deleted document or come from a segment that was written with fewer members or
/// in an older version: their documents are packed again.
pub(super) fn merge_stored(
    disk: &dyn Disk,
    schema: &Schema,
    inputs: &[LiveDocuments<'_>],
    id: u64,
    stop: &StopSignal,
) -> Result<(FileMeta, u32)> {
    let members = schema.stored_members();
    let mut writer = StoredWriter::create(disk, id, members)?;
    let mut repacked = StoredBlocks::default();
    for input in inputs {
        let Some(stored) = input.segment().stored() else { continue };
        let is_current = stored.has_current_blocks(members);
        for number in 0..stored.blocks() {
            stop.check()?;
            let documents = stored.block_documents(number)?;
            if is_current && !input.has_deleted_within(documents.clone()) {
                repacked.close_block()?;
                writer.add_blocks(&mut repacked)?;
                let block = stored.block(number)?;
                writer.add_block(block.documents, block.raw_len, &block.packed)?;
            } else {
                repack_block(stored, number, documents.start, input, schema, &mut repacked, stop)?;
                writer.add_blocks(&mut repacked)?;
            }
        }
        repacked.close_block()?;
        writer.add_blocks(&mut repacked)?;
    }
    let documents = writer.documents();
    Ok((writer.finish()?, documents))
}

/// Packs the live documents of a block again, with the members of the schema, which may have more. A
/// document is in memory twice at most: as values and as the bytes of its block, then as these bytes and
/// compressed.
fn repack_block(
    stored: &StoredReader,
    number: u64,
    first: u32,
    live: &LiveDocuments<'_>,
    schema: &Schema,
    blocks: &mut StoredBlocks,
    stop: &StopSignal,
) -> Result<()> {
    let mut documents = first..;
    stored.for_each_of_block(number, |values| {
        stop.check()?;
        match documents.next() {
            Some(document) if live.number(document).is_some() => {
                add_to_blocks(values, schema, blocks);
                blocks.finish_document()
            }
            _ => Ok(()),
        }
    })
}

/// Appends a document that was read with the members of its segment, the first ones of the schema.
fn add_to_blocks(mut values: StoredValues, schema: &Schema, blocks: &mut StoredBlocks) {
    // What a document has beside its members is behind them.
    let others = if schema.stored == Stored::All { values.pop() } else { None };
    values.resize(schema.members.len(), Vec::new());
    values.extend(others);
    for of_member in &values {
        blocks.add_values(of_member.iter().map(String::as_str));
    }
}

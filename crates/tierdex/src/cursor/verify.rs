//! Checks all lists of a field whose blocks are used in place, once, when an index is opened.

use super::scattered::{DecodedBlock, ScatteredBlocks};
use crate::error::Result;
use crate::segment::read::{BlockSource, FieldReader, RecordPart};

/// Checks every block of a field whose documents are not compressed, so that queries can use them in place
/// without checks. Does nothing if documents are compressed, or if lists are neither resident nor lent by
/// `source`.
pub fn verify_uncompressed(field: &FieldReader, source: &dyn BlockSource) -> Result<()> {
    let is_in_memory = field.postings_file().resident().is_some() || source.lends();
    if !field.field().doc_codec.is_uncompressed() || !is_in_memory || field.is_verified() {
        return Ok(());
    }
    let (mut stream, mut decoded) = (field.terms().stream(), Box::<DecodedBlock>::default());
    while let Some((_, term)) = stream.next()? {
        let mut blocks = ScatteredBlocks::open(field, &term, RecordPart::Whole, source, decoded)?;
        for block in 0..blocks.len() {
            blocks.read(block)?;
        }
        decoded = blocks.close();
    }
    field.set_verified();
    Ok(())
}

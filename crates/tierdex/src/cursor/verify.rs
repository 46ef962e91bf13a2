//! Verifies all lists of a field whose blocks are used in place.

use super::scattered::{DecodedBlock, ScatteredBlocks};
use crate::error::Result;
use crate::segment::read::{BlockSource, FieldReader, RecordPart};

/// Checks every block of a field whose documents are not compressed, and whose lists are resident or lent by
/// `source`, so that queries use them in place without checks. Returns at once if documents are compressed.
pub fn verify_uncompressed(field: &FieldReader, source: &dyn BlockSource) -> Result<()> {
    if !field.field().doc_codec.is_uncompressed() || field.is_verified() {
        return Ok(());
    }
    let (mut stream, mut decoded) = (field.terms().stream(), Box::<DecodedBlock>::default());
    while let Some((_, term)) = stream.next()? {
        let mut blocks = ScatteredBlocks::open(field, (&term, RecordPart::Whole), source, decoded)?;
        for block in 0..blocks.len() {
            blocks.read(block)?;
        }
        decoded = blocks.close();
    }
    field.set_verified();
    Ok(())
}

//! Checks the external ids and the stored documents of a segment.

use crate::{Error, Result, segment::read::Segment};

pub(super) fn check_documents(segment: &Segment) -> Result<()> {
    segment.ids().for_each(|_| Ok(()))?;
    let Some(stored) = segment.stored() else { return Ok(()) };
    let mut next = 0;
    for number in 0..stored.blocks() {
        let documents = stored.check_block(number)?;
        if documents.start != next {
            let what = format!("block {number} starts at document {}, not {next}", documents.start);
            return Err(Error::corrupt(stored.file().name(), 0, what));
        }
        next = documents.end;
    }
    Ok(())
}

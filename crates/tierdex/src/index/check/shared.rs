//! Ids and stored documents.

use crate::error::{Error, Result};
use crate::segment::read::Segment;

pub(super) fn check(segment: &Segment) -> Result<()> {
    segment.ids().for_each(|_| Ok(()))?;
    let Some(stored) = segment.stored() else { return Ok(()) };
    let mut next = 0;
    for number in 0..stored.blocks() {
        let block = stored.block(number)?;
        if block.first != next {
            let what = format!("block {number} starts at document {}, not {next}", block.first);
            return Err(Error::corrupt(stored.name(), block.offset(), what));
        }
        stored.unpack(&block, |_, _, _| {})?;
        next += block.documents;
    }
    Ok(())
}

//! Checks the columns of a segment.

use crate::segment::read::{ColumnReader, FILES, Segment};
use crate::{Error, Result};

/// Decodes all columns and compares their values with what directories and tails say of them.
pub(super) fn check_columns(segment: &Segment) -> Result<()> {
    segment.columns().iter().try_for_each(check_column)
}

fn check_column(column: &ColumnReader) -> Result<()> {
    let directory = column.directory()?;
    let mut bytes = Vec::new();
    let (mut smallest, mut largest) = (u64::MAX, 0);
    for number in 0..column.blocks() {
        let entry = directory.entry(number);
        let corrupt = |what| Error::corrupt(column.file().name(), entry.offset, what);
        let block = directory.read_block(number, &FILES, &mut bytes)?;
        let (mut low, mut high) = (u64::MAX, 0);
        block.for_each(&mut |_, values| {
            if !values.is_sorted() {
                return Err(corrupt("the values of a document are not sorted"));
            }
            low = low.min(values[0]);
            high = high.max(values[values.len() - 1]);
            Ok(())
        })?;
        if entry.present == 0 {
            (low, high) = (0, 0);
        } else {
            (smallest, largest) = (smallest.min(low), largest.max(high));
        }
        if (low, high) != (entry.minimum, entry.maximum) {
            return Err(corrupt("the directory has another smallest or largest value"));
        }
    }
    let tail = column.tail();
    if smallest != 0 || largest != (tail.maximum - tail.minimum) / tail.divisor {
        let at = column.file().payload().end;
        return Err(Error::corrupt(
            column.file().name(),
            at,
            "the tail has another smallest or largest value",
        ));
    }
    Ok(())
}

//! A clause of a plan on a column.
//!
//! How many documents of a segment match is estimated from the directory of the column: exactly where blocks
//! match as a whole or not at all, else as if values were spread evenly between the smallest and the largest.

use crate::Result;
use crate::segment::layout::{ColumnEntry, Presence};
use crate::segment::read::ColumnReader;

/// Documents with a value of a column in one of some ranges.
pub struct ColumnClause {
    /// Number of the column.
    pub(crate) column: usize,
    /// Ranges of values as integers, ascending, without overlaps, both ends included.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// For each segment, about how many documents match.
    pub(crate) matches: Vec<ColumnMatches>,
}

/// About how many documents of a segment match a clause on a column.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ColumnMatches {
    /// Expected number, not 0 if a document may match.
    pub(crate) documents: u64,
    /// Upper bound.
    pub(crate) documents_max: u64,
    /// Whether each block matches as a whole or not at all, so that both numbers are exact.
    pub(crate) is_exact: bool,
}

/// Which documents of a block match, as far as its directory entry tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockMatches {
    None,
    /// All of its documents.
    All,
    /// Those with a value.
    Present,
    Some,
}

impl ColumnClause {
    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        let matches = size_of::<ColumnMatches>() * self.matches.capacity();
        size_of::<ColumnClause>() + size_of::<(u64, u64)>() * self.ranges.capacity() + matches
    }
}

impl ColumnMatches {
    /// The matches in a segment with this column.
    pub(crate) fn of(column: &ColumnReader, ranges: &[(u64, u64)]) -> Result<ColumnMatches> {
        let (directory, ranges) = (column.directory()?, units_of(column, ranges));
        let (mut sum, mut documents_max, mut is_exact) = (0.0, 0, true);
        for block in 0..column.blocks() {
            let entry = directory.entry(block);
            let matches = matches_of(&entry, &ranges);
            documents_max += if matches == BlockMatches::None { 0 } else { u64::from(entry.present) };
            match matches {
                BlockMatches::None => {}
                BlockMatches::All | BlockMatches::Present => sum += f64::from(entry.present),
                BlockMatches::Some => {
                    let share = ranges.iter().map(|range| overlap(&entry, range)).sum::<f64>();
                    let share = share / ((entry.maximum - entry.minimum) as f64 + 1.0);
                    // At least one, as far as is known.
                    sum += (f64::from(entry.present) * share.min(1.0)).max(1.0);
                    is_exact = false;
                }
            }
        }
        Ok(ColumnMatches { documents: f64::ceil(sum) as u64, documents_max, is_exact })
    }
}

/// The ranges in the unit of a file; those without values are left out.
pub(crate) fn units_of(column: &ColumnReader, ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    ranges.iter().filter_map(|(low, high)| column.units_within(*low, *high)).collect()
}

/// What an entry tells about these ranges, which are in the unit of the file.
#[inline]
pub(crate) fn matches_of(entry: &ColumnEntry, ranges: &[(u64, u64)]) -> BlockMatches {
    // The first range that does not end before the values of the block.
    let next = ranges.partition_point(|(_, high)| *high < entry.minimum);
    let Some((low, high)) = ranges.get(next) else { return BlockMatches::None };
    if *low > entry.maximum || entry.presence == Presence::None {
        BlockMatches::None
    } else if *low > entry.minimum || entry.maximum > *high {
        BlockMatches::Some
    } else if entry.presence == Presence::All {
        BlockMatches::All
    } else {
        BlockMatches::Present
    }
}

/// Number of units of a range between the smallest and the largest value of a block.
fn overlap(entry: &ColumnEntry, range: &(u64, u64)) -> f64 {
    let (low, high) = (range.0.max(entry.minimum), range.1.min(entry.maximum));
    if low <= high { (high - low) as f64 + 1.0 } else { 0.0 }
}

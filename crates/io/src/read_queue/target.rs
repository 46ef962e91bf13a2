//! The memory that a read fills: a part of a cell, or several cells or parts of them.

use crate::memory::{CellMut, Cells};
use std::{ops::Range, sync::Arc};

/// The buffers that a read fills: a part of a cell, or a sequence of cells or parts of them. The length of
/// the read is the length of the target.
#[derive(Debug)]
pub struct ReadTarget {
    first: CellMut,
    more: Vec<CellMut>,
    /// The bytes to fill, as a range of the concatenated bytes of all cells.
    range: Range<usize>,
}

impl ReadTarget {
    /// Bytes `range` of a cell.
    ///
    /// # Panics
    /// When the range is not within the cell.
    pub fn new(cell: CellMut, range: Range<usize>) -> ReadTarget {
        let bytes = cell.len();
        assert!(range.start <= range.end && range.end <= bytes, "{range:?} of a cell of {bytes} bytes");
        ReadTarget { first: cell, more: Vec::new(), range }
    }

    /// All bytes of several cells of one [`Cells`]; `None` when there are no cells.
    ///
    /// # Panics
    /// When the cells are not all of one [`Cells`].
    pub fn across(cells: impl IntoIterator<Item = CellMut>) -> Option<ReadTarget> {
        let mut cells = cells.into_iter();
        let (first, more) = (cells.next()?, cells.collect::<Vec<_>>());
        assert!(
            more.iter().all(|cell| Arc::ptr_eq(cell.cells(), first.cells())),
            "cells of several memories"
        );
        let len = first.len() + more.iter().map(|cell| cell.len()).sum::<usize>();
        Some(ReadTarget { first, more, range: 0..len })
    }

    /// Returns the cell of the target, or the first one of several.
    pub fn into_cell(self) -> CellMut {
        self.first
    }

    /// The bytes to fill, as a range of the concatenated bytes of the cells.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The bytes of the target, one slice for each cell.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let cells = std::iter::once(&self.first).chain(&self.more);
        cells_in_range(self.range(), cells, |cell| cell.len()).map(|(cell, range)| &cell[range])
    }

    /// Bytes `range` of the target, one slice for each cell.
    pub(super) fn pieces_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = &mut [u8]> {
        self.cells_mut(range).map(|(cell, range)| &mut cell[range])
    }

    /// The cells that contain bytes `range` of the target, each with the range within the cell.
    fn cells_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (&mut CellMut, Range<usize>)> {
        let range = self.range.start + range.start..self.range.start + range.end;
        let cells = std::iter::once(&mut self.first).chain(&mut self.more);
        cells_in_range(range, cells, |cell| cell.len())
    }

    /// Bytes `range` of the target as one raw slice for each cell, each with its offset in the region.
    pub(super) fn raw_pieces_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (*mut [u8], usize)> {
        self.cells_mut(range).map(|(cell, range)| {
            let start = cell.start().wrapping_add(range.start);
            (std::ptr::slice_from_raw_parts_mut(start, range.len()), cell.offset() + range.start)
        })
    }

    /// The [`Cells`] that all cells of the target belong to.
    pub(super) fn cells(&self) -> &Arc<Cells> {
        self.first.cells()
    }

    /// The bytes of the target in its first cell.
    pub fn bytes(&self) -> &[u8] {
        self.pieces().next().unwrap_or_default()
    }

    /// As [`ReadTarget::bytes`], writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.pieces_mut(0..self.range.len()).next().unwrap_or_default()
    }
}

/// Maps a range of the concatenated bytes of `cells` to ranges of single cells. Cells outside the range are
/// skipped.
fn cells_in_range<C>(
    range: Range<usize>,
    cells: impl Iterator<Item = C>,
    len: impl Fn(&C) -> usize,
) -> impl Iterator<Item = (C, Range<usize>)> {
    let mut before = 0;
    cells.filter_map(move |cell| {
        let (start, end) = (before, before + len(&cell));
        before = end;
        let within = range.start.max(start)..range.end.min(end);
        (!within.is_empty()).then(|| (cell, within.start - start..within.end - start))
    })
}

/// A whole cell.
impl From<CellMut> for ReadTarget {
    fn from(cell: CellMut) -> ReadTarget {
        let range = 0..cell.len();
        ReadTarget::new(cell, range)
    }
}

//! The memory that a read fills: several cells, or parts of cells.

use crate::memory::{CellMut, CellParts, Cells};
use std::{ops::Range, sync::Arc};

/// The buffers that a read fills: a sequence of cells or of parts of them. The length of the read is the
/// length of the target.
#[derive(Debug)]
pub struct ReadTarget {
    parts: CellParts,
    /// The bytes to fill, as a range of the concatenated bytes of all parts.
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
        let parts = CellParts::of_guards([cell]).expect("one cell");
        ReadTarget { parts, range }
    }

    /// All bytes of several cells of one [`Cells`]; `None` when there are no cells.
    ///
    /// # Panics
    /// When the cells are not all of one [`Cells`].
    pub fn across(cells: impl IntoIterator<Item = CellMut>) -> Option<ReadTarget> {
        CellParts::of_guards(cells).map(ReadTarget::from)
    }

    /// Returns the cell of the target, or the first one of several.
    pub fn into_cell(self) -> CellMut {
        self.parts.into_first()
    }

    /// The bytes to fill, as a range of the concatenated bytes of the cells.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The cells to fill, or the parts of them.
    pub fn parts(&self) -> &CellParts {
        &self.parts
    }

    /// The bytes of the target, one slice for each cell.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let pieces = self.parts.pieces();
        pieces_in_range(self.range(), pieces, |piece| piece.len()).map(|(piece, range)| &piece[range])
    }

    /// Bytes `range` of the target, one slice for each cell.
    pub(super) fn pieces_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = &mut [u8]> {
        let range = self.range.start + range.start..self.range.start + range.end;
        let pieces = self.parts.pieces_mut();
        pieces_in_range(range, pieces, |piece| piece.len()).map(|(piece, range)| &mut piece[range])
    }

    /// Bytes `range` of the target as one raw slice for each cell, each with its offset in the region.
    pub(super) fn raw_pieces_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (*mut [u8], usize)> {
        let range = self.range.start + range.start..self.range.start + range.end;
        let pieces = self.parts.raw_pieces();
        pieces_in_range(range, pieces, |(piece, _)| piece.len()).map(|((piece, offset), range)| {
            let start = piece.cast::<u8>().wrapping_add(range.start);
            (std::ptr::slice_from_raw_parts_mut(start, range.len()), offset + range.start)
        })
    }

    /// The [`Cells`] that all cells of the target belong to.
    pub(super) fn cells(&self) -> &Arc<Cells> {
        self.parts.cells()
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

/// Maps a range of the concatenated bytes of `pieces` to ranges of single pieces. Pieces outside the range
/// are skipped.
fn pieces_in_range<P>(
    range: Range<usize>,
    pieces: impl Iterator<Item = P>,
    len: impl Fn(&P) -> usize,
) -> impl Iterator<Item = (P, Range<usize>)> {
    let mut before = 0;
    pieces.filter_map(move |piece| {
        let (start, end) = (before, before + len(&piece));
        before = end;
        let within = range.start.max(start)..range.end.min(end);
        (!within.is_empty()).then(|| (piece, within.start - start..within.end - start))
    })
}

/// A whole cell.
impl From<CellMut> for ReadTarget {
    fn from(cell: CellMut) -> ReadTarget {
        let range = 0..cell.len();
        ReadTarget::new(cell, range)
    }
}

/// All bytes of the parts.
impl From<CellParts> for ReadTarget {
    fn from(parts: CellParts) -> ReadTarget {
        let len = parts.pieces().map(<[u8]>::len).sum();
        ReadTarget { parts, range: 0..len }
    }
}

//! A region divided into equal cells that threads share.
//!
//! Each cell has an atomic state of 32 bits, like the borrow flag of a `RefCell`: 0 when it is unused,
//! [`STATE_WRITING`] plus the number of write guards while it is written, else the number of read guards.
//! Reads and writes never race:
//!
//! 1. A reader enters by a compare-exchange from `n` to `n + 1` where `n < STATE_WRITING - 1`; a writer
//!    enters by one from 0 to `STATE_WRITING + 1`. So a writer excludes all others.
//! 2. A write guard can be split in two, which adds 1 to the state: the byte ranges of the two are disjoint.
//! 3. A write guard leaves by subtracting 1 with *release* order. The last one then observes the writes of
//!    the others by an *acquire* fence, and stores 0 with *release* order. The next guard reads this 0, or a
//!    count derived from it by compare-exchanges (a release sequence), with *acquire* order: it observes all
//!    writes.
//! 4. A read guard leaves by subtracting 1 with *release* order. A writer that reads 0 with *acquire* order
//!    synchronizes with the release sequences of all readers that left: their reads happen before its
//!    writes.

use super::region::Region;
use crate::error::{Error, ErrorKind, Result};
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::{fmt, slice, sync::Arc};

/// Minimum size of a cell in bytes.
pub const CELL_BYTES_MIN: usize = 4 << 10;

/// Maximum size of a cell in bytes.
pub const CELL_BYTES_MAX: usize = 1 << 20;

/// Flag in the state of a cell that is being written; the other bits are the number of its write guards.
const STATE_WRITING: u32 = 1 << 31;

/// Equal cells of memory. A cell has any number of read guards, or write guards with disjoint ranges.
///
/// Uses 4 bytes per cell in addition to the region. Allocates only on creation.
pub struct Cells {
    region: Region,
    cell_bytes: usize,
    states: Box<[AtomicU32]>,
}

impl Cells {
    /// Divides `region` into cells of `cell_bytes` bytes, a power of two from [`CELL_BYTES_MIN`] to
    /// [`CELL_BYTES_MAX`]. Bytes at the end that do not fill a cell are not used.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the cell size is not allowed, or the region is smaller than a cell.
    pub fn new(region: Region, cell_bytes: usize) -> Result<Arc<Cells>> {
        let rejected = |why: String| {
            Err(Error::new(ErrorKind::Denied, "cut", format!("region {} into cells", region.kind()), why))
        };
        if !cell_bytes.is_power_of_two() || !(CELL_BYTES_MIN..=CELL_BYTES_MAX).contains(&cell_bytes) {
            return rejected(format!("{cell_bytes} bytes are not a power of two from 4K to 1M"));
        }
        if region.len() < cell_bytes {
            return rejected(format!("it has {} bytes and a cell {cell_bytes}", region.len()));
        }
        let states = (0..region.len() / cell_bytes).map(|_| AtomicU32::new(0)).collect();
        Ok(Arc::new(Cells { region, cell_bytes, states }))
    }

    /// Number of cells, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one cell")]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Size of a cell in bytes.
    pub fn cell_bytes(&self) -> usize {
        self.cell_bytes
    }

    /// The memory of the cells.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// A read guard of cell `index`. `None` while it is being written.
    ///
    /// # Panics
    /// When `index` is not less than [`Cells::len`].
    #[inline]
    pub fn read(&self, index: usize) -> Option<CellRef<'_>> {
        // Fails at 2^31 - 1 read guards: one more would be the state of a write guard.
        let one_more = |readers: u32| (readers < STATE_WRITING - 1).then(|| readers + 1);
        self.states[index].fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).ok()?;
        Some(CellRef { cells: self, index })
    }

    /// A write guard of cell `index`, which holds the bytes written last. `None` while it is read or
    /// written.
    ///
    /// # Panics
    /// When `index` is not less than [`Cells::len`].
    pub fn write(self: &Arc<Self>, index: usize) -> Option<CellMut> {
        self.begin_write(index).then(|| CellMut { cells: Arc::clone(self), index, range: 0..self.cell_bytes })
    }

    /// Write guards of several cells, as parts; `None` while one of them is read or written.
    ///
    /// # Panics
    /// When an index is not less than [`Cells::len`].
    pub fn write_all(self: &Arc<Self>, indexes: impl IntoIterator<Item = u32>) -> Option<CellParts> {
        let mut guards = CellParts { cells: Arc::clone(self), parts: Vec::new() };
        for index in indexes {
            if !self.begin_write(index as usize) {
                return None;
            }
            guards.parts.push(CellPart { index, range: 0..self.cell_bytes as u32 });
        }
        Some(guards)
    }

    /// Begins a write guard; false while the cell is read or written.
    fn begin_write(&self, index: usize) -> bool {
        let one = STATE_WRITING + 1;
        self.states[index].compare_exchange(0, one, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends a write guard.
    fn end_write(&self, index: usize) {
        let state = &self.states[index];
        if state.fetch_sub(1, Ordering::Release) == STATE_WRITING + 1 {
            fence(Ordering::Acquire);
            state.store(0, Ordering::Release);
        }
    }

    /// Gives the memory of cell `index` back to the system until the cell is written again. Its bytes are
    /// zero then. Returns false without effect if the region is not [elastic](Region::elastic), or while the
    /// cell is read or written.
    ///
    /// # Panics
    /// When `index` is not less than [`Cells::len`].
    pub fn discard(self: &Arc<Self>, index: usize) -> bool {
        let Some(cell) = self.write(index).filter(|_| self.region.is_elastic()) else { return false };
        // SAFETY: the cell is a part of the region, and its only write guard is `cell`.
        unsafe { self.region.mapping().discard(cell.offset(), self.cell_bytes) };
        true
    }

    /// The address of the first byte of a part.
    fn first_byte(&self, part: &CellPart) -> *mut u8 {
        self.start(part.index as usize).wrapping_add(part.range.start as usize)
    }

    /// The address of cell `index`, which must exist.
    fn start(&self, index: usize) -> *mut u8 {
        debug_assert!(index < self.states.len());
        self.region.start().wrapping_add(index * self.cell_bytes)
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells of {} bytes in {}", self.len(), self.cell_bytes, self.region.kind())
    }
}

/// A read guard of a cell.
#[derive(Debug)]
pub struct CellRef<'a> {
    cells: &'a Cells,
    index: usize,
}

impl CellRef<'_> {
    /// The index of the cell.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl Deref for CellRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: within the region, which `cells` keeps mapped; no write guard exists while this guard is
        // counted.
        unsafe { slice::from_raw_parts(self.cells.start(self.index), self.cells.cell_bytes) }
    }
}

impl Drop for CellRef<'_> {
    #[inline]
    fn drop(&mut self) {
        self.cells.states[self.index].fetch_sub(1, Ordering::Release);
    }
}

/// A write guard of a cell, or of a part of it with at least one byte. It shares ownership of the cells, so
/// that it can be moved to the thread that fills it. The cell is readable when all its write guards are
/// dropped.
#[derive(Debug)]
pub struct CellMut {
    cells: Arc<Cells>,
    index: usize,
    /// Bytes of the cell that belong to this guard.
    range: Range<usize>,
}

impl CellMut {
    /// The index of the cell.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The cells that it belongs to.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    /// Splits the guard in two: this one keeps the bytes before `at`; the new one has the bytes from `at`
    /// on.
    ///
    /// # Panics
    /// When one of them would be empty.
    pub fn split_off(&mut self, at: usize) -> CellMut {
        assert!(0 < at && at < self.range.len(), "byte {at} of {}", self.range.len());
        let (index, middle) = (self.index, self.range.start + at);
        // No other guard can enter while this one exists. The count cannot overflow: it is at most the bytes
        // of a cell.
        self.cells.states[index].fetch_add(1, Ordering::Relaxed);
        let end = std::mem::replace(&mut self.range.end, middle);
        CellMut { cells: Arc::clone(&self.cells), index, range: middle..end }
    }

    fn first_byte(&self) -> *mut u8 {
        self.cells.start(self.index).wrapping_add(self.range.start)
    }

    /// Offset in the region of the first byte of the range.
    pub(crate) fn offset(&self) -> usize {
        self.index * self.cells.cell_bytes + self.range.start
    }
}

impl Deref for CellMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: within the region, which `cells` keeps mapped; only this guard writes these bytes.
        unsafe { slice::from_raw_parts(self.first_byte(), self.range.len()) }
    }
}

impl DerefMut for CellMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and this guard is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.first_byte(), self.range.len()) }
    }
}

impl Drop for CellMut {
    fn drop(&mut self) {
        self.cells.end_write(self.index);
    }
}

/// Write guards of parts of several cells, in an order that the caller chose: those of a read.
#[derive(Debug)]
pub struct CellParts {
    cells: Arc<Cells>,
    parts: Vec<CellPart>,
}

/// A write guard of a part of a cell.
#[derive(Debug)]
struct CellPart {
    index: u32,
    range: Range<u32>,
}

impl CellParts {
    /// The guards of these cells; `None` when there are none.
    ///
    /// # Panics
    /// When the cells are not all of one [`Cells`].
    pub fn of_guards(guards: impl IntoIterator<Item = CellMut>) -> Option<CellParts> {
        let mut guards = guards.into_iter();
        let first = guards.next()?;
        let mut all = CellParts { cells: Arc::clone(&first.cells), parts: Vec::new() };
        all.take_guard(first);
        for guard in guards {
            assert!(Arc::ptr_eq(&all.cells, &guard.cells), "cells of several memories");
            all.take_guard(guard);
        }
        Some(all)
    }

    /// Replaces a guard by a part.
    fn take_guard(&mut self, guard: CellMut) {
        // The guard ends after the part was counted, so that no other begins in between.
        self.cells.states[guard.index].fetch_add(1, Ordering::Relaxed);
        let range = guard.range.start as u32..guard.range.end as u32;
        self.parts.push(CellPart { index: guard.index as u32, range });
    }

    /// The guard of the first part alone; the others end.
    pub fn into_first(self) -> CellMut {
        let CellPart { index, range } = &self.parts[0];
        let (index, range) = (*index as usize, range.start as usize..range.end as usize);
        self.cells.states[index].fetch_add(1, Ordering::Relaxed);
        CellMut { cells: Arc::clone(&self.cells), index, range }
    }

    /// The cells that they belong to.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    /// The index of the cell of each part.
    pub fn indexes(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().map(|part| part.index)
    }

    /// The bytes of each part.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        // SAFETY: within the region, which `cells` keeps mapped; only these guards write these bytes.
        self.parts
            .iter()
            .map(|part| unsafe { slice::from_raw_parts(self.cells.first_byte(part), part.range.len()) })
    }

    /// The bytes of each part, writable.
    pub(crate) fn pieces_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let cells = &self.cells;
        self.parts.iter_mut().map(|part| {
            // SAFETY: as in `pieces`; the guards are borrowed mutably, and their parts do not overlap.
            unsafe { slice::from_raw_parts_mut(cells.first_byte(part), part.range.len()) }
        })
    }

    /// The address of each part, writable as long as these guards live, and its offset in the region.
    pub(crate) fn raw_pieces(&mut self) -> impl Iterator<Item = (*mut [u8], usize)> {
        let cells = &self.cells;
        self.parts.iter().map(|part| {
            let offset = part.index as usize * cells.cell_bytes + part.range.start as usize;
            (std::ptr::slice_from_raw_parts_mut(cells.first_byte(part), part.range.len()), offset)
        })
    }
}

impl Drop for CellParts {
    fn drop(&mut self) {
        self.parts.iter().for_each(|part| self.cells.end_write(part.index as usize));
    }
}

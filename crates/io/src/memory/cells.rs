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
        let one = STATE_WRITING + 1;
        self.states[index].compare_exchange(0, one, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(CellMut { cells: Arc::clone(self), index, range: 0..self.cell_bytes })
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

    /// Address of the first byte of the range, writable as long as this guard lives: no other guard has it.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.first_byte()
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
        let state = &self.cells.states[self.index];
        if state.fetch_sub(1, Ordering::Release) == STATE_WRITING + 1 {
            fence(Ordering::Acquire);
            state.store(0, Ordering::Release);
        }
    }
}

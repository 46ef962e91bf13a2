//! A region cut into equal cells that threads share.
//!
//! Each cell has a state of 32 bits, as a `RefCell` has a flag, but atomic: 0 when nobody has it, [`WRITING`] and more when
//! guards may write, else the number of guards that read. Why no byte is written while somebody looks:
//!
//! 1. A reader comes in by a compare-exchange from `n` to `n + 1` where `n` is less than `WRITING`; a writer by one from 0 to
//!    `WRITING + 1`. So a writer is alone.
//! 2. A writer may split itself in two, which adds 1: each has bytes that the other has not.
//! 3. A writer leaves by subtracting 1 with *release* order. The last one has then read what the others did, and after a
//!    fence of *acquire* order stores 0 with *release* order. The next to come in reads that 0, or a count that was made from
//!    it by compare-exchanges (a release sequence), with *acquire* order: it sees all that was written.
//! 4. A reader leaves by subtracting 1 with *release* order. A writer that reads 0 with *acquire* order reads the end of
//!    the release sequence of all readers that left: what they read, they read before it writes.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::region::Region;
use crate::error::{Error, ErrorKind, Result};

/// The smallest cell in bytes.
pub const CELL_BYTES_MIN: usize = 4 << 10;

/// The largest cell in bytes.
pub const CELL_BYTES_MAX: usize = 1 << 20;

/// The state of a cell that is being written is this and the number of guards that write.
const WRITING: u32 = 1 << 31;

/// Equal cells of memory. Any number of guards may read a cell, or one may write it, or its parts.
///
/// Beside the region it takes 4 bytes a cell. Nothing is allocated after it was made.
pub struct Cells {
    region: Region,
    cell_bytes: usize,
    states: Box<[AtomicU32]>,
}

impl Cells {
    /// Cuts `region` into cells of `cell_bytes` bytes, a power of two from [`CELL_BYTES_MIN`] to [`CELL_BYTES_MAX`].
    /// What remains at the end is not used.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when that is no size of a cell, or the region is smaller.
    pub fn new(region: Region, cell_bytes: usize) -> Result<Arc<Cells>> {
        let refused = |why: String| {
            Err(Error::new(ErrorKind::Denied, "cut", format!("region {} into cells", region.kind()), why))
        };
        if !cell_bytes.is_power_of_two() || !(CELL_BYTES_MIN..=CELL_BYTES_MAX).contains(&cell_bytes) {
            return refused(format!("{cell_bytes} bytes are not a power of two from 4K to 1M"));
        }
        if region.len() < cell_bytes {
            return refused(format!("it has {} bytes and a cell {cell_bytes}", region.len()));
        }
        let states = (0..region.len() / cell_bytes).map(|_| AtomicU32::new(0)).collect();
        Ok(Arc::new(Cells { region, cell_bytes, states }))
    }

    /// How many cells there are, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one cell")]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// The bytes of a cell.
    pub fn cell_bytes(&self) -> usize {
        self.cell_bytes
    }

    /// The memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Cell `index`, to be read. None while it is being written.
    ///
    /// # Panics
    /// When there is no such cell.
    #[inline]
    pub fn read(&self, index: usize) -> Option<CellRef<'_>> {
        // 2^31 guards at once would look like some that write.
        let one_more = |readers: u32| (readers < WRITING - 1).then(|| readers + 1);
        self.states[index].fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).ok()?;
        Some(CellRef { cells: self, index })
    }

    /// Cell `index`, to be written. It holds what was written to it last. None while anyone reads or writes it.
    ///
    /// # Panics
    /// When there is no such cell.
    pub fn write(self: &Arc<Self>, index: usize) -> Option<CellMut> {
        let one = WRITING + 1;
        self.states[index].compare_exchange(0, one, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(CellMut { cells: Arc::clone(self), index, range: 0..self.cell_bytes })
    }

    /// The address of cell `index`, which there is.
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

/// A cell that is being read.
#[derive(Debug)]
pub struct CellRef<'a> {
    cells: &'a Cells,
    index: usize,
}

impl CellRef<'_> {
    /// Which cell it is.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl Deref for CellRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: within the region, which `cells` keeps mapped; nobody writes while this guard is counted.
        unsafe { slice::from_raw_parts(self.cells.start(self.index), self.cells.cell_bytes) }
    }
}

impl Drop for CellRef<'_> {
    #[inline]
    fn drop(&mut self) {
        self.cells.states[self.index].fetch_sub(1, Ordering::Release);
    }
}

/// A cell that is being written, or a part of it that has at least one byte. It owns a part of the cells, so that it can be
/// handed to whoever fills it. When all parts of a cell are dropped, it can be read.
#[derive(Debug)]
pub struct CellMut {
    cells: Arc<Cells>,
    index: usize,
    /// Bytes of the cell that are this guard's alone.
    range: Range<usize>,
}

impl CellMut {
    /// Which cell it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whose cell it is.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    /// Cuts it in two: this one keeps the bytes before `at`, and the other has those from there on.
    ///
    /// # Panics
    /// When one of them would have no byte.
    pub fn split_off(&mut self, at: usize) -> CellMut {
        assert!(0 < at && at < self.range.len(), "byte {at} of {}", self.range.len());
        let (index, middle) = (self.index, self.range.start + at);
        // As there is a guard, nobody else comes in; cells have fewer bytes than the count has values.
        self.cells.states[index].fetch_add(1, Ordering::Relaxed);
        let end = std::mem::replace(&mut self.range.end, middle);
        CellMut { cells: Arc::clone(&self.cells), index, range: middle..end }
    }

    /// The address of its first byte: writable for as long as this guard lives, beside which there is no other.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.address()
    }

    fn address(&self) -> *mut u8 {
        self.cells.start(self.index).wrapping_add(self.range.start)
    }

    /// How far from the beginning of the region its first byte is.
    pub(crate) fn offset(&self) -> usize {
        self.index * self.cells.cell_bytes + self.range.start
    }
}

impl Deref for CellMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: within the region, which `cells` keeps mapped; only through this guard are they written.
        unsafe { slice::from_raw_parts(self.address(), self.range.len()) }
    }
}

impl DerefMut for CellMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and this guard is borrowed by nobody else.
        unsafe { slice::from_raw_parts_mut(self.address(), self.range.len()) }
    }
}

impl Drop for CellMut {
    fn drop(&mut self) {
        let state = &self.cells.states[self.index];
        if state.fetch_sub(1, Ordering::Release) == WRITING + 1 {
            fence(Ordering::Acquire);
            state.store(0, Ordering::Release);
        }
    }
}

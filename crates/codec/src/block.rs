//! The block size, and the results of operations on blocks.
//!
//! Kernels write these results, and the functions of [`crate::score`], [`crate::search`] and [`crate::runs`]
//! return them. Arrays are longer than a block by a fixed slack, so that a kernel can store whole vectors.

/// The largest number of values in one block.
pub const BLOCK: usize = 256;

/// Positions of the values that two blocks share.
pub struct Intersection {
    /// For each of the two blocks. The slack allows a whole vector to be stored at the last position.
    positions: [Positions; 2],
    count: usize,
}

/// Positions of shared values in one of two blocks.
pub(crate) type Positions = [u8; BLOCK + Intersection::SLACK];

impl Intersection {
    /// Values that are allocated beyond the sums.
    pub const SLACK: usize = 16;

    /// An empty intersection.
    pub fn new() -> Intersection {
        Intersection { positions: [[0; _]; 2], count: 0 }
    }

    /// Positions in the first block.
    pub fn first(&self) -> &[u8] {
        &self.positions[0][..self.count]
    }

    /// Positions in the second block, in the same order.
    pub fn second(&self) -> &[u8] {
        &self.positions[1][..self.count]
    }

    /// The position arrays and the number of positions in each, for a kernel to overwrite.
    pub(crate) fn parts(&mut self) -> (&mut [Positions; 2], &mut usize) {
        (&mut self.positions, &mut self.count)
    }
}

impl Default for Intersection {
    fn default() -> Intersection {
        Intersection::new()
    }
}

/// A selection vector: positions in a block, in increasing order.
pub struct Selection {
    /// The slack allows a whole vector to be stored at the last position.
    positions: [u8; BLOCK + Selection::SLACK],
    count: usize,
}

impl Selection {
    pub(crate) const SLACK: usize = 64;

    /// An empty selection.
    pub fn new() -> Selection {
        Selection { positions: [0; _], count: 0 }
    }

    /// The positions.
    pub fn positions(&self) -> &[u8] {
        &self.positions[..self.count]
    }

    /// The position array and the number of positions, for a kernel to overwrite.
    pub(crate) fn parts(&mut self) -> (&mut [u8; BLOCK + Selection::SLACK], &mut usize) {
        (&mut self.positions, &mut self.count)
    }
}

impl Default for Selection {
    fn default() -> Selection {
        Selection::new()
    }
}

/// The sums of a window that reached the threshold, in increasing order of their values.
#[derive(Default)]
pub struct Survivors {
    values: Vec<u32>,
    sums: Vec<u32>,
    found: usize,
    positive: usize,
}

impl Survivors {
    /// Values that are allocated beyond the sums.
    pub const SLACK: usize = 16;

    /// The values that the sums belong to.
    pub fn values(&self) -> &[u32] {
        &self.values[..self.found]
    }

    /// The sums.
    pub fn sums(&self) -> &[u32] {
        &self.sums[..self.found]
    }

    /// Number of sums greater than 0, including those below the threshold.
    pub fn positive(&self) -> usize {
        self.positive
    }

    /// Grows the arrays to `sums` entries and the slack. Returns the values, the sums, the number of
    /// survivors and the number of positive sums, for a kernel to overwrite.
    pub(crate) fn parts(&mut self, sums: usize) -> (&mut [u32], &mut [u32], &mut usize, &mut usize) {
        let len = sums + Survivors::SLACK;
        if self.values.len() < len {
            for values in [&mut self.values, &mut self.sums] {
                values.reserve_exact(len - values.len());
                values.resize(len, 0);
            }
        }
        (&mut self.values, &mut self.sums, &mut self.found, &mut self.positive)
    }
}

/// Values after the end of a run that may be read and written: runs are copied in whole vectors.
pub const RUN_SLACK: usize = 16;

/// Consecutive values of a block, and a number that is added to each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueRun {
    /// Position of the first value.
    pub start: u16,
    /// Number of values, at least 1.
    pub len: u16,
    /// Added to each value mod 2^32.
    pub add: u32,
}

/// A run of one block and a run of another, to be intersected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPair {
    /// Position of the first value of the run of the first block.
    pub first: u16,
    /// Number of values of that run, at least 1.
    pub first_len: u16,
    /// The run of the second block, with the number that is added to its values before they are compared.
    pub second: ValueRun,
    /// Output: number of values that the two runs share.
    pub shared: u16,
}

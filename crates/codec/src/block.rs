//! The block size, and the results of operations on blocks.
//!
//! Vector loops write these results. Their arrays are longer than the results by a fixed number of elements,
//! the *slack*, so that a loop can store a whole vector at the last element.

/// Maximum number of values of a block.
pub const BLOCK: usize = 256;

/// The values that two blocks share: their positions in both blocks.
pub struct Intersection {
    /// The positions in the first block and in the second block.
    positions: [Positions; 2],
    count: usize,
}

/// Positions of shared values in one of two blocks.
pub(crate) type Positions = [u8; BLOCK + Intersection::SLACK];

impl Intersection {
    /// Unused elements after the positions.
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

/// The sums of scores that have reached a threshold, with the values (document numbers) that they belong to.
#[derive(Default)]
pub struct Survivors {
    values: Vec<u32>,
    sums: Vec<u32>,
    found: usize,
    positive: usize,
}

impl Survivors {
    /// Unused elements after the sums and after the values.
    pub const SLACK: usize = 16;

    /// The values that the sums belong to, in increasing order.
    pub fn values(&self) -> &[u32] {
        &self.values[..self.found]
    }

    /// The sums, one for each of the values.
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

/// Elements after a block and after the output of a function on runs that may be read or overwritten, because
/// runs are copied in whole vectors.
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

/// The largest margin of [`crate::intersect_runs`].
pub const MARGIN_MAX: u32 = 1 << 30;

/// A run of one block and a run of another, to be intersected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPair {
    /// Position of the first value of the run of the first block.
    pub first: u16,
    /// Number of values of that run, at least 1.
    pub first_len: u16,
    /// The run of the second block, with the number that is added to its values before they are compared.
    pub second: ValueRun,
    /// Output: number of values of the first run that are kept.
    pub shared: u16,
}

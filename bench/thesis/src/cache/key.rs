//! Keys of lists, and the hash function of the entry table.

use std::fmt;

/// Identifies a list: two numbers that the caller chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListKey(pub u64, pub u64);

impl ListKey {
    /// A hash of the key.
    pub(crate) fn hash_bits(self) -> u64 {
        splitmix64(self.0 ^ splitmix64(self.1))
    }
}

impl fmt::Display for ListKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

/// The finalizer of SplitMix64.
pub(crate) fn splitmix64(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

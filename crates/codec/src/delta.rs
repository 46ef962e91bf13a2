//! Differences of neighbours, mod 2^32.
//!
//! `prev` is the value before the block. `u32::MAX` is -1 mod 2^32, so the start of a list needs no special case.
//! The sums that turn gaps back into values are part of decoding: see [`crate::kernel`].

/// What two neighbours differ by at least, and so what need not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Store `v[i] - v[i-1]`.
    Zero = 0,
    /// Store `v[i] - v[i-1] - 1`, for strictly increasing values.
    One = 1,
}

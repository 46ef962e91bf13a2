//! Delta coding: gaps between consecutive values, mod 2^32.
//!
//! `prev` is the value before the block. `u32::MAX` is -1 mod 2^32, so the start of a list needs no special
//! case. The prefix sums that turn gaps back into values are part of decoding: see [`crate::kernel`].

/// The minimum gap between two values. It is subtracted from a gap before the gap is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaStep {
    /// Store `v[i] - v[i-1]`.
    Zero = 0,
    /// Store `v[i] - v[i-1] - 1`, for strictly increasing values.
    One = 1,
}

//! Limits of the memory of rows, and of the ranges that they are divided into.

/// Largest ratio of the texts of a range to the target size of ranges.
const REPEATED_FACTOR_MAX: usize = 8;

/// Memory for rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::input) struct RowLimits {
    /// Of pages of a batch of rows in Parquet; twice as much for a record batch.
    pub decoded_bytes_max: usize,
    pub document_bytes_max: usize,
    /// Target size of a range.
    pub range_bytes: usize,
}

impl RowLimits {
    /// A range is divided if its rows may repeat texts of dictionaries so often that they have this many
    /// times the bytes that it should have.
    pub(super) fn repeated_factor(self) -> u64 {
        (self.decoded_bytes_max / self.range_bytes.max(1)).clamp(1, REPEATED_FACTOR_MAX) as u64
    }
}

//! Portable kernels, written so that the compiler can vectorise them where the layout allows.

pub(super) mod bitmap;
pub(super) mod bits;
pub(super) mod patch;
pub(super) mod streamvbyte;
pub(super) mod sums;
pub(super) mod vbyte;
pub(super) mod widths;

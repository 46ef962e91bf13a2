//! The hot loops, one implementation an instruction set.
//!
//! A kernel gets slices whose lengths the caller has checked and does one loop over them. It must not know about
//! headers, forms, `prev` conventions or errors, except for `VByte`, where the loop itself finds the end.
//! Every implementation of a function gives the same values and the same bytes; `scalar` is the reference.

mod scalar;

pub(crate) use scalar::bitmap::{bitmap_read, bitmap_span, bitmap_write};
pub(crate) use scalar::bits::{pack_horizontal, pack_vertical, unpack_horizontal, unpack_vertical};
pub(crate) use scalar::patch::patch_bitmap;
pub(crate) use scalar::streamvbyte::{
    streamvbyte_bytes, streamvbyte_data_len, streamvbyte_decode, streamvbyte_encode,
};
pub(crate) use scalar::sums::{gaps, prefix_sum};
pub(crate) use scalar::vbyte::{vbyte_decode, vbyte_encode, vbyte_skip};
pub(crate) use scalar::widths::{width_counts, width_of_all};

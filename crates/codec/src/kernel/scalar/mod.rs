//! The portable kernel, written so that the compiler can vectorise its loops where the layout allows.

pub(super) mod bitmap;
pub(super) mod bits;
pub(super) mod exceptions;
mod pfor;
pub(super) mod runs;
pub(super) mod score;
pub(super) mod search;
pub(super) mod streamvbyte;
pub(super) mod sums;
mod unpack;
pub(super) mod vbyte;
pub(super) mod widths;

use super::table::KernelTable;

pub(super) static TABLE: KernelTable = KernelTable {
    name: "scalar",
    pack: bits::pack,
    unpack: unpack::unpack,
    pfor_decode: pfor::pfor_decode,
    count_wider: widths::count_wider,
    shortest_patched: crate::pfor::cost::shortest_patched,
    exceptions: exceptions::exceptions,
    exception_bitmap: exceptions::exception_bitmap,
    count_ones: bitmap::count_ones,
    sparse_bitmap: exceptions::sparse_bitmap,
    gaps: sums::gaps,
    vbyte_encode: vbyte::vbyte_encode,
    vbyte_decode: vbyte::vbyte_decode,
    vbyte_skip: vbyte::vbyte_skip,
    streamvbyte_encode: streamvbyte::streamvbyte_encode,
    streamvbyte_data_len: streamvbyte::streamvbyte_data_len,
    streamvbyte_decode: streamvbyte::streamvbyte_decode,
    intersect: search::intersect,
    is_increasing: search::is_increasing,
    add_one: search::add_one,
    copy_runs: runs::copy_runs,
    intersect_runs: runs::intersect_runs,
    bitmap_read: bitmap::bitmap_read,
    collect_bits: bitmap::collect_bits,
    bitmap_find: bitmap::bitmap_find,
    bitmap_score: bitmap::bitmap_score,
    score: score::score,
    values_at_least: score::values_at_least,
    drain_at_least: score::drain_at_least,
    mark_positive: bitmap::mark_positive,
    keep_marked: bitmap::keep_marked,
    keep_at_least: score::keep_at_least,
    largest: score::largest,
};

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
pub(super) mod wide;
pub(super) mod widths;

use super::table::KernelTable;

pub(super) static TABLE: KernelTable = KernelTable {
    name: "scalar",
    pack: bits::pack,
    unpack: unpack::unpack,
    pfor_decode: pfor::pfor_decode,
    count_wider: widths::count_wider,
    shortest_patched_block: crate::pfor::cost::shortest_patched_block,
    find_exceptions: exceptions::find_exceptions,
    read_exception_bitmap: exceptions::read_exception_bitmap,
    count_ones: bitmap::count_ones,
    make_sparse_bitmap: exceptions::make_sparse_bitmap,
    compute_gaps: sums::compute_gaps,
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
    read_bitmap: bitmap::read_bitmap,
    collect_bits: bitmap::collect_bits,
    find_in_bitmap: bitmap::find_in_bitmap,
    score_bitmap: bitmap::score_bitmap,
    score: score::score,
    values_at_least: score::values_at_least,
    drain_at_least: score::drain_at_least,
    mark_positive: bitmap::mark_positive,
    keep_marked: bitmap::keep_marked,
    copy_marked: bitmap::copy_marked,
    keep_at_least: score::keep_at_least,
    largest: score::largest,
    offsets_within: wide::offsets_within,
    decode_offsets: wide::decode_offsets,
};

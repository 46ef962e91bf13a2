//! The kernel for CPUs with AVX2 and BMI2 (Intel from Haswell on, AMD from Zen on).
//!
//! A vector is 8 values. Where AVX-512 expands or compresses by a mask, this kernel shuffles by a table
//! (`compress`), or deposits the bits of a 64-bit word with `pdep`.

mod bitmap;
mod bits;
mod compress;
pub(super) mod exceptions;
mod memory;
mod narrow;
mod pfor;
mod portable;
mod runs;
mod score;
mod search;
mod stream;
mod streamvbyte;
mod sums;
mod vbyte;
mod wide;
mod widths;

use super::table::KernelTable;

pub(super) static TABLE: KernelTable = KernelTable {
    name: "avx2",
    pack: bits::pack,
    unpack: narrow::unpack,
    pfor_decode: pfor::pfor_decode,
    count_wider: widths::count_wider,
    shortest_patched_block: portable::shortest_patched_block,
    find_exceptions: exceptions::find_exceptions,
    read_exception_bitmap: exceptions::read_exception_bitmap,
    count_ones: portable::count_ones,
    make_sparse_bitmap: exceptions::make_sparse_bitmap,
    compute_gaps: portable::compute_gaps,
    vbyte_encode: vbyte::vbyte_encode,
    vbyte_decode: vbyte::vbyte_decode,
    vbyte_skip: portable::vbyte_skip,
    streamvbyte_encode: streamvbyte::streamvbyte_encode,
    streamvbyte_data_len: portable::streamvbyte_data_len,
    streamvbyte_decode: streamvbyte::streamvbyte_decode,
    intersect: search::intersect,
    is_increasing: portable::is_increasing,
    add_one: portable::add_one,
    copy_runs: portable::copy_runs,
    intersect_runs: runs::intersect_runs,
    read_bitmap: portable::read_bitmap,
    collect_bits: bitmap::collect_bits,
    find_in_bitmap: bitmap::find_in_bitmap,
    score_bitmap: score::score_bitmap,
    score: score::score,
    values_at_least: score::values_at_least,
    drain_at_least: score::drain_at_least,
    keep_at_least: score::keep_at_least,
    largest: score::largest,
    mark_positive: bitmap::mark_positive,
    keep_marked: bitmap::keep_marked,
    copy_marked: bitmap::copy_marked,
    offsets_within: wide::offsets_within,
    decode_offsets: wide::decode_offsets,
};

/// The table of this kernel, if the CPU has every instruction set that the kernel needs.
pub(super) fn table_if_supported() -> Option<&'static KernelTable> {
    let able = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    able.then_some(&TABLE)
}

//! The kernels for CPUs with AVX-512: `avx512` with VBMI2 (Intel from Ice Lake on, AMD from Zen 4 on), and
//! `avx512f` without (Intel Skylake and Cascade Lake).
//!
//! A vector has 16 values. Beside the width, these instructions gain most: `vpexpandb` moves exceptions to
//! the positions in their bitmap, and the bytes of `StreamVByte` to the positions that the control bytes
//! give; `vpermb` and `vpshrdvd` unpack 16 values of any bit width; masks replace the scalar tail of most
//! decoding loops. The first two need VBMI2 or VBMI. Without them, unpacking 16 values at a time was no
//! faster than by AVX2. Loops that a table does not name are those of the next simpler kernel.

mod bitmap;
mod bits;
mod exceptions;
mod memory;
mod narrow;
mod pfor;
mod runs;
mod score;
mod search;
mod stream;
mod streamvbyte;
mod sums;
mod vbyte;
mod wide;
mod widths;

use super::{avx2, table::KernelTable};

static TABLE: KernelTable = KernelTable {
    name: "avx512",
    unpack: narrow::unpack,
    pfor_decode: pfor::pfor_decode,
    read_exception_bitmap: exceptions::read_exception_bitmap,
    make_sparse_bitmap: exceptions::make_sparse_bitmap,
    vbyte_encode: vbyte::vbyte_encode,
    vbyte_decode: vbyte::vbyte_decode,
    streamvbyte_encode: streamvbyte::streamvbyte_encode,
    streamvbyte_decode: streamvbyte::streamvbyte_decode,
    intersect: search::intersect,
    read_bitmap: bitmap::read_bitmap,
    find_in_bitmap: bitmap::find_in_bitmap,
    score_bitmap: bitmap::score_bitmap,
    values_at_least: score::values_at_least,
    offsets_within: wide::offsets_within,
    decode_offsets: wide::decode_offsets,
    ..TABLE_F
};

static TABLE_F: KernelTable = KernelTable {
    name: "avx512f",
    count_wider: widths::count_wider,
    shortest_patched_block: widths::shortest_patched_block,
    find_exceptions: exceptions::find_exceptions,
    compute_gaps: sums::compute_gaps,
    vbyte_skip: vbyte::vbyte_skip,
    intersect_runs: runs::intersect_runs,
    collect_bits: bitmap::collect_bits,
    drain_at_least: score::drain_at_least,
    mark_positive: bitmap::mark_positive,
    keep_marked: bitmap::keep_marked,
    copy_marked: bitmap::copy_marked,
    keep_at_least: score::keep_at_least,
    largest: score::largest,
    ..avx2::TABLE
};

/// The table of the kernel `avx512f`, if the CPU has every instruction set that the kernel needs.
pub(super) fn available_f() -> Option<&'static KernelTable> {
    // Includes BMI, LZCNT and POPCNT.
    avx2::table_if_supported()?;
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512vl");
    able.then_some(&TABLE_F)
}

/// The table of the kernel `avx512`, if the CPU has every instruction set that the kernel needs.
pub(super) fn table_if_supported() -> Option<&'static KernelTable> {
    available_f()?;
    let able = is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2");
    able.then_some(&TABLE)
}

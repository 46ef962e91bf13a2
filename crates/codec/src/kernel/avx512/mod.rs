//! Loops for CPUs with AVX-512 and VBMI2 (Intel from Ice Lake on, AMD from Zen 4 on).
//!
//! A vector is 16 values. What pays most, beside its width: `vpexpandb` puts exceptions where their bitmap says, and the
//! bytes of `StreamVByte` where their control bytes say; `vpermb` and `vpshrdvd` read 16 values of any bit width; and masks
//! end most decoding loops without a scalar rest. What would not gain is shared with the other kernels.

mod bitmap;
mod bits;
mod exceptions;
mod memory;
mod runs;
mod score;
mod search;
mod streamvbyte;
mod sums;
mod vbyte;
mod widths;

use super::{Kernel, Table, avx2, scalar};

static TABLE: Table = Table {
    name: "avx512",
    pack: avx2::bits::pack,
    unpack: bits::unpack,
    wider: widths::wider,
    shortest_patched: widths::shortest_patched,
    exceptions: exceptions::exceptions,
    places: exceptions::places,
    ones: bitmap::ones,
    sparse: exceptions::sparse,
    gaps: sums::gaps,
    vbyte_encode: scalar::vbyte::vbyte_encode,
    vbyte_decode: vbyte::vbyte_decode,
    vbyte_skip: vbyte::vbyte_skip,
    streamvbyte_encode: scalar::streamvbyte::streamvbyte_encode,
    streamvbyte_data_len: streamvbyte::streamvbyte_data_len,
    streamvbyte_decode: streamvbyte::streamvbyte_decode,
    intersect: search::intersect,
    rises: avx2::search::rises,
    add_one: avx2::search::add_one,
    copy_runs: avx2::runs::copy_runs,
    share_runs: runs::share_runs,
    bitmap_read: bitmap::bitmap_read,
    collect_bits: bitmap::collect_bits,
    bitmap_find: bitmap::bitmap_find,
    bitmap_score: bitmap::bitmap_score,
    score: score::score,
    values_at_least: score::values_at_least,
    sweep: score::sweep,
    mark_positive: bitmap::mark_positive,
    keep_marked: bitmap::keep_marked,
    keep_at_least: score::keep_at_least,
    largest: score::largest,
};

/// The kernel, if the CPU has every instruction that the functions of this folder are compiled for.
pub(super) fn available() -> Option<Kernel> {
    // BMI, LZCNT and POPCNT too.
    avx2::available()?;
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2");
    able.then_some(Kernel(&TABLE))
}

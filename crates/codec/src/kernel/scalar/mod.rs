//! Portable kernels, written so that the compiler can vectorise them where the layout allows.

pub(super) mod bitmap;
pub(super) mod bits;
pub(super) mod exceptions;
pub(super) mod runs;
pub(super) mod score;
pub(super) mod search;
pub(super) mod streamvbyte;
pub(super) mod sums;
pub(super) mod vbyte;
pub(super) mod widths;

use super::Table;

pub(super) static TABLE: Table = Table {
    name: "scalar",
    pack: bits::pack,
    unpack: bits::unpack,
    wider: widths::wider,
    shortest_patched: crate::pfor::plan::shortest_patched,
    exceptions: exceptions::exceptions,
    places: exceptions::places,
    ones: bitmap::ones,
    sparse: exceptions::sparse,
    gaps: sums::gaps,
    vbyte_encode: vbyte::vbyte_encode,
    vbyte_decode: vbyte::vbyte_decode,
    vbyte_skip: vbyte::vbyte_skip,
    streamvbyte_encode: streamvbyte::streamvbyte_encode,
    streamvbyte_data_len: streamvbyte::streamvbyte_data_len,
    streamvbyte_decode: streamvbyte::streamvbyte_decode,
    intersect: search::intersect,
    rises: search::rises,
    add_one: search::add_one,
    copy_runs: runs::copy_runs,
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

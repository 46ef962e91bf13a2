//! Portable loops, compiled for the instructions of this kernel: with them the compiler vectorises the loops,
//! or counts bits by one instruction.

use crate::kernel::scalar::{bitmap, runs, search, streamvbyte, sums, vbyte};
use crate::kernel::table::{RunBlock, WidthCounts};
use crate::{block::ValueRun, error::Result, pfor::cost};
use core::mem::MaybeUninit;

/// Defines functions that call a portable loop, which is inlined and so compiled for `$features`.
macro_rules! compile_loops {
    ($($features:literal $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $function:path;)*) => {
        $(
            #[target_feature(enable = $features)]
            pub(crate) fn $name($($argument: $type),*) $(-> $result)? {
                $function($($argument),*)
            }
        )*
    };
}

compile_loops! {
    "popcnt" count_ones(bytes: &[u8]) -> usize = bitmap::count_ones;
    "avx2,bmi1,bmi2,lzcnt,popcnt" read_bitmap(bits: &[u8], prev: u32, out: &mut [u32]) = bitmap::read_bitmap;
    "avx2" compute_gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [MaybeUninit<u32>])
        = sums::compute_gaps;
    "bmi1,bmi2,lzcnt,popcnt" vbyte_skip(bytes: &[u8], n: usize) -> Result<usize>
        = vbyte::vbyte_skip;
    "popcnt" streamvbyte_data_len(controls: &[u8], n: usize) -> usize = streamvbyte::streamvbyte_data_len;
    "avx2" is_increasing(values: &[u32]) -> bool = search::is_increasing;
    "avx2" add_one(values: &mut [u32]) -> u32 = search::add_one;
    "avx2" copy_runs(values: &RunBlock, runs: &[ValueRun], out: &mut [u32]) -> usize = runs::copy_runs;
    "avx2,bmi1,bmi2" shortest_patched_block(n: usize, counts: &WidthCounts) -> (u32, usize)
        = cost::shortest_patched_block;
}

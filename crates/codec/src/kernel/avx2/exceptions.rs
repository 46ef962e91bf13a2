//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::super::scalar::{self, bitmap::word};
use super::compress::{byte_mask, compress, expand};
use super::memory::{LANES, Vector, load, load_all, load_bytes};
use super::search::equal_lanes;
use super::stream::unpack_stream;
use crate::bitpack::packed_len;
use crate::block::BLOCK;
use crate::kernel::size::{HighSize, NO_PATCH, WORDS};
use crate::kernel::table::{Bitmap, Exceptions, Patch, SparseBitmap, StoredBitmap};
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// The lowest bit of each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;

/// [`crate::Kernel::exceptions`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    let shift = _mm_cvtsi32_si128(width as i32);
    let (groups, rest) = values.as_chunks::<LANES>();
    found.bitmap = [0; _];
    // A local counter: the compiler assumes that each vector store may write to `found`.
    let mut count = 0;
    let mut take = |values: Vector, positions: &mut u8| {
        let highs = _mm256_srl_epi32(values, shift);
        *positions = !equal_lanes(highs, _mm256_setzero_si256()) as u8;
        let highs = compress(*positions, highs);
        let out = found.highs.as_mut_ptr().wrapping_add(count);
        // SAFETY: The caller has checked that there are at most 256 values, so that at most 248 high parts
        // are written before the last eight, and the array has 256.
        unsafe { _mm256_storeu_si256(out.cast(), highs) };
        count += positions.count_ones() as usize;
    };
    for (values, positions) in groups.iter().zip(&mut found.bitmap) {
        take(load_all(values), positions);
    }
    if !rest.is_empty() {
        take(load(rest), &mut found.bitmap[groups.len()]);
    }
    found.count = count;
}

/// [`crate::Kernel::sparse_bitmap`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap {
    let zeros = _mm256_cmpeq_epi8(load_bytes(bitmap), _mm256_setzero_si256());
    let mask = !_mm256_movemask_epi8(zeros) as u32;
    let mut bytes = [0; 32];
    let mut count = 0;
    for (word, mask) in bitmap.as_chunks().0.iter().zip(mask.to_le_bytes()) {
        let stored = _pext_u64(u64::from_le_bytes(*word), byte_mask(mask));
        // At most `8 * k` bytes are stored before the k-th word.
        bytes[count..count + 8].copy_from_slice(&stored.to_le_bytes());
        count += mask.count_ones() as usize;
    }
    SparseBitmap { mask, bytes }
}

/// [`crate::Kernel::exception_bitmap`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn exception_bitmap(
    bytes: &[u8],
    bitmap_len: usize,
    sparse: bool,
    bitmap: &mut Bitmap,
) -> Option<StoredBitmap> {
    match bytes.first_chunk::<4>() {
        Some(mask) if bitmap_len == BLOCK / 8 && sparse => whole_sparse(*mask, &bytes[4..], bitmap),
        _ => scalar::exceptions::exception_bitmap(bytes, bitmap_len, sparse, bitmap),
    }
}

/// Expands the sparse bitmap of 256 values: deposits up to eight stored bytes at a time by eight bits of the
/// mask.
#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn whole_sparse(mask: [u8; 4], stored: &[u8], bitmap: &mut Bitmap) -> Option<StoredBitmap> {
    let stored = stored.get(..u32::from_le_bytes(mask).count_ones() as usize)?;
    let mut size = StoredBitmap { count: 0, len: mask.len() + stored.len() };
    let mut used = 0;
    for (bitmap, mask) in bitmap.as_chunks_mut().0.iter_mut().zip(mask) {
        let bits = _pdep_u64(word(&stored[used..]), byte_mask(mask));
        used += mask.count_ones() as usize;
        size.count += bits.count_ones() as usize;
        *bitmap = bits.to_le_bytes();
    }
    Some(size)
}

/// Bytes that follow high parts of up to eight bits: a word is loaded from their last byte on.
pub(super) const HIGHS_SLACK: usize = 8;

/// Cursor over the high parts of the exceptions.
pub(super) struct Highs<'a> {
    patch: Patch<'a>,
    /// For bytes: bits of the packed high parts consumed, and the low `width` bits of each of eight bytes.
    used: usize,
    mask: u64,
    /// For words: the result of [`spread`].
    words: &'a [Vector],
}

impl<'a> Highs<'a> {
    #[inline]
    pub(super) fn new(patch: Option<Patch<'a>>, words: &'a [Vector]) -> Highs<'a> {
        let patch = patch.unwrap_or(NO_PATCH);
        Highs { patch, used: 0, mask: EACH.wrapping_mul((1 << (patch.width % 32)) - 1), words }
    }

    /// The high parts of the next eight values, zero where a value is no exception.
    ///
    /// # Safety
    /// Must be called at most once for each of the up to 32 groups, in order. `SIZE` is the size of the high
    /// parts. Bytes are followed by [`HIGHS_SLACK`] bytes; for words there is the result of [`spread`].
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn next<const SIZE: HighSize>(&mut self, group: usize) -> Vector {
        if SIZE == WORDS {
            // SAFETY: There are words for all groups.
            return *unsafe { self.words.get_unchecked(group) };
        }
        // The bits of up to eight high parts are within the 64 bits that start at their first byte: at most
        // 7 bits before them and 56 of their own, or none and 64.
        let next = self.patch.highs.as_ptr().wrapping_add(self.used / 8);
        // SAFETY: Only bits of high parts have been consumed, and a word follows them.
        let bits = u64::from_le(unsafe { next.cast::<u64>().read_unaligned() }) >> (self.used % 8);
        let positions = self.patch.bitmap[group];
        self.used += (positions.count_ones() * self.patch.width) as usize;
        let bytes = _pdep_u64(bits, byte_mask(positions) & self.mask);
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64))
    }
}

/// The high parts at the positions of their values, zero where a value is no exception: unpacks all, and
/// moves eight at a time.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn spread<'a>(patch: &Patch, words: &'a mut [MaybeUninit<Vector>; BLOCK / LANES]) -> &'a [Vector] {
    let count = scalar::bitmap::count_ones(patch.bitmap);
    // Whole vectors if the bytes after the high parts suffice.
    let whole = count.next_multiple_of(LANES);
    let n = if patch.highs.len() >= packed_len(whole, patch.width) { whole } else { count };
    let mut unpacked = [MaybeUninit::uninit(); BLOCK + LANES];
    let unpacked = &mut unpacked[..whole + LANES];
    unpacked.fill(MaybeUninit::new(0));
    // SAFETY: All have been written.
    let unpacked = unsafe { unpacked.assume_init_mut() };
    unpack_stream(patch.highs, patch.width, &mut unpacked[..n]);
    let mut used = 0;
    for (words, positions) in words.iter_mut().zip(patch.bitmap) {
        let next = unpacked[used..].first_chunk().expect("a vector after the last word");
        words.write(expand(*positions, load_all(next)));
        used += positions.count_ones() as usize;
    }
    // SAFETY: All have been written.
    unsafe { words.assume_init_ref() }
}

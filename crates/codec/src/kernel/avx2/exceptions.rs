//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::super::scalar::{self, bitmap::word};
use super::compress::{byte_mask, expand};
use super::memory::load_all;
use super::stream::unpack_stream;
use crate::bitpack::packed_len;
use crate::block::BLOCK;
use crate::kernel::size::{BYTES, HighSize, NO_PATCH};
use crate::kernel::table::{Bitmap, ExceptionBitmap, Exceptions, Patch, SparseBitmap};
use core::arch::x86_64::*;

/// The lowest bit of each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;

/// [`crate::Kernel::exceptions`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    scalar::exceptions::exceptions(values, width, found);
}

/// [`crate::Kernel::sparse_bitmap`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap {
    scalar::exceptions::sparse_bitmap(bitmap)
}

/// [`crate::Kernel::exception_bitmap`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn exception_bitmap(
    bytes: &[u8],
    bitmap_len: usize,
    sparse: bool,
) -> Option<ExceptionBitmap> {
    match bytes.first_chunk::<4>() {
        Some(mask) if bitmap_len == BLOCK / 8 && sparse => whole_sparse(*mask, &bytes[4..]),
        _ => scalar::exceptions::exception_bitmap(bytes, bitmap_len, sparse),
    }
}

/// Expands the sparse bitmap of 256 values: deposits up to eight stored bytes at a time by eight bits of the
/// mask.
#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn whole_sparse(mask: [u8; 4], stored: &[u8]) -> Option<ExceptionBitmap> {
    let stored = stored.get(..u32::from_le_bytes(mask).count_ones() as usize)?;
    let mut positions = ExceptionBitmap { bitmap: [0; _], count: 0, len: mask.len() + stored.len() };
    let mut used = 0;
    for (bitmap, mask) in positions.bitmap.as_chunks_mut().0.iter_mut().zip(mask) {
        let bits = _pdep_u64(word(&stored[used..]), byte_mask(mask));
        used += mask.count_ones() as usize;
        positions.count += bits.count_ones() as usize;
        *bitmap = bits.to_le_bytes();
    }
    Some(positions)
}

/// Cursor over the high parts of the exceptions.
pub(super) struct Highs<'a> {
    patch: Patch<'a>,
    /// For words: all high parts, unpacked.
    words: &'a [u32],
    /// Number of words, or of bits of the packed bytes, consumed.
    used: usize,
    /// For bytes: the low `width` bits of each of eight bytes.
    mask: u64,
    /// The shift of high parts above the low parts, in every lane.
    shift: __m256i,
}

impl<'a> Highs<'a> {
    /// Unpacks all high parts, at most 256.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn words(patch: Option<Patch>) -> [u32; BLOCK] {
        let mut words = [0; BLOCK];
        if let Some(patch) = patch {
            let words = &mut words[..scalar::bitmap::count_ones(patch.bitmap)];
            unpack_stream(&patch.highs[..packed_len(words.len(), patch.width)], patch.width, words);
        }
        words
    }

    /// `words` is the result of [`Highs::words`] if the high parts are words.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new(patch: Option<Patch<'a>>, shift: u32, words: &'a [u32]) -> Highs<'a> {
        let patch = patch.unwrap_or(NO_PATCH);
        let mask = EACH.wrapping_mul((1 << patch.width) - 1);
        Highs { patch, words, used: 0, mask, shift: _mm256_set1_epi32(shift as i32) }
    }

    /// The high parts of the next eight values, zero where a value is no exception. Called once for each of
    /// the up to 32 groups, in order.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn next<const SIZE: HighSize>(&mut self, group: usize) -> __m256i {
        let positions = self.patch.bitmap[group];
        let highs = if SIZE == BYTES { self.next_bytes(positions) } else { self.next_words(positions) };
        _mm256_sllv_epi32(highs, self.shift)
    }

    /// Deposits the bits of up to eight high parts into the bytes of their positions. They are within the 64
    /// bits that start at their first byte: at most 7 bits before them and 56 of their own, or none and 64.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn next_bytes(&mut self, positions: u8) -> __m256i {
        let bits = word(&self.patch.highs[self.used / 8..]) >> (self.used % 8);
        self.used += (positions.count_ones() * self.patch.width) as usize;
        let bytes = _pdep_u64(bits, byte_mask(positions) & self.mask);
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64))
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn next_words(&mut self, positions: u8) -> __m256i {
        let words = self.words[self.used..].first_chunk().expect("eight words for eight positions");
        self.used += positions.count_ones() as usize;
        expand(positions, load_all(words))
    }
}

//! Taking the high parts of exceptions off, finding where they belong, and putting them back.

use super::super::scalar::{self, bitmap::word};
use super::bits::unpack_stream;
use super::memory::LANES;
use crate::BLOCK;
use crate::bitpack::packed_len;
use crate::kernel::size::{BYTES, NO_PATCH, Size};
use crate::kernel::{Bitmap, Exceptions, Patch, Places, Sparse};
use core::arch::x86_64::*;

/// The lowest bit of each of eight bytes.
const EACH: u64 = 0x0101_0101_0101_0101;

/// [`crate::Kernel::exceptions`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    scalar::exceptions::exceptions(values, width, found);
}

/// [`crate::Kernel::sparse`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn sparse(bitmap: &Bitmap) -> Sparse {
    scalar::exceptions::sparse(bitmap)
}

/// [`crate::Kernel::places`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn places(bytes: &[u8], bitmap_len: usize, sparse: bool) -> Option<Places> {
    match bytes.first_chunk::<4>() {
        Some(mask) if bitmap_len == BLOCK / 8 && sparse => whole_sparse(*mask, &bytes[4..]),
        _ => scalar::exceptions::places(bytes, bitmap_len, sparse),
    }
}

/// The sparse bitmap of 256 values: eight bytes of it at a time are deposited where their mask says.
#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn whole_sparse(mask: [u8; 4], stored: &[u8]) -> Option<Places> {
    let stored = stored.get(..u32::from_le_bytes(mask).count_ones() as usize)?;
    let mut places = Places { bitmap: [0; _], count: 0, len: mask.len() + stored.len() };
    let mut used = 0;
    for (bitmap, mask) in places.bitmap.as_chunks_mut().0.iter_mut().zip(mask) {
        let bits = _pdep_u64(word(&stored[used..]), whole_bytes(mask));
        used += mask.count_ones() as usize;
        places.count += bits.count_ones() as usize;
        *bitmap = bits.to_le_bytes();
    }
    Some(places)
}

/// A byte of ones for each bit.
#[inline]
#[target_feature(enable = "bmi2")]
fn whole_bytes(bits: u8) -> u64 {
    _pdep_u64(bits.into(), EACH) * 0xff
}

/// High parts on their way to where they belong.
pub(super) struct Highs<'a> {
    patch: Patch<'a>,
    /// If they are words: all of them.
    words: &'a [u32],
    /// Words, or bits of the packed bytes, that are used up.
    used: usize,
    /// If they are bytes: the bits of the width in each of eight.
    mask: u64,
    /// Where high parts go, in every lane.
    shift: __m256i,
}

impl<'a> Highs<'a> {
    /// High parts unpacked: as many as a bitmap of 256 bits may have.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn words(patch: Option<Patch>) -> [u32; BLOCK] {
        let mut words = [0; BLOCK];
        if let Some(patch) = patch {
            let words = &mut words[..scalar::bitmap::ones(patch.bitmap)];
            unpack_stream(&patch.highs[..packed_len(words.len(), patch.width)], patch.width, words);
        }
        words
    }

    /// `words` are those of [`Highs::words`] if the size is [`WORDS`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new(patch: Option<Patch<'a>>, shift: u32, words: &'a [u32]) -> Highs<'a> {
        let patch = patch.unwrap_or(NO_PATCH);
        let mask = EACH.wrapping_mul((1 << patch.width) - 1);
        Highs { patch, words, used: 0, mask, shift: _mm256_set1_epi32(shift as i32) }
    }

    /// The high parts of the next eight values, zero for those that have none. `group` is one of 32, and each is
    /// asked for once, in order.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn next<const SIZE: Size>(&mut self, group: usize) -> __m256i {
        let places = self.patch.bitmap[group];
        let highs = if SIZE == BYTES { self.next_bytes(places) } else { self.next_words(places) };
        _mm256_sllv_epi32(highs, self.shift)
    }

    /// The bits of up to eight high parts, at most 56 and the 7 before them or 64 and none, are deposited in
    /// the bytes of their places.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn next_bytes(&mut self, places: u8) -> __m256i {
        let bits = word(&self.patch.highs[self.used / 8..]) >> (self.used % 8);
        self.used += (places.count_ones() * self.patch.width) as usize;
        let bytes = _pdep_u64(bits, whole_bytes(places) & self.mask);
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64))
    }

    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn next_words(&mut self, places: u8) -> __m256i {
        let words = self.words[self.used..].first_chunk().expect("eight words for eight places");
        self.used += places.count_ones() as usize;
        let ranks = i64::from_le_bytes(RANKS[usize::from(places)]);
        let ranks = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(ranks));
        let spread = _mm256_permutevar8x32_epi32(super::memory::load(words), ranks);
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let set = _mm256_and_si256(_mm256_set1_epi32(places.into()), bits);
        _mm256_and_si256(spread, _mm256_cmpeq_epi32(set, bits))
    }
}

/// For each eight places, and for each place, the number of set bits before it.
static RANKS: [[u8; LANES]; 256] = {
    let mut ranks = [[0; LANES]; 256];
    let mut k = 0;
    while k < 256 * LANES {
        let (places, lane) = (k / LANES, k % LANES);
        ranks[places][lane] = (places & ((1 << lane) - 1)).count_ones() as u8;
        k += 1;
    }
    ranks
};

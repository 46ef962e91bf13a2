//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::super::scalar;
use super::memory::{Constant, LANES, load, load_bytes};
use crate::kernel::size::{BYTES, HighSize, NO_PATCH};
use crate::kernel::table::{Bitmap, ExceptionBitmap, Exceptions, Patch, SparseBitmap};
use core::arch::x86_64::*;

/// [`crate::Kernel::exceptions`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    let shift = _mm512_set1_epi32(width as i32);
    let (groups, rest) = values.as_chunks::<LANES>();
    found.bitmap = [0; _];
    // A local counter: the compiler assumes that each vector store may write to `found`.
    let mut count = 0;
    let mut take = |values: __m512i, bitmap: &mut [u8; 2]| {
        let highs = _mm512_srlv_epi32(values, shift);
        let positions = _mm512_test_epi32_mask(highs, highs);
        *bitmap = positions.to_le_bytes();
        let highs = _mm512_maskz_compress_epi32(positions, highs);
        let out = found.highs.as_mut_ptr().wrapping_add(count);
        // SAFETY: The caller has checked that there are at most 256 values, so that at most 240 high parts
        // are written before the last 16, and the array has 256.
        unsafe { _mm512_storeu_si512(out.cast(), highs) };
        count += positions.count_ones() as usize;
    };
    let bitmap = found.bitmap.as_chunks_mut::<2>().0;
    for (values, bitmap) in groups.iter().zip(&mut *bitmap) {
        take(load(values), bitmap);
    }
    if !rest.is_empty() {
        take(load(rest), &mut bitmap[groups.len()]);
    }
    found.count = count;
}

/// [`crate::Kernel::sparse_bitmap`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2")]
pub(in crate::kernel) fn sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap {
    let bits = _mm512_castsi512_si256(load_bytes(bitmap));
    let mask = _mm256_test_epi8_mask(bits, bits);
    let stored = _mm256_maskz_compress_epi8(mask, bits);
    let mut bytes = [0; 32];
    // SAFETY: The array has 32 bytes.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), stored) };
    SparseBitmap { mask, bytes }
}

/// [`crate::Kernel::exception_bitmap`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::kernel) fn exception_bitmap(
    bytes: &[u8],
    bitmap_len: usize,
    sparse: bool,
) -> Option<ExceptionBitmap> {
    let Some(mask) = bytes.first_chunk() else {
        return scalar::exceptions::exception_bitmap(bytes, bitmap_len, sparse);
    };
    // A whole bitmap is read as a sparse one with all its bytes and no mask, so that the form causes no
    // branch.
    let mask_len = if sparse { bitmap_len.div_ceil(8) } else { 0 };
    let mask = _bzhi_u32(u32::from_le_bytes(*mask), 8 * mask_len as u32);
    let mask = if sparse { mask } else { _bzhi_u32(u32::MAX, bitmap_len as u32) };
    let len = mask_len + mask.count_ones() as usize;
    let bitmap = bytes.get(mask_len..len)?;
    let bitmap = _mm256_maskz_expand_epi8(mask, _mm512_castsi512_si256(load_bytes(bitmap)));
    let mut exceptions = ExceptionBitmap { bitmap: [0; _], count: 0, len };
    // SAFETY: The array has 32 bytes.
    unsafe { _mm256_storeu_si256(exceptions.bitmap.as_mut_ptr().cast(), bitmap) };
    exceptions.count = scalar::bitmap::count_ones(&exceptions.bitmap);
    Some(exceptions)
}

/// Cursor over the high parts of the exceptions.
pub(super) struct Highs<'a> {
    patch: Patch<'a>,
    /// Bits of the packed high parts consumed.
    used: usize,
    /// The shift of high parts above the low parts, in every lane.
    shift: __m512i,
    /// For bytes: the high parts of the next values, up to 64, each at its position.
    bytes: __m512i,
    /// For bytes: for each eight high parts the eight bytes from their first byte on.
    starts: __m512i,
    /// The bit at which each high part starts: for bytes within those eight bytes, for words within all
    /// bytes.
    bits: __m512i,
}

impl<'a> Highs<'a> {
    /// Nothing: words are read from the packed bits too.
    #[inline]
    pub(super) fn words(_: Option<Patch>) -> [u32; 0] {
        []
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(patch: Option<Patch<'a>>, shift: u32, _: &[u32]) -> Highs<'a> {
        let patch = patch.unwrap_or(NO_PATCH);
        let (starts, bits) = if patch.width <= 8 {
            (STARTS[patch.width as usize].vector(), BITS[patch.width as usize].vector())
        } else {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let bits = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(patch.width as i32));
            (_mm512_setzero_si512(), bits)
        };
        let shift = _mm512_set1_epi32(shift as i32);
        Highs { patch, used: 0, shift, bytes: _mm512_setzero_si512(), starts, bits }
    }

    /// The high parts of the next 16 values, zero where a value is no exception. Called once for each of the
    /// up to 16 groups, in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    pub(super) fn next<const SIZE: HighSize>(&mut self, group: usize) -> __m512i {
        let highs = if SIZE == BYTES {
            if group.is_multiple_of(4) {
                self.bytes = self.next_bytes(group / 4);
            }
            let bytes = _mm512_castsi512_si128(self.bytes);
            self.bytes = _mm512_alignr_epi64::<2>(self.bytes, self.bytes);
            _mm512_cvtepu8_epi32(bytes)
        } else {
            self.next_words(group)
        };
        _mm512_sllv_epi32(highs, self.shift)
    }

    /// The high parts of 64 values as bytes: each eight are extracted from eight bytes, and all are expanded
    /// by the bitmap.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    fn next_bytes(&mut self, quarter: usize) -> __m512i {
        let positions = u64::from_le_bytes(self.patch.bitmap.as_chunks().0[quarter]);
        let (bytes, bit) = self.take(positions.count_ones());
        let eights = _mm512_permutexvar_epi8(self.starts, bytes);
        let bits = _mm512_add_epi8(self.bits, _mm512_set1_epi8(bit as i8));
        let fields = _mm512_multishift_epi64_epi8(bits, eights);
        let mask = _mm512_set1_epi8(((1u16 << self.patch.width) - 1) as u8 as i8);
        _mm512_maskz_expand_epi8(positions, _mm512_and_si512(fields, mask))
    }

    /// The high parts of 16 values as words: their bit offsets are expanded by the bitmap, and four or five
    /// bytes are fetched from each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    fn next_words(&mut self, group: usize) -> __m512i {
        let positions = u16::from_le_bytes(self.patch.bitmap.as_chunks().0[group]);
        let (bytes, bit) = self.take(positions.count_ones());
        let bits = _mm512_maskz_expand_epi32(positions, self.bits);
        let bits = _mm512_add_epi32(bits, _mm512_set1_epi32(bit as i32));
        let fourfold = _mm512_set4_epi32(0x0c0c_0c0c, 0x0808_0808, 0x0404_0404, 0);
        let first = _mm512_shuffle_epi8(_mm512_srli_epi32::<3>(bits), fourfold);
        let first = _mm512_add_epi8(first, _mm512_set1_epi32(0x0302_0100));
        let next = _mm512_add_epi8(first, _mm512_set1_epi8(4));
        let low = _mm512_permutexvar_epi8(first, bytes);
        let high = _mm512_permutexvar_epi8(next, bytes);
        let words = _mm512_shrdv_epi32(low, high, _mm512_and_si512(bits, _mm512_set1_epi32(7)));
        let mask = _mm512_set1_epi32(((1u64 << self.patch.width) - 1) as u32 as i32);
        _mm512_maskz_and_epi32(positions, words, mask)
    }

    /// The bytes from the next `count` high parts on, and the bit of the first byte at which they start.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    fn take(&mut self, count: u32) -> (__m512i, usize) {
        let used = self.used;
        self.used += (count * self.patch.width) as usize;
        (load_bytes(&self.patch.highs[used / 8..]), used % 8)
    }
}

/// For each width up to 8 and each eight fields, the eight bytes from their first byte on.
static STARTS: [Constant; 9] = {
    let mut starts = [const { Constant::counting(1) }; 9];
    let mut k = 0;
    while k < 9 * 64 {
        let (width, byte) = (k / 64, k % 64);
        starts[width].0[byte] = (byte / 8 * width + byte % 8) as u8;
        k += 1;
    }
    starts
};

/// For each width up to 8, the first bit of each of eight fields.
static BITS: [Constant; 9] = {
    let mut bits = [const { Constant::counting(1) }; 9];
    let mut k = 0;
    while k < 9 * 64 {
        let (width, byte) = (k / 64, k % 64);
        bits[width].0[byte] = (byte % 8 * width) as u8;
        k += 1;
    }
    bits
};

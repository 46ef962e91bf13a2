//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::memory::{ConstantBytes, LANES, Vector, hide_from_optimizer, load, load_bytes, opaque_mask};
use super::stream::BitStream;
use crate::kernel::size::{HighPartSize, NO_PATCH, SIZE_WORDS};
use crate::kernel::table::{Bitmap, Exceptions, Patch, SparseBitmap, StoredBitmap};
use crate::{block::BLOCK, kernel::avx2::exceptions::bitmap_mask, kernel::scalar};
use core::{arch::x86_64::*, mem::MaybeUninit};

/// Implements [`crate::Kernel::find_exceptions`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
pub(crate) fn find_exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
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

/// Implements [`crate::Kernel::make_sparse_bitmap`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2")]
pub(crate) fn make_sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap {
    let bits = _mm512_castsi512_si256(load_bytes(bitmap));
    let mask = _mm256_test_epi8_mask(bits, bits);
    let stored = _mm256_maskz_compress_epi8(mask, bits);
    let mut bytes = [0; 32];
    // SAFETY: The array has 32 bytes.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), stored) };
    SparseBitmap { mask, bytes }
}

/// Implements [`crate::Kernel::read_exception_bitmap`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn read_exception_bitmap(
    bytes: &[u8],
    bitmap_len: usize,
    sparse: bool,
    bitmap: &mut Bitmap,
) -> Option<StoredBitmap> {
    let Some(mask) = bytes.first_chunk() else {
        return scalar::exceptions::read_exception_bitmap(bytes, bitmap_len, sparse, bitmap);
    };
    let (mask, mask_len) = bitmap_mask(*mask, bitmap_len, sparse);
    let len = mask_len + mask.count_ones() as usize;
    if bytes.len() < len {
        return None;
    }
    // Any bytes may follow the stored ones: a mask of these would delay the load.
    let stored = &bytes[mask_len..];
    let stored = match stored.first_chunk::<32>() {
        // SAFETY: There are 32 bytes.
        Some(stored) => unsafe { _mm256_loadu_si256(stored.as_ptr().cast()) },
        None => _mm512_castsi512_si256(load_bytes(stored)),
    };
    let bits = _mm256_maskz_expand_epi8(mask, stored);
    // SAFETY: The bitmap has 32 bytes.
    unsafe { _mm256_storeu_si256(bitmap.as_mut_ptr().cast(), bits) };
    Some(StoredBitmap { count: scalar::bitmap::count_ones(bitmap), len })
}

/// Scratch memory for the high parts of the exceptions of a block, if they have more than 8 bits.
pub(super) struct HighPartBuffer {
    /// The unpacked high parts at the positions of their values; zero elsewhere.
    words: [MaybeUninit<Vector>; BLOCK / LANES],
}

impl HighPartBuffer {
    /// An uninitialised buffer.
    #[inline]
    pub(super) fn new() -> HighPartBuffer {
        HighPartBuffer { words: [MaybeUninit::uninit(); _] }
    }

    /// Unpacks the high parts if they are words: all of them, and then moves 16 at a time to their positions.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(super) fn prepare<const SIZE: HighPartSize>(&mut self, patch: &Patch) {
        if SIZE != SIZE_WORDS {
            return;
        }
        let groups = scalar::bitmap::count_ones(patch.bitmap).div_ceil(LANES);
        let mut unpacked = [MaybeUninit::uninit(); BLOCK / LANES + 1];
        let stream = BitStream::new(patch.highs, patch.width);
        for (group, words) in unpacked[..groups].iter_mut().enumerate() {
            words.write(stream.values(group));
        }
        unpacked[groups].write(_mm512_setzero_si512());
        let mut next = unpacked.as_ptr().cast::<u32>();
        for (words, positions) in self.words.iter_mut().zip(patch.bitmap.as_chunks().0) {
            let positions = u16::from_le_bytes(*positions);
            // SAFETY: A vector follows the high parts of all set bits.
            let highs = unsafe { _mm512_loadu_si512(next.cast()) };
            words.write(_mm512_maskz_expand_epi32(positions, highs));
            next = next.wrapping_add(positions.count_ones() as usize);
        }
    }
}

/// A cursor over the high parts of the exceptions, 16 values at a time.
pub(super) struct HighPartCursor<'a> {
    narrow: HighByteCursor<'a>,
    /// High parts of up to 8 bits: those of the next values, up to 64, as bytes.
    bytes: Vector,
    highs: &'a HighPartBuffer,
}

impl<'a> HighPartCursor<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(patch: Option<Patch<'a>>, highs: &'a HighPartBuffer) -> HighPartCursor<'a> {
        let narrow = HighByteCursor::new(patch);
        HighPartCursor { narrow, bytes: _mm512_setzero_si512(), highs }
    }

    /// The high parts of the next 16 values, zero where a value is no exception.
    ///
    /// # Safety
    /// Must be called at most once for each of the up to 16 groups, in order. The buffer must have been
    /// filled for this size.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    pub(super) unsafe fn next<const SIZE: HighPartSize>(&mut self, group: usize) -> Vector {
        if SIZE == SIZE_WORDS {
            // SAFETY: There are words for all groups.
            return unsafe { self.highs.words[group].assume_init() };
        }
        if group.is_multiple_of(4) {
            self.bytes = self.narrow.next(group / 4);
        }
        // The first byte of each lane; the others are zero.
        let first = hide_from_optimizer(SPREAD_16_BYTES[group % 4].vector());
        _mm512_maskz_permutexvar_epi8(opaque_mask(0x1111_1111_1111_1111), first, self.bytes)
    }
}

/// A cursor over high parts of at most 8 bits, 64 values at a time.
pub(super) struct HighByteCursor<'a> {
    patch: Patch<'a>,
    /// Number of bits of the packed high parts read so far.
    used: usize,
    /// Permutation that gives each eight high parts the eight bytes from their first byte on.
    starts: Vector,
    /// The bit within those eight bytes at which each high part starts.
    bits: Vector,
}

impl<'a> HighByteCursor<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(patch: Option<Patch<'a>>) -> HighByteCursor<'a> {
        let patch = patch.unwrap_or(NO_PATCH);
        let width = patch.width.min(8) as usize;
        HighByteCursor {
            patch,
            used: 0,
            starts: HIGH_PART_BYTES[width].vector(),
            bits: HIGH_PART_SHIFTS[width].vector(),
        }
    }

    /// The high parts of the next 64 values as bytes, zero where a value is no exception: each eight are
    /// extracted from eight bytes, and all are expanded by the bitmap. Called at most once for each quarter,
    /// in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    pub(super) fn next(&mut self, quarter: usize) -> Vector {
        let positions = u64::from_le_bytes(self.patch.bitmap.as_chunks().0[quarter]);
        let bytes = load_bytes(&self.patch.highs[self.used / 8..]);
        let eights = _mm512_permutexvar_epi8(self.starts, bytes);
        let bits = _mm512_add_epi8(self.bits, _mm512_set1_epi8((self.used % 8) as i8));
        self.used += (positions.count_ones() * self.patch.width) as usize;
        let fields = _mm512_multishift_epi64_epi8(bits, eights);
        let mask = _mm512_set1_epi8(((1u16 << self.patch.width) - 1) as u8 as i8);
        _mm512_maskz_expand_epi8(positions, _mm512_and_si512(fields, mask))
    }
}

/// Permutations that move 16 of 64 bytes to the lowest bytes of the 32-bit lanes, for each 16.
static SPREAD_16_BYTES: [ConstantBytes; 4] = {
    let mut bytes = [const { ConstantBytes::counting(4) }; 4];
    let mut k = 0;
    while k < 4 * 64 {
        bytes[k / 64].0[k % 64] += (k / 64 * LANES) as u8;
        k += 1;
    }
    bytes
};

/// For each width of high parts up to 8 bits: the permutation that gives each eight high parts the eight
/// bytes from their first byte on.
static HIGH_PART_BYTES: [ConstantBytes; 9] = {
    let mut starts = [const { ConstantBytes::counting(1) }; 9];
    let mut k = 0;
    while k < 9 * 64 {
        let (width, byte) = (k / 64, k % 64);
        starts[width].0[byte] = (byte / 8 * width + byte % 8) as u8;
        k += 1;
    }
    starts
};

/// For each width of high parts up to 8 bits: the first bit of each of eight high parts.
static HIGH_PART_SHIFTS: [ConstantBytes; 9] = {
    let mut bits = [const { ConstantBytes::counting(1) }; 9];
    let mut k = 0;
    while k < 9 * 64 {
        let (width, byte) = (k / 64, k % 64);
        bits[width].0[byte] = (byte % 8 * width) as u8;
        k += 1;
    }
    bits
};

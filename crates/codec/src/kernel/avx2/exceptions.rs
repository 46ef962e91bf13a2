//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::super::scalar::{self, bitmap::word};
use super::compress::{byte_mask, compress, expand, expand_bytes};
use super::memory::{LANES, Vector, load, load_all, load_bytes};
use super::search::equal_lanes;
use super::stream::unpack_stream;
use crate::bitpack::packed_len;
use crate::block::BLOCK;
use crate::kernel::size::{BYTES, HighSize, NO_PATCH, WORDS};
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
        Some(mask) if bitmap_len == bitmap.len() && sparse => whole_sparse(*mask, &bytes[4..], bitmap),
        Some(_) if bitmap_len == bitmap.len() => {
            *bitmap = *bytes.first_chunk()?;
            Some(StoredBitmap { count: scalar::bitmap::count_ones(bitmap), len: bitmap_len })
        }
        _ => scalar::exceptions::exception_bitmap(bytes, bitmap_len, sparse, bitmap),
    }
}

/// Expands the sparse bitmap of 256 values: deposits up to eight stored bytes at a time by eight bits of the
/// mask. Any bytes may follow the stored ones, so that whole words can be loaded.
#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn whole_sparse(mask: [u8; 4], stored: &[u8], bitmap: &mut Bitmap) -> Option<StoredBitmap> {
    let len = u32::from_le_bytes(mask).count_ones() as usize;
    if stored.len() < len {
        return None;
    }
    let mut size = StoredBitmap { count: 0, len: mask.len() + len };
    let mut used = 0;
    for (bitmap, mask) in bitmap.as_chunks_mut().0.iter_mut().zip(mask) {
        let bits = _pdep_u64(word(&stored[used..]), byte_mask(mask));
        used += mask.count_ones() as usize;
        size.count += bits.count_ones() as usize;
        *bitmap = bits.to_le_bytes();
    }
    Some(size)
}

/// The high parts of a block, unpacked.
pub(super) struct HighBuffer {
    /// Bytes, one after the other.
    bytes: [MaybeUninit<[u8; LANES]>; BLOCK / LANES + 1],
    /// Words at the positions of their values, zero elsewhere.
    words: [MaybeUninit<Vector>; BLOCK / LANES],
}

impl HighBuffer {
    /// An uninitialised buffer.
    #[inline]
    pub(super) fn new() -> HighBuffer {
        HighBuffer { bytes: [MaybeUninit::uninit(); _], words: [MaybeUninit::uninit(); _] }
    }

    /// Unpacks the high parts, which have the given size.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn fill<const SIZE: HighSize>(&mut self, patch: &Patch) {
        match SIZE {
            BYTES => self.fill_bytes(patch),
            WORDS => self.fill_words(patch),
            _ => {}
        }
    }

    /// Deposits the bits of eight high parts into bytes.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn fill_bytes(&mut self, patch: &Patch) {
        let width = patch.width as usize;
        let mask = EACH.wrapping_mul((1 << width) - 1);
        let groups = scalar::bitmap::count_ones(patch.bitmap).div_ceil(LANES);
        for (group, bytes) in self.bytes[..groups].iter_mut().enumerate() {
            bytes.write(_pdep_u64(word(&patch.highs[group * width..]), mask).to_le_bytes());
        }
        self.bytes[groups].write([0; _]);
    }

    /// Unpacks all high parts, then moves eight at a time to their positions.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn fill_words(&mut self, patch: &Patch) {
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
        for (words, positions) in self.words.iter_mut().zip(patch.bitmap) {
            let next = unpacked[used..].first_chunk().expect("a vector after the last word");
            words.write(expand(*positions, load_all(next)));
            used += positions.count_ones() as usize;
        }
    }
}

/// Cursor over the high parts of the exceptions.
pub(super) struct Highs<'a> {
    bitmap: &'a Bitmap,
    highs: &'a HighBuffer,
    /// Bytes consumed.
    used: usize,
}

impl<'a> Highs<'a> {
    #[inline]
    pub(super) fn new(patch: Option<Patch<'a>>, highs: &'a HighBuffer) -> Highs<'a> {
        Highs { bitmap: patch.unwrap_or(NO_PATCH).bitmap, highs, used: 0 }
    }

    /// The high parts of the next eight values, zero where a value is no exception.
    ///
    /// # Safety
    /// Must be called at most once for each of the up to 32 groups, in order. The buffer must have been
    /// filled for this size.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn next<const SIZE: HighSize>(&mut self, group: usize) -> Vector {
        if SIZE == WORDS {
            // SAFETY: There are words for all groups.
            return unsafe { self.highs.words[group].assume_init() };
        }
        let bytes = self.highs.bytes.as_ptr().cast::<u8>().wrapping_add(self.used);
        // SAFETY: Eight bytes follow those of all set bits.
        let bytes = unsafe { _mm_loadl_epi64(bytes.cast()) };
        let positions = self.bitmap[group];
        self.used += positions.count_ones() as usize;
        _mm256_cvtepu8_epi32(expand_bytes(positions, bytes))
    }
}

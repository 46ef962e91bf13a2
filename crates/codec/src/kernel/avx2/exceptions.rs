//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::compress::{byte_mask, compress, expand};
use super::memory::{LANES, Vector, load, load_all, load_bytes};
use super::{search::equal_lanes, stream::unpack_stream};
use crate::kernel::size::{HighPartSize, NO_PATCH, SIZE_BYTES, SIZE_WORDS};
use crate::kernel::table::{Bitmap, Exceptions, Patch, SparseBitmap, StoredBitmap};
use crate::{bitpack::packed_len, block::BLOCK, kernel::scalar, kernel::scalar::bitmap::load_word};
use core::{arch::x86_64::*, mem::MaybeUninit};

/// The lowest bit of each of eight bytes.
const LOWEST_BIT_OF_EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Implements [`crate::Kernel::find_exceptions`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn find_exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
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

/// Implements [`crate::Kernel::make_sparse_bitmap`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn make_sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap {
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

/// Returns a mask of the bytes of a bitmap that are stored, and the number of bytes before them. A sparse
/// bitmap begins with `mask`. Any other bitmap has all bytes stored, without a mask. There is no
/// branch, because the CPU cannot predict the form of a block.
#[inline]
#[target_feature(enable = "bmi2")]
pub(crate) fn bitmap_mask(mask: [u8; 4], bitmap_len: usize, sparse: bool) -> (u32, usize) {
    let mask_len = bitmap_len.div_ceil(8) * usize::from(sparse);
    let all = _bzhi_u32(u32::MAX, bitmap_len as u32) & u32::from(sparse).wrapping_sub(1);
    (_bzhi_u32(u32::from_le_bytes(mask), 8 * mask_len as u32) | all, mask_len)
}

/// Implements [`crate::Kernel::read_exception_bitmap`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
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
    // Deposits up to eight stored bytes at a time by eight bits of the mask. Any bytes may follow the stored
    // ones, so that whole words can be loaded.
    let (mut used, mut count) = (mask_len, 0);
    for (bitmap, mask) in bitmap.as_chunks_mut().0.iter_mut().zip(mask.to_le_bytes()) {
        let bits = _pdep_u64(load_word(&bytes[used..]), byte_mask(mask));
        used += mask.count_ones() as usize;
        count += bits.count_ones() as usize;
        *bitmap = bits.to_le_bytes();
    }
    Some(StoredBitmap { count, len })
}

/// Scratch memory for the high parts of the exceptions of a block.
pub(super) struct HighPartBuffer {
    /// High parts of more than 8 bits: unpacked, at the positions of their values; zero elsewhere.
    words: [MaybeUninit<Vector>; BLOCK / LANES],
    /// High parts of up to 8 bits: a copy of the packed ones, if fewer than eight bytes follow them.
    padded: [MaybeUninit<u8>; BLOCK + LANES],
    is_padded: bool,
}

impl HighPartBuffer {
    /// An uninitialised buffer.
    #[inline]
    pub(super) fn new() -> HighPartBuffer {
        HighPartBuffer {
            words: [MaybeUninit::uninit(); _],
            padded: [MaybeUninit::uninit(); _],
            is_padded: false,
        }
    }

    /// Prepares the high parts, of size class `SIZE`, for [`HighPartCursor`].
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn prepare<const SIZE: HighPartSize>(&mut self, patch: &Patch) {
        match SIZE {
            SIZE_BYTES => {
                let count = scalar::bitmap::count_ones(patch.bitmap);
                if patch.highs.len() < packed_len(count, patch.width) + LANES {
                    self.copy_padded(patch);
                }
            }
            SIZE_WORDS => self.fill_words(patch),
            _ => {}
        }
    }

    /// Copies the packed high parts, so that eight bytes can be read from each of them.
    #[cold]
    #[inline(never)]
    fn copy_padded(&mut self, patch: &Patch) {
        let len = patch.highs.len().min(BLOCK);
        self.padded[..len].write_copy_of_slice(&patch.highs[..len]);
        self.padded[len..].fill(MaybeUninit::new(0));
        self.is_padded = true;
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

/// A cursor over the high parts of the exceptions, eight values at a time.
pub(super) struct HighPartCursor<'a> {
    bitmap: &'a Bitmap,
    buffer: &'a HighPartBuffer,
    /// High parts of up to 8 bits: the packed bits, followed by at least eight bytes.
    packed: *const u8,
    /// High parts of up to 8 bits: in each byte as many low bits as a high part has.
    mask: u64,
    /// High parts of up to 8 bits: number of bits read so far.
    used: usize,
}

impl<'a> HighPartCursor<'a> {
    #[inline]
    pub(super) fn new(patch: Option<Patch<'a>>, buffer: &'a HighPartBuffer) -> HighPartCursor<'a> {
        let Patch { bitmap, highs, width } = patch.unwrap_or(NO_PATCH);
        let packed = if buffer.is_padded { buffer.padded.as_ptr().cast() } else { highs.as_ptr() };
        let mask = LOWEST_BIT_OF_EACH_BYTE.wrapping_mul((1 << width) - 1);
        HighPartCursor { bitmap, buffer, packed, mask, used: 0 }
    }

    /// The high parts of the next eight values, zero where a value is no exception.
    ///
    /// # Safety
    /// Must be called at most once for each of the up to 32 groups, in order. The buffer must have been
    /// filled for this size.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn next<const SIZE: HighPartSize>(&mut self, group: usize) -> Vector {
        if SIZE == SIZE_WORDS {
            // SAFETY: There are words for all groups.
            return unsafe { self.buffer.words[group].assume_init() };
        }
        // SAFETY: As for this function.
        let bytes = unsafe { self.next_bytes(group) };
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64))
    }

    /// The high parts of the next eight values as bytes, if high parts have up to 8 bits.
    ///
    /// # Safety
    /// As for [`HighPartCursor::next`].
    #[inline]
    #[target_feature(enable = "bmi2,popcnt")]
    pub(super) unsafe fn next_bytes(&mut self, group: usize) -> u64 {
        let next = self.packed.wrapping_add(self.used / 8);
        // SAFETY: The high parts of all set bits are followed by eight bytes.
        let bits = u64::from_le(unsafe { next.cast::<u64>().read_unaligned() });
        // Eight high parts of 8 bits start with a byte, and those of up to 7 bits take at most 63 bits from
        // the first bit of a byte on.
        let bits = bits >> (self.used % 8);
        // From the bit stream directly to the bytes of the exceptions: an array of unpacked high parts would
        // be read at other offsets than it is written, and such a read waits for the writes.
        let mask = byte_mask(self.bitmap[group]) & self.mask;
        let bytes = _pdep_u64(bits, mask);
        self.used += mask.count_ones() as usize;
        bytes
    }
}

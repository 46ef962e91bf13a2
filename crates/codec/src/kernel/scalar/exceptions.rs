//! Exceptions of PFor: splitting off their high parts, reading their positions, and adding the high parts
//! back.

use super::bits::unpack_horizontal;
use crate::kernel::table::{Bitmap, Exceptions, Patch, SparseBitmap, StoredBitmap};
use crate::{bitpack::packed_len, block::BLOCK};

/// Implements [`crate::Kernel::find_exceptions`].
#[inline(always)]
pub(crate) fn find_exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    found.bitmap = [0; _];
    found.count = 0;
    for (group, byte) in values.chunks(8).zip(&mut found.bitmap) {
        for (position, value) in group.iter().enumerate() {
            let high = value >> width;
            // Always written, kept if it is an exception: no branch depends on the data.
            found.highs[found.count].write(high);
            found.count += usize::from(high != 0);
            *byte |= u8::from(high != 0) << position;
        }
    }
}

/// Implements [`crate::Kernel::make_sparse_bitmap`].
pub(crate) fn make_sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap {
    let mut sparse = SparseBitmap { mask: 0, bytes: [0; _] };
    let mut count = 0;
    for (k, byte) in bitmap.iter().enumerate() {
        sparse.mask |= u32::from(*byte != 0) << k;
        // Always written, overwritten if it is zero.
        sparse.bytes[count] = *byte;
        count += usize::from(*byte != 0);
    }
    sparse
}

/// Implements [`crate::Kernel::read_exception_bitmap`].
pub(crate) fn read_exception_bitmap(
    bytes: &[u8],
    bitmap_len: usize,
    sparse: bool,
    bitmap: &mut Bitmap,
) -> Option<StoredBitmap> {
    *bitmap = [0; _];
    let mut len = bitmap_len;
    if sparse {
        let (mask, stored) = bytes.split_at_checked(bitmap_len.div_ceil(8))?;
        // The stored bytes and zeros; only the low six bits of an index are used, so none is checked.
        let mut window = [0; 64];
        let most = stored.len().min(bitmap.len());
        window[..most].copy_from_slice(&stored[..most]);
        let mut used = 0;
        for (bytes, mask) in bitmap.chunks_mut(8).zip(mask) {
            for (k, byte) in bytes.iter_mut().enumerate() {
                let bit = mask >> k & 1;
                *byte = window[used % 64] * bit;
                used += usize::from(bit);
            }
        }
        if used > stored.len() {
            return None;
        }
        len = mask.len() + used;
    } else {
        bitmap[..len].copy_from_slice(bytes.get(..len)?);
    }
    Some(StoredBitmap { count: super::bitmap::count_ones(bitmap), len })
}

/// Adds the high parts of the exceptions to values that have only their low `shift` bits.
pub(super) fn add_exceptions(patch: &Patch, shift: u32, out: &mut [u32]) {
    let mut highs = [0; BLOCK];
    let highs = &mut highs[..super::bitmap::count_ones(patch.bitmap)];
    unpack_horizontal(&patch.highs[..packed_len(highs.len(), patch.width)], patch.width, highs);
    let mut highs = highs.iter();
    // 64 positions at a time: the end of the loop is mispredicted once per word instead of once per byte.
    for (values, bytes) in out.chunks_mut(64).zip(patch.bitmap.as_chunks().0) {
        let mut bits = u64::from_le_bytes(*bytes);
        while bits != 0
            && let Some(value) = values.get_mut(bits.trailing_zeros() as usize)
            && let Some(high) = highs.next()
        {
            *value |= high << shift;
            bits &= bits - 1;
        }
    }
}

//! Taking the high parts of exceptions off, finding where they belong, and putting them back.

use super::bits::unpack_horizontal;
use crate::BLOCK;
use crate::bitpack::packed_len;
use crate::kernel::{Bitmap, Exceptions, Patch, Places, Sparse};

/// [`crate::Kernel::exceptions`].
#[inline(always)]
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    found.bitmap = [0; _];
    found.count = 0;
    for (places, byte) in values.chunks(8).zip(&mut found.bitmap) {
        for (place, value) in places.iter().enumerate() {
            let high = value >> width;
            // Written in any case, kept if it is one: no branch on the data.
            found.highs[found.count].write(high);
            found.count += usize::from(high != 0);
            *byte |= u8::from(high != 0) << place;
        }
    }
}

/// [`crate::Kernel::sparse`].
pub(in crate::kernel) fn sparse(bitmap: &Bitmap) -> Sparse {
    let mut sparse = Sparse { mask: 0, bytes: [0; _] };
    let mut count = 0;
    for (k, byte) in bitmap.iter().enumerate() {
        sparse.mask |= u32::from(*byte != 0) << k;
        // Written in any case, and written over if it is zero.
        sparse.bytes[count] = *byte;
        count += usize::from(*byte != 0);
    }
    sparse
}

/// [`crate::Kernel::places`].
pub(in crate::kernel) fn places(bytes: &[u8], bitmap_len: usize, sparse: bool) -> Option<Places> {
    let mut bitmap = [0; BLOCK / 8];
    let mut len = bitmap_len;
    if sparse {
        let (mask, stored) = bytes.split_at_checked(bitmap_len.div_ceil(8))?;
        len = mask.len();
        for (k, byte) in bitmap.iter_mut().enumerate().take(8 * mask.len()) {
            if mask[k / 8] >> (k % 8) & 1 != 0 {
                *byte = *stored.get(len - mask.len())?;
                len += 1;
            }
        }
    } else {
        bitmap[..len].copy_from_slice(bytes.get(..len)?);
    }
    Some(Places { count: super::bitmap::ones(&bitmap), bitmap, len })
}

/// Ors the high parts, above `shift` bits, into the values.
pub(super) fn patch(patch: &Patch, shift: u32, out: &mut [u32]) {
    let mut highs = [0; BLOCK];
    let highs = &mut highs[..super::bitmap::ones(patch.bitmap)];
    unpack_horizontal(&patch.highs[..packed_len(highs.len(), patch.width)], patch.width, highs);
    let mut highs = highs.iter();
    // 64 places at a time: the loop's end is mispredicted once a word instead of once a byte.
    for (places, bytes) in out.chunks_mut(64).zip(patch.bitmap.as_chunks().0) {
        let mut bits = u64::from_le_bytes(*bytes);
        while bits != 0
            && let Some(place) = places.get_mut(bits.trailing_zeros() as usize)
            && let Some(high) = highs.next()
        {
            *place |= high << shift;
            bits &= bits - 1;
        }
    }
}

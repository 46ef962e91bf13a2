//! Taking the high parts of exceptions off and putting them back.

use super::bits::unpack_horizontal;
use crate::kernel::Exceptions;

/// [`crate::Kernel::exceptions`].
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    found.bitmap = [0; _];
    found.count = 0;
    for (places, byte) in values.chunks(8).zip(&mut found.bitmap) {
        for (place, value) in places.iter().enumerate() {
            let high = value >> width;
            // Written in any case, kept if it is one: no branch on the data.
            found.highs[found.count] = high;
            found.count += usize::from(high != 0);
            *byte |= u8::from(high != 0) << place;
        }
    }
}

/// [`crate::Kernel::highs`].
pub(in crate::kernel) fn highs(bytes: &[u8], width: u32, shift: u32, found: &mut Exceptions) -> bool {
    let highs = &mut found.highs[..found.count];
    unpack_horizontal(bytes, width, highs);
    let mut good = true;
    for high in highs {
        good &= *high != 0;
        *high = high.checked_shl(shift).unwrap_or(0);
    }
    good
}

/// Ors the high parts, which are shifted to where they belong, into the values.
pub(super) fn patch(exceptions: &Exceptions, out: &mut [u32]) {
    let mut highs = exceptions.highs.iter();
    // 64 places at a time: the loop's end is mispredicted once a word instead of once a byte.
    for (places, bytes) in out.chunks_mut(64).zip(exceptions.bitmap.as_chunks().0) {
        let mut bits = u64::from_le_bytes(*bytes);
        while bits != 0
            && let Some(place) = places.get_mut(bits.trailing_zeros() as usize)
            && let Some(high) = highs.next()
        {
            *place |= high;
            bits &= bits - 1;
        }
    }
}

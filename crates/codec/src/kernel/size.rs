//! Size classes of the high parts of exceptions, which are constant parameters of the vector loops.

use super::table::{Bitmap, Patch};

/// The size class of the high parts of the exceptions of a block: [`SIZE_NONE`], [`SIZE_BYTES`] or
/// [`SIZE_WORDS`]. An integer, not an enum, because it is a const generic parameter.
pub(super) type HighPartSize = u8;
/// The block has no exceptions.
pub(super) const SIZE_NONE: HighPartSize = 0;
/// High parts have up to 8 bits.
pub(super) const SIZE_BYTES: HighPartSize = 1;
/// High parts have up to 32 bits.
pub(super) const SIZE_WORDS: HighPartSize = 2;

/// The size class of the high parts of a block, which has exceptions if there is a patch.
#[inline]
pub(super) fn size_of_high_parts(patch: &Option<Patch>) -> HighPartSize {
    patch.as_ref().map_or(SIZE_NONE, |patch| if patch.width <= 8 { SIZE_BYTES } else { SIZE_WORDS })
}

/// A patch without exceptions.
pub(super) const NO_PATCH: Patch<'static> = Patch { bitmap: &NO_EXCEPTIONS, highs: &[], width: 1 };
static NO_EXCEPTIONS: Bitmap = [0; 32];

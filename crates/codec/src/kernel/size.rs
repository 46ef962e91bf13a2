//! The width class of high parts, a constant parameter of the vector loops.

use super::table::{Bitmap, Patch};

/// The width class of the high bits of the exceptions of a block: [`NONE`], [`BYTES`] or [`WORDS`]. An
/// integer, not an enum, because it is a const generic parameter.
pub(super) type HighSize = u8;
/// The block has no exceptions.
pub(super) const NONE: HighSize = 0;
/// High parts have up to 8 bits.
pub(super) const BYTES: HighSize = 1;
/// High parts have up to 32 bits.
pub(super) const WORDS: HighSize = 2;

/// The width class of the high parts.
#[inline]
pub(super) fn of(patch: &Option<Patch>) -> HighSize {
    patch.as_ref().map_or(NONE, |patch| if patch.width <= 8 { BYTES } else { WORDS })
}

/// A patch without exceptions.
pub(super) const NO_PATCH: Patch<'static> = Patch { bitmap: &NO_EXCEPTIONS, highs: &[], width: 1 };
static NO_EXCEPTIONS: Bitmap = [0; 32];

//! Decoding of `PFor` blocks.

use super::{exceptions, unpack};
use crate::kernel::table::{Bitmap, Packed, PforLoops, StoredBitmap};
use crate::{bitpack::Layout, error::Result, pfor::read};

/// Implements [`crate::Kernel::pfor_decode`].
pub(crate) fn pfor_decode(
    bytes: &[u8],
    layout: Layout,
    after: Option<u32>,
    out: &mut [u32],
) -> Result<usize> {
    read::decode(InlinedLoops, bytes, layout, after, out)
}

#[derive(Clone, Copy)]
struct InlinedLoops;

impl PforLoops for InlinedLoops {
    #[inline(always)]
    fn read_exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap> {
        exceptions::read_exception_bitmap(bytes, bitmap_len, sparse, bitmap)
    }

    #[inline(always)]
    fn unpack(self, packed: &Packed, out: &mut [u32]) {
        packed.assert_consistent(out.len());
        unpack::unpack(packed, out);
    }
}

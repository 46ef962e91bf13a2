//! The loops that PFor decodes by.

use super::Kernel;
use super::table::{Bitmap, Packed, StoredBitmap};

/// The loops that PFor decodes by. A kernel that implements them for a type of its own decodes a block by a
/// single function, without calls through its table.
pub(crate) trait PforLoops: Copy {
    /// See [`Kernel::exception_bitmap`].
    fn exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap>;

    /// See [`Kernel::unpack`].
    fn unpack(self, packed: &Packed, out: &mut [u32]);
}

impl PforLoops for Kernel {
    fn exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap> {
        Kernel::exception_bitmap(self, bytes, bitmap_len, sparse, bitmap)
    }

    fn unpack(self, packed: &Packed, out: &mut [u32]) {
        Kernel::unpack(self, packed, out);
    }
}

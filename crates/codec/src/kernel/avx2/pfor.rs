//! Decoding of `PFor` blocks.

use super::{exceptions::read_exception_bitmap, narrow::unpack};
use crate::kernel::table::{Bitmap, Packed, PforLoops, StoredBitmap};
use crate::{bitpack::Layout, error::Result, pfor::read};

pfor_decode!("avx2,bmi1,bmi2,lzcnt,popcnt");

//! Decoding of `PFor` blocks.

use super::{exceptions::read_exception_bitmap, narrow::unpack};
use crate::kernel::table::{Bitmap, Packed, PforLoops, StoredBitmap};
use crate::{bitpack::Layout, error::Result, pfor::read};

pfor_decode!("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt");

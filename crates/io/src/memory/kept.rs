//! The memory of a payload that is kept, and regions that are given out piece by piece.

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::slice;
use std::sync::Arc;

use super::mapping::Mapping;
use super::region::Region;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of a line of the processor's caches.
const LINE: usize = 64;

/// Pieces of an arena begin at multiples of this.
const ALIGNMENT: usize = LINE;

/// Bytes that stay where they are and do not change. A clone is the same bytes.
#[derive(Clone)]
pub struct Kept {
    /// Keeps the bytes: a mapping of the process's own, the heap, or a region of which nobody else was given them.
    _owner: Arc<dyn Send + Sync>,
    start: *const u8,
    len: usize,
}

// SAFETY: the bytes belong to the owner, which any thread may hold, and are only read.
unsafe impl Send for Kept {}
// SAFETY: as for `Send`.
unsafe impl Sync for Kept {}

impl Kept {
    /// Memory of the process's own for so many bytes, on huge pages where the system has some to give: a look at a random
    /// place then costs one miss of the cache and not another one for where the page is. `fill` writes them.
    pub(crate) fn own(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>, name: &str) -> Result<Kept> {
        let failed = |error: io::Error| Error::from_os("keep in memory", name, &error);
        let mut mapping = Mapping::anonymous(len, 0).map_err(failed)?;
        mapping.prefer_huge_pages();
        fill(mapping.bytes_mut())?;
        let start = mapping.start().cast_const();
        Ok(Kept { _owner: Arc::new(mapping), start, len })
    }

    /// Begins to load some bytes into the caches of the processor, so that reading them soon after does not
    /// wait for memory. Those that are not there are left out.
    #[inline]
    pub fn load_lines(&self, range: Range<usize>) {
        for at in range.step_by(LINE) {
            if let Some(byte) = self.get(at) {
                load_line(byte);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn load_line(byte: &u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has the instruction, and it reads nothing that the program sees.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn load_line(_byte: &u8) {}

impl From<Vec<u8>> for Kept {
    fn from(bytes: Vec<u8>) -> Kept {
        let bytes: Arc<[u8]> = bytes.into();
        Kept { start: bytes.as_ptr(), len: bytes.len(), _owner: Arc::new(bytes) }
    }
}

impl Deref for Kept {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps so many initialised bytes there, for at least as long as `self`, and nobody writes them:
        // an own mapping and a piece of an arena are written only before they become a `Kept`.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes that are kept", self.len)
    }
}

/// A region whose bytes are given out from the beginning on, once.
#[derive(Debug)]
pub struct Arena {
    region: Arc<Region>,
    /// Bytes that were given out.
    used: usize,
}

impl Arena {
    /// Nothing of `region` is given out.
    pub fn new(region: Region) -> Arena {
        Arena { region: Arc::new(region), used: 0 }
    }

    /// How many bytes of a region a piece of `len` bytes takes.
    pub fn piece(len: u64) -> u64 {
        len.next_multiple_of(ALIGNMENT as u64)
    }

    /// The next `len` bytes, which `fill` writes.
    pub(crate) fn take(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
        name: &str,
    ) -> Result<Kept> {
        let (start, left) = (self.used, self.region.len() - self.used);
        if len > left {
            let why = format!("it needs {len} bytes and region {} has {left} left", self.region.kind());
            return Err(Error::new(ErrorKind::NoSpace, "keep in memory", name, why));
        }
        self.used += len.next_multiple_of(ALIGNMENT).min(left);
        let start = self.region.start().wrapping_add(start);
        // SAFETY: within the region, initialised, and given to nobody else: `used` has passed them.
        let bytes = unsafe { slice::from_raw_parts_mut(start, len) };
        fill(bytes)?;
        Ok(Kept { _owner: self.region.clone(), start: start.cast_const(), len })
    }
}

#[cfg(test)]
mod tests {
    use super::super::RegionKind;
    use super::*;

    fn fill(with: u8) -> impl Fn(&mut [u8]) -> Result<()> {
        move |bytes| {
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(with);
            Ok(())
        }
    }

    #[test]
    fn own_memory_is_zero_and_keeps_what_is_written() {
        for len in [0, 1, 4096, 5 << 20] {
            let kept = Kept::own(len, fill(7), "a").unwrap();
            assert!(kept.len() == len && kept.clone().iter().all(|byte| *byte == 7));
        }
        assert_eq!(&*Kept::from(vec![1, 2]), [1, 2]);
    }

    #[test]
    fn an_arena_gives_no_byte_twice() {
        let mut arena = Arena::new(Region::new(&RegionKind::Dram, 8192).unwrap());
        let lens = [0, 1, 64, 65, 4000, 1, 3000];
        let pieces: Vec<Kept> =
            lens.iter().zip(1..).map(|(len, with)| arena.take(*len, fill(with), "a").unwrap()).collect();
        for ((piece, len), with) in pieces.iter().zip(lens).zip(1..) {
            assert!(piece.len() == len && piece.iter().all(|byte| *byte == with));
        }
        let error = arena.take(1000, fill(9), "a").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot keep in memory a: it needs 1000 bytes and region dram has 832 left"
        );
        drop(arena);
        assert!(pieces[4].iter().all(|byte| *byte == 5));
    }
}

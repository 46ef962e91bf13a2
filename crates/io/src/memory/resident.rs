//! Resident bytes: long-lived memory that is read only. They can be allocated from a region by an arena.

use super::{mapping::Mapping, region::Region};
use crate::{Error, ErrorKind, Result};
use std::ops::{Deref, Range};
use std::{fmt, io, slice, sync::Arc};

/// Bytes of a CPU cache line.
const CACHE_LINE_BYTES: usize = 64;

/// Alignment in bytes of the allocations of an arena.
const ALIGNMENT: usize = CACHE_LINE_BYTES;

/// Immutable bytes at a fixed address. A clone shares the bytes.
#[derive(Clone)]
pub struct ResidentBytes {
    /// Owns the bytes: an anonymous mapping, a heap allocation, or a region of an [`Arena`].
    _owner: Arc<dyn Send + Sync>,
    start: *const u8,
    len: usize,
}

// SAFETY: the bytes belong to the owner, which is `Send`, and are only read.
unsafe impl Send for ResidentBytes {}
// SAFETY: as for `Send`.
unsafe impl Sync for ResidentBytes {}

impl ResidentBytes {
    /// `len` bytes of anonymous memory, filled by `fill`. They are on transparent huge pages where available,
    /// so that a random access misses the CPU cache but not also the TLB. `name` is for messages.
    pub(crate) fn anonymous(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
        name: &str,
    ) -> Result<ResidentBytes> {
        let failed = |error: io::Error| Error::from_os("keep in memory", name, &error);
        let mut mapping = Mapping::anonymous(len, 0).map_err(failed)?;
        mapping.set_huge_pages(true);
        fill(mapping.bytes_mut())?;
        let start = mapping.start().cast_const();
        Ok(ResidentBytes { _owner: Arc::new(mapping), start, len })
    }

    /// `len` bytes, zero at first and then filled by `fill`: in `arena` if there is one, else on the heap.
    /// `name` is for messages.
    ///
    /// # Errors
    /// Those of `fill`; [`ErrorKind::NoSpace`] when the arena has too little memory left.
    pub fn allocate<E: From<Error>>(
        arena: Option<&mut Arena>,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> std::result::Result<(), E>,
        name: &str,
    ) -> std::result::Result<ResidentBytes, E> {
        if let Some(arena) = arena {
            return arena.allocate(len, fill, name);
        }
        let mut bytes = vec![0; len];
        fill(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Prefetches the CPU cache lines of `range`, so that reads soon after do not wait for memory. The part
    /// of the range behind the last byte is ignored.
    #[inline]
    pub fn load_lines(&self, range: Range<usize>) {
        for at in range.step_by(CACHE_LINE_BYTES) {
            if let Some(byte) = self.get(at) {
                prefetch_line(byte);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line(byte: &u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 CPU has the instruction, and it does not change the state of the program.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch_line(_byte: &u8) {}

impl From<Vec<u8>> for ResidentBytes {
    fn from(bytes: Vec<u8>) -> ResidentBytes {
        ResidentBytes { start: bytes.as_ptr(), len: bytes.len(), _owner: Arc::new(bytes) }
    }
}

impl Deref for ResidentBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps `len` initialized bytes there as long as `self` lives, and they are not
        // written: a mapping and an allocation of an arena are written only before they become
        // `ResidentBytes`.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl fmt::Debug for ResidentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} resident bytes", self.len)
    }
}

/// A bump allocator over a region: it never frees or reuses memory.
#[derive(Debug)]
pub struct Arena {
    region: Arc<Region>,
    /// Bytes allocated so far.
    used: usize,
}

impl Arena {
    /// An arena over the whole of `region`.
    pub fn new(region: Region) -> Arena {
        Arena { region: Arc::new(region), used: 0 }
    }

    /// Bytes of the region that an allocation of `len` bytes takes.
    pub fn allocation_bytes(len: u64) -> u64 {
        len.next_multiple_of(ALIGNMENT as u64)
    }

    /// Allocates `len` bytes, which `fill` writes. `name` is for messages.
    pub(crate) fn allocate<E: From<Error>>(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> std::result::Result<(), E>,
        name: &str,
    ) -> std::result::Result<ResidentBytes, E> {
        let (start, left) = (self.used, self.region.len() - self.used);
        if len > left {
            let why = format!("it needs {len} bytes and region {} has {left} left", self.region.kind());
            return Err(Error::new(ErrorKind::NoSpace, "keep in memory", name, why).into());
        }
        self.used += len.next_multiple_of(ALIGNMENT).min(left);
        let start = self.region.start().wrapping_add(start);
        // SAFETY: within the region, initialized, and allocated once: `used` is beyond them.
        let bytes = unsafe { slice::from_raw_parts_mut(start, len) };
        fill(bytes)?;
        Ok(ResidentBytes { _owner: self.region.clone(), start: start.cast_const(), len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RegionKind;

    /// A function that fills zeroed bytes with a value.
    fn fill_with(with: u8) -> impl Fn(&mut [u8]) -> Result<()> {
        move |bytes| {
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(with);
            Ok(())
        }
    }

    #[test]
    fn anonymous_memory_is_zeroed_and_keeps_its_bytes() {
        for len in [0, 1, 4096, 5 << 20] {
            let bytes = ResidentBytes::anonymous(len, fill_with(7), "a").unwrap();
            assert!(bytes.len() == len && bytes.clone().iter().all(|byte| *byte == 7));
        }
        assert_eq!(&*ResidentBytes::from(vec![1, 2]), [1, 2]);
    }

    #[test]
    fn allocations_of_an_arena_do_not_overlap() {
        let mut arena = Arena::new(Region::new(&RegionKind::Dram, 8192).unwrap());
        let lens = [0, 1, 64, 65, 4000, 1, 3000];
        let pieces: Vec<ResidentBytes> = lens
            .iter()
            .zip(1..)
            .map(|(len, with)| arena.allocate(*len, fill_with(with), "a").unwrap())
            .collect();
        for ((piece, len), with) in pieces.iter().zip(lens).zip(1..) {
            assert!(piece.len() == len && piece.iter().all(|byte| *byte == with));
        }
        let error = arena.allocate(1000, fill_with(9), "a").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot keep in memory a: it needs 1000 bytes and region dram has 832 left"
        );
        drop(arena);
        assert!(pieces[4].iter().all(|byte| *byte == 5));
    }
}

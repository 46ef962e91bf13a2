//! A block of memory of a given kind and size.

use super::page::{HUGE_PAGE_LEN, PAGE_LEN};
use super::{dax, dram, file, hugetlb, mapping::Mapping, numa};
use crate::{Error, ErrorKind, Result};
use std::{fmt, io, path::PathBuf, str::FromStr};

/// Memory of one kind, all of it allocated on creation.
pub struct Region {
    kind: RegionKind,
    mapping: Mapping,
    is_elastic: bool,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.len(), self.kind)
    }
}

impl Region {
    /// `bytes` bytes of memory of `kind`, rounded up to its granularity: 2 MiB for `hugetlb` and `dax`, else
    /// 4 KiB.
    ///
    /// # Errors
    /// [`ErrorKind::NoSpace`] when too little of it is available, [`ErrorKind::Exists`] when the path is
    /// taken, [`ErrorKind::Unsupported`] when the system has no such memory.
    pub fn new(kind: &RegionKind, bytes: u64) -> Result<Region> {
        Region::map(kind, bytes, false)
    }

    /// Ordinary memory of which single pages can be given back to the system for a time
    /// ([`Cells::discard`](super::Cells::discard)), so it is on pages of 4 KiB.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn elastic(bytes: u64) -> Result<Region> {
        Region::map(&RegionKind::Dram, bytes, true)
    }

    fn map(kind: &RegionKind, bytes: u64, is_elastic: bool) -> Result<Region> {
        let failed = |error: io::Error| Error::from_os("make", format!("region {kind}"), &error);
        let granularity = kind.granularity() as u64;
        let len = bytes.checked_next_multiple_of(granularity).and_then(|len| usize::try_from(len).ok());
        let len = len.filter(|len| *len > 0 && *len <= isize::MAX as usize);
        let len =
            len.ok_or_else(|| region_error("make", kind, &format!("{bytes} bytes are no size for it")))?;
        let mapping = kind.map(len, is_elastic).map_err(failed)?;
        Ok(Region { kind: kind.clone(), mapping, is_elastic })
    }

    /// Whether the region was made by [`Region::elastic`].
    pub fn is_elastic(&self) -> bool {
        self.is_elastic
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The kind of memory.
    pub fn kind(&self) -> &RegionKind {
        &self.kind
    }

    /// The length in bytes, a multiple of the granularity.
    #[expect(clippy::len_without_is_empty, reason = "no region is empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The address of the first byte. The bytes are initialized and stay mapped as long as the region lives.
    pub(crate) fn start(&self) -> *mut u8 {
        self.mapping.start()
    }
}

/// A kind of memory, as users write it: `dram`, `hugetlb`, `numa:0`, `dax:PATH` or `file:PATH` (on a tmpfs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegionKind {
    /// Ordinary memory.
    Dram,
    /// Preallocated huge pages of 2 MiB.
    Hugetlb,
    /// Memory of the NUMA node with this number.
    Numa(u32),
    /// Persistent memory: a new file at this path, on a file system mounted with `dax`.
    Dax(PathBuf),
    /// A new file at this path, on an in-memory file system: a tmpfs, such as `/dev/shm`, a ramfs or a
    /// hugetlbfs.
    File(PathBuf),
}

impl RegionKind {
    /// The sizes of regions are multiples of this number of bytes.
    fn granularity(&self) -> usize {
        match self {
            RegionKind::Hugetlb | RegionKind::Dax(_) => HUGE_PAGE_LEN,
            RegionKind::Dram | RegionKind::Numa(_) | RegionKind::File(_) => PAGE_LEN,
        }
    }

    fn map(&self, len: usize, is_elastic: bool) -> io::Result<Mapping> {
        match self {
            RegionKind::Dram => dram::map_dram(len, !is_elastic),
            RegionKind::Hugetlb => hugetlb::map_huge_pages(len),
            RegionKind::Numa(node) => numa::map_node_memory(*node, len),
            RegionKind::Dax(path) => dax::map_persistent_memory(path, len),
            RegionKind::File(path) => file::map_memory_file(path, len),
        }
    }
}

impl fmt::Display for RegionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionKind::Dram => f.write_str("dram"),
            RegionKind::Hugetlb => f.write_str("hugetlb"),
            RegionKind::Numa(node) => write!(f, "numa:{node}"),
            RegionKind::Dax(path) => write!(f, "dax:{}", path.display()),
            RegionKind::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl FromStr for RegionKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<RegionKind> {
        let path = |path: &str| (!path.is_empty()).then(|| PathBuf::from(path));
        let kind = match text.split_once(':') {
            None if text == "dram" => Some(RegionKind::Dram),
            None if text == "hugetlb" => Some(RegionKind::Hugetlb),
            Some(("numa", node)) => node.parse().ok().map(RegionKind::Numa),
            Some(("dax", rest)) => path(rest).map(RegionKind::Dax),
            Some(("file", rest)) => path(rest).map(RegionKind::File),
            _ => None,
        };
        kind.ok_or_else(|| {
            region_error(
                "use",
                text,
                "a region is dram, hugetlb, numa:NODE, dax:PATH or file:PATH (on a tmpfs)",
            )
        })
    }
}

fn region_error(op: &'static str, region: impl fmt::Display, why: &str) -> Error {
    Error::new(ErrorKind::Denied, op, format!("region {region}"), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_are_parsed_and_displayed() {
        for text in ["dram", "hugetlb", "numa:0", "numa:12", "dax:/mnt/pmem/cache", "file:/dev/shm/a:b"] {
            assert_eq!(text.parse::<RegionKind>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_kinds_are_rejected_in_one_line() {
        for text in
            ["", "ram", "DRAM", "dram:", "numa", "numa:", "numa:x", "numa:-1", "dax", "dax:", "file:", ":"]
        {
            let error = text.parse::<RegionKind>().unwrap_err();
            let why = "a region is dram, hugetlb, numa:NODE, dax:PATH or file:PATH (on a tmpfs)";
            assert_eq!(error.to_string(), format!("cannot use region {text}: {why}"));
        }
    }
}

//! Options of a [`ListExecutor`](super::ListExecutor): read mode, cache, threads, memory tier of the
//! metadata.

use crate::cache::Lookahead;
use std::{fmt, str::FromStr};
use tierdex::{Error, Index, Result, internal::engine::MetaTier, internal::engine::MetadataLocation};
use tierdex_io::{ReadKind, ReadOptions, RegionKind, Size};

/// How postings are read (thesis, chapter 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Queries read through the page cache of the operating system.
    Base,
    /// As [`Mode::Base`]; a reader thread prefetches posting lists into the page cache.
    BasePrefetch,
    /// Queries look up their lists in the cache of lists. On a miss they read through the page cache, and a
    /// reader thread loads the list into the cache of lists for later queries.
    Hybrid,
    /// A reader thread prefetches posting lists into the cache of lists, through the page cache. Queries read
    /// from the cache of lists only.
    HybridPrefetch,
}

impl Mode {
    /// All modes, in the order of the thesis.
    pub const ALL: [Mode; 4] = [Mode::Base, Mode::BasePrefetch, Mode::Hybrid, Mode::HybridPrefetch];

    /// Whether the mode has a cache of its own.
    pub fn has_cache(self) -> bool {
        !matches!(self, Mode::Base | Mode::BasePrefetch)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Base => "base",
            Mode::BasePrefetch => "base-prefetch",
            Mode::Hybrid => "hybrid",
            Mode::HybridPrefetch => "hybrid-prefetch",
        })
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mode> {
        let found = Mode::ALL.into_iter().find(|mode| mode.to_string() == text);
        found.ok_or_else(|| {
            let names = "base, base-prefetch, hybrid or hybrid-prefetch";
            Error::Usage(format!("unknown mode `{text}`; expected {names}"))
        })
    }
}

/// How the modes without a cache of their own read files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileReads {
    /// By copying from mapped files.
    Mapped,
    /// By the system call `pread`.
    Pread,
}

/// Options of a [`ListExecutor`](super::ListExecutor).
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// How postings are read.
    pub mode: Mode,
    /// Memory region of the cache of lists. It does not count towards `dram`.
    pub region: RegionKind,
    /// Size of the cache. A relative size is a part of all blocks of document numbers and frequencies.
    pub size: Size,
    /// Bytes of a cell of the cache (a cache segment in thesis 7.2).
    pub list_cell_bytes: usize,
    /// Number of queries ahead for which lists are prefetched. [`Mode::BasePrefetch`] replaces adaptive by
    /// 16 queries.
    pub lookahead: Lookahead,
    /// Number of lookahead samples to keep, the most recent ones. One is taken whenever a query ends.
    pub lookahead_samples: usize,
    /// System call by which lists are read into the cache: io_uring or `pread`.
    pub read_method: ReadKind,
    /// In-flight reads of the reader thread, at most.
    pub read_depth: usize,
    /// How [`Mode::Base`] and [`Mode::BasePrefetch`] read.
    pub file_reads: FileReads,
    /// Whether the system reads ahead in the files of [`Mode::Base`] and [`Mode::BasePrefetch`].
    pub kernel_readahead: bool,
    /// Number of threads that evaluate queries.
    pub threads: usize,
    /// Memory tier of dictionaries, skip data and norms.
    pub meta_tier: MetaTier,
    /// Memory budget in bytes for everything that is not in a region; `None`: unlimited.
    pub dram: Option<u64>,
    /// Maximum number of hits of a query, for the memory report; enforced if `dram` is set.
    pub hits_max: usize,
}

/// Queries that [`Mode::BasePrefetch`] prefetches for (thesis, section 7.2.2).
pub(crate) const QUERIES_AHEAD: u64 = 16;

/// Smallest number of cells of a cache: one for lists and one for streams.
pub(crate) const CACHE_CELLS_MIN: u64 = 2;

impl Default for ListOptions {
    /// [`Mode::HybridPrefetch`], and a cache in DRAM as large as all blocks of document numbers and
    /// frequencies.
    fn default() -> ListOptions {
        ListOptions {
            mode: Mode::HybridPrefetch,
            region: RegionKind::Dram,
            size: Size::BasisPoints(10_000),
            list_cell_bytes: 32 << 10,
            lookahead: Lookahead::Adaptive,
            lookahead_samples: 0,
            read_method: ReadKind::Auto,
            read_depth: 32,
            file_reads: FileReads::Mapped,
            kernel_readahead: true,
            threads: 1,
            meta_tier: MetaTier::Dram,
            dram: None,
            hits_max: 1024,
        }
    }
}

impl ListOptions {
    /// Size of the cache in bytes; 0 in a mode without one. A relative size is at least
    /// [`CACHE_CELLS_MIN`] cells.
    pub(crate) fn cache_bytes(&self, index: &Index) -> u64 {
        let bytes = self.size.of(index.postings_bytes());
        match self.size {
            _ if !self.mode.has_cache() => 0,
            Size::BasisPoints(_) => bytes.max(CACHE_CELLS_MIN * self.list_cell_bytes as u64),
            Size::Bytes(_) => bytes,
        }
    }

    /// Whether queries read mapped files.
    pub(crate) fn reads_mapped(&self) -> bool {
        !self.mode.has_cache() && self.file_reads == FileReads::Mapped
    }

    /// Where dictionaries, skip data and norms are.
    pub fn metadata_location(&self) -> MetadataLocation {
        MetadataLocation::of(self.meta_tier.clone(), self.mode.has_cache().then_some(&self.region))
    }

    /// How the reader thread reads files: through the page cache, with `read_depth` reads in flight.
    pub(crate) fn reads(&self) -> ReadOptions {
        ReadOptions { kind: self.read_method, depth: self.read_depth, direct: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_their_values() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        assert!("".parse::<Mode>().is_err());
    }
}

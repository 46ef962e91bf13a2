//! How the queries of a cell read posting lists.

use crate::{Error, cell::as_text, slow_tier::ReadDelay};
use serde::{Deserialize, Deserializer, de::Error as _};
use tierdex::internal::{cache::PolicyKind, engine::MetaTier};
use tierdex::{EngineOptions, io::ReadKind, io::ReadOptions, io::RegionKind, io::Size};
use tierdex_thesis::{FileReads, ListOptions, Lookahead, Mode};

/// How queries are answered. Sizes are texts, as flags write them: `50M`, `5%`.
#[derive(Debug, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reads {
    /// By a searcher on the query threads, over an index that is held in a memory region as a whole.
    Searcher {
        /// The region of the index.
        #[serde(default = "default_region", deserialize_with = "as_text::value")]
        region: RegionKind,
        /// Emulation of a slower memory tier for its lists.
        #[serde(default, rename = "slow-tier", deserialize_with = "as_text::option")]
        slow_tier: Option<ReadDelay>,
    },
    /// By an engine that reads pages into its cache.
    Engine(EngineReads),
    /// By an executor in a mode of the APCache thesis.
    Lists(ListReads),
}

impl Default for Reads {
    fn default() -> Reads {
        Reads::Searcher { region: RegionKind::Dram, slow_tier: None }
    }
}

/// Settings of an engine. What is left out is chosen as for users.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct EngineReads {
    /// Memory budget in bytes.
    #[serde(deserialize_with = "as_text::bytes")]
    pub dram: Option<u64>,
    /// Size of the cache; without it the cache is in DRAM and counts towards the budget.
    #[serde(deserialize_with = "as_text::option")]
    pub size: Option<Size>,
    /// Memory region of a cache whose size is given.
    #[serde(deserialize_with = "as_text::value")]
    pub region: RegionKind,
    /// Memory tier of terms, skip data and lengths.
    #[serde(deserialize_with = "as_text::option")]
    pub meta_tier: Option<MetaTier>,
    /// Eviction policy.
    #[serde(deserialize_with = "as_text::option")]
    pub policy: Option<PolicyKind>,
    /// Interface of reads.
    #[serde(deserialize_with = "as_text::value")]
    pub io: ReadKind,
    /// Reads in flight.
    pub depth: usize,
}

impl Default for EngineReads {
    fn default() -> EngineReads {
        EngineReads {
            dram: None,
            size: None,
            region: RegionKind::Dram,
            meta_tier: None,
            policy: None,
            io: ReadKind::Auto,
            depth: DEFAULT_DEPTH,
        }
    }
}

/// Lookahead samples of a measurement, at most.
const LOOKAHEAD_SAMPLES_MAX: usize = 1 << 20;

/// Reads in flight, by default.
const DEFAULT_DEPTH: usize = 32;

/// Settings of a mode of the thesis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ListReads {
    /// The mode.
    #[serde(deserialize_with = "as_text::value")]
    pub mode: Mode,
    /// Memory budget in bytes.
    #[serde(deserialize_with = "as_text::bytes")]
    pub dram: Option<u64>,
    /// Size of the postings cache.
    #[serde(deserialize_with = "as_text::value")]
    pub size: Size,
    /// Memory region of the postings cache.
    #[serde(deserialize_with = "as_text::value")]
    pub region: RegionKind,
    /// Memory tier of terms, skip data and lengths.
    #[serde(deserialize_with = "as_text::value")]
    pub meta_tier: MetaTier,
    /// Bytes of a cache segment (thesis, section 7.2).
    pub segment: u64,
    /// How far ahead lists are prefetched.
    #[serde(deserialize_with = "parse_lookahead")]
    pub lookahead: Lookahead,
    /// Interface of reads into the cache; modes without a cache read by `pread` if it is that, else mapped
    /// files.
    #[serde(deserialize_with = "as_text::value")]
    pub io: ReadKind,
    /// Whether the system reads ahead in files.
    pub readahead: bool,
    /// Reads in flight.
    pub depth: usize,
    /// Number of lookahead samples that are kept.
    pub samples: usize,
}

impl Default for ListReads {
    fn default() -> ListReads {
        ListReads {
            mode: Mode::HybridPrefetch,
            dram: None,
            size: Size::BasisPoints(10_000),
            region: RegionKind::Dram,
            meta_tier: MetaTier::Dram,
            segment: 32 << 10,
            lookahead: Lookahead::Adaptive,
            io: ReadKind::Auto,
            readahead: true,
            depth: DEFAULT_DEPTH,
            samples: 0,
        }
    }
}

impl Reads {
    /// Rejects values that no measurement can have.
    ///
    /// # Errors
    /// [`Error::Usage`] with the member.
    pub(super) fn check(&self) -> crate::Result<()> {
        let wrong = |what: String| Err(Error::Usage(what));
        match self {
            Reads::Engine(EngineReads { size: None, region, .. }) if *region != RegionKind::Dram => {
                wrong("`region` needs the `size` of the cache".to_string())
            }
            Reads::Lists(ListReads { segment, .. })
                if !segment.is_power_of_two() || !(4 << 10..=1 << 20).contains(segment) =>
            {
                wrong("`segment` must be a power of two from 4096 to 1048576".to_string())
            }
            Reads::Lists(ListReads { samples, .. }) if *samples > LOOKAHEAD_SAMPLES_MAX => {
                wrong(format!("`samples` must be at most {LOOKAHEAD_SAMPLES_MAX}"))
            }
            Reads::Engine(EngineReads { depth, .. }) | Reads::Lists(ListReads { depth, .. })
                if !(1..=ReadOptions::DEPTH_MAX).contains(depth) =>
            {
                wrong(format!("`depth` must be 1 to {}", ReadOptions::DEPTH_MAX))
            }
            _ => Ok(()),
        }
    }
}

impl EngineReads {
    /// The options of the engine.
    pub(crate) fn options(&self, threads: usize, k: usize) -> EngineOptions {
        let mut options = EngineOptions::new()
            .threads(threads)
            .hits_max(k)
            .reads(self.io, self.depth)
            .previews(false)
            .growth(0);
        if let Some(bytes) = self.dram {
            options = options.dram(bytes);
        }
        if let Some(size) = self.size {
            options = options.cache_size(self.region.clone(), size);
        }
        if let Some(tier) = &self.meta_tier {
            options = options.meta_tier(tier.clone());
        }
        match self.policy {
            Some(policy) => options.policy(policy),
            None => options,
        }
    }
}

impl ListReads {
    /// The options of the executor.
    pub(crate) fn options(&self, threads: usize, k: usize) -> ListOptions {
        let file_reads = if self.io == ReadKind::Pread { FileReads::Pread } else { FileReads::Mapped };
        ListOptions {
            mode: self.mode,
            region: self.region.clone(),
            size: self.size,
            list_cell_bytes: self.segment as usize,
            lookahead: self.lookahead,
            lookahead_samples: self.samples,
            read_method: self.io,
            read_depth: self.depth,
            file_reads,
            kernel_readahead: self.readahead,
            threads,
            meta_tier: self.meta_tier.clone(),
            dram: self.dram,
            hits_max: k,
        }
    }
}

/// Largest lookahead in queries: the executor plans no further ahead.
const LOOKAHEAD_QUERIES_MAX: u64 = 1023;

/// Parses a lookahead: `adaptive`, or a number of queries.
fn parse_lookahead<'de, D: Deserializer<'de>>(from: D) -> Result<Lookahead, D::Error> {
    let text = String::deserialize(from)?;
    if text == "adaptive" {
        return Ok(Lookahead::Adaptive);
    }
    let queries = text.parse().ok().filter(|queries| (1..=LOOKAHEAD_QUERIES_MAX).contains(queries));
    let expected = format!("write adaptive, or a number of queries from 1 to {LOOKAHEAD_QUERIES_MAX}");
    queries.map(Lookahead::Queries).ok_or_else(|| D::Error::custom(expected))
}

fn default_region() -> RegionKind {
    RegionKind::Dram
}

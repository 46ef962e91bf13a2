//! Flags that say how postings are brought near.

use crate::failure::{Failure, Outcome};
use clap::{Args, ValueEnum};
use tierdex::cache::{Lookahead, PolicyKind, Stats};
use tierdex::index::{CacheOptions, Executor};
use tierdex::io::{EngineKind, EngineOptions, RegionKind, Size};

#[derive(Args)]
pub struct Near {
    /// Memory for postings, which are fetched ahead of the queries that wait: REGION:SIZE, where REGION is dram, hugetlb,
    /// numa:NODE, dax:PATH or file:PATH, and SIZE is 512M or a part of all postings such as 10%
    #[arg(long, value_name = "REGION:SIZE", value_parser = cache)]
    cache: Option<(RegionKind, Size)>,
    /// With --cache: how lists come into it
    #[arg(long, value_enum, requires = "cache", default_value_t = Mode::Direct)]
    mode: Mode,
    /// With --cache: how files are read: auto, uring, pread or mmap
    #[arg(long, requires = "cache", default_value = "auto")]
    io: EngineKind,
    /// With --cache: reads on their way at a time
    #[arg(long, requires = "cache", default_value_t = 16)]
    depth: usize,
    /// With --cache: which lists give way: lru, s3-fifo, sieve, or window, which spares what waiting queries need
    #[arg(long, requires = "cache", default_value = "lru")]
    policy: PolicyKind,
    /// With --cache: queries that are fetched ahead, or adaptive: as many as the cache has room for
    #[arg(long, requires = "cache", default_value = "adaptive", value_parser = lookahead)]
    lookahead: Lookahead,
    /// With --cache: bytes of a segment of it, 4K to 1M
    #[arg(long, requires = "cache", default_value = "32K", value_parser = crate::size::parse)]
    segment: usize,
    /// With --cache: say what it did
    #[arg(long, requires = "cache")]
    pub stats: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Past the system's page cache, straight into place.
    Direct,
    /// Through the system's page cache.
    HybridPrefetch,
}

impl Near {
    /// What the flags ask for; none without --cache.
    pub fn options(&self) -> Outcome<Option<CacheOptions>> {
        let Some((region, size)) = &self.cache else { return Ok(None) };
        if !self.segment.is_power_of_two() || !(4 << 10..=1 << 20).contains(&self.segment) {
            return Err(Failure::Usage("--segment must be a power of two from 4K to 1M".to_string()));
        }
        if !(1..=EngineOptions::DEPTH_MAX).contains(&self.depth) {
            return Err(Failure::Usage(format!("--depth must be 1 to {}", EngineOptions::DEPTH_MAX)));
        }
        let direct = self.mode == Mode::Direct;
        Ok(Some(CacheOptions {
            region: region.clone(),
            size: *size,
            segment: self.segment,
            policy: self.policy,
            lookahead: self.lookahead,
            engine: EngineOptions { kind: self.io, depth: self.depth, direct },
            workers: 1,
        }))
    }
}

/// What a cache did, in a few lines.
pub fn report(executor: &Executor<'_>) -> String {
    let stats: Stats = executor.stats();
    let bytes = |segments: u64| crate::size::show(segments * stats.segment_bytes);
    let group = crate::size::group;
    format!(
        "cache: {} in segments of {} bytes, {} in use; {} metadata\n\
         lists: {} found, {} fetched, {} streamed, {} evicted, {} failed; hit rate {:.3}\n\
         reads: {} of {} together by {}; {} waits\n\
         lookahead: {} queries at most\n",
        bytes(stats.segments + stats.window_segments),
        group(stats.segment_bytes),
        bytes(stats.segments_used()),
        crate::size::show(stats.metadata_bytes),
        group(stats.hits),
        group(stats.misses - stats.streamed),
        group(stats.streamed),
        group(stats.evictions),
        group(stats.failures),
        stats.hit_rate(),
        group(stats.reads),
        crate::size::show(stats.bytes_read),
        executor.engine(),
        group(stats.waits),
        group(stats.lookahead_max),
    )
}

fn cache(text: &str) -> Result<(RegionKind, Size), String> {
    let (region, size) =
        text.rsplit_once(':').ok_or("write REGION:SIZE, such as dram:512M or hugetlb:10%")?;
    let region = region.parse().map_err(|error: tierdex::io::Error| error.to_string())?;
    Ok((region, size.parse().map_err(|error: tierdex::io::Error| error.to_string())?))
}

fn lookahead(text: &str) -> Result<Lookahead, String> {
    if text == "adaptive" {
        return Ok(Lookahead::Adaptive);
    }
    let queries = text.parse().ok().filter(|queries| *queries > 0);
    queries
        .map(Lookahead::Queries)
        .ok_or_else(|| "write adaptive, or a number of queries from 1 on".to_string())
}

//! Flags that choose how postings are read and cached.

use crate::failure::{Failure, Outcome};
use crate::messages;
use crate::values::{ENGINES, MODES, POLICIES, one_of};
use clap::Args;
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::{Executor, ExecutorOptions, MetaTier, Mode};
use tierdex::index::Index;
use tierdex::io::{EngineKind, EngineOptions, RegionKind, Size};

#[derive(Args)]
pub struct CacheFlags {
    /// How postings are read: base (through the system's page cache), base-prefetch (the same, with a worker
    /// that reads ahead), hybrid (a cache of whole lists, filled after a miss), hybrid-prefetch (the same,
    /// filled ahead of the queries), direct (a cache of pages, read past the page cache while other queries
    /// go on)
    #[arg(long, value_parser = one_of::<Mode>(MODES))]
    mode: Option<Mode>,
    /// Memory budget in bytes, such as 50M; a configuration that cannot fit is rejected at start-up.
    /// Includes the cache unless --cache is given; other regions are not counted
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    dram: Option<u64>,
    /// Memory for lists of 256 postings or more: REGION:SIZE, where REGION is dram, hugetlb, numa:NODE,
    /// dax:PATH or file:PATH on a tmpfs such as /dev/shm, and SIZE is 512M, or a part of all documents and
    /// frequencies such as 10%
    #[arg(long, value_name = "REGION:SIZE", value_parser = cache)]
    cache: Option<(RegionKind, Size)>,
    /// Memory tier of dictionary, skip data and norms: disk, terms (the dictionary in DRAM, skip data on
    /// disk), dram, or another region
    #[arg(long, value_name = "TIER")]
    meta_tier: Option<MetaTier>,
    /// How files are read
    #[arg(long, value_parser = one_of::<EngineKind>(ENGINES))]
    io: Option<EngineKind>,
    /// Reads on their way at a time [default: 32]
    #[arg(long)]
    depth: Option<usize>,
    /// Which lists are evicted from the cache; window spares what waiting queries need [default: lru]
    #[arg(long, value_parser = one_of::<PolicyKind>(POLICIES))]
    policy: Option<PolicyKind>,
    /// Queries that are prefetched, or adaptive: as many as fit in the cache, 16 in base-prefetch
    /// [default: adaptive]
    #[arg(long, value_parser = lookahead)]
    lookahead: Option<Lookahead>,
    /// Bytes of a segment of the cache, 4K to 1M [default: 32K]
    #[arg(long, value_parser = bytes)]
    segment: Option<u64>,
    /// Report memory by part, cache hits, reads and waits
    #[arg(long)]
    pub stats: bool,
}

impl CacheFlags {
    /// Whether no flag asks for anything but the mode that is chosen without flags.
    pub fn is_silent(&self) -> bool {
        let CacheFlags { mode, dram, cache, meta_tier, io, depth, policy, lookahead, segment, stats } = self;
        let of_budget = mode.is_some() || dram.is_some() || cache.is_some() || meta_tier.is_some();
        let of_cache = depth.is_some() || policy.is_some() || lookahead.is_some() || segment.is_some();
        !(of_budget || of_cache || io.is_some() || *stats)
    }

    /// What the flags ask for, and what they leave open as the index and the machine suggest; all else is as
    /// in `defaults`.
    pub fn options(&self, index: &Index, defaults: ExecutorOptions) -> Outcome<ExecutorOptions> {
        let mode = self.mode.unwrap_or(if self.cache.is_some() { Mode::Direct } else { defaults.mode });
        let usage = |what: String| Err(Failure::Usage(what));
        let segment = self.segment.unwrap_or(defaults.segment as u64);
        if !segment.is_power_of_two() || !(4 << 10..=1 << 20).contains(&segment) {
            return usage("--segment must be a power of two from 4K to 1M".to_string());
        }
        let depth = self.depth.unwrap_or(defaults.engine.depth);
        if !(1..=EngineOptions::DEPTH_MAX).contains(&depth) {
            return usage(format!("--depth must be 1 to {}", EngineOptions::DEPTH_MAX));
        }
        if mode == Mode::Direct && self.io == Some(EngineKind::Mmap) {
            return usage(
                "--io mmap cannot read past the page cache; take --mode hybrid-prefetch with it".to_string(),
            );
        }
        let of_cache = [
            ("--cache", self.cache.is_some()),
            ("--policy", self.policy.is_some()),
            ("--segment", self.segment.is_some()),
            ("--depth", self.depth.is_some()),
        ];
        if let Some((flag, _)) = of_cache.iter().find(|(_, given)| *given && !mode.has_cache()) {
            return usage(format!(
                "--mode {mode} has no cache; leave {flag} out, or take another, such as direct"
            ));
        }
        let of_lookahead =
            [("--lookahead", self.lookahead.is_some()), ("--lookahead-log", defaults.samples > 0)];
        let ahead = !matches!(mode, Mode::Base | Mode::Hybrid);
        if let Some((flag, _)) = of_lookahead.iter().find(|(_, given)| *given && !ahead) {
            return usage(format!(
                "--mode {mode} fetches nothing ahead; leave {flag} out, or take another, such as direct"
            ));
        }
        if !mode.has_cache() && self.io.is_some_and(|io| !matches!(io, EngineKind::Auto | EngineKind::Pread))
        {
            return usage(format!("--mode {mode} reads by pread through the page cache only"));
        }
        let engine =
            EngineOptions { kind: self.io.unwrap_or(EngineKind::Auto), depth, direct: mode == Mode::Direct };
        let options = ExecutorOptions {
            mode,
            segment: segment as usize,
            policy: self.policy.unwrap_or(defaults.policy),
            lookahead: self.lookahead.unwrap_or(defaults.lookahead),
            engine,
            dram: self.dram,
            ..defaults
        };
        Ok(options.complete(index, self.cache.clone(), self.meta_tier.clone()))
    }

    /// Sets it up. Says when files are not read in the way that was hoped for, if that was asked for or is
    /// to be told.
    pub fn executor(&self, index: &Index, options: &ExecutorOptions) -> Outcome<Executor> {
        let accounts = Executor::accounts(index, options);
        if accounts.check().is_err() {
            // Why it is refused.
            messages::report(&accounts.to_string());
        }
        let executor = Executor::new(index, options)?;
        if let Some(why) = executor.fallback().filter(|_| !self.is_silent()) {
            messages::say(why);
        }
        Ok(executor)
    }
}

/// What was chosen.
pub fn chosen(options: &ExecutorOptions) -> String {
    let places = match &options.meta {
        MetaTier::Terms => "terms and lengths on dram, skip data on disk".to_string(),
        tier => format!("terms, skip data and lengths on {tier}"),
    };
    let mut out = format!("mode {}, {places}", options.mode);
    if options.mode.has_cache() {
        out += &format!(", cache {}:{}, policy {}", options.region, options.size, options.policy);
    }
    out
}

/// What was chosen, which memory it takes, and what was found, read and waited for so far.
pub fn report(executor: &Executor, options: &ExecutorOptions) -> String {
    let group = crate::size::group;
    let out = format!("{}\n{}", chosen(options), executor.memory());
    let read = crate::size::show(executor.bytes_read());
    let Some(stats) = executor.stats() else {
        return out + &format!("reads: {read} together by {}\n", executor.engine());
    };
    let bytes = |segments: u64| crate::size::show(segments * stats.segment_bytes);
    let what = if options.mode == Mode::Direct { "pages" } else { "lists" };
    let fell_back = match stats.reads_fell_back {
        0 => String::new(),
        reads => format!(", {} of them through the page cache all the same", group(reads)),
    };
    out + &format!(
        "cache: {} in segments of {} bytes, {} in use; {} metadata\n\
         {what}: {} found, {} fetched, {} streamed, {} evicted, {} failed; hit rate {:.3}\n\
         reads: {} of {} together by {}{fell_back}; {read} with all else; {}\n\
         lookahead: {} at most\n",
        bytes(stats.segments + stats.window_segments),
        group(stats.segment_bytes),
        bytes(stats.segments_used()),
        crate::size::show(stats.metadata_bytes),
        group(stats.hits),
        group(stats.fetched),
        group(stats.streamed),
        group(stats.evictions),
        group(stats.failures),
        stats.hit_rate(),
        group(stats.reads),
        crate::size::show(stats.bytes_read),
        executor.engine(),
        crate::size::count(stats.waits, "wait", "waits"),
        crate::size::count(stats.lookahead_max, "query", "queries"),
    )
}

fn bytes(text: &str) -> Result<u64, String> {
    crate::size::parse(text).map(|bytes| bytes as u64)
}

fn cache(text: &str) -> Result<(RegionKind, Size), String> {
    let parts = text.rsplit_once(':').ok_or("write REGION:SIZE, such as dram:512M or hugetlb:10%");
    let both = parts.map(|(region, size)| (region.parse::<RegionKind>(), size.parse::<Size>()));
    if both.as_ref().map_or(true, |both| both.0.is_err()) && text.parse::<RegionKind>().is_ok() {
        return Err(format!("say how much of it: {text}:512M, or a part of the index, {text}:10%"));
    }
    let (region, size) = both?;
    Ok((region.map_err(|error| error.to_string())?, size.map_err(|error| error.to_string())?))
}

/// The executor plans no more queries than so many ahead.
const LOOKAHEAD_MAX: u64 = 1023;

fn lookahead(text: &str) -> Result<Lookahead, String> {
    if text == "adaptive" {
        return Ok(Lookahead::Adaptive);
    }
    let queries = text.parse().ok().filter(|queries| (1..=LOOKAHEAD_MAX).contains(queries));
    queries
        .map(Lookahead::Queries)
        .ok_or_else(|| format!("write adaptive, or a number of queries from 1 to {LOOKAHEAD_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_region_and_a_size() {
        let path = |path: &str| RegionKind::File(path.into());
        assert_eq!(cache("dram:512M"), Ok((RegionKind::Dram, Size::Bytes(512 << 20))));
        assert_eq!(cache("numa:1:10%"), Ok((RegionKind::Numa(1), Size::Part(1000))));
        assert_eq!(cache("file:/dev/shm/a:1G"), Ok((path("/dev/shm/a"), Size::Bytes(1 << 30))));
        for (wrong, says) in [
            ("dram", "dram:512M"),
            ("numa:1", "numa:1:10%"),
            ("file:/dev/shm/a", "file:/dev/shm/a:512M"),
            ("512M", "REGION:SIZE"),
            ("ram:512M", "a region is"),
            ("dram:0", "a size is"),
        ] {
            let error = cache(wrong).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}

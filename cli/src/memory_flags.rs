//! Flags of the memory budget and of the postings cache, and the report of `--stats`.

use crate::failure::{Failure, Outcome};
use crate::{messages, read_costs};
use clap::Args;
use std::{path::Path, time::Duration};
use tierdex::io::{PAGE, ReadKind, RegionKind, Size};
use tierdex::{Engine, EngineOptions, Index, MemoryUse, ReadCosts};

/// Minimum number of hits of a query for which memory is reserved.
const RESERVED_HITS_MIN: usize = 1024;

#[derive(Args)]
pub struct MemoryFlags {
    /// Memory budget for dictionaries, skip data, postings cache and running queries, in bytes, such as 50M.
    /// A budget that is too small is rejected at start-up with the smallest sufficient one [default: no
    /// budget; the cache has 64M, or a tenth of the postings if that is more, and at most a quarter of the
    /// available memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub dram: Option<u64>,
    /// Memory region and size of the postings cache, not counted in --dram. REGION is dram, hugetlb,
    /// numa:NODE, dax:PATH, or file:PATH on a tmpfs such as /dev/shm; SIZE is in bytes, such as 512M, or a
    /// percentage of the postings, such as 10% [default: dram, with what the other components leave of
    /// --dram]
    #[arg(long, value_name = "REGION:SIZE", value_parser = parse_cache)]
    pub cache: Option<(RegionKind, Size)>,
    /// Hold the index in a memory region instead of a cache: dictionaries, skip data, posting lists,
    /// positions and norms; ids and stored text stay on disk. REGION is as in --cache; dram counts towards
    /// --dram
    #[arg(long, value_name = "REGION", conflicts_with = "cache")]
    pub keep_in: Option<RegionKind>,
    /// What reads of the device cost, in nanoseconds for 1, 4, 16 and 64 pages of 4 KiB: decides which pages
    /// are read together [default: `batch` measures it, in a tenth of a second once a day, and
    /// ~/.cache/tierdex/read-costs keeps it; `search` uses what is kept]
    #[arg(long, value_name = "NS,NS,NS,NS")]
    pub read_costs: Option<ReadCosts>,
}

impl MemoryFlags {
    /// Whether no flag is given.
    pub fn is_default(&self) -> bool {
        let MemoryFlags { dram, cache, keep_in, read_costs } = self;
        dram.is_none() && cache.is_none() && keep_in.is_none() && read_costs.is_none()
    }

    /// Options of an engine: `defaults` with the flags. The index is not refreshed, so no memory is reserved
    /// for later commits.
    pub fn options(&self, defaults: EngineOptions) -> EngineOptions {
        let options = self.dram.iter().fold(defaults.growth(0), |options, dram| options.dram(*dram));
        let options = match self.cache.clone() {
            Some((region, size)) => options.cache_size(region, size),
            None => options,
        };
        self.keep_in.iter().fold(options, |options, region| options.keep_in(region.clone()))
    }

    /// Starts an engine for the index in `dir`. Prints the reason for a fallback to a slower I/O engine if
    /// any flag is given or `verbose` is set.
    pub fn engine(
        &self,
        dir: &Path,
        index: &Index,
        options: &EngineOptions,
        verbose: bool,
    ) -> Outcome<Engine> {
        let settings = options.resolve(index);
        if let Err(error) = settings.memory_report(index).check() {
            let threads =
                if settings.threads > 1 { format!(" --threads {}", settings.threads) } else { String::new() };
            return Err(Failure::Usage(format!("{error}; `tierdex stats{threads}` shows the parts")));
        }
        let engine = match self.read_costs.or_else(|| read_costs::stored(dir)) {
            Some(costs) => Engine::new(index, &options.clone().read_costs(costs))?,
            None => Engine::new(index, options)?,
        };
        if let Some(costs) = engine.measured_read_costs() {
            read_costs::store(dir, costs);
        }
        if let Some(why) = engine.fallback().filter(|_| verbose || !self.is_default()) {
            messages::print_message(why);
        }
        Ok(engine)
    }
}

/// Options for one query, which `tierdex stats` reports: the memory of a query of up to `k` hits that are
/// displayed.
pub fn search_options(k: usize) -> EngineOptions {
    EngineOptions::new().threads(1).hits_max(k.max(RESERVED_HITS_MIN))
}

/// Cache of one query without a budget.
const ONE_QUERY_CACHE_BYTES: u64 = 4 << 20;

/// Reads in flight of one query without a budget: few, as most are answered by the page cache.
const ONE_QUERY_READS_IN_FLIGHT: usize = 8;

/// Options for one query without a budget.
pub fn one_query_options(k: usize) -> EngineOptions {
    let options = search_options(k).on_demand().reads(ReadKind::Auto, ONE_QUERY_READS_IN_FLIGHT).growth(0);
    options.cache_size(RegionKind::Dram, Size::Bytes(ONE_QUERY_CACHE_BYTES))
}

/// Formats memory tiers and cache, memory of each component, and counters of cache and reads.
pub fn memory_report(engine: &Engine) -> String {
    let (show_number, show) = (crate::size::show_number, crate::size::show_bytes);
    let (stats, metrics) = (engine.stats(), engine.metrics());
    let reserved_max = |row: &MemoryUse| format!("{} for {}", show(row.bytes), row.what);
    let reserved_max: Vec<String> = metrics.reserved_max.iter().map(reserved_max).collect();
    let requests = [("interactive", metrics.interactive), ("batch", metrics.batch)];
    let requests = requests.map(|(name, requests)| (name, requests, requests.latencies));
    let requests: Vec<String> = requests
        .iter()
        .filter(|(_, requests, _)| requests.answered > 0)
        .map(|(name, requests, latencies)| {
            let millis = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
            format!(
                "{name} requests: {} answered, {} on average in the queue; half of them took at most {}, 99% {}, \
                 all {}\n",
                show_number(requests.answered),
                millis(requests.queued_time.div_f64(requests.answered as f64)),
                millis(latencies.p50),
                millis(latencies.p99),
                millis(latencies.longest),
            )
        })
        .collect();
    let fallback = match stats.reads_fell_back {
        0 => String::new(),
        reads => format!(", {} of them through the page cache (fallback)", show_number(reads)),
    };
    let hot_pages = engine.settings().hot_pages.as_ref();
    let hot_pages = hot_pages.map_or_else(String::new, |file| {
        format!("hot pages: {} read from {}\n", show_number(metrics.pages_warmed), file.display())
    });
    format!(
        "{}\n{}\
         cache: {} in pages of {} bytes, {} in use, {} at least; {} of metadata\n\
         reserved at most: {}\n\
         {}\
         pages: {} hit, {} fetched, {} without a free page, {} evicted, {} failed; hit rate {:.3}\n\
         reads: {} of postings, {} by {}{fallback}; {} in total; {}\n{hot_pages}",
        engine.settings(),
        engine.memory(),
        show(stats.frames * PAGE),
        show_number(PAGE),
        show(stats.frames_used() * PAGE),
        show(metrics.cache_bytes_min),
        show(stats.metadata_bytes),
        reserved_max.join(", "),
        requests.concat(),
        show_number(stats.hits),
        show_number(stats.fetched),
        show_number(stats.no_frame),
        show_number(stats.evictions),
        show_number(stats.failures),
        stats.hit_rate(),
        show_number(stats.reads),
        show(stats.bytes_read),
        engine.read_method(),
        show(engine.bytes_read()),
        crate::size::show_count(stats.waits, "wait", "waits"),
    )
}

/// Parses a number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    crate::size::parse_size(text).map(|bytes| bytes as u64)
}

fn parse_cache(text: &str) -> Result<(RegionKind, Size), String> {
    let parts = text.rsplit_once(':').ok_or("expected REGION:SIZE, such as dram:512M or hugetlb:10%");
    let both = parts.map(|(region, size)| (region.parse::<RegionKind>(), size.parse::<Size>()));
    if both.as_ref().map_or(true, |both| both.0.is_err()) && text.parse::<RegionKind>().is_ok() {
        return Err(format!(
            "the size is missing; write {text}:512M, or a percentage of the postings, {text}:10%"
        ));
    }
    let (region, size) = both?;
    Ok((region.map_err(|error| error.to_string())?, size.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_region_and_a_size() {
        let path = |path: &str| RegionKind::File(path.into());
        assert_eq!(parse_cache("dram:512M"), Ok((RegionKind::Dram, Size::Bytes(512 << 20))));
        assert_eq!(parse_cache("numa:1:10%"), Ok((RegionKind::Numa(1), Size::BasisPoints(1000))));
        assert_eq!(parse_cache("file:/dev/shm/a:1G"), Ok((path("/dev/shm/a"), Size::Bytes(1 << 30))));
        for (wrong, message) in [
            ("dram", "dram:512M"),
            ("numa:1", "numa:1:10%"),
            ("file:/dev/shm/a", "file:/dev/shm/a:512M"),
            ("512M", "REGION:SIZE"),
            ("ram:512M", "a region is"),
            ("dram:0", "a size is"),
        ] {
            let error = parse_cache(wrong).unwrap_err();
            assert!(error.contains(message), "{wrong}: {error}");
        }
    }
}

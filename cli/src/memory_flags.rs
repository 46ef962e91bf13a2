//! Flags of the memory budget and of the postings cache, and the report of `--stats`.

use crate::failure::{Failure, Outcome};
use crate::messages;
use clap::Args;
use tierdex::engine::{Executor, ExecutorOptions, MetaTier, Mode};
use tierdex::index::Index;
use tierdex::io::{RegionKind, Size};

#[derive(Args)]
pub struct MemoryFlags {
    /// Memory budget for dictionaries, skip data, postings cache and running queries, in bytes, such as 50M.
    /// A budget that is too small is rejected at start-up with the smallest sufficient one [default: no
    /// budget; the cache has 64M, or a tenth of the postings if that is more, and at most a quarter of the
    /// available memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub dram: Option<u64>,
    /// Memory region and size of the postings cache, not counted in --dram. REGION is dram, hugetlb,
    /// numa:NODE, dax:PATH, or file:PATH on a tmpfs such as /dev/shm; SIZE is in bytes, such as 512M, or a
    /// percentage of the postings, such as 10% [default: dram, with what the other components leave of
    /// --dram]
    #[arg(long, value_name = "REGION:SIZE", value_parser = cache)]
    pub cache: Option<(RegionKind, Size)>,
}

impl MemoryFlags {
    /// Whether no flag is given.
    pub fn is_default(&self) -> bool {
        self.dram.is_none() && self.cache.is_none()
    }

    /// Executor options from the flags, completed for the index and the machine where `defaults` leaves a
    /// choice.
    pub fn options(
        &self,
        index: &Index,
        defaults: ExecutorOptions,
        meta: Option<MetaTier>,
    ) -> ExecutorOptions {
        ExecutorOptions { dram: self.dram, ..defaults }.complete(index, self.cache.clone(), meta)
    }

    /// Starts an executor. Prints the reason for a fallback to a slower I/O engine if any flag is given or
    /// `verbose` is set.
    pub fn executor(&self, index: &Index, options: &ExecutorOptions, verbose: bool) -> Outcome<Executor> {
        if let Err(error) = Executor::memory_report(index, options).check() {
            let threads =
                if options.threads > 1 { format!(" --threads {}", options.threads) } else { String::new() };
            return Err(Failure::Usage(format!("{error}; `tierdex stats{threads}` shows the parts")));
        }
        let executor = Executor::new(index, options)?;
        if let Some(why) = executor.fallback().filter(|_| verbose || !self.is_default()) {
            messages::print(why);
        }
        Ok(executor)
    }
}

/// Options for one query, which `tierdex stats` reports: the memory of a query of up to `k` hits that are
/// displayed.
pub fn search_options(k: usize) -> ExecutorOptions {
    let defaults = ExecutorOptions::default();
    ExecutorOptions { hits_max: k.max(defaults.hits_max), previews: true, ..defaults }
}

/// Formats read mode, memory tiers and cache.
pub fn describe(options: &ExecutorOptions) -> String {
    let norms = options.metadata_region().map_or("dram".to_string(), |region| region.to_string());
    let tiers = match &options.meta_tier {
        MetaTier::Disk => format!("dictionary and skip data on disk, norms on {norms}"),
        MetaTier::Terms => format!("dictionary on dram, skip data on disk, norms on {norms}"),
        tier => format!("dictionary, skip data and norms on {tier}"),
    };
    let mut out = format!("mode {}, {tiers}", options.mode);
    if options.mode.has_cache() {
        out += &format!(", cache {}:{}, policy {}", options.region, options.size, options.policy);
    }
    out
}

/// Formats read mode, memory of each component, and counters of cache and reads.
pub fn report(executor: &Executor, options: &ExecutorOptions) -> String {
    let group = crate::size::group;
    let out = format!("{}\n{}", describe(options), executor.memory());
    let read = crate::size::show(executor.bytes_read());
    let Some(stats) = executor.stats() else {
        return out + &format!("reads: {read} in total by {}\n", executor.engine());
    };
    let bytes = |cells: u64| crate::size::show(cells * stats.cell_bytes);
    let unit = if options.mode == Mode::Direct { "pages" } else { "lists" };
    let fallback = match stats.reads_fell_back {
        0 => String::new(),
        reads => format!(", {} of them through the page cache (fallback)", group(reads)),
    };
    out + &format!(
        "cache: {} in cells of {} bytes, {} in use; {} of metadata\n\
         {unit}: {} hit, {} fetched, {} streamed, {} evicted, {} failed; hit rate {:.3}\n\
         reads: {} of postings, {} by {}{fallback}; {read} in total; {}\n\
         lookahead: at most {}\n",
        bytes(stats.cells + stats.bounce_cells),
        group(stats.cell_bytes),
        bytes(stats.cells_used()),
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

/// Parses a number of bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    crate::size::parse(text).map(|bytes| bytes as u64)
}

fn cache(text: &str) -> Result<(RegionKind, Size), String> {
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
        assert_eq!(cache("dram:512M"), Ok((RegionKind::Dram, Size::Bytes(512 << 20))));
        assert_eq!(cache("numa:1:10%"), Ok((RegionKind::Numa(1), Size::BasisPoints(1000))));
        assert_eq!(cache("file:/dev/shm/a:1G"), Ok((path("/dev/shm/a"), Size::Bytes(1 << 30))));
        for (wrong, message) in [
            ("dram", "dram:512M"),
            ("numa:1", "numa:1:10%"),
            ("file:/dev/shm/a", "file:/dev/shm/a:512M"),
            ("512M", "REGION:SIZE"),
            ("ram:512M", "a region is"),
            ("dram:0", "a size is"),
        ] {
            let error = cache(wrong).unwrap_err();
            assert!(error.contains(message), "{wrong}: {error}");
        }
    }
}

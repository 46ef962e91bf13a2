//! The cache of pages, and the read queues that fill it.

use super::settings::{CACHE_BYTES_MIN, EngineSettings};
use crate::{Error, Result, index::Index};
use std::sync::Arc;
use tierdex_cache::{PageCache, PageReader, ReadCosts};
use tierdex_io::{Cells, PAGE, ReadQueue, Region};

/// How an engine reads.
pub(super) struct ReadMethod {
    /// Name of the interface, with the costs of reads.
    pub(super) name: String,
    /// Why it was chosen instead of a faster one, if it was.
    pub(super) fallback: Option<String>,
    /// The costs of reads, if they were measured.
    pub(super) measured: Option<ReadCosts>,
}

/// The cache of pages, and readers: one for callers, and one for each search thread.
pub(super) fn page_readers(
    index: &Index,
    settings: &EngineSettings,
) -> Result<(Arc<PageCache>, Vec<PageReader>, ReadMethod)> {
    let bytes = settings.cache_bytes(index);
    if bytes < CACHE_BYTES_MIN {
        return Err(Error::Usage(format!(
            "a cache of {bytes} bytes is smaller than {} cells of {PAGE} bytes; make the cache larger",
            CACHE_BYTES_MIN / PAGE
        )));
    }
    let is_elastic = settings.cache_in_budget && settings.dram.is_some();
    let region = if is_elastic { Region::elastic(bytes) } else { Region::new(&settings.region, bytes) };
    let cells = Cells::new(region?, PAGE as usize)?;
    // Memory that is registered with the kernel cannot be given back. Direct reads of 4 KiB at depth 32 were
    // as fast without: 88,000 and 87,000 a second.
    let registered = if is_elastic { &[] } else { std::slice::from_ref(&cells) };
    let engine = || ReadQueue::new(settings.reads(), index.disk(), registered);
    let mut engines = (0..=settings.threads).map(|_| engine()).collect::<std::result::Result<Vec<_>, _>>()?;
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    let longest = fields.map(|field| field.postings_file().file()).max_by_key(|file| file.len());
    let measured = match (settings.read_costs, engines.first_mut(), longest) {
        (None, Some(engine), Some(file)) => ReadCosts::measure(engine, &cells, file),
        _ => None,
    };
    let costs = settings.read_costs.or(measured).unwrap_or_default();
    let read_method = ReadMethod {
        name: engines
            .first()
            .map_or_else(String::new, |engine| format!("{}, reads cost {costs} ns", engine.description())),
        fallback: engines.first().and_then(|engine| engine.fallback()).map(str::to_string),
        measured,
    };
    let cache = PageCache::new(cells, settings.policy)?;
    let readers = engines.into_iter().map(|engine| PageReader::new(cache.clone(), engine, costs)).collect();
    Ok((cache, readers, read_method))
}

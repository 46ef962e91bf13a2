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
    pub(super) costs: ReadCosts,
    /// The costs of reads, if they were measured.
    pub(super) measured: Option<ReadCosts>,
}

/// The cache of pages, and its readers.
pub(super) struct PageReaders {
    pub(super) cache: Arc<PageCache>,
    /// A reader for each search thread.
    pub(super) search: Vec<PageReader>,
    /// The reader of callers that evaluate their own requests.
    pub(super) caller: PageReader,
    /// The reader of hot pages.
    pub(super) hot: Option<PageReader>,
    pub(super) method: ReadMethod,
}

/// Allocates the cache of pages, and opens its readers.
pub(super) fn page_readers(index: &Index, settings: &EngineSettings) -> Result<PageReaders> {
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
    let queue = |reads| ReadQueue::new(reads, index.disk(), registered);
    // There is at least one search thread.
    let mut first = queue(settings.reads())?;
    let others = (1..settings.threads).map(|_| queue(settings.reads()));
    let others = others.collect::<std::result::Result<Vec<_>, _>>()?;
    let caller = queue(settings.caller_reads())?;
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    let longest = fields.map(|field| field.postings_file().file()).max_by_key(|file| file.len());
    let measured = match (settings.read_costs, longest) {
        (None, Some(file)) => ReadCosts::measure(&mut first, &cells, file),
        _ => None,
    };
    let costs = settings.read_costs.or(measured).unwrap_or_default();
    let method = ReadMethod {
        name: format!("{}, reads cost {costs} ns", first.description()),
        fallback: first.fallback().map(str::to_string),
        costs,
        measured,
    };
    let hot = settings.hot_pages.as_ref();
    let hot = hot.map(|_| ReadQueue::new(settings.hot_reads(), index.disk(), &[])).transpose()?;
    let cache = PageCache::new(cells, settings.policy)?;
    let reader = |queue| PageReader::new(cache.clone(), queue, costs);
    let search = std::iter::once(first).chain(others).map(reader).collect();
    let (caller, hot) = (reader(caller), hot.map(reader));
    Ok(PageReaders { search, caller, cache, hot, method })
}

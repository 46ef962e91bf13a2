//! The cache of pages, and the read queues that fill it.

use super::settings::{CACHE_BYTES_MIN, EngineSettings};
use crate::{Error, Result, index::Index};
use std::sync::Arc;
use tierdex_cache::{PageCache, PageReader, ReadCosts};
use tierdex_io::{Cells, PAGE, ReadQueue, Region};

/// What reads cost if that is neither given nor measured: those of a disk with 50,000 reads and 1.7 GB a
/// second.
const READ_COSTS_DEFAULT: [u64; 4] = [20_000, 21_000, 39_000, 131_000];

/// Name of a read method, and why it was chosen instead of a faster one, if it was.
pub(super) type ReadMethodName = (String, Option<String>);

/// The cache of pages, and a reader for each search thread.
pub(super) fn page_readers(
    index: &Index,
    settings: &EngineSettings,
) -> Result<(Arc<PageCache>, Vec<PageReader>, ReadMethodName)> {
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
    let mut engines = (0..settings.threads).map(|_| engine()).collect::<std::result::Result<Vec<_>, _>>()?;
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    let longest = fields.map(|field| field.postings_file().file()).max_by_key(|file| file.len());
    let measured = match (settings.read_costs, engines.first_mut(), longest) {
        (None, Some(engine), Some(file)) => ReadCosts::measure(engine, &cells, file),
        (given, ..) => given,
    };
    let costs = measured.unwrap_or_else(|| ReadCosts::new(READ_COSTS_DEFAULT));
    let name = engines.first().map_or_else(Default::default, |engine| name(engine, costs));
    let cache = PageCache::new(cells, settings.policy)?;
    let readers = engines.into_iter().map(|engine| PageReader::new(cache.clone(), engine, costs)).collect();
    Ok((cache, readers, name))
}

fn name(engine: &ReadQueue, costs: ReadCosts) -> ReadMethodName {
    let description = format!("{}, reads cost {costs} ns", engine.description());
    (description, engine.fallback().map(str::to_string))
}

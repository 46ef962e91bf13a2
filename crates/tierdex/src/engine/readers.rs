//! The cache of pages, and the read queues that fill it.

use super::settings::{CACHE_BYTES_MIN, EngineSettings};
use crate::{Error, Result, index::Index};
use std::sync::Arc;
use tierdex_cache::{PageCache, PageReader, measure_gap};
use tierdex_io::{Cells, PAGE, ReadQueue, Region};

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
    let gap = match (settings.gap_pages, engines.first_mut(), longest) {
        (Some(pages), ..) => pages,
        (None, Some(engine), Some(file)) => measure_gap(engine, &cells, file),
        _ => 0,
    };
    let name = engines.first().map_or_else(Default::default, |engine| name(engine, gap));
    let cache = PageCache::new(cells, settings.policy)?;
    let readers = engines.into_iter().map(|engine| PageReader::new(cache.clone(), engine, gap)).collect();
    Ok((cache, readers, name))
}

fn name(engine: &ReadQueue, gap: u64) -> ReadMethodName {
    let joined = if gap > 0 { format!(", joined over gaps of up to {gap} pages") } else { String::new() };
    (format!("{}{joined}", engine.description()), engine.fallback().map(str::to_string))
}

//! The memory of the cache, and the read engines that fill it.

use super::options::{CELLS_MIN, ExecutorOptions, Mode};
use crate::error::{Error, Result};
use crate::index::Index;
use std::sync::Arc;
use tierdex_cache::{Frames, PageReader, measure_gap};
use tierdex_io::{Cells, EngineOptions, ReadEngine, Region};

/// Name of a read engine, and why it was chosen instead of a faster one, if it was.
pub(super) type ReadEngineName = (String, Option<String>);

/// The cache of pages, and a reader for each search thread.
pub(super) fn page_readers(
    index: &Index,
    options: &ExecutorOptions,
) -> Result<(Arc<Frames>, Vec<PageReader>, ReadEngineName)> {
    let (cells, mut engines, name) = read_engines(index, options, options.threads)?;
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    let longest = fields.map(|field| field.postings().file()).max_by_key(|file| file.len());
    let gap = match (options.gap_pages, engines.first_mut(), longest) {
        (Some(pages), ..) => pages,
        (None, Some(engine), Some(file)) => measure_gap(engine, &cells, file),
        _ => 0,
    };
    let joined = if gap > 0 { format!(", joined over gaps of up to {gap} pages") } else { String::new() };
    let name = (name.0 + &joined, name.1);
    let frames = Frames::new(cells, options.policy)?;
    let readers = engines.into_iter().map(|engine| PageReader::new(frames.clone(), engine, gap)).collect();
    Ok((frames, readers, name))
}

/// The cells of the cache, and `count` read engines that read into them.
pub(super) fn read_engines(
    index: &Index,
    options: &ExecutorOptions,
    count: usize,
) -> Result<(Arc<Cells>, Vec<ReadEngine>, ReadEngineName)> {
    let bytes = options.cache_bytes(index);
    let cell = options.cell_bytes();
    if bytes < CELLS_MIN * cell as u64 {
        return Err(Error::Usage(format!(
            "a cache of {bytes} bytes is smaller than {CELLS_MIN} cells of {cell} bytes; make the cache larger or its \
             cells smaller"
        )));
    }
    let cells = Cells::new(Region::new(&options.region, bytes)?, cell)?;
    let engine =
        EngineOptions { direct: options.mode == Mode::Direct, depth: options.depth(), ..options.engine };
    let engines = (0..count)
        .map(|_| ReadEngine::new(engine, index.disk(), std::slice::from_ref(&cells)))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let name = engines.first().map_or_else(Default::default, |engine| {
        (engine.description().to_string(), engine.fallback().map(str::to_string))
    });
    Ok((cells, engines, name))
}

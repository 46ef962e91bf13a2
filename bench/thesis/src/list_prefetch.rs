//! Prefetch strategies (thesis, section 7.2): when the posting lists of a query are read, and by which
//! thread.

use crate::cache::{
    FetchedList, ListCache, ListCacheStats, ListRequest, Lookahead, LookaheadSample, PagePrefetcher,
    PageQuery, Prefetcher, QueuedQuery,
};
use crate::options::{CACHE_CELLS_MIN, ListOptions, Mode, QUERIES_AHEAD};
use crate::{mapped_files::MappedFiles, whole_lists::list_requests};
use rustix::fs::{Advice, fadvise};
use std::sync::Arc;
use tierdex::{Error, Index, Result, internal::eval::SearchPlan};
use tierdex_io::{Cells, ReadQueue, Region};

/// Name of a read method, and why it was chosen instead of a faster one, if it was.
pub(crate) type ReadMethodName = (String, Option<String>);

/// A prefetch strategy, one for each mode.
pub(crate) enum ListPrefetch {
    /// No prefetch: evaluation reads through the page cache.
    Base,
    /// A thread prefetches lists into the page cache.
    PageCache(PagePrefetcher),
    /// A cache miss starts a read into the cache of lists, for later queries.
    OnMiss(Prefetcher),
    /// A reader thread prefetches the lists of queued queries into the cache of lists.
    Ahead(Prefetcher),
}

/// The prefetch of a queued query.
pub(crate) enum PrefetchState {
    /// Nothing is prefetched.
    None,
    /// In the queue of the page cache prefetcher.
    PageCache(PageQuery),
    /// Lists are looked up in the cache of lists when the query is evaluated.
    OnMiss,
    /// In the queue of the cache of lists.
    Ahead(QueuedQuery),
}

impl ListPrefetch {
    /// Starts the reader thread of a mode. Queries read `mapped` files if there are any.
    pub(crate) fn start(
        index: &Index,
        options: &ListOptions,
        mapped: Option<&MappedFiles>,
    ) -> Result<(ListPrefetch, ReadMethodName)> {
        if options.mode == Mode::HybridPrefetch || !options.mode.has_cache() && !options.kernel_readahead {
            disable_readahead(index, mapped)?;
        }
        match options.mode {
            Mode::Base => Ok((ListPrefetch::Base, page_cache_read_method(options))),
            Mode::BasePrefetch => {
                let ahead = match options.lookahead {
                    Lookahead::Queries(queries) => queries,
                    Lookahead::Adaptive => QUERIES_AHEAD,
                };
                let prefetcher = PagePrefetcher::start(ahead, options.lookahead_samples)?;
                Ok((ListPrefetch::PageCache(prefetcher), page_cache_read_method(options)))
            }
            Mode::Hybrid => {
                let (prefetcher, name) = start_cache(index, options)?;
                Ok((ListPrefetch::OnMiss(prefetcher), name))
            }
            Mode::HybridPrefetch => {
                let (prefetcher, name) = start_cache(index, options)?;
                Ok((ListPrefetch::Ahead(prefetcher), name))
            }
        }
    }

    /// Queues a query. Also returns its list requests, if its evaluation will wait for lists one by one.
    pub(crate) fn push(&self, plan: &SearchPlan, index: &Index) -> Result<(PrefetchState, Vec<ListRequest>)> {
        Ok(match self {
            ListPrefetch::Base => (PrefetchState::None, Vec::new()),
            ListPrefetch::PageCache(prefetcher) => {
                (PrefetchState::PageCache(prefetcher.push(list_requests(plan, index)?)), Vec::new())
            }
            ListPrefetch::OnMiss(_) => (PrefetchState::OnMiss, list_requests(plan, index)?),
            ListPrefetch::Ahead(prefetcher) => {
                let requests = list_requests(plan, index)?;
                (PrefetchState::Ahead(prefetcher.push(requests.clone())), requests)
            }
        })
    }

    /// Waits for the lists of a query, in the order of its requests; `None` for a list that is to be read
    /// from its files.
    pub(crate) fn wait(
        &self,
        state: &PrefetchState,
        requests: &[ListRequest],
    ) -> Result<Vec<Option<FetchedList>>> {
        match (self, state) {
            (_, PrefetchState::PageCache(query)) => {
                query.wait()?;
                Ok(Vec::new())
            }
            (ListPrefetch::OnMiss(prefetcher), PrefetchState::OnMiss) => {
                let look_up = |request: &ListRequest| {
                    let cached = prefetcher.cache().lookup(request)?;
                    if cached.is_none() {
                        prefetcher.fetch_detached(request.clone());
                    }
                    Ok(cached)
                };
                requests.iter().map(look_up).collect()
            }
            (_, PrefetchState::Ahead(query)) => {
                (0..requests.len()).map(|list| Ok(Some(query.wait(list)?))).collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Counters of the cache of lists; `None` without one.
    pub(crate) fn stats(&self) -> Option<ListCacheStats> {
        self.cache().map(|cache| cache.stats())
    }

    /// Bytes that the page cache prefetcher read.
    pub(crate) fn page_cache_bytes_read(&self) -> u64 {
        match self {
            ListPrefetch::PageCache(prefetcher) => prefetcher.bytes_read(),
            _ => 0,
        }
    }

    /// The recorded lookahead samples, oldest first.
    pub(crate) fn lookahead_samples(&self) -> Vec<LookaheadSample> {
        match self {
            ListPrefetch::PageCache(prefetcher) => prefetcher.lookahead_samples(),
            _ => self.cache().map(|cache| cache.lookahead_samples()).unwrap_or_default(),
        }
    }

    fn cache(&self) -> Option<&Arc<ListCache>> {
        match self {
            ListPrefetch::Base | ListPrefetch::PageCache(_) => None,
            ListPrefetch::OnMiss(prefetcher) | ListPrefetch::Ahead(prefetcher) => Some(prefetcher.cache()),
        }
    }
}

/// How the modes without a cache of their own read.
fn page_cache_read_method(options: &ListOptions) -> ReadMethodName {
    let call = if options.reads_mapped() { "mapped files" } else { "pread through the page cache" };
    let readahead = if options.kernel_readahead { "" } else { ", without readahead" };
    (format!("{call}{readahead}"), None)
}

/// Allocates the cache of lists, and starts its reader thread.
fn start_cache(index: &Index, options: &ListOptions) -> Result<(Prefetcher, ReadMethodName)> {
    let (bytes, cell) = (options.cache_bytes(index), options.list_cell_bytes);
    if bytes < CACHE_CELLS_MIN * cell as u64 {
        return Err(Error::Usage(format!(
            "a cache of {bytes} bytes is smaller than {CACHE_CELLS_MIN} cells of {cell} bytes; make the cache larger or its \
             cells smaller"
        )));
    }
    let cells = Cells::new(Region::new(&options.region, bytes)?, cell)?;
    let queue = ReadQueue::new(options.reads(), index.disk(), std::slice::from_ref(&cells))?;
    let name = (queue.description().to_string(), queue.fallback().map(str::to_string));
    let cache = ListCache::new(Arc::clone(&cells))?;
    if options.lookahead_samples > 0 {
        cache.record_lookahead(options.lookahead_samples);
    }
    Ok((Prefetcher::start(&cache, queue, options.lookahead)?, name))
}

/// Turns off the kernel's readahead for postings files while the index is open: lists are read in large
/// pieces, and the bytes after a list are seldom needed. No effect where the system rejects it.
fn disable_readahead(index: &Index, mapped: Option<&MappedFiles>) -> Result<()> {
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    for file in fields.flat_map(|field| [field.skips_file(), field.postings_file()]) {
        mapped.map_or(Ok(()), |mapped| mapped.disable_readahead(file))?;
        if let Some(descriptor) = file.file().descriptor() {
            let _ = fadvise(descriptor, 0, None, Advice::Random);
        }
    }
    Ok(())
}

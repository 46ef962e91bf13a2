//! Prefetch strategies of the thesis modes (section 7.2): when the posting lists of a query are
//! read, and by which thread.

use super::options::{ExecutorOptions, Mode, QUERIES_AHEAD};
use super::readers::{ReadEngineName, read_engines};
use super::whole_lists::list_requests;
use crate::error::Result;
use crate::index::Index;
use crate::query::QueryPlan;
use tierdex_cache::{
    Cache, CacheStats, FetchedList, ListRequest, Lookahead, LookaheadSample, PagePrefetcher, PageQuery,
    Prefetcher, QueuedQuery,
};
use tierdex_io::Advice;

/// Bytes of each requested list: its request of one or two parts, and its entries in queues.
pub(super) const LIST_REQUEST_BYTES: usize = 256;

/// A prefetch strategy, one for each mode of the thesis.
pub(super) enum ListPrefetch {
    /// No prefetch: evaluation reads through the page cache.
    Base,
    /// A thread prefetches lists into the page cache.
    PageCache(PagePrefetcher),
    /// A cache miss starts a read into the postings cache, for later queries.
    OnMiss(Prefetcher),
    /// Reader threads prefetch the lists of queued queries into the postings cache.
    Ahead(Prefetcher),
}

/// The prefetch of a queued query.
pub(super) enum PrefetchState {
    /// Nothing is prefetched.
    None,
    /// In the queue of the page cache prefetcher.
    PageCache(PageQuery),
    /// Lists are looked up in the postings cache when the query is evaluated.
    OnMiss,
    /// In the queue of the postings cache.
    Ahead(QueuedQuery),
}

impl ListPrefetch {
    /// Starts the reader threads of a mode of the thesis.
    pub(super) fn start(index: &Index, options: &ExecutorOptions) -> Result<(ListPrefetch, ReadEngineName)> {
        let mapped = options.reads_mapped();
        let through_page_cache = || {
            let call = if mapped { "mapped files" } else { "pread through the page cache" };
            let readahead = if options.kernel_readahead { "" } else { ", without readahead" };
            (format!("{call}{readahead}"), None)
        };
        if options.mode == Mode::HybridPrefetch || !options.mode.has_cache() && !options.kernel_readahead {
            disable_readahead(index, mapped)?;
        }
        match options.mode {
            Mode::Base => return Ok((ListPrefetch::Base, through_page_cache())),
            Mode::BasePrefetch => {
                let ahead = match options.lookahead {
                    Lookahead::Queries(queries) => queries,
                    Lookahead::Adaptive | Lookahead::Pins => QUERIES_AHEAD,
                };
                let prefetcher = PagePrefetcher::start(ahead, options.lookahead_samples)?;
                return Ok((ListPrefetch::PageCache(prefetcher), through_page_cache()));
            }
            Mode::Hybrid | Mode::HybridPrefetch | Mode::Direct => {}
        }
        let (cells, engines, name) = read_engines(index, options, options.reader_threads)?;
        let cache = Cache::new(cells, options.policy)?;
        if options.lookahead_samples > 0 {
            cache.record_lookahead(options.lookahead_samples);
        }
        let prefetcher = Prefetcher::start(&cache, engines, options.lookahead)?;
        let is_on_miss = options.mode == Mode::Hybrid;
        let prefetch =
            if is_on_miss { ListPrefetch::OnMiss(prefetcher) } else { ListPrefetch::Ahead(prefetcher) };
        Ok((prefetch, name))
    }

    /// Queues a query. Also returns its list requests, if its evaluation will wait for lists one by one.
    pub(super) fn push(&self, plan: &QueryPlan, index: &Index) -> Result<(PrefetchState, Vec<ListRequest>)> {
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
    pub(super) fn wait(
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
                    Ok(cached.map(FetchedList::Pinned))
                };
                requests.iter().map(look_up).collect()
            }
            (_, PrefetchState::Ahead(query)) => {
                (0..query.lists()).map(|list| Ok(Some(query.wait(list)?))).collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Counters of the postings cache; `None` without one.
    pub(super) fn stats(&self) -> Option<CacheStats> {
        match self {
            ListPrefetch::Base | ListPrefetch::PageCache(_) => None,
            ListPrefetch::OnMiss(prefetcher) | ListPrefetch::Ahead(prefetcher) => {
                Some(prefetcher.cache().stats())
            }
        }
    }

    /// Bytes that the page cache prefetcher read.
    pub(super) fn page_cache_bytes_read(&self) -> u64 {
        match self {
            ListPrefetch::PageCache(prefetcher) => prefetcher.bytes_read(),
            _ => 0,
        }
    }

    /// The recorded lookahead samples, oldest first.
    pub(super) fn lookahead_samples(&self) -> Vec<LookaheadSample> {
        match self {
            ListPrefetch::Base => Vec::new(),
            ListPrefetch::PageCache(prefetcher) => prefetcher.lookahead_samples(),
            ListPrefetch::OnMiss(prefetcher) | ListPrefetch::Ahead(prefetcher) => {
                prefetcher.cache().lookahead_samples()
            }
        }
    }
}

/// Turns off the kernel's readahead for postings files while the index is open: lists are read in large
/// pieces, and the bytes after a list are seldom needed. No effect where the system rejects it.
fn disable_readahead(index: &Index, mapped: bool) -> Result<()> {
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    for file in fields.flat_map(|field| [field.skips(), field.postings()]) {
        if mapped {
            // Maps the file: the advice applies to its mapping.
            file.file().read_mapped(0, &mut [0])?;
        }
        let _ = file.file().advise(0..u64::MAX, Advice::Random);
    }
    Ok(())
}

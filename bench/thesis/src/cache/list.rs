//! Lists that can be read: pinned in the cache, or streamed through the bounce buffer.
//!
//! A [`FetchedList`] gives a [`ListReader`] for each of its parts. The methods of [`ListCache`] that return
//! lists are here, so that the cache itself does not depend on its handles.

use std::sync::Arc;

use tierdex_io::Result;

use crate::cache::{
    entry_table::EntryState, list_cache::ListCache, list_reader::ListReader, queue::Admission,
};
use crate::{cache::request::ListRequest, cache::state::ListCacheState};

/// A list that can be read. It is not evicted before this is dropped.
pub struct FetchedList {
    cache: Arc<ListCache>,
    source: ListSource,
}

/// Where the bytes of a list are.
enum ListSource {
    /// In this cache entry, which is pinned.
    Pinned(u32),
    /// In files: the list does not fit into the cache. It is read, and checked, chunk by chunk through the
    /// bounce buffer. Each reader has a buffer of the pages that it read last. In sequential reading it
    /// doubles with each chunk, up to the size of the bounce buffer and the limit of
    /// [`ListReader::with_buffer_bytes_max`].
    Streamed(ListRequest),
}

impl FetchedList {
    /// Whether the list is in the cache.
    pub fn is_pinned(&self) -> bool {
        matches!(self.source, ListSource::Pinned(_))
    }

    /// A reader of part `part`, which for a pinned list allocates nothing.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn reader(&self, part: usize) -> ListReader<'_> {
        match &self.source {
            ListSource::Pinned(entry) => ListReader::pinned(&self.cache, *entry, part),
            ListSource::Streamed(request) => ListReader::streamed(&self.cache, request, part),
        }
    }
}

impl Drop for FetchedList {
    fn drop(&mut self) {
        if let ListSource::Pinned(entry) = self.source {
            let mut state = self.cache.lock();
            state.unpin(entry);
            self.cache.unlock_and_notify(state);
        }
    }
}

impl ListCache {
    /// The list of a request, pinned, if it is in the cache.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](tierdex_io::ErrorKind::Corrupt) when the list in the cache under this key has
    /// other parts.
    pub fn lookup(self: &Arc<Self>, request: &ListRequest) -> Result<Option<FetchedList>> {
        let entry = self.lock().lookup(request)?;
        Ok(entry.map(|entry| self.fetched_list(ListSource::Pinned(entry))))
    }

    /// Waits for a list of a query: see [`super::QueuedQuery::wait`].
    pub(crate) fn wait(self: &Arc<Self>, query: u64, list: usize) -> Result<FetchedList> {
        let pending = |state: &ListCacheState| match state.queue.list(query, list).1 {
            None => true,
            Some(Admission::Cached(entry)) => state.state(entry) == EntryState::Loading,
            Some(Admission::Streamed | Admission::Rejected) => false,
        };
        let mut state = self.wait_while(self.lock(), pending)?;
        let (request, admission) = state.queue.list(query, list);
        let entry = match admission {
            Some(Admission::Cached(entry)) => entry,
            Some(Admission::Rejected) => return Err(request.mismatch_error()),
            Some(Admission::Streamed) | None => {
                return Ok(self.fetched_list(ListSource::Streamed(request.clone())));
            }
        };
        if let Some(error) = state.error(entry) {
            return Err(error);
        }
        state.pin(entry);
        Ok(self.fetched_list(ListSource::Pinned(entry)))
    }

    fn fetched_list(self: &Arc<Self>, source: ListSource) -> FetchedList {
        FetchedList { cache: Arc::clone(self), source }
    }
}

//! Posting lists that are fetched whole (thesis, section 7.2.3).
//!
//! *Input*: a plan. *Output*: the list requests of its prefetch, and a [`BlockSource`] that serves blocks
//! from the fetched lists and all other ranges from the files.

use crate::cache::{FetchedList, ListKey, ListReader, ListRequest, RequestedRange};
use std::{cell::RefCell, ops::Range, sync::Arc};
use tierdex::internal::{
    query::FileRange, query::QueryList, segment::read::BlockSource, segment::read::Files,
};
use tierdex::{Error, Index, Result, internal::eval::SearchPlan};
use tierdex_io::{ErrorKind, SealedFile};

/// A request for each list of a plan: its skip record unless that is resident, and its blocks.
pub(crate) fn list_requests(plan: &SearchPlan, index: &Index) -> Result<Vec<ListRequest>> {
    plan.lists(index.segments()).into_iter().map(list_request).collect()
}

fn list_request(list: QueryList) -> Result<ListRequest> {
    let part = |FileRange { file, range }| RequestedRange::new(file, range);
    let parts = list.ranges.into_iter().map(part).collect::<tierdex_io::Result<Vec<_>>>()?;
    Ok(ListRequest::new(ListKey(list.key.0, list.key.1), parts)?)
}

/// Reads fetched lists from the cache, and all other ranges from the files.
pub(crate) struct WholeLists<'l> {
    /// Sorted by file and offset.
    parts: Vec<FetchedPart<'l>>,
    files: Files,
}

struct FetchedPart<'l> {
    file: u64,
    range: Range<u64>,
    reader: RefCell<ListReader<'l>>,
}

impl<'l> WholeLists<'l> {
    /// Serves the fetched `lists` of `requests`. Streamed lists have buffers of at most `read_ahead` bytes.
    pub(crate) fn new(
        requests: &[ListRequest],
        lists: &'l [Option<FetchedList>],
        read_ahead: usize,
    ) -> WholeLists<'l> {
        let fetched =
            requests.iter().zip(lists).filter_map(|(request, list)| Some((request, list.as_ref()?)));
        let parts = fetched.flat_map(|(request, list)| {
            request.parts().iter().enumerate().map(|(number, part)| FetchedPart {
                file: part.file().number(),
                range: part.range(),
                reader: RefCell::new(list.reader(number).with_buffer_bytes_max(read_ahead)),
            })
        });
        let mut parts: Vec<_> = parts.collect();
        parts.sort_unstable_by_key(|part| (part.file, part.range.start));
        WholeLists { parts, files: Files::new(read_ahead) }
    }

    /// The part that contains the byte at `start`.
    fn part(&self, file: &SealedFile, start: u64) -> Option<&FetchedPart<'l>> {
        let key = (file.number(), start);
        let at = self.parts.partition_point(|part| (part.file, part.range.start) <= key);
        self.parts[..at].last().filter(|part| part.file == key.0 && start < part.range.end)
    }
}

impl BlockSource for WholeLists<'_> {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let Some(part) = self.part(file, range.start) else { return self.files.read(file, range, out) };
        let own = range.start - part.range.start..range.end.saturating_sub(part.range.start);
        let read = part.reader.borrow_mut().read(own, out);
        read.map_err(|error| {
            out.clear();
            match error.kind() {
                ErrorKind::Denied => Error::corrupt(file.name(), range.start, "a block is outside its list"),
                _ => Error::Storage(error),
            }
        })
    }
}

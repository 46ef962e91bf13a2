//! Posting lists that are fetched whole (thesis, section 7.2.3).
//!
//! *Input*: a plan. *Output*: the list requests of its prefetch, and a [`BlockSource`] that serves blocks
//! from the fetched lists and all other ranges from the files.

use crate::error::{Error, Result};
use crate::index::Index;
use crate::query::QueryPlan;
use crate::query::plan::Leaf;
use crate::segment::read::{BlockSource, Files, Segment};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use tierdex_cache::{FetchedList, ListKey, ListPart, ListReader, ListRequest};
use tierdex_io::{ErrorKind, SealedFile};

/// A request for each list of a plan: its skip record unless that is resident, and its blocks.
pub(super) fn list_requests(plan: &QueryPlan, index: &Index) -> Result<Vec<ListRequest>> {
    let segments = || index.segments().iter().map(|segment| &**segment).enumerate();
    let lists = plan.leaves.iter().flat_map(|leaf| segments().map(move |of| (leaf, of)));
    lists.filter_map(|(leaf, of)| list_request(leaf, of).transpose()).collect()
}

/// `None` if nothing has to be read.
fn list_request(leaf: &Leaf, (number, segment): (usize, &Segment)) -> Result<Option<ListRequest>> {
    let field = segment.field(leaf.field);
    let Some(info) = &leaf.infos[number] else { return Ok(None) };
    let record = field.skips().resident().is_none().then_some((field.skips(), &info.skips));
    let blocks = info.blocks.as_ref().map(|range| (field.postings(), range));
    let parts = record.into_iter().chain(blocks);
    let parts = parts.map(|(file, range)| Ok(ListPart::new(Arc::clone(file), range.clone())?));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    // File numbers are unique among open files, and offsets of skip records within a file.
    let key = ListKey(field.skips().number(), info.skips.start);
    if parts.is_empty() { Ok(None) } else { Ok(Some(ListRequest::new(key, parts)?)) }
}

/// Reads fetched lists from the cache, and all other ranges from the files.
pub(super) struct WholeLists<'l> {
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
    pub(super) fn new(
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

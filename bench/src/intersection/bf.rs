//! BF (section III-D): as [`super::sl`], but before a page is read, the id is tested against the page's
//! Bloom filter in memory. A list without filters is read as by `sl`.

use crate::intersection::list::PagedList;
use crate::intersection::{partition, reader_threads::ReaderThreads, reads::IntersectionResult, sl};
use tierdex::Result;

/// The ids that are in all lists.
///
/// # Errors
/// When a page cannot be read or is damaged.
pub fn intersect(readers: &ReaderThreads, lists: &[PagedList]) -> Result<IntersectionResult> {
    partition::run_partitioned(readers, lists, |reader, lists, ids| sl::find_common(reader, lists, ids, true))
}

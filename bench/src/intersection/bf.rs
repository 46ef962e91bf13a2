//! BF (section III-D): as [`super::sl`], but before a page is read, the id is tested against the page's
//! Bloom filter in memory. A list without filters is read as by `sl`.

use super::list::PagedList;
use super::reader_threads::ReaderThreads;
use super::reads::IntersectionResult;
use super::{partition, sl};
use tierdex::Result;

/// The ids that are in all lists.
///
/// # Errors
/// When a page cannot be read or is damaged.
pub fn intersect(readers: &ReaderThreads, lists: &[PagedList]) -> Result<IntersectionResult> {
    partition::run(readers, lists, |reader, lists, range| sl::task(reader, lists, range, true))
}

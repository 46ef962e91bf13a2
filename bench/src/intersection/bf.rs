//! BF (section III-D): [`super::sl`], but before a page is read the id is tested against the page's Bloom filter in memory. A
//! list without filters is read as by `sl`.

use super::crew::Crew;
use super::list::PagedList;
use super::reads::Found;
use super::{partition, sl};
use tierdex::error::Result;

/// The ids that stand in all lists.
///
/// # Errors
/// When a page cannot be read or is damaged.
pub fn intersect(crew: &Crew, lists: &[PagedList]) -> Result<Found> {
    partition::run(crew, lists, |reader, lists, range| sl::task(reader, lists, range, true))
}

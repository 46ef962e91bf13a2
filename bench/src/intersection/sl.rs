//! SL, short-long (section III-B): looks up each id of the shortest list in the others, in order of length,
//! until a list does not contain it. The skip pointers give the page whose range covers the id; it is read
//! unless it is loaded.

use crate::intersection::filter::PageIds;
use crate::intersection::{list::PagedList, page_cursor::PageCursor, page_reader::ListPageReader, partition};
use crate::{intersection::reader_threads::ReaderThreads, intersection::reads::IntersectionResult};
use std::ops::Range;
use tierdex::Result;

/// The ids that are in all lists.
///
/// # Errors
/// When a page cannot be read or is damaged.
pub fn intersect(readers: &ReaderThreads, lists: &[PagedList]) -> Result<IntersectionResult> {
    partition::run_partitioned(readers, lists, |reader, lists, ids| find_common(reader, lists, ids, false))
}

/// Intersects one sublist of the shortest list. With `filter`, this is `bf`.
pub(super) fn find_common(
    reader: &mut ListPageReader,
    lists: &[PagedList],
    range: Range<u64>,
    filter: bool,
) -> Result<Vec<u32>> {
    let (mut found, mut page_ids) = (Vec::new(), Vec::new());
    let mut others: Vec<PageCursor<'_>> = lists[1..].iter().map(PageCursor::new).collect();
    for page in lists[0].page_at(range.start)..=lists[0].page_at(range.end - 1) {
        reader.read_page(&lists[0], page, &mut page_ids)?;
        let PageIds { before, count } = lists[0].ids_of(page);
        let from = range.start.saturating_sub(before) as usize;
        let to = (range.end - before).min(count as u64) as usize;
        for &id in &page_ids[from..to] {
            let mut everywhere = true;
            for other in &mut others {
                if !other.member(reader, id, filter)? {
                    everywhere = false;
                    break;
                }
            }
            if everywhere {
                found.push(id);
            }
        }
    }
    Ok(found)
}

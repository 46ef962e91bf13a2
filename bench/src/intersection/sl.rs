//! SL, short-long (section III-B): looks up each id of the shortest list in the others, in order of length,
//! until a list does not contain it. The skip pointers give the page whose range covers the id; it is read
//! unless it is loaded.
//!
//! BF (section III-D) does the same, but before a page is read, the id is tested against the page's Bloom
//! filter in memory.

use crate::intersection::{
    filter::PageIds, list::PagedList, page_cursor::PageCursor, page_reader::ListPageReader,
};
use std::ops::Range;
use tierdex::Result;

/// Intersects one sublist of the shortest list. With `FILTER`, this is `bf`.
pub(super) fn find_common<const FILTER: bool>(
    reader: &mut ListPageReader,
    lists: &[PagedList],
    range: Range<u64>,
) -> Result<Vec<u32>> {
    let (mut found, mut page_ids) = (Vec::new(), Vec::new());
    let mut others: Vec<PageCursor<'_>> = lists[1..].iter().map(PageCursor::new).collect();
    for page in lists[0].page_at(range.start)..=lists[0].page_at(range.end - 1) {
        reader.read_page(&lists[0], page, &mut page_ids)?;
        let PageIds { before, count } = lists[0].ids_of(page);
        let from = range.start.saturating_sub(before) as usize;
        let to = (range.end - before).min(count as u64) as usize;
        for &id in &page_ids[from..to] {
            let and_in = |all, other: &mut PageCursor<'_>| -> Result<bool> {
                Ok(all && other.member(reader, id, FILTER)?)
            };
            if others.iter_mut().try_fold(true, and_in)? {
                found.push(id);
            }
        }
    }
    Ok(found)
}

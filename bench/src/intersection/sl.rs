//! SL, short-long (section III-B): each id of the shortest list is looked up in the others, the shorter ones first, until one
//! does not hold it. The page whose range covers the id is found in the skip pointers and read, unless it is there already.

use super::crew::Crew;
use super::fetch::Reader;
use super::list::PagedList;
use super::partition;
use super::reads::Found;
use super::walker::Walker;
use std::ops::Range;
use tierdex::error::Result;

/// The ids that stand in all lists.
///
/// # Errors
/// When a page cannot be read or is damaged.
pub fn intersect(crew: &Crew, lists: &[PagedList]) -> Result<Found> {
    partition::run(crew, lists, |reader, lists, range| task(reader, lists, range, false))
}

/// One part of the work; with filters, `bf`.
pub(super) fn task(
    reader: &mut Reader,
    lists: &[PagedList],
    range: Range<u64>,
    filter: bool,
) -> Result<Vec<u32>> {
    let (mut found, mut page_ids) = (Vec::new(), Vec::new());
    let mut others: Vec<Walker<'_>> = lists[1..].iter().map(Walker::new).collect();
    for page in lists[0].page_at(range.start)..=lists[0].page_at(range.end - 1) {
        reader.page(&lists[0], page, &mut page_ids)?;
        let (before, count) = lists[0].ids_of(page);
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

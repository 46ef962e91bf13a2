//! ZZ, zig-zag (section III-C): passes an eliminator, initially the first id of the shortest list, round the
//! lists. If a list does not contain it, its successor in that list becomes the eliminator. An eliminator
//! that all lists contain is a result.

use crate::intersection::{list::PagedList, page_cursor::PageCursor, page_reader::ListPageReader};
use std::ops::Range;
use tierdex::Result;

/// Intersects one sublist of the shortest list.
pub(super) fn find_common(
    reader: &mut ListPageReader,
    lists: &[PagedList],
    range: Range<u64>,
) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut cursors: Vec<PageCursor<'_>> = lists.iter().map(PageCursor::new).collect();
    let mut eliminator = cursors[0].seek(reader, range.start)?;
    let (mut matches, mut turn) = (1, 1);
    loop {
        if matches == lists.len() {
            found.push(eliminator);
            (eliminator, matches, turn) = (eliminator + 1, 0, 0);
        }
        let Some((next, position)) = cursors[turn].successor(reader, eliminator)? else { return Ok(found) };
        if turn == 0 && position >= range.end {
            return Ok(found);
        }
        matches = if next == eliminator { matches + 1 } else { 1 };
        eliminator = next;
        turn = (turn + 1) % lists.len();
    }
}

//! Work for many threads (section III-E, after Taticonda, Cambazoglu, Junqueira, SIGIR 2011): the shortest list is cut into
//! equal sublists. Where the others are to be cut follows from the first id of each, by search in their skip pointers, which
//! each task does when it has read it.

use super::crew::Crew;
use super::fetch::{PIECE, Reader, whole};
use super::list::{PagedList, by_length};
use super::page::PAGE_BYTES;
use super::reads::{Found, Reads};
use std::ops::Range;
use std::sync::Arc;
use tierdex::error::Result;
use tierdex::io::{Cells, Region, RegionKind};

/// Finds the ids of a sublist of the shortest list, from one place to another, that stand in all the others. The lists are
/// sorted by length, and none is empty.
pub(super) type Task = fn(&mut Reader, &[PagedList], Range<u64>) -> Result<Vec<u32>>;

/// Runs `task` on each of as many sublists as there are threads, but no more than the longest list has pages. If the
/// shortest has fewer pages than that, it is read once before it is cut.
pub(super) fn run(crew: &Crew, lists: &[PagedList], task: Task) -> Result<Found> {
    let mut lists = by_length(lists);
    let (Some(shortest), Some(longest)) = (lists.first(), lists.last()) else { return Ok(Found::default()) };
    let parts = crew.threads().min(longest.pages());
    let mut before = Reads::default();
    if (1..parts.min(PIECE)).contains(&shortest.pages()) && !shortest.is_whole() {
        let list = shortest.clone();
        for (whole, reads) in crew.run([move |reader: &mut Reader| read_once(reader, &list)])? {
            (lists[0], before) = (whole, reads);
        }
    }
    let lists: Arc<[PagedList]> = lists.into();
    let tasks = cut(lists[0].len(), parts as u64).map(|range| {
        let lists = Arc::clone(&lists);
        move |reader: &mut Reader| task(reader, &lists, range)
    });
    let mut found = Found::join(crew.find(tasks)?, &lists);
    found.reads += before;
    Ok(found.of(&lists))
}

/// The same list in memory; it is a short one.
fn read_once(reader: &mut Reader, list: &PagedList) -> Result<PagedList> {
    let bytes = (list.pages() * PAGE_BYTES).next_power_of_two();
    let cells = Cells::new(Region::new(&RegionKind::Dram, bytes as u64)?, bytes)?;
    whole(reader, list, cells.write(0).into_iter().collect())
}

/// Equal parts of `0..len`, none of them empty.
fn cut(len: u64, parts: u64) -> impl Iterator<Item = Range<u64>> {
    let parts = parts.min(len);
    let at = move |part: u64| (u128::from(len) * u128::from(part) / u128::from(parts.max(1))) as u64;
    (0..parts).map(move |part| at(part)..at(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_cover_all() {
        for (len, parts) in [(0, 3), (1, 32), (10, 3), (1000, 32), (32, 32)] {
            let ranges: Vec<_> = cut(len, parts).collect();
            assert_eq!(ranges.len() as u64, parts.min(len));
            assert_eq!(ranges.iter().map(|range| range.end - range.start).sum::<u64>(), len);
            assert!(ranges.iter().all(|range| (range.end - range.start).abs_diff(len / parts) <= 1));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}

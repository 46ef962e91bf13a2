//! Divides an intersection among threads (section III-E, after Taticonda, Cambazoglu, Junqueira, SIGIR
//! 2011): the shortest list is divided into equal sublists, one task each. A task finds the matching ranges
//! of the other lists in their skip pointers.

use crate::intersection::page_reader::{ListPageReader, PIECE_PAGES, read_whole_list};
use crate::intersection::reads::IntersectionResult;
use crate::intersection::{
    list::PagedList, list::by_length, page::PAGE_BYTES, reader_threads::ReaderThreads,
};
use std::{ops::Range, sync::Arc};
use tierdex::{Result, io::Cells, io::Region, io::RegionKind};

/// Finds the ids of a sublist of the shortest list, a range of positions, that are in all other lists. The
/// lists are sorted by length, and none is empty.
pub(super) type SublistTask = fn(&mut ListPageReader, &[PagedList], Range<u64>) -> Result<Vec<u32>>;

/// Runs `task` on each sublist. The number of sublists is the number of threads, or the number of pages of
/// the longest list if that is smaller. If the shortest list has fewer pages than sublists, it is read once
/// before it is divided.
pub(super) fn run_partitioned(
    readers: &ReaderThreads,
    lists: &[PagedList],
    task: SublistTask,
) -> Result<IntersectionResult> {
    let mut lists = by_length(lists);
    let (Some(shortest), Some(longest)) = (lists.first(), lists.last()) else {
        return Ok(IntersectionResult::default());
    };
    let parts = readers.threads().min(longest.pages());
    let mut found = IntersectionResult::default();
    if (1..parts.min(PIECE_PAGES)).contains(&shortest.pages()) && !shortest.is_whole() {
        let list = shortest.clone();
        for (whole, reads) in
            readers.run([move |reader: &mut ListPageReader| read_short_list(reader, &list)])?
        {
            (lists[0], found.reads) = (whole, reads);
        }
    }
    let lists: Arc<[PagedList]> = lists.into();
    let tasks = equal_ranges(lists[0].len(), parts as u64).map(|range| {
        let lists = Arc::clone(&lists);
        move |reader: &mut ListPageReader| task(reader, &lists, range)
    });
    for (ids, reads) in readers.run(tasks)? {
        found.ids.extend(ids);
        found.reads += reads;
    }
    Ok(found.with_skipped(&lists))
}

/// Reads a list with fewer pages than [`PIECE_PAGES`] into memory.
fn read_short_list(reader: &mut ListPageReader, list: &PagedList) -> Result<PagedList> {
    let bytes = (list.pages() * PAGE_BYTES).next_power_of_two();
    let cells = Cells::new(Region::new(&RegionKind::Dram, bytes as u64)?, bytes)?;
    read_whole_list(reader, list, cells.write(0).into_iter().collect())
}

/// Divides `0..len` into equal parts, none of them empty.
fn equal_ranges(len: u64, parts: u64) -> impl Iterator<Item = Range<u64>> {
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
            let ranges: Vec<_> = equal_ranges(len, parts).collect();
            assert_eq!(ranges.len() as u64, parts.min(len));
            assert_eq!(ranges.iter().map(|range| range.end - range.start).sum::<u64>(), len);
            assert!(ranges.iter().all(|range| (range.end - range.start).abs_diff(len / parts) <= 1));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}

//! Linked lists of cells in one array (thesis, section 7.2.3, figure 7.5, where a cell is called a
//! segment).
//!
//! Allocates lists of cells and frees them. The array holds, for each cell, the number of the next cell in
//! its list: the list of an entry, or the free list. Nothing is allocated after construction.
//!
//! - Freeing a list takes two stores, whatever its length: its tail is linked to the head of the free list.
//! - Allocating a list takes one step per cell, which will be written anyway, and two stores.
//!
//! The links are atomic so that a thread that has pinned an entry follows them without the lock. The links
//! of an entry do not change before its cells are freed, and the lock under which the entry was pinned
//! orders the earlier writes before the pin. Relaxed loads and stores are therefore sufficient. The same
//! holds for the locations of parts.
//!
//! The parts of a list are packed: each begins at the page after the last page of the previous part, in the
//! same cell if that has a page left. Locations therefore follow from the length of each part and its
//! offset within its first page:
//!
//! ```text
//! cells of 4 pages   | a a a b | b b b b | b c d d |   a has 3 pages, b 6, c 1, d 2
//! ```
//!
//! Up to [`PARTS_MAX`] parts may begin in one cell, and one part may be as long as all cells. So each cell
//! has [`PARTS_MAX`] words of 32 bits. The words of the first cell of a list are sufficient for parts that
//! are no longer than a cell; those of the second cell hold the remaining bits of longer parts:
//!
//! ```text
//! first cell    bits 0 to 11: offset of the part in its first page
//!               bits 12 to 31: low 20 bits of its length - 1
//! second cell   bits 0 to 31: high bits of its length - 1
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use tierdex_io::{CELL_BYTES_MAX, PAGE};

use super::request::PARTS_MAX;

/// Instead of the number of a cell: there is none.
pub(crate) const NO_CELL: u32 = u32::MAX;

/// A list of cells, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellList {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) count: u32,
}

/// The list of free cells.
#[derive(Debug)]
pub(crate) struct FreeCells {
    head: u32,
    count: u32,
}

/// The next cell of each cell, and the parts of the list of which it is the first or second cell.
pub(crate) struct CellLinks {
    next: Box<[AtomicU32]>,
    parts: Box<[[AtomicU32; PARTS_MAX]]>,
}

/// Location of a part within the bytes of its list of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartLocation {
    /// Byte offset of the part.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) len: u64,
}

/// Bits of a part's first word that hold its offset within its first page.
const PAGE_OFFSET_BITS: u32 = PAGE.trailing_zeros();

/// Bits of the length of a part that its first word holds.
const LOW_LENGTH_BITS: u32 = u32::BITS - PAGE_OFFSET_BITS;

/// The value of all words of a part that the list does not have. A real part cannot have this first word
/// only: a part of such a length has a second cell, thus a second word.
const NO_PART: u32 = u32::MAX;

// A part that is no longer than a cell needs no second word.
const _: () = assert!(CELL_BYTES_MAX <= 1 << LOW_LENGTH_BITS);

impl CellLinks {
    /// Links of `count` cells, fewer than 2^32 - 1, all free.
    pub(crate) fn new(count: u32) -> (CellLinks, FreeCells) {
        let next = (1..=count).map(|at| AtomicU32::new(if at == count { NO_CELL } else { at })).collect();
        let parts = (0..count).map(|_| Default::default()).collect();
        (CellLinks { next, parts }, FreeCells { head: 0, count })
    }

    /// Bytes of memory for each cell.
    pub(crate) const BYTES_PER_CELL: usize = size_of::<AtomicU32>() * (1 + PARTS_MAX);

    /// The cell after this one.
    pub(crate) fn next_cell(&self, cell: u32) -> u32 {
        self.next[cell as usize].load(Ordering::Relaxed)
    }

    /// The cell `steps` after this one, which must exist.
    pub(crate) fn cell_after(&self, cell: u32, steps: u32) -> u32 {
        (0..steps).fold(cell, |cell, _| self.next_cell(cell))
    }

    /// Location of part `part` in the list that begins at `head`; `None` when the list has fewer parts.
    pub(crate) fn part_location(&self, head: u32, part: usize) -> Option<PartLocation> {
        let mut page = 0;
        for before in 0..part {
            let (page_offset, len) = self.packed_part(head, before)?;
            page += (page_offset + len).next_multiple_of(PAGE);
        }
        let (page_offset, len) = self.packed_part(head, part)?;
        Some(PartLocation { start: page + page_offset, len })
    }

    /// The offset of a part within its first page, and its length.
    fn packed_part(&self, head: u32, part: usize) -> Option<(u64, u64)> {
        let word = |cell: u32| Some(self.parts[cell as usize].get(part)?.load(Ordering::Relaxed));
        let (low, second) = (word(head)?, self.next_cell(head));
        let high = if second == NO_CELL { None } else { word(second) };
        if low == NO_PART && high.is_none_or(|high| high == NO_PART) {
            return None;
        }
        let more = u64::from(high.unwrap_or(0)) << LOW_LENGTH_BITS | u64::from(low >> PAGE_OFFSET_BITS);
        Some((u64::from(low) % PAGE, more + 1))
    }

    /// Sets the parts of the list that begins at `head`, which must be long enough: for each part its
    /// offset within its first page, and its length.
    pub(crate) fn set_parts(&self, head: u32, parts: impl Iterator<Item = (u64, u64)>) {
        let second = self.next_cell(head);
        let words = parts.map(|(page_offset, len)| {
            let more = len - 1;
            ((more << PAGE_OFFSET_BITS | page_offset) as u32, (more >> LOW_LENGTH_BITS) as u32)
        });
        for (part, (low, high)) in words.chain([(NO_PART, NO_PART)]).take(PARTS_MAX).enumerate() {
            self.parts[head as usize][part].store(low, Ordering::Relaxed);
            if second != NO_CELL {
                self.parts[second as usize][part].store(high, Ordering::Relaxed);
            }
        }
    }

    /// Allocates `count` cells, at least one; `None` when fewer are free.
    pub(crate) fn allocate(&self, free: &mut FreeCells, count: u32) -> Option<CellList> {
        if count == 0 || free.count < count {
            return None;
        }
        let head = free.head;
        let tail = self.cell_after(head, count - 1);
        free.head = self.next_cell(tail);
        free.count -= count;
        self.set_next(tail, NO_CELL);
        Some(CellList { head, tail, count })
    }

    /// Frees a list.
    pub(crate) fn release_list(&self, free: &mut FreeCells, list: CellList) {
        self.set_next(list.tail, free.head);
        free.head = list.head;
        free.count += list.count;
    }

    /// Frees all cells of a list except the first, and returns what is left.
    pub(crate) fn release_all_but_first(&self, free: &mut FreeCells, list: CellList) -> CellList {
        let CellList { head, tail, count } = list;
        if count > 1 {
            self.release_list(free, CellList { head: self.next_cell(head), tail, count: count - 1 });
            self.set_next(head, NO_CELL);
        }
        CellList { head, tail: head, count: 1 }
    }

    fn set_next(&self, cell: u32, next: u32) {
        self.next[cell as usize].store(next, Ordering::Relaxed);
    }
}

impl FreeCells {
    /// Number of free cells.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells_of_list(links: &CellLinks, head: u32) -> Vec<u32> {
        let mut members = Vec::new();
        let mut at = head;
        while at != NO_CELL {
            assert!(members.len() < links.next.len(), "the list has a circle");
            members.push(at);
            at = links.next_cell(at);
        }
        members
    }

    #[test]
    fn the_cell_list_of_figure_7_5() {
        let next = [7, 5, 4, NO_CELL, NO_CELL, 3, 0, 8, NO_CELL].map(AtomicU32::new);
        let links = CellLinks { next: Box::new(next), parts: Box::default() };
        let mut free = FreeCells { head: 6, count: 4 };
        assert_eq!(cells_of_list(&links, free.head), [6, 0, 7, 8]);
        // Term 1 is evicted: the free list begins at cell 1, and cell 6 follows cell 3.
        links.release_list(&mut free, CellList { head: 1, tail: 3, count: 3 });
        assert_eq!((free.head, links.next_cell(3)), (1, 6));
        assert_eq!(cells_of_list(&links, free.head), [1, 5, 3, 6, 0, 7, 8]);
        assert_eq!(cells_of_list(&links, 2), [2, 4]);
    }

    #[test]
    fn part_locations_follow_from_part_lengths() {
        let (links, mut free) = CellLinks::new(3);
        let one = links.allocate(&mut free, 1).unwrap();
        let two = links.allocate(&mut free, 2).unwrap();
        let longest = CELL_BYTES_MAX as u64;
        let cases: [(CellList, &[(u64, u64)]); 7] = [
            (one, &[(0, 1)]),
            (one, &[(0, longest)]),
            (one, &[(PAGE - 1, longest - PAGE + 1)]),
            (one, &[(5, longest - PAGE - 5), (PAGE - 1, 1)]),
            (one, &[(7, 1); PARTS_MAX]),
            (two, &[(PAGE - 1, longest), (0, 17)]),
            (two, &[(PAGE - 1, (1 << 52) - 2 * PAGE), (0, 1)]),
        ];
        for (list, parts) in cases {
            links.set_parts(list.head, parts.iter().copied());
            let mut page = 0;
            for (part, (page_offset, len)) in parts.iter().enumerate() {
                let location = PartLocation { start: page + page_offset, len: *len };
                assert_eq!(links.part_location(list.head, part), Some(location), "{parts:?}");
                page += (page_offset + len).next_multiple_of(PAGE);
            }
            assert_eq!(links.part_location(list.head, parts.len()), None, "{parts:?}");
        }
    }

    proptest! {
        #[test]
        fn every_cell_is_free_or_in_one_list(
            count in 1..40_u32,
            steps in prop::collection::vec((0..8_u32, any::<prop::sample::Index>(), 0..4_u8), 0..80),
        ) {
            let (links, mut free) = CellLinks::new(count);
            let mut lists: Vec<(CellList, Vec<u32>)> = Vec::new();
            for (size, which, verb) in steps {
                if verb == 0 && !lists.is_empty() {
                    let (list, _) = lists.swap_remove(which.index(lists.len()));
                    links.release_list(&mut free, list);
                } else if verb == 1 && !lists.is_empty() {
                    let at = which.index(lists.len());
                    let (list, kept) = &mut lists[at];
                    *list = links.release_all_but_first(&mut free, *list);
                    kept.truncate(1);
                } else {
                    let before = free.count();
                    match links.allocate(&mut free, size) {
                        Some(list) => {
                            prop_assert_eq!(list.count, size);
                            lists.push((list, cells_of_list(&links, list.head)));
                        }
                        None => prop_assert!(size == 0 || size > before),
                    }
                }
                // The model: each list has the cells that it was allocated, and no cell is in two lists.
                let mut seen = cells_of_list(&links, free.head);
                prop_assert_eq!(seen.len(), free.count() as usize);
                for (list, given) in &lists {
                    prop_assert_eq!(&cells_of_list(&links, list.head), given);
                    prop_assert_eq!(given.last(), Some(&list.tail));
                    prop_assert_eq!(given.len(), list.count as usize);
                    seen.extend(given);
                }
                seen.sort_unstable();
                prop_assert!(seen.into_iter().eq(0..count));
            }
        }
    }
}

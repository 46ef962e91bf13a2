//! Guards of cells follow the borrow rules of `RefCell`, also across threads.

use proptest::prelude::*;
use std::{sync::Arc, thread};
use tierdex_io::{CELL_BYTES_MAX, CELL_BYTES_MIN, CellMut, CellRef, Cells, ErrorKind, Region, RegionKind};

fn new_cells(count: usize, cell_bytes: usize) -> Arc<Cells> {
    Cells::new(Region::new(&RegionKind::Dram, (count * cell_bytes) as u64).unwrap(), cell_bytes).unwrap()
}

#[test]
fn a_region_is_divided_into_whole_cells() {
    let region = || Region::new(&RegionKind::Dram, 5 * 4096).unwrap();
    assert_eq!(Cells::new(region(), 4096).unwrap().len(), 5);
    let pairs = Cells::new(region(), 8192).unwrap();
    assert_eq!((pairs.len(), pairs.cell_bytes()), (2, 8192));
    for bad in [0, 1, 2048, 4097, 12288, 2 * CELL_BYTES_MAX, 32768] {
        let rejected = Cells::new(region(), bad).map_err(|error| error.kind()).err();
        assert_eq!(rejected, Some(ErrorKind::Denied), "{bad}");
    }
    let error = Cells::new(region(), 3000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot cut region dram into cells: 3000 bytes are not a power of two from 4K to 1M"
    );
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn an_index_beyond_the_last_cell_panics() {
    new_cells(2, CELL_BYTES_MIN).read(2);
}

#[test]
fn writes_stay_within_their_cell() {
    let cells = new_cells(3, CELL_BYTES_MIN);
    let mut middle = cells.write(1).unwrap();
    middle.fill(7);
    drop(middle);
    assert!(cells.read(1).unwrap().iter().all(|byte| *byte == 7));
    for other in [0, 2] {
        assert!(cells.read(other).unwrap().iter().all(|byte| *byte == 0));
    }
    assert_eq!(cells.write(1).unwrap()[4095], 7, "a cell keeps its content");
}

#[test]
fn discarded_cells_of_an_elastic_region_are_zero_and_can_be_written_again() {
    let elastic = Cells::new(Region::elastic(3 * 4096).unwrap(), 4096).unwrap();
    (0..3).for_each(|cell| elastic.write(cell).unwrap().fill(7));
    let reader = elastic.read(1).unwrap();
    assert!(elastic.discard(0) && !elastic.discard(1), "a cell that is read is kept");
    assert!(reader.iter().all(|byte| *byte == 7));
    assert!(elastic.read(0).unwrap().iter().all(|byte| *byte == 0));
    assert!(elastic.read(2).unwrap().iter().all(|byte| *byte == 7));
    elastic.write(0).unwrap().fill(8);
    assert_eq!(elastic.read(0).unwrap()[4095], 8);
    let fixed = new_cells(1, CELL_BYTES_MIN);
    fixed.write(0).unwrap().fill(7);
    assert!(!fixed.discard(0) && fixed.read(0).unwrap()[0] == 7);
}

#[test]
fn a_write_guard_keeps_the_cells_allocated() {
    let cells = new_cells(1, CELL_BYTES_MIN);
    let mut guard = cells.write(0).unwrap();
    drop(cells);
    guard.fill(1);
    assert_eq!(guard.cells().read(0).map(|guard| guard.len()), None);
}

/// Each writer fills a cell with one byte value. A reader that sees two different values has found a race.
#[test]
fn threads_never_see_a_half_written_cell() {
    let cells = new_cells(4, CELL_BYTES_MIN);
    let work = |seed: usize| {
        let (mut read, mut written) = (0, 0);
        for step in 0..40_000_usize {
            let index = (step * 7 + seed * 3 + step / 11) % cells.len();
            if (step + seed).is_multiple_of(5) {
                let Some(mut cell) = cells.write(index) else { continue };
                cell.fill((step + seed) as u8);
                written += 1;
            } else {
                let Some(cell) = cells.read(index) else { continue };
                assert!(cell.iter().all(|byte| *byte == cell[0]), "torn");
                read += 1;
            }
        }
        (read, written)
    };
    let counts: Vec<(usize, usize)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(counts.iter().all(|(read, written)| *read > 0 && *written > 0), "{counts:?}");
    assert!((0..cells.len()).all(|index| cells.write(index).is_some()), "a guard was leaked");
}

/// Two threads fill two parts of a cell; a later reader sees both.
#[test]
fn parts_of_a_cell_are_written_by_several_threads() {
    let cells = new_cells(1, CELL_BYTES_MIN);
    for round in 0..2_000_u32 {
        let mut first = cells.write(0).unwrap();
        let mut second = first.split_off(1 + round as usize % (CELL_BYTES_MIN - 1));
        let byte = round as u8;
        thread::scope(|scope| {
            scope.spawn(move || second.fill(byte));
            assert!(cells.write(0).is_none());
            first.fill(byte);
            drop(first);
            let seen = loop {
                if let Some(seen) = cells.read(0) {
                    break seen;
                }
                thread::yield_now();
            };
            assert!(seen.iter().all(|seen| *seen == byte));
        });
    }
}

#[test]
#[should_panic(expected = "byte 0 of 4096")]
fn an_empty_part_panics() {
    new_cells(1, CELL_BYTES_MIN).write(0).unwrap().split_off(0);
}

/// Several threads increment a counter in one cell; no increment is lost.
#[test]
fn a_writer_excludes_other_writers() {
    let cells = new_cells(1, CELL_BYTES_MIN);
    let add = || {
        for _ in 0..5_000 {
            let mut cell = loop {
                match cells.write(0) {
                    Some(cell) => break cell,
                    None => thread::yield_now(),
                }
            };
            let count = u64::from_le_bytes(cell[..8].try_into().unwrap());
            cell[..8].copy_from_slice(&(count + 1).to_le_bytes());
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(add))));
    assert_eq!(cells.read(0).unwrap()[..8], 20_000_u64.to_le_bytes());
}

/// A random step: takes, splits or drops a guard. The numbers are cells or choose a guard.
#[derive(Debug, Clone, Copy)]
enum CellStep {
    Read(usize),
    Write(usize),
    /// Splits one of the write guards with more than a byte in two.
    Split(usize),
    /// Drops one of the guards.
    Drop(usize),
}

fn random_steps() -> impl Strategy<Value = Vec<CellStep>> {
    let step = prop_oneof![
        3 => (0..3_usize).prop_map(CellStep::Read),
        2 => (0..3_usize).prop_map(CellStep::Write),
        1 => any::<usize>().prop_map(CellStep::Split),
        3 => any::<usize>().prop_map(CellStep::Drop),
    ];
    prop::collection::vec(step, 0..200)
}

enum Guard<'a> {
    Read(CellRef<'a>),
    Write(CellMut),
}

impl Guard<'_> {
    fn cell_index(&self) -> usize {
        match self {
            Guard::Read(guard) => guard.index(),
            Guard::Write(guard) => guard.index(),
        }
    }
}

proptest! {
    /// The model is the list of all guards: a cell can be read if it has no write guard, and written if it
    /// has no guard.
    #[test]
    fn borrows_are_those_of_a_ref_cell(steps in random_steps()) {
        let cells = new_cells(3, CELL_BYTES_MIN);
        let mut guards: Vec<Guard> = Vec::new();
        for step in steps {
            match step {
                CellStep::Read(index) => {
                    let writes = |guard: &Guard| matches!(guard, Guard::Write(_)) && guard.cell_index() == index;
                    let guard = cells.read(index);
                    prop_assert_eq!(guard.is_some(), !guards.iter().any(writes));
                    guards.extend(guard.map(Guard::Read));
                }
                CellStep::Write(index) => {
                    let guard = cells.write(index);
                    prop_assert_eq!(guard.is_some(), !guards.iter().any(|guard| guard.cell_index() == index));
                    guards.extend(guard.map(Guard::Write));
                }
                CellStep::Split(which) => {
                    let writers = guards.iter_mut().filter_map(|guard| match guard {
                        Guard::Write(cell) if cell.len() > 1 => Some(cell),
                        _ => None,
                    });
                    let mut writers: Vec<_> = writers.collect();
                    let Some(at) = which.checked_rem(writers.len()) else { continue };
                    let (bytes, cell) = (writers[at].len(), &mut writers[at]);
                    let other = cell.split_off(1 + which % (bytes - 1));
                    prop_assert_eq!(cell.len() + other.len(), bytes);
                    guards.push(Guard::Write(other));
                }
                CellStep::Drop(which) if !guards.is_empty() => drop(guards.swap_remove(which % guards.len())),
                CellStep::Drop(_) => {}
            }
        }
        guards.clear();
        prop_assert!((0..3).all(|index| cells.write(index).is_some()));
    }
}

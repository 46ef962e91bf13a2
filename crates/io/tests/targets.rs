//! Reads into several cells, or into parts of them, by every read method.

use proptest::prelude::*;
use std::sync::Arc;
use tempfile::TempDir;
use tierdex_io::{
    CellMut, Cells, Disk, FaultDisk, FaultPlan, PosixDisk, ReadFile, ReadKind, ReadOptions, ReadQueue,
    ReadTarget, Region, RegionKind,
};

const PAGE: usize = 4096;

/// Read methods, and whether they use direct I/O.
const READ_METHODS: [(ReadKind, bool); 4] =
    [(ReadKind::Pread, false), (ReadKind::Pread, true), (ReadKind::Uring, false), (ReadKind::Uring, true)];

fn new_cells(count: usize, cell_bytes: usize) -> Arc<Cells> {
    Cells::new(Region::new(&RegionKind::Dram, (count * cell_bytes) as u64).unwrap(), cell_bytes).unwrap()
}

fn file_content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

/// Reads a file of `bytes` into `cells` in this order, with reads of `sizes` pages. Cells are split where
/// a read ends.
fn check_reads(
    mut queue: ReadQueue,
    file: &Arc<dyn ReadFile>,
    bytes: &[u8],
    cells: &[CellIndex],
    sizes: &[usize],
) {
    let mut order = cells.iter().map(|(cells, index)| cells.write(*index).unwrap());
    let (mut rest, mut at): (Option<CellMut>, usize) = (None, 0);
    for size in sizes.iter().cycle() {
        if at >= bytes.len() {
            break;
        }
        let mut left = (size * PAGE).min(bytes.len().next_multiple_of(PAGE) - at);
        let (tag, mut target) = (at, Vec::new());
        while left > 0 {
            let mut cell = rest.take().or_else(|| order.next()).unwrap();
            cell.fill(0xA5);
            if cell.len() > left {
                rest = Some(cell.split_off(left));
            }
            (left, at) = (left - cell.len(), at + cell.len());
            target.push(cell);
        }
        let target = ReadTarget::across(target).unwrap();
        assert_eq!(target.range().len(), at - tag);
        queue.submit(file, tag as u64, target, tag as u64);
    }
    drop((order, rest));
    while let Some(ended) = queue.next(true) {
        let from = ended.tag as usize;
        let len = ended.result.unwrap();
        assert_eq!(len, ended.target.range().len().min(bytes.len() - from));
        let read: Vec<u8> = ended.target.pieces().flatten().copied().take(len).collect();
        assert!(read == bytes[from..from + len]);
    }
    let cell_bytes = cells[0].0.cell_bytes();
    for (expected, (cells, index)) in bytes.chunks(cell_bytes).zip(cells) {
        assert!(cells.read(*index).unwrap()[..expected.len()] == *expected, "cell {index}");
    }
    assert!(cells.iter().all(|(cells, index)| cells.write(*index).is_some()), "a part of a cell was leaked");
}

/// A cell: the index, and the cells that it belongs to.
type CellIndex = (Arc<Cells>, usize);

fn check_all_methods(
    disk: &dyn Disk,
    bytes: &[u8],
    order: &[usize],
    cell_bytes: usize,
    sizes: &[usize],
    depth: usize,
) {
    disk.create("a").unwrap().append(bytes).unwrap();
    let file: Arc<dyn ReadFile> = Arc::from(disk.open("a").unwrap());
    for (kind, direct) in READ_METHODS {
        for is_registered in [false, true] {
            let cells = new_cells(order.len(), cell_bytes);
            let registered = if is_registered { std::slice::from_ref(&cells) } else { &[] };
            let queue = ReadQueue::new(ReadOptions { kind, depth, direct }, disk, registered);
            let queue = queue.inspect_err(|error| println!("not run: {kind} (direct: {direct}): {error}"));
            let Ok(queue) = queue else { continue };
            let order: Vec<CellIndex> = order.iter().map(|index| (Arc::clone(&cells), *index)).collect();
            check_reads(queue, &file, bytes, &order, sizes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cells_in_any_order_split_at_borders_of_reads(
        len in 1..40 * PAGE,
        order in Just((0..40).collect::<Vec<usize>>()).prop_shuffle(),
        runs in any::<bool>(),
        pages in prop_oneof![Just(1_usize), Just(2), Just(4)],
        sizes in prop::collection::vec(1..12_usize, 1..8),
        depth in 1..5_usize,
        is_posix in any::<bool>(),
    ) {
        // Ascending, as the cells of a new cache.
        let order = if runs { (order[0]..40).chain(0..order[0]).collect() } else { order };
        let directory = TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        let bytes = file_content(len);
        if is_posix {
            check_all_methods(&disk, &bytes, &order, pages * PAGE, &sizes, depth);
        } else {
            let disk = FaultDisk::new(disk, FaultPlan::none());
            check_all_methods(&disk, &bytes, &order, pages * PAGE, &sizes, depth);
        }
    }
}

/// A system call takes at most 1,024 buffers.
#[test]
fn a_read_into_more_buffers_than_a_system_call_takes() {
    let directory = TempDir::new().unwrap();
    let disk = PosixDisk::open(directory.path()).unwrap();
    let order: Vec<usize> = (0..2_100).rev().collect();
    check_all_methods(&disk, &file_content(2_099 * PAGE + 5), &order, PAGE, &[2_100], 2);
}

#[test]
#[should_panic(expected = "cells of several memories")]
fn cells_of_a_target_are_of_one_region() {
    let cells = [new_cells(1, PAGE), new_cells(1, PAGE)];
    ReadTarget::across(cells.iter().map(|cells| cells.write(0).unwrap()));
}

#[test]
fn no_cells_are_no_target() {
    assert!(ReadTarget::across([]).is_none());
}

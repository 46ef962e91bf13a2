//! Reads by io_uring: submission and completion queues in memory shared with the kernel.
//!
//! Each read in flight has a slot, which owns what the kernel accesses: the file and the target. A read
//! leaves its slot when its completion has arrived, or when the kernel will certainly never take its
//! submission.

use super::in_flight::{Completion, InFlightRead, RemainingRead};
use super::{backend::Backend, preadv::IOVECS_MAX};
use crate::error::{Error, ErrorKind};
use crate::memory::Cells;
use io_uring::{IoUring, Probe, opcode, squeue, types};
use std::{collections::VecDeque, io, os::fd::AsRawFd, sync::Arc, thread, time::Duration};

/// Maximum bytes of a buffer that is registered with the kernel. As this is a multiple of the size of cells,
/// each cell is in one buffer.
const BUFFER_BYTES_MAX: usize = 1 << 30;

const _: () = assert!(BUFFER_BYTES_MAX.is_multiple_of(crate::memory::CELL_BYTES_MAX));

/// An address and a length with the layout of `libc::iovec`. As the address is an integer, this is `Send`.
#[repr(C)]
struct IoVec {
    start: usize,
    len: usize,
}

const _: () = assert!(size_of::<IoVec>() == size_of::<libc::iovec>());

/// A ring and the reads in flight.
pub(super) struct Uring {
    ring: IoUring,
    direct: bool,
    slots: Box<[Option<InFlightRead>]>,
    /// Buffers of the read in each slot; the kernel reads them for a vectored read.
    iovecs: Box<[Vec<IoVec>]>,
    free: Vec<usize>,
    /// Slots whose submission the kernel has not taken yet, oldest first.
    queued: VecDeque<usize>,
    /// The memory that is registered with the kernel. Each region has the index of its first buffer.
    registered: Vec<(Arc<Cells>, u16)>,
    /// The error after which nothing more is submitted to the kernel. Reads that it has taken still complete.
    broken: Option<io::Error>,
}

impl Uring {
    /// A ring for `depth` reads in flight. The second result is the reason when the memory could not be
    /// registered.
    ///
    /// # Errors
    /// When the kernel cannot create a ring, or the ring does not support reads.
    pub(super) fn new(
        depth: usize,
        direct: bool,
        cells: &[Arc<Cells>],
    ) -> io::Result<(Uring, Option<io::Error>)> {
        let entries = u32::try_from(depth.next_power_of_two()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let ring = IoUring::new(entries)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !(probe.is_supported(opcode::ReadFixed::CODE) && probe.is_supported(opcode::Readv::CODE)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel's ring does not read"));
        }
        let mut uring = Uring {
            ring,
            direct,
            slots: (0..depth).map(|_| None).collect(),
            iovecs: (0..depth).map(|_| Vec::new()).collect(),
            free: (0..depth).rev().collect(),
            queued: VecDeque::with_capacity(depth),
            registered: Vec::new(),
            broken: None,
        };
        let unregistered = uring.register_cells(cells).err();
        Ok((uring, unregistered))
    }

    /// Registers the memory of `cells`, so that the kernel pins its pages once and not for each read.
    fn register_cells(&mut self, cells: &[Arc<Cells>]) -> io::Result<()> {
        let mut buffers = Vec::new();
        let mut registered = Vec::new();
        for cells in cells {
            let first = u16::try_from(buffers.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            registered.push((Arc::clone(cells), first));
            let region = cells.region();
            for from in (0..region.len()).step_by(BUFFER_BYTES_MAX) {
                let start = region.start().wrapping_add(from);
                let iov_len = BUFFER_BYTES_MAX.min(region.len() - from);
                buffers.push(libc::iovec { iov_base: start.cast(), iov_len });
            }
        }
        if buffers.is_empty() {
            return Ok(());
        }
        // SAFETY: `registered` keeps the regions mapped as long as the ring exists; the kernel writes into
        // them only for reads that `entry` builds.
        unsafe { self.ring.submitter().register_buffers(&buffers) }?;
        self.registered = registered;
        Ok(())
    }

    /// The submission entry for the next system call of the read in a slot.
    fn build_entry(&mut self, slot: usize) -> Option<squeue::Entry> {
        let read = self.slots[slot].as_mut()?;
        let RemainingRead { file, offset, from, len } = read.remaining(read.file())?;
        let fd = types::Fd(file.as_raw_fd());
        let target = read.target_mut();
        let registered = self.registered.iter().find(|(cells, _)| Arc::ptr_eq(cells, target.cells()));
        let iovecs = &mut self.iovecs[slot];
        iovecs.clear();
        let mut buffer = 0;
        for (bytes, offset) in target.raw_pieces_mut(from..from + len) {
            let (start, len, last, count) = (bytes.expose_provenance(), bytes.len(), buffer, iovecs.len());
            buffer = offset / BUFFER_BYTES_MAX;
            match iovecs.last_mut() {
                // Adjacent to the previous cell, in the same registered buffer.
                Some(iovec) if iovec.start + iovec.len == start && buffer == last => iovec.len += len,
                _ if count == IOVECS_MAX => break,
                _ => iovecs.push(IoVec { start, len }),
            }
        }
        let entry = match (&iovecs[..], registered) {
            ([iovec], Some((_, first))) => {
                let start = std::ptr::with_exposed_provenance_mut(iovec.start);
                let len = u32::try_from(iovec.len).ok()?;
                opcode::ReadFixed::new(fd, start, len, first + buffer as u16).offset(offset).build()
            }
            (iovecs, _) => {
                let count = iovecs.len() as u32;
                opcode::Readv::new(fd, iovecs.as_ptr().cast(), count).offset(offset).build()
            }
        };
        Some(entry.user_data(slot as u64))
    }

    /// Adds the read in a slot to the submission queue.
    fn queue_slot(&mut self, slot: usize) {
        let entry = self.build_entry(slot).expect("the read in a pushed slot has a descriptor");
        // SAFETY: the slot owns the file, which keeps its descriptor open, and the target, which is within
        // its cells. It keeps both, and its iovecs unchanged, until the completion has arrived; `drop` waits
        // for it too.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has an entry for each slot, and a slot is queued once");
        self.queued.push_back(slot);
    }

    /// Submits the queued entries to the kernel and waits for `completions` completions.
    fn submit_and_wait(&mut self, completions: usize) {
        if self.broken.is_some() {
            // Without a further system call the kernel takes no entry. Reads that it has taken complete all
            // the same.
            if completions > 0 {
                thread::sleep(Duration::from_millis(1));
            }
            return;
        }
        match self.ring.submit_and_wait(completions) {
            Ok(taken) => drop(self.queued.drain(..taken.min(self.queued.len()))),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // Memory is short, or the completion queue is full, which the caller reads next.
                Some(libc::EAGAIN | libc::EBUSY) => thread::yield_now(),
                _ => self.broken = Some(error),
            },
        }
    }

    /// A completion that has arrived, or the failure of a read that the kernel will never take.
    fn take_arrived(&mut self) -> Option<Completion> {
        loop {
            let Some(entry) = self.ring.completion().next() else { break };
            let slot = entry.user_data() as usize;
            let read = match entry.result() {
                bytes if bytes >= 0 => Ok(bytes as usize),
                error => Err(io::Error::from_raw_os_error(-error)),
            };
            let in_flight = self.slots[slot].as_mut().expect("a completion belongs to a read");
            match in_flight.advance(read) {
                Some(result) => return Some(self.take_from_slot(slot).complete(result)),
                None if self.broken.is_some() => return Some(self.take_from_slot(slot).read_blocking()),
                None => self.queue_slot(slot),
            }
        }
        let why = format!("io_uring: {}", self.broken.as_ref()?);
        let read = self.queued.pop_front().map(|slot| self.take_from_slot(slot))?;
        let error = Error::new(ErrorKind::Other, "read", read.name(), why);
        Some(read.complete(Err(error)))
    }

    fn take_from_slot(&mut self, slot: usize) -> InFlightRead {
        self.free.push(slot);
        self.slots[slot].take().expect("a slot in use has a read")
    }
}

impl Backend for Uring {
    fn start(&mut self, mut read: InFlightRead) -> Option<Completion> {
        read.choose_path(self.direct);
        if !read.has_descriptor() || self.broken.is_some() {
            return Some(read.read_blocking());
        }
        let slot = self.free.pop().expect("at most as many reads as slots");
        self.slots[slot] = Some(read);
        self.queue_slot(slot);
        None
    }

    fn flush(&mut self) {
        if !self.queued.is_empty() {
            self.submit_and_wait(0);
        }
    }

    fn next_completion(&mut self, wait: bool) -> Option<Completion> {
        loop {
            if let Some(completion) = self.take_arrived() {
                return Some(completion);
            }
            // A read that goes on after a part of its bytes was queued again.
            if wait || !self.queued.is_empty() {
                self.submit_and_wait(usize::from(wait));
            }
            if !wait {
                return self.take_arrived();
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        while self.free.len() < self.slots.len() {
            drop(self.next_completion(true));
        }
        if !self.registered.is_empty() {
            // Unpins the memory now: the kernel closes the ring some time later, and huge pages are scarce.
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, ReadFile};
    use crate::memory::{Region, RegionKind};
    use crate::{posix::PosixDisk, read_queue::target::ReadTarget};

    const CELL_BYTES: usize = 4096;

    /// A ring, a file of eight cells, and the cells; `None` where io_uring is not available.
    fn open_ring() -> Option<(Uring, Arc<dyn ReadFile>, Arc<Cells>)> {
        let region = Region::new(&RegionKind::Dram, 8 * CELL_BYTES as u64).unwrap();
        let cells = Cells::new(region, CELL_BYTES).unwrap();
        let uring = Uring::new(8, false, &[Arc::clone(&cells)]);
        let (uring, _) = uring.inspect_err(|error| println!("not run: no ring: {error}")).ok()?;
        let directory = tempfile::TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        disk.create("a").unwrap().append(&[7; 8 * CELL_BYTES]).unwrap();
        Some((uring, Arc::from(disk.open("a").unwrap()), cells))
    }

    /// A read of one cell of the file into the cell with the same index.
    fn read_of_cell(file: &Arc<dyn ReadFile>, cells: &Arc<Cells>, index: usize) -> InFlightRead {
        InFlightRead::new(
            file,
            (index * CELL_BYTES) as u64,
            ReadTarget::from(cells.write(index).unwrap()),
            index as u64,
        )
    }

    /// Reads that the kernel has taken complete, queued reads fail, and later reads are blocking.
    #[test]
    fn a_broken_ring_releases_all_cells() {
        let Some((mut uring, file, cells)) = open_ring() else { return };
        (0..3).for_each(|index| assert!(uring.start(read_of_cell(&file, &cells, index)).is_none()));
        uring.flush();
        (3..6).for_each(|index| assert!(uring.start(read_of_cell(&file, &cells, index)).is_none()));
        uring.broken = Some(io::Error::from_raw_os_error(libc::EINVAL));
        let later = uring.start(read_of_cell(&file, &cells, 6)).unwrap();
        assert!(later.result.is_ok() && later.target.bytes() == [7; CELL_BYTES]);
        let mut ended: Vec<Completion> = (0..6).map(|_| uring.next_completion(true).unwrap()).collect();
        ended.sort_by_key(|completion| completion.tag);
        for Completion { tag, target, result, .. } in ended {
            if tag < 3 {
                assert_eq!((result.unwrap(), target.bytes()), (CELL_BYTES, &[7; CELL_BYTES][..]));
            } else {
                let message = format!(
                    "cannot read a at byte {}: io_uring: Invalid argument",
                    tag as usize * CELL_BYTES
                );
                assert!(result.unwrap_err().to_string().starts_with(&message));
            }
        }
        drop(later);
        drop(uring);
        assert!((0..8).all(|index| cells.write(index).is_some()));
    }

    #[test]
    fn a_broken_ring_can_be_dropped() {
        let Some((mut uring, file, cells)) = open_ring() else { return };
        (0..4).for_each(|index| assert!(uring.start(read_of_cell(&file, &cells, index)).is_none()));
        uring.flush();
        (4..8).for_each(|index| assert!(uring.start(read_of_cell(&file, &cells, index)).is_none()));
        uring.broken = Some(io::Error::from_raw_os_error(libc::EINVAL));
        drop(uring);
        assert!((0..8).all(|index| cells.write(index).is_some()));
    }
}

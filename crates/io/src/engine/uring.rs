//! Reading by the kernel's own queue (io_uring): submissions and completions lie in memory that both sides see.
//!
//! Whatever the kernel may write into lies in a slot: the job with its file and its target. It leaves the slot when its
//! completion has arrived, or when it is certain that the kernel has never seen it, and not before.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use super::job::{Job, Rest};
use super::{Completion, Method};
use crate::error::{Error, ErrorKind};
use crate::memory::Cells;
use crate::posix::PIECES_MAX;

/// The most bytes that the kernel takes as one registered buffer. Cells do not lie across: both are powers of two.
const BUFFER_BYTES_MAX: usize = 1 << 30;

const _: () = assert!(BUFFER_BYTES_MAX.is_multiple_of(crate::memory::CELL_BYTES_MAX));

/// Adjacent bytes that are read into, as the system describes them: an iovec.
#[repr(C)]
struct Place {
    start: usize,
    len: usize,
}

const _: () = assert!(size_of::<Place>() == size_of::<libc::iovec>());

pub(super) struct Uring {
    ring: IoUring,
    direct: bool,
    slots: Box<[Option<Job>]>,
    /// Where the reads of slots go that go into several places.
    places: Box<[Vec<Place>]>,
    free: Vec<usize>,
    /// Slots whose submission the kernel has not taken yet, oldest first.
    queued: VecDeque<usize>,
    /// Memory that the kernel knows, each with the number of its first buffer.
    registered: Vec<(Arc<Cells>, u16)>,
    /// Why the kernel takes no more submissions. What it took before still ends.
    broken: Option<io::Error>,
}

impl Uring {
    /// A ring for `depth` reads at a time. The second result says why the memory is not registered, if it is not.
    ///
    /// # Errors
    /// When the kernel gives no ring, or one that cannot read.
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
            places: (0..depth).map(|_| Vec::new()).collect(),
            free: (0..depth).rev().collect(),
            queued: VecDeque::with_capacity(depth),
            registered: Vec::new(),
            broken: None,
        };
        let refused = uring.register(cells).err();
        Ok((uring, refused))
    }

    /// Lets the kernel find and hold the pages once, instead of at each read.
    fn register(&mut self, cells: &[Arc<Cells>]) -> io::Result<()> {
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
        // SAFETY: `registered` keeps the regions mapped for as long as there is the ring; each write into them is one
        // that `entry` asks for.
        unsafe { self.ring.submitter().register_buffers(&buffers) }?;
        self.registered = registered;
        Ok(())
    }

    /// The submission for what is left of the job in a slot.
    fn entry(&mut self, slot: usize) -> Option<squeue::Entry> {
        let job = self.slots[slot].as_mut()?;
        let Rest { file, offset, from, len } = job.rest(job.posix()?);
        let fd = types::Fd(file.as_raw_fd());
        let target = job.target_mut();
        let known = self.registered.iter().find(|(cells, _)| Arc::ptr_eq(cells, target.cells()));
        let places = &mut self.places[slot];
        places.clear();
        let mut buffer = 0;
        for (bytes, offset) in target.places_mut(from..from + len) {
            let (start, len, last, count) = (bytes.expose_provenance(), bytes.len(), buffer, places.len());
            buffer = offset / BUFFER_BYTES_MAX;
            match places.last_mut() {
                // Cells that stand side by side, within one buffer.
                Some(place) if place.start + place.len == start && buffer == last => place.len += len,
                _ if count == PIECES_MAX => break,
                _ => places.push(Place { start, len }),
            }
        }
        let entry = match (&places[..], known) {
            ([place], Some((_, first))) => {
                let start = std::ptr::with_exposed_provenance_mut(place.start);
                let len = u32::try_from(place.len).ok()?;
                opcode::ReadFixed::new(fd, start, len, first + buffer as u16).offset(offset).build()
            }
            (places, _) => {
                let count = places.len() as u32;
                opcode::Readv::new(fd, places.as_ptr().cast(), count).offset(offset).build()
            }
        };
        Some(entry.user_data(slot as u64))
    }

    /// Puts the job in a slot into the queue of submissions.
    fn push(&mut self, slot: usize) {
        let entry = self.entry(slot).expect("a slot that is pushed has a job on a file of the system");
        // SAFETY: file and memory belong to the slot, which keeps both until the completion has arrived; `drop` waits
        // for it too. The target is within its cells.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue is as long as there are slots, and a slot is in it once");
        self.queued.push_back(slot);
    }

    /// Hands queued submissions to the kernel and waits for `wanted` completions.
    fn enter(&mut self, wanted: usize) {
        if self.broken.is_some() {
            // Not called again, so that what it has not taken is never begun. What it took ends by itself.
            if wanted > 0 {
                thread::sleep(Duration::from_millis(1));
            }
            return;
        }
        match self.ring.submit_and_wait(wanted) {
            Ok(taken) => drop(self.queued.drain(..taken.min(self.queued.len()))),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // Out of memory for the moment, or completions are to be taken first: the caller does.
                Some(libc::EAGAIN | libc::EBUSY) => thread::yield_now(),
                _ => self.broken = Some(error),
            },
        }
    }

    /// The next completion that has arrived, or a job that the kernel will never see.
    fn arrived(&mut self) -> Option<Completion> {
        loop {
            let Some(entry) = self.ring.completion().next() else { break };
            let slot = entry.user_data() as usize;
            let read = match entry.result() {
                bytes if bytes >= 0 => Ok(bytes as usize),
                error => Err(io::Error::from_raw_os_error(-error)),
            };
            let job = self.slots[slot].as_mut().expect("a completion belongs to a job");
            match job.advance(read) {
                Some(result) => return Some(self.take(slot).end(result)),
                None if self.broken.is_some() => return Some(self.take(slot).pread()),
                None => self.push(slot),
            }
        }
        let why = format!("io_uring: {}", self.broken.as_ref()?);
        let job = self.queued.pop_front().map(|slot| self.take(slot))?;
        let error = Error::new(ErrorKind::Other, "read", job.name(), why);
        Some(job.end(Err(error)))
    }

    fn take(&mut self, slot: usize) -> Job {
        self.free.push(slot);
        self.slots[slot].take().expect("a slot that ends has a job")
    }
}

impl Method for Uring {
    fn start(&mut self, mut job: Job) -> Option<Completion> {
        job.decide(self.direct);
        if job.posix().is_none() || self.broken.is_some() {
            return Some(job.pread());
        }
        let slot = self.free.pop().expect("no more jobs than slots");
        self.slots[slot] = Some(job);
        self.push(slot);
        None
    }

    fn flush(&mut self) {
        if !self.queued.is_empty() {
            self.enter(0);
        }
    }

    fn finish(&mut self, wait: bool) -> Option<Completion> {
        loop {
            if let Some(ended) = self.arrived() {
                return Some(ended);
            }
            // A short read that goes on is queued anew.
            if wait || !self.queued.is_empty() {
                self.enter(usize::from(wait));
            }
            if !wait {
                return self.arrived();
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        while self.free.len() < self.slots.len() {
            drop(self.finish(true));
        }
        if !self.registered.is_empty() {
            // Closing the ring would let go of the memory some time later, and huge pages are few. It cannot fail.
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;
    use crate::disk::{Disk, ReadFile};
    use crate::memory::{Region, RegionKind};
    use crate::posix::PosixDisk;

    const CELL: usize = 4096;

    /// A ring, a file of eight cells, and the cells; None where there is no ring.
    fn ring() -> Option<(Uring, Arc<dyn ReadFile>, Arc<Cells>)> {
        let region = Region::new(&RegionKind::Dram, 8 * CELL as u64).unwrap();
        let cells = Cells::new(region, CELL).unwrap();
        let uring = Uring::new(8, false, &[Arc::clone(&cells)]);
        let (uring, _) = uring.inspect_err(|error| println!("not run: no ring: {error}")).ok()?;
        let directory = tempfile::TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        disk.create("a").unwrap().append(&[7; 8 * CELL]).unwrap();
        Some((uring, Arc::from(disk.open("a").unwrap()), cells))
    }

    fn job(file: &Arc<dyn ReadFile>, cells: &Arc<Cells>, index: usize) -> Job {
        Job::new(file, (index * CELL) as u64, Target::from(cells.write(index).unwrap()), index as u64)
    }

    /// What the kernel has taken ends, what it has not fails, and what comes later is read without it.
    #[test]
    fn a_ring_that_breaks_loses_no_memory() {
        let Some((mut uring, file, cells)) = ring() else { return };
        (0..3).for_each(|index| assert!(uring.start(job(&file, &cells, index)).is_none()));
        uring.flush();
        (3..6).for_each(|index| assert!(uring.start(job(&file, &cells, index)).is_none()));
        uring.broken = Some(io::Error::from_raw_os_error(libc::EINVAL));
        let later = uring.start(job(&file, &cells, 6)).unwrap();
        assert!(later.result.is_ok() && later.target.bytes() == [7; CELL]);
        let mut ended: Vec<Completion> = (0..6).map(|_| uring.finish(true).unwrap()).collect();
        ended.sort_by_key(|completion| completion.tag);
        for Completion { tag, target, result, .. } in ended {
            if tag < 3 {
                assert_eq!((result.unwrap(), target.bytes()), (CELL, &[7; CELL][..]));
            } else {
                let message =
                    format!("cannot read a at byte {}: io_uring: Invalid argument", tag as usize * CELL);
                assert!(result.unwrap_err().to_string().starts_with(&message));
            }
        }
        drop(later);
        drop(uring);
        assert!((0..8).all(|index| cells.write(index).is_some()));
    }

    #[test]
    fn a_broken_ring_can_be_dropped() {
        let Some((mut uring, file, cells)) = ring() else { return };
        (0..4).for_each(|index| assert!(uring.start(job(&file, &cells, index)).is_none()));
        uring.flush();
        (4..8).for_each(|index| assert!(uring.start(job(&file, &cells, index)).is_none()));
        uring.broken = Some(io::Error::from_raw_os_error(libc::EINVAL));
        drop(uring);
        assert!((0..8).all(|index| cells.write(index).is_some()));
    }
}

//! Memory between two guard pages: a read or a write one byte outside faults.
//!
//! [`Pages`] are whole pages; a slice of them starts directly after the first guard or ends directly before
//! the second. [`Guarded`] is an allocator that can place vectors there, so that writes of encoders to their
//! output vector are checked too.

#![allow(dead_code, reason = "each test binary uses its own part")]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{cell::Cell, ffi::c_void, ptr, sync::OnceLock};

/// Bytes of a guard, and the unit of the pages between: 64 KiB is a multiple of the page size of every
/// machine.
const PAGE_BYTES: usize = 1 << 16;

/// On which side of a slice the guard page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The guard is directly before the slice.
    Start,
    /// The guard is directly after the slice.
    End,
}

impl Side {
    /// Both sides.
    pub const ALL: [Side; 2] = [Side::Start, Side::End];
}

/// Readable and writable pages between two guards. They are mapped until the process ends.
pub struct Pages {
    start: *mut u8,
    len: usize,
}

// SAFETY: The pages are owned by this value alone, and may be used from any thread.
unsafe impl Send for Pages {}

// SAFETY: Only a mutable reference gives access to the pages; the allocator hands each out once at a time.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed pages of at least `len` bytes.
    pub fn new(len: usize) -> Pages {
        let len = len.next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let all = map_pages(len + 2 * PAGE_BYTES);
        protect_page(all);
        protect_page(all.wrapping_byte_add(PAGE_BYTES + len));
        Pages { start: all.wrapping_byte_add(PAGE_BYTES).cast(), len }
    }

    /// `len` bytes adjacent to a guard, with their previous contents.
    pub fn bytes(&mut self, side: Side, len: usize) -> &mut [u8] {
        // SAFETY: Every bit pattern is a valid byte.
        unsafe { self.slice_of(side, len) }
    }

    /// `len` values adjacent to a guard, with their previous contents.
    pub fn values(&mut self, side: Side, len: usize) -> &mut [u32] {
        // SAFETY: Every bit pattern is a valid value.
        unsafe { self.slice_of(side, len) }
    }

    /// `len` keys adjacent to a guard, with their previous contents.
    pub fn keys(&mut self, side: Side, len: usize) -> &mut [u64] {
        // SAFETY: Every bit pattern is a valid key.
        unsafe { self.slice_of(side, len) }
    }

    /// `len` values of type `T` adjacent to a guard, with their previous contents.
    ///
    /// # Safety
    /// Every bit pattern must be a valid `T`.
    unsafe fn slice_of<T>(&mut self, side: Side, len: usize) -> &mut [T] {
        let start = self.slice_start(side, size_of::<T>() * len).cast::<T>();
        assert!(start.is_aligned());
        // SAFETY: `slice_start` checks that the slice is inside the pages; the assertion above that it is
        // aligned. The pages are initialized (zeroed when mapped) and borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Reads the byte of the guard next to the pages, which ends the process.
    pub fn touch_guard(&self, side: Side) -> u8 {
        let byte = match side {
            Side::Start => self.start.wrapping_byte_sub(1),
            Side::End => self.start.wrapping_byte_add(self.len),
        };
        // SAFETY: The byte is mapped and not part of any object. The caller expects the fault.
        unsafe { byte.read_volatile() }
    }

    /// The start of a slice of `len` bytes.
    fn slice_start(&self, side: Side, len: usize) -> *mut u8 {
        assert!(len <= self.len, "{len} bytes do not fit {} bytes of pages", self.len);
        match side {
            Side::Start => self.start,
            Side::End => self.start.wrapping_byte_add(self.len - len),
        }
    }

    fn holds(&self, address: *const u8) -> bool {
        address.addr().wrapping_sub(self.start.addr()) < self.len
    }
}

fn map_pages(len: usize) -> *mut c_void {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: The operating system chooses an unused address.
    let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
    start.expect("the pages are mapped")
}

fn protect_page(start: *mut c_void) {
    // SAFETY: These bytes were mapped by the caller, and no reference to them exists.
    let done = unsafe { rustix::mm::mprotect(start, PAGE_BYTES, MprotectFlags::empty()) };
    done.expect("the guard is set");
}

/// The global allocator of a test. Inside [`Guarded::vectors`], allocations of this thread with an alignment
/// of up to four bytes end at a guard; all others come from the system.
pub struct Guarded;

/// Maximum bytes of a guarded vector.
const VECTOR_BYTES_MAX: usize = PAGE_BYTES;

/// Maximum alignment of a guarded vector, in bytes.
const ALIGN_MAX: usize = 4;

/// The pages of guarded vectors. There are two, as a vector that grows has two allocations for a moment.
static VECTOR_SLOTS: [VectorSlot; 2] =
    [const { VectorSlot { taken: AtomicBool::new(false), pages: OnceLock::new() } }; 2];

struct VectorSlot {
    taken: AtomicBool,
    pages: OnceLock<Pages>,
}

thread_local! {
    static VECTORS_ARE_GUARDED: Cell<bool> = const { Cell::new(false) };
}

impl Guarded {
    /// Calls `work`. Vectors of numbers of up to four bytes that it allocates end at a guard page, at most
    /// two of them at a time.
    pub fn vectors<T>(work: impl FnOnce() -> T) -> T {
        for slot in &VECTOR_SLOTS {
            slot.pages.get_or_init(|| Pages::new(VECTOR_BYTES_MAX));
        }
        VECTORS_ARE_GUARDED.set(true);
        let result = work();
        VECTORS_ARE_GUARDED.set(false);
        result
    }

    /// Whether these numbers are in the pages of a slot.
    pub fn holds<T>(numbers: &[T]) -> bool {
        VectorSlot::of(numbers.as_ptr().cast()).is_some()
    }
}

impl VectorSlot {
    fn take() -> Option<&'static Pages> {
        let free = |slot: &&VectorSlot| !slot.taken.swap(true, Ordering::Acquire);
        VECTOR_SLOTS.iter().find(free)?.pages.get()
    }

    fn of(address: *const u8) -> Option<&'static VectorSlot> {
        VECTOR_SLOTS.iter().find(|slot| slot.pages.get().is_some_and(|pages| pages.holds(address)))
    }
}

// SAFETY: A slot is handed out to one allocation at a time, is large enough, and ends at a page, so that the
// start is as aligned as the size; all other allocations are those of the system.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if VECTORS_ARE_GUARDED.get()
            && layout.align() <= ALIGN_MAX
            && layout.size().is_multiple_of(layout.align())
            && layout.size() <= VECTOR_BYTES_MAX
            && let Some(pages) = VectorSlot::take()
        {
            return pages.slice_start(Side::End, layout.size());
        }
        // SAFETY: The contract of this function is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        match VectorSlot::of(address) {
            Some(slot) => slot.taken.store(false, Ordering::Release),
            // SAFETY: The system allocated it, since no slot contains it.
            None => unsafe { System.dealloc(address, layout) },
        }
    }
}

//! Memory between two pages that may not be touched: a read or a write one byte outside is a fault.
//!
//! You have a number of bytes; [`Pages`] are the whole pages that hold them, and slices of [`Pages`] lie flush
//! against the guard before or behind. [`Guarded`] is an allocator that can put vectors there, so that what an
//! encoder appends is watched as well.

#![allow(dead_code, reason = "each test binary uses its own part")]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whole pages on every machine that has pages of at most 64 KiB. The guards are as long.
const PAGE: usize = 1 << 16;

/// Against which guard a slice lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Nothing may be read before it.
    Start,
    /// Nothing may be read behind it.
    End,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::Start, Side::End];
}

/// Readable and writable pages between two that are neither. They stay for the rest of the process.
pub struct Pages {
    start: *mut u8,
    len: usize,
}

// SAFETY: The pages belong to this value alone, and may be used from any thread.
unsafe impl Send for Pages {}

// SAFETY: Only a mutable reference gives access to the pages; the allocator hands each out once at a time.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed pages of at least `len` bytes.
    pub fn new(len: usize) -> Pages {
        let len = len.next_multiple_of(PAGE).max(PAGE);
        let all = map(len + 2 * PAGE);
        protect(all);
        protect(all.wrapping_byte_add(PAGE + len));
        Pages { start: all.wrapping_byte_add(PAGE).cast(), len }
    }

    /// `len` bytes flush against a guard. They hold what was there before.
    pub fn bytes(&mut self, side: Side, len: usize) -> &mut [u8] {
        // SAFETY: All bits are a byte.
        unsafe { self.numbers(side, len) }
    }

    /// `len` values flush against a guard. They hold what was there before.
    pub fn values(&mut self, side: Side, len: usize) -> &mut [u32] {
        // SAFETY: All bits are a value.
        unsafe { self.numbers(side, len) }
    }

    /// # Safety
    /// All bits are a number.
    unsafe fn numbers<T>(&mut self, side: Side, len: usize) -> &mut [T] {
        let start = self.place(side, size_of::<T>() * len).cast::<T>();
        assert!(start.is_aligned());
        // SAFETY: The numbers lie inside the pages, which were zeroed once and are borrowed as long as the slice. The
        // place is aligned, since pages are and numbers are whole.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Reads the byte of the guard next to the pages, which ends the process.
    pub fn touch_guard(&self, side: Side) -> u8 {
        let byte = match side {
            Side::Start => self.start.wrapping_byte_sub(1),
            Side::End => self.start.wrapping_byte_add(self.len),
        };
        // SAFETY: The byte is mapped, and nobody's. The fault is what the caller wants.
        unsafe { byte.read_volatile() }
    }

    /// Where a slice of so many bytes starts.
    fn place(&self, side: Side, len: usize) -> *mut u8 {
        assert!(len <= self.len, "{len} bytes do not fit {} bytes of pages", self.len);
        match side {
            Side::Start => self.start,
            Side::End => self.start.wrapping_byte_add(self.len - len),
        }
    }

    fn holds(&self, place: *const u8) -> bool {
        place.addr().wrapping_sub(self.start.addr()) < self.len
    }
}

fn map(len: usize) -> *mut c_void {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: The kernel chooses a place where nothing is.
    let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
    start.expect("the pages are mapped")
}

fn protect(start: *mut c_void) {
    // SAFETY: These bytes were mapped by the caller, and no reference to them exists.
    let done = unsafe { rustix::mm::mprotect(start, PAGE, MprotectFlags::empty()) };
    done.expect("the guard is set");
}

/// The global allocator of a test. Inside of [`Guarded::vectors`] the numbers of up to four bytes that this thread asks
/// for end at a guard; all else comes from the system.
pub struct Guarded;

/// Bytes that a guarded vector can have.
const VECTOR_MAX: usize = PAGE;

/// Alignment that its numbers can ask for.
const ALIGN_MAX: usize = 4;

/// Two rooms: a vector that grows has its old bytes and its new ones for a moment.
static ROOMS: [Room; 2] = [const { Room { taken: AtomicBool::new(false), pages: OnceLock::new() } }; 2];

struct Room {
    taken: AtomicBool,
    pages: OnceLock<Pages>,
}

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

impl Guarded {
    /// Runs `work`, whose vectors of numbers of up to four bytes end at a guard as long as they are no more than two.
    pub fn vectors<T>(work: impl FnOnce() -> T) -> T {
        for room in &ROOMS {
            room.pages.get_or_init(|| Pages::new(VECTOR_MAX));
        }
        ON.set(true);
        let result = work();
        ON.set(false);
        result
    }

    /// Whether these numbers lie in pages between guards.
    pub fn holds<T>(numbers: &[T]) -> bool {
        Room::of(numbers.as_ptr().cast()).is_some()
    }
}

impl Room {
    fn take() -> Option<&'static Pages> {
        let free = |room: &&Room| !room.taken.swap(true, Ordering::Acquire);
        ROOMS.iter().find(free)?.pages.get()
    }

    fn of(place: *const u8) -> Option<&'static Room> {
        ROOMS.iter().find(|room| room.pages.get().is_some_and(|pages| pages.holds(place)))
    }
}

// SAFETY: Bytes of a room are handed out once at a time, are large enough, and end at a page, so that their start is as
// aligned as their number is; all else is the system's.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON.get()
            && layout.align() <= ALIGN_MAX
            && layout.size().is_multiple_of(layout.align())
            && layout.size() <= VECTOR_MAX
            && let Some(pages) = Room::take()
        {
            return pages.place(Side::End, layout.size());
        }
        // SAFETY: The caller keeps the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        match Room::of(place) {
            Some(room) => room.taken.store(false, Ordering::Release),
            // SAFETY: The system handed it out, since no room did.
            None => unsafe { System.dealloc(place, layout) },
        }
    }
}

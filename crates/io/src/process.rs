//! What a program sets up for its whole process, so that a lack of memory or of space for a file ends in one
//! line.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, c_char, c_int};
use std::io::Write;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The system's allocator. When there is no memory left, the process ends with one line and exit code 1: by
/// calls that take neither memory nor locks, where the standard library aborts and, asked for a backtrace,
/// waits for ever.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: tierdex_io::ExitOutOfMemory = tierdex_io::ExitOutOfMemory;
/// ```
pub struct ExitOutOfMemory;

// SAFETY: all is done by the system's allocator, which keeps to the contract; what it gives is passed on as
// it is.
unsafe impl GlobalAlloc for ExitOutOfMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract.
        exit_if_null(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract.
        exit_if_null(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract.
        exit_if_null(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn exit_if_null(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        exit(bytes)
    }
    memory
}

#[cold]
fn exit(bytes: usize) -> ! {
    static EXITS: AtomicBool = AtomicBool::new(false);
    while EXITS.swap(true, Ordering::Relaxed) {
        // Another thread is reporting it and ends the process.
        std::hint::spin_loop();
    }
    let mut line = [0; 128];
    let mut rest = &mut line[..];
    // It is long enough for any number.
    let _ = writeln!(rest, "tierdex: out of memory: the system has no {bytes} bytes more for this process");
    let left = rest.len();
    // SAFETY: the bytes are there.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len() - left) };
    let unfinished = UNFINISHED.load(Ordering::Acquire);
    if !unfinished.is_null() {
        // SAFETY: it is the name of a file, which is never freed.
        unsafe { libc::unlink(unfinished) };
    }
    // SAFETY: it may be called at any time.
    unsafe { libc::_exit(1) }
}

/// Ends the process at once, with one line on standard error unless that would have to wait: its reader may
/// not read, and another thread may be writing to it. What is buffered is not written.
pub fn exit_with_line(line: &str, code: u8) -> ! {
    let mut standard_error = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one entry.
    let ready = unsafe { libc::poll(&mut standard_error, 1, 0) };
    if ready == 1 && standard_error.revents & libc::POLLOUT != 0 {
        // SAFETY: the bytes are there.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    }
    // SAFETY: it may be called at any time.
    unsafe { libc::_exit(code.into()) }
}

/// The file that a lack of memory removes; null if there is none.
static UNFINISHED: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Has [`ExitOutOfMemory`] remove this file, which is not whole yet, or none any more. Each name stays in
/// memory.
pub fn remove_out_of_memory(file: Option<CString>) {
    UNFINISHED.store(file.map_or(ptr::null_mut(), CString::into_raw), Ordering::Release);
}

/// A write that would make a file larger than the limit of the process (`ulimit -f`) fails from now on, where
/// it would have ended the process by SIGXFSZ.
pub fn ignore_file_size_signal() {
    ignore(libc::SIGXFSZ);
}

/// Has `install` install handlers of signals; those that the process was started to ignore, as by `nohup`,
/// stay ignored.
pub fn keep_ignored<T>(install: impl FnOnce() -> T) -> T {
    let ignored = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| (signal, is_ignored(signal)));
    let installed = install();
    ignored.into_iter().filter(|(_, ignored)| *ignored).for_each(|(signal, _)| ignore(signal));
    installed
}

fn ignore(signal: c_int) {
    // SAFETY: no handler is called, and the signal is one that may be ignored.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action it only writes the present one, for which there is memory.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros are an action, should it have written none.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

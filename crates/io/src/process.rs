//! Process-wide settings of a program: an allocator that ends the process with one line when memory is
//! exhausted, and signal dispositions.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::{
    fmt::Arguments, io::Write, mem::MaybeUninit, os::unix::process::CommandExt, process::Command, ptr,
};

/// The system allocator. When memory is exhausted, the process ends with one line and exit code 1, by calls
/// that need neither memory nor locks. The standard library would abort and, with backtraces enabled,
/// deadlock.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: tierdex_io::ExitOutOfMemory = tierdex_io::ExitOutOfMemory;
/// ```
pub struct ExitOutOfMemory;

// SAFETY: every call is forwarded to the system allocator, which satisfies the contract; its results are
// returned unchanged.
unsafe impl GlobalAlloc for ExitOutOfMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller satisfies the same contract.
        exit_if_null(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller satisfies the same contract.
        exit_if_null(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller satisfies the same contract.
        exit_if_null(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller satisfies the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn exit_if_null(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        exit_out_of_memory(format_args!("{bytes} bytes more for this process"))
    }
    memory
}

/// Ends the process with exit code 1 because the system has no `lacking`: removes the file of
/// [`remove_on_out_of_memory`] and writes one line, of the first thread that calls it. Allocates nothing.
#[cold]
pub fn exit_out_of_memory(lacking: Arguments<'_>) -> ! {
    /// Whether a thread has begun to end the process.
    static IS_EXITING: AtomicBool = AtomicBool::new(false);
    while IS_EXITING.swap(true, Ordering::Relaxed) {
        // Another thread is reporting it and ends the process.
        std::hint::spin_loop();
    }
    let mut line = [0; 128];
    let mut rest = &mut line[..];
    // What does not fit into the buffer is cut off.
    let _ = writeln!(rest, "tierdex: out of memory: the system has no {lacking}");
    let left = rest.len();
    // SAFETY: the buffer has that many bytes.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len() - left) };
    let unfinished = UNFINISHED_FILE.load(Ordering::Acquire);
    if !unfinished.is_null() {
        // SAFETY: a C string that is never freed.
        unsafe { libc::unlink(unfinished) };
    }
    // SAFETY: `_exit` may be called at any time.
    unsafe { libc::_exit(1) }
}

/// Ends the process immediately. Writes one line to standard error unless that would block, because its
/// reader does not read or another thread writes to it. Buffered output is lost.
pub fn exit_with_line(line: &str, code: u8) -> ! {
    let mut standard_error = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the array has one entry.
    let ready = unsafe { libc::poll(&mut standard_error, 1, 0) };
    if ready == 1 && standard_error.revents & libc::POLLOUT != 0 {
        // SAFETY: the buffer has that many bytes.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    }
    // SAFETY: `_exit` may be called at any time.
    unsafe { libc::_exit(code.into()) }
}

/// The path of the file that is removed when memory is exhausted, a C string; null if there is none.
static UNFINISHED_FILE: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Sets the incomplete file that [`ExitOutOfMemory`] removes; `None` for no file. The memory of the paths is
/// never freed.
pub fn remove_on_out_of_memory(file: Option<CString>) {
    UNFINISHED_FILE.store(file.map_or(ptr::null_mut(), CString::into_raw), Ordering::Release);
}

/// Ignores SIGXFSZ: a write beyond the file size limit of the process (`ulimit -f`) fails with an error
/// instead of ending the process.
pub fn ignore_file_size_signal() {
    ignore_signal(libc::SIGXFSZ);
}

/// Calls `install`, which installs signal handlers. Signals that were ignored when the process started, for
/// example by `nohup`, stay ignored.
pub fn keep_ignored_signals<T>(install: impl FnOnce() -> T) -> T {
    let ignored =
        [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| (signal, is_signal_ignored(signal)));
    let installed = install();
    ignored.into_iter().filter(|(_, ignored)| *ignored).for_each(|(signal, _)| ignore_signal(signal));
    installed
}

/// Makes `command` start with the default dispositions of the signals that a terminal or a supervisor sends,
/// and with no signal blocked, whatever this process inherited from `nohup` or a background job.
pub fn start_with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: SIG_DFL calls no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        let mut none = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the call writes the set, for which there is memory.
        unsafe { libc::sigemptyset(none.as_mut_ptr()) };
        // SAFETY: the set was initialised, and the old mask is not asked for.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: the closure only makes calls that are permitted between fork and exec.
    unsafe { command.pre_exec(reset) }
}

fn ignore_signal(signal: c_int) {
    // SAFETY: SIG_IGN calls no handler, and the signal may be ignored.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn is_signal_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the current one, for which there is memory.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros are a valid action, in case the call wrote none.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

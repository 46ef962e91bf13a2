//! The heap of the process.

/// Gives freed memory of the heap back to the system. The allocator of glibc keeps what is freed between two
/// allocations that are in use, in a heap for each thread; others are left alone. Takes 20 µs, and more if
/// there is much to give back.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call changes no byte that is allocated.
    unsafe {
        libc::malloc_trim(0)
    };
}

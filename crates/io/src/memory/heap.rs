//! Settings of the heap of the process, if the allocator is that of glibc. They have no effect on others.

/// When more than this number of bytes is free at the end of the heap, it is given back to the system.
/// Ordinary queries free less, so that their next allocations cause no page faults. With 256 KiB here and
/// 1 MiB in [`MAP_THRESHOLD_BYTES`], queries of one to five terms in 45 MB had 1.7 times the page faults.
#[cfg(target_env = "gnu")]
const TRIM_THRESHOLD_BYTES: i32 = 1 << 20;

/// An allocation of at least this number of bytes is mapped by itself, so that it is given back to the system
/// when it is freed. The longest skip record that is read with its impacts has half as many.
#[cfg(target_env = "gnu")]
const MAP_THRESHOLD_BYTES: i32 = 2 << 20;

/// Makes threads that start from now on share one heap, and gives free memory at its end back to the system.
/// By default the allocator has a heap for each thread, which does not give back what the largest queries of
/// the thread have freed: with queries of 1,024 terms, two threads needed 5 MB more.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    for (setting, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES),
        (libc::M_MMAP_THRESHOLD, MAP_THRESHOLD_BYTES),
    ] {
        // SAFETY: the call changes a setting of the allocator.
        unsafe { libc::mallopt(setting, value) };
    }
}

/// Gives free memory between allocations back to the system. Takes 20 µs, or more if there is much of it.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call changes no byte that is allocated.
    unsafe {
        libc::malloc_trim(0)
    };
}

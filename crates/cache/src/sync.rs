//! Synchronisation types of `page_cache.rs`. The tests in `crates/tierdex/tests/interleavings` compile that
//! file with the types of loom in their place, to explore all interleavings of threads.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

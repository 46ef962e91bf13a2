//! What [`crate::frames`] synchronises threads with. `crates/tierdex/tests/interleavings` has the types of loom in its
//! place, which run a test through all interleavings.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

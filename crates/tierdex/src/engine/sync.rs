//! Synchronisation types of tickets, of the memory pool and of the current snapshot. The tests in
//! `crates/tierdex/tests/interleavings` replace them by those of loom, which explores all interleavings.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, RwLock};

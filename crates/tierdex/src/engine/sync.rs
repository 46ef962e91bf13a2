//! Synchronisation types of tickets and of the current snapshot. The tests in
//! `crates/tierdex/tests/interleavings` replace them by loom's, to run through all interleavings of threads.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, RwLock};

//! Synchronisation types of tickets and of the current snapshot. The tests in
//! `crates/tierdex/tests/interleavings` replace them by those of loom, which explores all interleavings.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, RwLock};

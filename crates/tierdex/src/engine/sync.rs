//! What tickets synchronise threads with. `crates/tierdex/tests/interleavings` has the types of loom in its place, which
//! run a test through all interleavings.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

//! The state that the thread of hot pages and the other threads of an engine share.

use super::file::HotPagesFile;
use crate::Result;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The file of hot pages, and what its thread has done.
pub(in crate::engine) struct HotPages {
    pub(super) file: HotPagesFile,
    /// Pages that were read because the file names them.
    pub(in crate::engine) pages_warmed: AtomicU64,
    /// How that has ended, or not yet.
    pub(in crate::engine) warmed: OnceLock<Result<()>>,
    closed: Mutex<bool>,
    changed: Condvar,
}

impl HotPages {
    /// # Errors
    /// When the file cannot be written.
    pub(in crate::engine) fn new(path: &Path) -> Result<HotPages> {
        Ok(HotPages {
            file: HotPagesFile::new(path)?,
            pages_warmed: AtomicU64::new(0),
            warmed: OnceLock::new(),
            closed: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    /// Ends the thread, after it has written the file.
    pub(in crate::engine) fn close(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Sleeps for this time, or until the engine is closed. Returns whether it is.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |closed| !*closed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

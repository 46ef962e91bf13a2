//! The stop signal of a writer.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stop signal, which clones share. Another thread raises it; a writer checks it at each batch and each
/// term.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Raises the signal.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// [`Error::Interrupted`] when the signal is raised.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

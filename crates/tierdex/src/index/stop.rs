//! The signal by which another thread stops a writer.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal by which another thread stops a writer, which checks it at each batch and each term. Clones are
/// the same signal.
///
/// ```
/// use tierdex::{Error, IndexWriter, Merge, Schema, StopSignal, WriterOptions};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("index");
/// let stop = StopSignal::default();
/// let options = WriterOptions { stop: stop.clone(), ..WriterOptions::default() };
/// let mut writer = IndexWriter::create(&dir, Schema::default(), options)?;
/// writer.add("1", [("text", "a solid state disk")])?;
/// // For example in the handler of a signal.
/// stop.raise();
/// assert!(matches!(writer.commit(Merge::Keep), Err(Error::Interrupted)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    raised: Arc<AtomicBool>,
    parent: Option<Arc<StopSignal>>,
}

impl StopSignal {
    /// A new signal that is raised if it is raised itself or if this one is.
    pub(super) fn child(&self) -> StopSignal {
        StopSignal { raised: Arc::default(), parent: Some(Arc::new(self.clone())) }
    }

    /// Raises the signal.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Returns [`Error::Interrupted`] if the signal was raised.
    pub fn check(&self) -> Result<()> {
        if self.raised.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.parent.as_ref().map_or(Ok(()), |parent| parent.check())
    }
}

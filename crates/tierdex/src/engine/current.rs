//! A shared value that can be replaced: the newest snapshot of an engine.

use super::sync::{Mutex, RwLock};
use std::sync::{Arc, PoisonError};

/// A shared value. Readers do not wait while its replacement is prepared.
pub(super) struct Current<T> {
    value: RwLock<Arc<T>>,
    replacing: Mutex<()>,
}

impl<T> Current<T> {
    pub(super) fn new(value: T) -> Current<T> {
        Current { value: RwLock::new(Arc::new(value)), replacing: Mutex::new(()) }
    }

    pub(super) fn get(&self) -> Arc<T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the value by the result of `newer`, if it is `Some`; one thread at a time. Returns whether
    /// it was replaced.
    pub(super) fn replace<E>(&self, newer: impl FnOnce(&T) -> Result<Option<T>, E>) -> Result<bool, E> {
        let _guard = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(new) = newer(&self.get())? else { return Ok(false) };
        *self.value.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(true)
    }
}

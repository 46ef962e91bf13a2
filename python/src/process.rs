//! Values of the process that made them. After a fork the child has no engine threads, and locks may be
//! held by threads that it does not have: it must neither use nor drop such values.

use crate::errors::usage_error;
use pyo3::prelude::*;
use std::process;

/// A value that only the process that made it uses and drops.
pub struct ProcessLocal<T> {
    process: u32,
    value: Option<T>,
}

impl<T> ProcessLocal<T> {
    /// A value of this process.
    pub fn new(value: T) -> ProcessLocal<T> {
        ProcessLocal { process: process::id(), value: Some(value) }
    }

    /// The value; `None` in a forked child.
    pub fn get(&self) -> Option<&T> {
        if self.is_same_process() { self.value.as_ref() } else { None }
    }

    /// The value; `None` in a forked child.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if self.is_same_process() { self.value.as_mut() } else { None }
    }

    /// Takes the value; `None` in a forked child.
    pub fn take(&mut self) -> Option<T> {
        if self.is_same_process() { self.value.take() } else { None }
    }

    fn is_same_process(&self) -> bool {
        self.process == process::id()
    }
}

impl<T> Drop for ProcessLocal<T> {
    fn drop(&mut self) {
        if !self.is_same_process() {
            std::mem::forget(self.value.take());
        }
    }
}

/// The error of a call in a child that a signal handler or a progress function has forked: the threads that
/// the call waits for are in the parent.
pub fn forked_error(py: Python<'_>) -> PyErr {
    usage_error(py, "the process was forked during this call, whose result only the parent gets")
}

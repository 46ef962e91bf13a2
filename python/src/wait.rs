//! Work without the GIL that Ctrl-C interrupts: it runs on another thread, and the calling thread checks for
//! signals while it waits.

use crate::errors::{Failure, catch_panic};
use crate::process::{ProcessLocal, forked_error};
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::{thread, time::Duration};
use tierdex::StopSignal;

/// Time between two checks for signals.
pub const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` on another thread. On a signal it raises `stop` and waits for the end of the work; without
/// one, the work is left to end by itself.
pub fn run_interruptible<T: Send + 'static>(
    py: Python<'_>,
    stop: Option<&StopSignal>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let started = thread::Builder::new().name("tierdex".to_string()).spawn(move || {
        // The receiver is gone after a signal.
        drop(sender.send(catch_panic(work)));
    });
    started.map_err(|error| Failure::from(thread_error(&error)).into_exception(py))?;
    let ended = || Err(Failure::Panic("a worker thread ended without a result".to_string()));
    let mut receiver = ProcessLocal::new(receiver);
    let result = loop {
        // A receiver is used by one thread at a time: the closure takes it and gives it back.
        let taken = receiver.take().ok_or_else(|| forked_error(py))?;
        let (taken, waited) = py.detach(move || {
            let waited = taken.recv_timeout(SIGNAL_CHECK_INTERVAL);
            (taken, waited)
        });
        receiver = ProcessLocal::new(taken);
        match waited {
            Ok(result) => break result,
            Err(RecvTimeoutError::Disconnected) => break ended(),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    if let (Some(stop), Some(receiver)) = (stop, receiver.take()) {
                        stop.raise();
                        drop(py.detach(move || receiver.recv()));
                    }
                    return Err(signal);
                }
            }
        }
    };
    result.map_err(|failure| failure.into_exception(py))
}

/// Runs short work without the GIL, on this thread.
pub fn run_without_gil<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> tierdex::Result<T> + Send,
) -> PyResult<T> {
    let result = py.detach(|| catch_panic(|| Ok(work()?)));
    result.map_err(|failure| failure.into_exception(py))
}

/// The error of a thread that the system does not start.
pub fn thread_error(error: &std::io::Error) -> tierdex::Error {
    tierdex::io::Error::from_os("start", "a thread", error).into()
}

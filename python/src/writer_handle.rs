//! A writer's thread as calls of Python see it: they repeat steps of its state, wait without the GIL, check
//! for signals, and turn its end into exceptions.

use crate::writer_thread::{State, WriterFailure, WriterThread};
use crate::{errors::usage_error, process::ProcessLocal, wait::SIGNAL_CHECK_INTERVAL};
use pyo3::prelude::*;
use std::{task::Poll, time::Duration};
use tierdex_python_writer::{ChangeCount, End, Step};

/// Time in which the thread of a writer that is dropped should have ended. It ends sooner, unless a device is
/// slow.
const DROP_WAIT: Duration = Duration::from_secs(10);

/// A writer's thread, which only the process that started it uses.
pub struct WriterHandle(ProcessLocal<WriterThread>);

impl WriterHandle {
    /// A handle of a thread of this process.
    pub fn new(thread: WriterThread) -> WriterHandle {
        WriterHandle(ProcessLocal::new(thread))
    }

    /// The thread; an error in a forked child.
    pub fn thread(&self, py: Python<'_>) -> PyResult<&WriterThread> {
        let message = "the writer belongs to the parent process; open one in this process";
        self.0.get().ok_or_else(|| usage_error(py, message))
    }

    /// Repeats a step until it is ready. The error is a signal.
    pub fn wait<T: Send>(
        &self,
        py: Python<'_>,
        mut step: impl FnMut(&mut State) -> Poll<T> + Send,
    ) -> PyResult<T> {
        let mut done = self.thread(py)?.step(&mut step);
        loop {
            if let Poll::Ready(done) = done {
                return Ok(done);
            }
            // A signal handler may have forked this process.
            let thread = self.thread(py)?;
            done = py.detach(|| thread.wait(SIGNAL_CHECK_INTERVAL, &mut step));
            if done.is_pending() {
                py.check_signals()?;
            }
        }
    }

    /// Repeats a step until it is ready; the end of the writer is an error.
    pub fn call<T: Send>(
        &self,
        py: Python<'_>,
        step: impl FnMut(&mut State) -> Step<T, WriterFailure> + Send,
    ) -> PyResult<T> {
        self.wait(py, step)?.map_err(|end| writer_ended_error(py, end, ""))
    }

    /// Number of documents since the last commit; an error if the writer has ended.
    pub fn position(&self, py: Python<'_>) -> PyResult<u64> {
        let position = |state: &mut State| state.end().cloned().map_or(Ok(state.accepted().documents), Err);
        self.thread(py)?.step(position).map_err(|end| writer_ended_error(py, end, ""))
    }

    /// Waits until the thread has dropped the engine's writer.
    pub fn wait_for_exit(&self, py: Python<'_>) -> PyResult<()> {
        self.wait(py, poll_exit)
    }
}

impl Drop for WriterHandle {
    /// Discards what was not committed. In a forked child it does nothing.
    fn drop(&mut self) {
        let Some(thread) = self.0.get() else { return };
        drop(thread.step(State::abort));
        thread.stop().raise();
        let wait = || thread.wait(DROP_WAIT, poll_exit);
        // While the interpreter ends, no thread attaches to it.
        if Python::try_attach(|py| py.detach(wait)).is_none() {
            let _ = wait();
        }
    }
}

fn poll_exit(state: &mut State) -> Poll<()> {
    if state.has_exited() { Poll::Ready(()) } else { Poll::Pending }
}

/// The exception of a call of a writer that has ended; `note` is added to the message.
pub fn writer_ended_error(py: Python<'_>, end: End<WriterFailure>, note: &str) -> PyErr {
    match end {
        End::Closed => usage_error(py, format!("the writer is closed{note}")),
        End::RolledBack => usage_error(py, format!("the writer was rolled back{note}")),
        End::Failed { failure, lost } => {
            let loss = describe_loss(&failure, lost);
            failure.failure.into_exception_with(py, &format!("; {loss}"))
        }
    }
}

/// What the failure of a writer means for its changes.
pub fn describe_loss(failure: &WriterFailure, lost: ChangeCount) -> String {
    let changes = match lost {
        ChangeCount { documents, deletes: 0 } => format!("{documents} documents"),
        ChangeCount { documents: 0, deletes } => format!("{deletes} deletes"),
        ChangeCount { documents, deletes } => format!("{documents} documents and {deletes} deletes"),
    };
    let fate = match lost {
        ChangeCount { documents: 0, deletes: 0 } => "no document is lost".to_string(),
        _ if failure.in_doubt => format!("{changes} since the last commit are committed, or lost"),
        _ => format!("{changes} since the last commit are lost"),
    };
    format!("the writer has stopped, open it again: {fate}")
}

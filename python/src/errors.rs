//! Converts engine errors and panics to the exceptions of `tierdex._errors`.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tierdex::{Error, ErrorKind};

/// An engine error, or a panic of the engine.
pub enum Failure {
    /// An error that the engine returned.
    Engine(Error),
    /// A defect: the message of a panic.
    Panic(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl Failure {
    /// The exception.
    pub fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Engine(error) => engine_error(py, error),
            Failure::Panic(message) => exception(py, "InternalError", (message,)),
        }
    }
}

/// A `tierdex.UsageError`.
pub fn usage(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "UsageError", (message.into(),))
}

/// A `tierdex.LimitError`.
pub fn limit(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "LimitError", (message.into(),))
}

/// Runs `work`; a panic becomes a failure.
pub fn catch<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::Panic(panic_message(&*panic))))
}

/// Runs the body of an entry point; a panic becomes `tierdex.InternalError`.
pub fn guard<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(Failure::Panic(panic_message(&*panic)).into_exception(py)))
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    tierdex::io::panic_message(panic)
}

fn engine_error(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Usage(_) => exception(py, "UsageError", (message,)),
        Error::Limit(_) => exception(py, "LimitError", (message,)),
        Error::Busy(_) => exception(py, "BusyError", (message,)),
        Error::Cancelled | Error::Interrupted => exception(py, "CancelledError", (message,)),
        Error::Query { at, .. } => exception(py, "QueryError", (message, at)),
        Error::Storage(error) => {
            let file = error.file().to_string();
            match error.kind() {
                ErrorKind::Corrupt => exception(py, "CorruptError", (message, file, error.offset())),
                ErrorKind::NotFound => exception(py, "MissingError", (message, number(&error), file)),
                _ => exception(py, "StorageError", (message, number(&error), file)),
            }
        }
        _ => exception(py, "Error", (message,)),
    }
}

/// The error number of the operating system.
fn number(error: &tierdex::StorageError) -> Option<i32> {
    std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?.raw_os_error()
}

fn exception<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tierdex._errors")?.unbind()));
    let value = module.and_then(|module| module.bind(py).getattr(name)?.call1(arguments));
    value.map_or_else(|error| error, PyErr::from_value)
}

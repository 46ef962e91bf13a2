//! Converts engine errors and panics to the exceptions of `tierdex._errors`.

use pyo3::{call::PyCallArgs, exceptions::PyUserWarning, prelude::*, sync::PyOnceLock, types::PyModule};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tierdex::{Error, ErrorKind};

/// An engine error, or a panic of the engine.
#[derive(Clone)]
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
    /// The Python exception for this failure.
    pub fn into_exception(self, py: Python<'_>) -> PyErr {
        self.into_exception_with(py, "")
    }

    /// The Python exception for this failure; `note` is added to its message.
    pub fn into_exception_with(self, py: Python<'_>, note: &str) -> PyErr {
        match self {
            Failure::Engine(error) => engine_error(py, error, note),
            Failure::Panic(message) => new_exception(py, "InternalError", (format!("{message}{note}"),)),
        }
    }
}

/// Creates a `tierdex.UsageError`.
pub fn usage_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_exception(py, "UsageError", (message.into(),))
}

/// Issues a `UserWarning` at the caller of the method of the package that has called the native code.
pub fn issue_warning(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("warnings")?.call_method1("warn", (message, py.get_type::<PyUserWarning>(), 2)).map(drop)
}

/// Creates a `tierdex.RangeError`.
pub fn out_of_range(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_exception(py, "RangeError", (message.into(),))
}

/// Creates a `tierdex.LimitError`.
pub fn limit_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_exception(py, "LimitError", (message.into(),))
}

/// Runs `work`; a panic becomes a failure.
pub fn catch_panic<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::Panic(panic_message(&*panic))))
}

/// Runs the body of an entry point; a panic becomes `tierdex.InternalError`.
pub fn guard_entry_point<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(Failure::Panic(panic_message(&*panic)).into_exception(py)))
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    tierdex::io::panic_message(panic)
}

fn engine_error(py: Python<'_>, error: Error, note: &str) -> PyErr {
    let message = in_python(error.to_string()) + note;
    match error {
        Error::Usage(_) => new_exception(py, "UsageError", (message,)),
        Error::TooLarge(_) => new_exception(py, "LimitError", (message,)),
        Error::Overloaded { retry_after, .. } => {
            new_exception(py, "OverloadedError", (message, retry_after.as_secs_f64()))
        }
        Error::Expired { .. } => new_exception(py, "ExpiredError", (message,)),
        Error::Busy(_) => new_exception(py, "BusyError", (message,)),
        Error::Cancelled | Error::Interrupted => new_exception(py, "CancelledError", (message,)),
        Error::Query { at, .. } => new_exception(py, "QueryError", (message, at)),
        Error::Storage(error) => {
            let file = error.file().to_string();
            match error.kind() {
                ErrorKind::Corrupt => new_exception(py, "CorruptError", (message, file, error.offset())),
                ErrorKind::NotFound => {
                    new_exception(py, "MissingError", (message, os_error_number(&error), file))
                }
                _ => new_exception(py, "StorageError", (message, os_error_number(&error), file)),
            }
        }
        _ => new_exception(py, "Error", (message,)),
    }
}

/// Pairs of a text in engine messages that names a flag of the command, and its replacement for Python.
const ENGINE_ADVICE: [(&str, &str); 3] = [
    ("index again with --positions", "index again with Text(positions=True)"),
    ("`tierdex index --replace`", "Index.create(path, overwrite=True)"),
    (", or keep dictionaries, skip data and norms on disk or in another region", ""),
];

/// Replaces the advice in a message of the engine, which names flags of the command, by that for Python.
pub fn in_python(message: String) -> String {
    ENGINE_ADVICE.iter().fold(message, |message, (command, python)| message.replace(command, python))
}

/// The error number (`errno`) of the operating system, if the error has one.
fn os_error_number(error: &tierdex::StorageError) -> Option<i32> {
    std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?.raw_os_error()
}

fn new_exception<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    static ERRORS_MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS_MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tierdex._errors")?.unbind()));
    let value = module.and_then(|module| module.bind(py).getattr(name)?.call1(arguments));
    value.map_or_else(|error| error, PyErr::from_value)
}

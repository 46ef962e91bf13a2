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
    /// The exception.
    pub fn into_exception(self, py: Python<'_>) -> PyErr {
        self.into_exception_with(py, "")
    }

    /// The exception; `note` is added to its message.
    pub fn into_exception_with(self, py: Python<'_>, note: &str) -> PyErr {
        match self {
            Failure::Engine(error) => engine_error(py, error, note),
            Failure::Panic(message) => exception(py, "InternalError", (format!("{message}{note}"),)),
        }
    }
}

/// A `tierdex.UsageError`.
pub fn usage(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "UsageError", (message.into(),))
}

/// Issues a `UserWarning` at the caller of the method of the package that has called the native code.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("warnings")?.call_method1("warn", (message, py.get_type::<PyUserWarning>(), 2)).map(drop)
}

/// A `tierdex.RangeError`.
pub fn out_of_range(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "RangeError", (message.into(),))
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

fn engine_error(py: Python<'_>, error: Error, note: &str) -> PyErr {
    let message = in_python(error.to_string()) + note;
    match error {
        Error::Usage(_) => exception(py, "UsageError", (message,)),
        Error::TooLarge(_) => exception(py, "LimitError", (message,)),
        Error::Overloaded { retry_after, .. } => {
            exception(py, "OverloadedError", (message, retry_after.as_secs_f64()))
        }
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

/// Advice of the engine for the command, and for Python.
const ADVICE: [(&str, &str); 3] = [
    ("index again with --positions", "index again with Text(positions=True)"),
    ("`tierdex index --replace`", "Index.create(path, overwrite=True)"),
    (", or keep dictionaries, skip data and norms on disk or in another region", ""),
];

/// A message of the engine in the words of this package.
pub fn in_python(message: String) -> String {
    ADVICE.iter().fold(message, |message, (command, python)| message.replace(command, python))
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

//! What can go wrong, said in one line.

use std::fmt;

pub use tierdex_io::ErrorKind;

/// Result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// An engine error. `Display` is one line that says what, where and, where it helps, what to do.
#[derive(Debug, Clone)]
pub enum Error {
    /// A device failed, or a file is damaged.
    Storage(tierdex_io::Error),
    /// The caller asked for something that this index or engine does not have.
    Usage(String),
    /// A bound of [`crate::limits`] was reached.
    Limit(String),
    /// A query cannot be read, or asks for more than a query may.
    Query {
        /// Byte offset in the query's text, where the fault is in one place; messages count it from 1.
        at: Option<usize>,
        /// What is wrong there.
        message: String,
    },
    /// The caller's own input or callback failed; the message is the caller's.
    Failed(String),
    /// The caller's stop signal was raised. Within an evaluation: its deadline has passed, or it was
    /// cancelled.
    Interrupted,
    /// The caller cancelled the request.
    Cancelled,
}

impl Error {
    /// A damaged file: what is wrong at which byte.
    pub fn corrupt(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Error {
        Error::Storage(tierdex_io::Error::corrupt(file, offset, what))
    }

    /// A fault of a query as a whole.
    pub(crate) fn query(message: impl Into<String>) -> Error {
        Error::Query { at: None, message: message.into() }
    }

    /// Whether the error reports damaged bytes.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Error::Storage(error) if error.kind() == ErrorKind::Corrupt)
    }
}

impl From<tierdex_io::Error> for Error {
    fn from(error: tierdex_io::Error) -> Error {
        Error::Storage(error)
    }
}

impl From<tierdex_codec::KernelError> for Error {
    fn from(error: tierdex_codec::KernelError) -> Error {
        Error::Usage(format!("TIERDEX_KERNEL: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Storage(error) => error.fmt(f),
            Error::Usage(message) | Error::Limit(message) | Error::Failed(message) => f.write_str(message),
            Error::Query { at: Some(at), message } => write!(f, "query, byte {}: {message}", at + 1),
            Error::Query { at: None, message } => write!(f, "query: {message}"),
            Error::Interrupted => f.write_str("interrupted; the last commit is intact"),
            Error::Cancelled => f.write_str("the request was cancelled"),
        }
    }
}

impl std::error::Error for Error {}

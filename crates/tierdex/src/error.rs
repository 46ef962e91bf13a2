//! Errors of the engine.

use std::{fmt, time::Duration};

pub use tierdex_io::{Error as StorageError, ErrorKind};

/// Result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine. `Display` is one line: what happened, where and, if it helps, what to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// A device failed, or a file is missing or damaged ([`StorageError::kind`]).
    Storage(StorageError),
    /// An option or argument is not valid, or not possible with this index or engine.
    Usage(String),
    /// A document, query, request or commit exceeds a limit of size or memory. It would fail again.
    TooLarge(String),
    /// The engine has no memory for another request at present: repeat it after a pause.
    Overloaded {
        /// What is exhausted.
        message: String,
        /// Expected time until the requests that were accepted before have been answered.
        retry_after: Duration,
    },
    /// The deadline of the request passed before a thread took it from the queue: nothing was evaluated.
    Expired {
        /// Time in the queue.
        queued: Duration,
    },
    /// A query has a syntax error, or is larger than a query may be.
    Query {
        /// Byte offset of the error in the text of the query, counted from 0 (in messages from 1); `None` if
        /// the error concerns the whole query.
        at: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// Another writer holds the lock of the index; try again later.
    Busy(String),
    /// The operation failed for the reason in the message: a lock was lost, another writer has committed in
    /// the meantime, an engine was closed, or the input or a callback of the caller failed.
    Failed(String),
    /// The writer was stopped by its stop signal.
    Interrupted,
    /// The caller cancelled the request.
    Cancelled,
}

impl Error {
    /// A damaged file: its name, the offset of the damage in bytes, and what is wrong there.
    #[doc(hidden)]
    pub fn corrupt(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Error {
        Error::Storage(tierdex_io::Error::corrupt(file, offset, what))
    }

    /// An error that concerns the whole query.
    pub(crate) fn query(message: impl Into<String>) -> Error {
        Error::Query { at: None, message: message.into() }
    }

    /// A stable name of the kind of error, for protocols and logs.
    ///
    /// | code | meaning | repeat the call? |
    /// |---|---|---|
    /// | `usage` | an argument or option is not supported | no |
    /// | `query` | the query has a syntax error or is too large | no |
    /// | `too_large` | a limit of size or memory is exceeded | no |
    /// | `overloaded` | there is no memory for another request | after [`Error::retry_after`] |
    /// | `expired` | the deadline passed in the queue | with a later deadline |
    /// | `busy` | another writer holds the lock | later |
    /// | `corrupt` | a file is damaged | no |
    /// | `not_found` | a file or directory does not exist | no |
    /// | `storage` | another error of a device or the file system | it may help |
    /// | `interrupted` | a stop signal ended the writer | yes |
    /// | `cancelled` | the caller cancelled the request | yes |
    /// | `failed` | anything else: see the message | no |
    ///
    /// ```
    /// use tierdex::{Query, Schema};
    ///
    /// let error = Query::parse("disk AND", &Schema::default()).unwrap_err();
    /// assert_eq!(error.code(), "query");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Error::Storage(error) => match error.kind() {
                ErrorKind::Corrupt => "corrupt",
                ErrorKind::NotFound => "not_found",
                _ => "storage",
            },
            Error::Usage(_) => "usage",
            Error::TooLarge(_) => "too_large",
            Error::Overloaded { .. } => "overloaded",
            Error::Expired { .. } => "expired",
            Error::Query { .. } => "query",
            Error::Busy(_) => "busy",
            Error::Failed(_) => "failed",
            Error::Interrupted => "interrupted",
            Error::Cancelled => "cancelled",
        }
    }

    /// The pause after which an overloaded engine will probably accept the request; `None` for other errors.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Overloaded { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether a file is damaged.
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
            Error::Usage(message)
            | Error::TooLarge(message)
            | Error::Overloaded { message, .. }
            | Error::Busy(message)
            | Error::Failed(message) => f.write_str(message),
            Error::Expired { queued } => write!(
                f,
                "the deadline passed while the request waited in the queue for {:.1} ms; nothing was evaluated",
                queued.as_secs_f64() * 1e3
            ),
            Error::Query { at: Some(at), message } => write!(f, "query, byte {}: {message}", at + 1),
            Error::Query { at: None, message } => write!(f, "query: {message}"),
            Error::Interrupted => f.write_str("interrupted; the last commit is intact"),
            Error::Cancelled => f.write_str("the request was cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` already includes the storage error itself.
            Error::Storage(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

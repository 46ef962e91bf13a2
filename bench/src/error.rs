//! The error type of experiments.

use std::fmt;

/// The reason why an experiment ended early. The message is one line.
#[derive(Debug)]
pub enum Error {
    /// The flags are invalid or contradict each other.
    Usage(String),
    /// An operation failed during the run.
    Failed(String),
    /// The results cannot be printed.
    Output(std::io::Error),
    /// The user stopped the run.
    Interrupted,
}

/// The result type of experiments.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(message) | Error::Failed(message) => f.write_str(message),
            Error::Output(error) => write!(f, "cannot write the output: {error}"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// For `map_err`: converts the reason why an operation failed, after `what`, such as `cannot read a.txt`.
    pub fn failed<E: fmt::Display>(what: impl fmt::Display) -> impl Fn(E) -> Error {
        move |reason| Error::Failed(format!("{what}: {reason}"))
    }
}

impl From<tierdex::Error> for Error {
    fn from(error: tierdex::Error) -> Error {
        match error {
            tierdex::Error::Interrupted => Error::Interrupted,
            tierdex::Error::Usage(message) => Error::Usage(message),
            error => Error::Failed(error.to_string()),
        }
    }
}

impl From<tierdex::io::Error> for Error {
    fn from(error: tierdex::io::Error) -> Error {
        Error::Failed(error.to_string())
    }
}

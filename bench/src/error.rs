//! Why an experiment ended early.

use std::fmt;

/// Why an experiment ended early. Its message is one line.
#[derive(Debug)]
pub enum Error {
    /// The flags ask for something that cannot be.
    Usage(String),
    /// Something went wrong on the way.
    Failed(String),
    /// What was found cannot be printed.
    Output(std::io::Error),
    /// The user stopped it.
    Interrupted,
}

/// What an experiment gives.
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

impl From<tierdex::Error> for Error {
    fn from(error: tierdex::Error) -> Error {
        Error::Failed(error.to_string())
    }
}

impl From<tierdex::io::Error> for Error {
    fn from(error: tierdex::io::Error) -> Error {
        Error::Failed(error.to_string())
    }
}

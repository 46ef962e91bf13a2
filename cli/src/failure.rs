//! The error type of subcommands, and its exit codes.

use crate::messages;
use std::{fmt, path::Path, process::ExitCode};
use tierdex::commit::Manifest;

/// The error of a subcommand.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The command failed: exit code 1.
    Failed(String),
    /// An operation on a file of the index failed: exit code 1.
    Storage(tierdex::io::Error),
    /// Another writer holds the lock of the index: exit code 75.
    Busy(String),
    /// A signal stopped the command: exit code 130.
    Interrupted(String),
    /// The reader of standard output closed the pipe: no message, exit code 0.
    OutputClosed,
}

/// Result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Exit code of a command that a signal stopped: 128 plus the number of SIGINT.
    pub const INTERRUPTED_EXIT_CODE: u8 = 130;

    /// Exit code of a command that another writer blocks: `EX_TEMPFAIL` of `sysexits.h`, try again later.
    pub const BUSY_EXIT_CODE: u8 = 75;

    /// Prints one line on standard error and returns the exit code.
    pub fn print_and_exit_code(&self) -> ExitCode {
        let code = match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) | Failure::Storage(_) => 1,
            Failure::Busy(_) => Failure::BUSY_EXIT_CODE,
            Failure::Interrupted(_) => Failure::INTERRUPTED_EXIT_CODE,
            Failure::OutputClosed => return ExitCode::SUCCESS,
        };
        messages::print_message(self);
        ExitCode::from(code)
    }

    /// Adds the directory of the index to an error about one of its files.
    pub fn in_folder(self, folder: &Path) -> Failure {
        match self {
            Failure::Storage(error) if Manifest::is_index_file(error.file()) => {
                Failure::Storage(error.in_folder(folder))
            }
            other => other,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message)
            | Failure::Failed(message)
            | Failure::Busy(message)
            | Failure::Interrupted(message) => f.write_str(message),
            Failure::Storage(error) => error.fmt(f),
            Failure::OutputClosed => Ok(()),
        }
    }
}

impl From<tierdex::Error> for Failure {
    fn from(error: tierdex::Error) -> Failure {
        let message = error.to_string();
        match error {
            tierdex::Error::Usage(_) | tierdex::Error::Query { .. } => Failure::Usage(message),
            tierdex::Error::Busy(_) => Failure::Busy(message),
            tierdex::Error::Interrupted => Failure::Interrupted(message),
            tierdex::Error::Storage(error) => Failure::Storage(error),
            _ => Failure::Failed(message),
        }
    }
}

impl From<tierdex::io::Error> for Failure {
    fn from(error: tierdex::io::Error) -> Failure {
        Failure::Storage(error)
    }
}

/// The failure of a file that cannot be written.
pub fn write_error(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}

/// Converts an error of writing standard output.
pub fn output_error(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Failed(format!("cannot write the output: {error}")),
    }
}

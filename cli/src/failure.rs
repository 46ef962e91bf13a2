//! Why a subcommand ended early, and the exit code that says so.

use crate::messages;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use tierdex::index::Manifest;

/// Why a subcommand ended early.
#[derive(Debug)]
pub enum Failure {
    /// The command line asks for something that cannot be: exit code 2.
    Usage(String),
    /// Something went wrong on the way: exit code 1.
    Failed(String),
    /// So did something with a file: exit code 1.
    Storage(tierdex::io::Error),
    /// The user stopped it: exit code 130.
    Interrupted(String),
    /// The reader of the output closed the pipe: silent, exit code 0.
    Unread,
}

/// Result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The exit code of a command that was stopped: 128 and the number of SIGINT.
    pub const INTERRUPTED: u8 = 130;

    /// Prints one line and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let code = match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) | Failure::Storage(_) => 1,
            Failure::Interrupted(_) => Failure::INTERRUPTED,
            Failure::Unread => return ExitCode::SUCCESS,
        };
        messages::say(self);
        ExitCode::from(code)
    }

    /// Names the folder of the index, if this is about one of its files.
    pub fn within(self, folder: &Path) -> Failure {
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
            Failure::Usage(message) | Failure::Failed(message) | Failure::Interrupted(message) => {
                f.write_str(message)
            }
            Failure::Storage(error) => error.fmt(f),
            Failure::Unread => Ok(()),
        }
    }
}

impl From<tierdex::Error> for Failure {
    fn from(error: tierdex::Error) -> Failure {
        let message = error.to_string();
        match error {
            tierdex::Error::Usage(_) | tierdex::Error::Query { .. } => Failure::Usage(message),
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

/// An error while writing standard output.
pub fn output(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Failed(format!("cannot write the output: {error}")),
    }
}

//! Why a subcommand ended early, and the exit code that says so.

use crate::messages;
use std::process::ExitCode;

/// Why a subcommand ended early.
#[derive(Debug)]
pub enum Failure {
    /// The command line asks for something that cannot be: exit code 2.
    Usage(String),
    /// Something went wrong on the way: exit code 1.
    Failed(String),
    /// The user stopped it: exit code 130.
    Interrupted(String),
    /// Whoever read the output has gone: nothing to say, exit code 0.
    Unread,
}

/// Result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The exit code of a command that was stopped: 128 and the number of SIGINT.
    pub const INTERRUPTED: u8 = 130;

    /// Prints one line and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (message, code) = match self {
            Failure::Usage(message) => (message, 2),
            Failure::Failed(message) => (message, 1),
            Failure::Interrupted(message) => (message, Failure::INTERRUPTED),
            Failure::Unread => return ExitCode::SUCCESS,
        };
        messages::say(message);
        ExitCode::from(code)
    }
}

impl From<tierdex::Error> for Failure {
    fn from(error: tierdex::Error) -> Failure {
        let message = error.to_string();
        match error {
            tierdex::Error::Usage(_) | tierdex::Error::Query { .. } => Failure::Usage(message),
            tierdex::Error::Interrupted => Failure::Interrupted(message),
            _ => Failure::Failed(message),
        }
    }
}

impl From<tierdex::io::Error> for Failure {
    fn from(error: tierdex::io::Error) -> Failure {
        Failure::Failed(error.to_string())
    }
}

/// An error while writing standard output.
pub fn output(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Failed(format!("cannot write the output: {error}")),
    }
}

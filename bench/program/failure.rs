//! Errors of experiments as failures of the command.

use tierdex_bench::Error;
use tierdex_cli::failure::{Failure, output_error};

/// Converts the error of an experiment.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Usage(message) => Failure::Usage(message),
        Error::Failed(message) => Failure::Failed(message),
        Error::Output(error) => output_error(error),
        Error::Interrupted => {
            Failure::Interrupted("interrupted; the report has the measurements so far".to_string())
        }
    }
}

//! An experiment with its parameters.

use crate::Result;
use serde_json::Value;
use tierdex::StopSignal;

/// An experiment that a driver requests, with its parameters.
pub trait ExperimentRequest {
    /// Runs the experiment and returns its results, a JSON object.
    ///
    /// # Errors
    /// If a parameter is wrong, or the experiment fails; [`Error::Interrupted`](crate::Error::Interrupted)
    /// if `stop` is raised.
    fn answer(&self, stop: &StopSignal) -> Result<Value>;

    /// Whether the experiment writes temporary files. A signal must then raise the stop signal instead of
    /// ending the process, so that they are removed.
    fn has_temporary_files(&self) -> bool {
        false
    }
}

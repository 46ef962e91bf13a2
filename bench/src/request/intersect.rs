//! Intersections of posting lists on disk. The parameters are the flags of the experiment
//! [`crate::intersect`].

use crate::{Result, intersect, intersect::Flags, request::experiment::ExperimentRequest};
use serde_json::{Value, json};
use tierdex::StopSignal;

impl ExperimentRequest for Flags {
    /// A row for each algorithm at each point of a sweep.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        let rows = intersect::run(self, stop)?;
        Ok(json!({ "rows": rows.iter().map(|row| row.to_json()).collect::<Vec<_>>() }))
    }

    fn has_temporary_files(&self) -> bool {
        true
    }
}

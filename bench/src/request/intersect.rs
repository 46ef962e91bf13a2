//! Intersections of posting lists on disk. The parameters are the flags of the experiment
//! [`crate::intersect`].

use crate::{Result, intersect, intersect::Flags, request::experiment::ExperimentRequest};
use serde_json::{Value, json};
use tierdex::StopSignal;

impl ExperimentRequest for Flags {
    /// A row for each algorithm at each point of a sweep. There is one round unless the flags say otherwise,
    /// because the driver repeats experiments.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        let flags = Flags { rounds: Some(self.rounds.unwrap_or(1)), ..self.clone() };
        let results = intersect::run(&flags, stop)?;
        Ok(json!({ "rows": results.rows().iter().map(|row| row.to_json()).collect::<Vec<_>>() }))
    }

    fn has_temporary_files(&self) -> bool {
        true
    }
}

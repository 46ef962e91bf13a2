//! Queries over an index: the experiment of a request that names none.

use crate::request::experiment::ExperimentRequest;
use crate::{Error, Result, cell::Cell, cell::measure_cell};
use serde_json::Value;
use tierdex::StopSignal;

impl ExperimentRequest for Cell {
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        serde_json::to_value(measure_cell(self)?).map_err(|error| Error::Failed(error.to_string()))
    }
}

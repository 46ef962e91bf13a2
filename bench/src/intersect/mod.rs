//! Intersection of posting lists on disk: time, CPU and pages read of five algorithms, over the parameters
//! of Wang, Lin, Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs for Parallel I/O
//! Skipping", and over a query log.
//!
//! 1. `lists` generates lists as in section IV of the paper; `query_log` takes the lists of an index. Lists
//!    are written into files of pages, one file per codec.
//! 2. A `sweep` varies one parameter. At each of its points all algorithms run in turn (`measure`). Reads
//!    bypass the page cache, so that every read goes to the device. Results are compared with an intersection
//!    in memory. A hard disk is emulated (`seek_disk`).
//! 3. Each algorithm at each point is a row.

mod lists;
mod measure;
mod query_log;
mod request;
mod sweep;
mod work_dir;

pub use request::IntersectRequest;

use crate::{Result, request::ExperimentRequest};
use measure::IntersectRun;
use request::Sweep;
use serde_json::{Value, json};
use tierdex::StopSignal;

impl ExperimentRequest for IntersectRequest {
    /// A row for each algorithm at each point of a sweep.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        self.check()?;
        let mut run = IntersectRun::new(self, stop)?;
        if self.sweep != Sweep::Queries {
            sweep::run_sweep(&mut run)?;
        }
        if let (Some(index), Some(queries)) = (&self.index, &self.queries) {
            query_log::run_query_log(&mut run, index, queries)?;
        }
        Ok(json!({ "rows": run.rows }))
    }

    fn has_temporary_files(&self) -> bool {
        true
    }
}

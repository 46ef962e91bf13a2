//! Plans the memory of a cell, before its process is started.

use crate::{Result, cell::Cell, cell::set_memory_limit, request::experiment::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierdex::{Index, StopSignal, io::PosixDisk};

/// A cell whose memory limit is not known yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanRequest {
    /// The cell.
    cell: Cell,
    /// Margin of the memory limit over the budget, in percent of the budget.
    #[serde(default = "default_slack")]
    slack: u64,
}

impl ExperimentRequest for PlanRequest {
    /// `cell` is the cell with its `limit`; `huge_pages` is the number of huge pages that it needs.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        self.cell.check()?;
        let index = Index::open_on(Arc::new(PosixDisk::open(&self.cell.index)?))?;
        let mut cell = self.cell.clone();
        let huge_pages = set_memory_limit(&index, self.slack, &mut cell)?;
        Ok(json!({ "cell": cell, "huge_pages": huge_pages }))
    }
}

fn default_slack() -> u64 {
    20
}

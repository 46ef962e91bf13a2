//! What the machine and this program are, for reports and for choosing what can be measured.

use crate::{Machine, Result, request::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use tierdex::{StopSignal, codec::Kernel, io::FORMAT_VERSION};

/// The machine and this program. There are no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineRequest {}

impl ExperimentRequest for MachineRequest {
    /// `kernels` are slowest first.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let machine = Machine::here();
        Ok(json!({
            "cpu": machine.cpu,
            "threads": machine.threads,
            "memory_bytes": machine.memory_bytes,
            "kernels": Kernel::available().into_iter().map(Kernel::name).collect::<Vec<_>>(),
            "format": FORMAT_VERSION,
            "version": env!("CARGO_PKG_VERSION"),
        }))
    }
}

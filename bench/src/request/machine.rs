//! What the machine and this program are, for reports and for choosing what can be measured.

use crate::{Machine, Result, counters::CounterRecorder, counters::CounterSet, request::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use tierdex::{StopSignal, codec::Kernel, io::FORMAT_VERSION};

/// The machine and this program. There are no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineRequest {}

impl ExperimentRequest for MachineRequest {
    /// `counters` and `top_down` are null, or say why the sets of counters `cache` and `top-down` cannot be
    /// used. `kernels` are slowest first.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let machine = Machine::here();
        let missing = |set| CounterRecorder::open(set).err().map(|error| error.to_string());
        Ok(json!({
            "cpu": machine.cpu,
            "threads": machine.threads,
            "memory_bytes": machine.memory_bytes,
            "kernels": Kernel::available().into_iter().map(Kernel::name).collect::<Vec<_>>(),
            "format": FORMAT_VERSION,
            "version": env!("CARGO_PKG_VERSION"),
            "counters": missing(CounterSet::Cache),
            "top_down": missing(CounterSet::TopDown),
        }))
    }
}

//! What the machine and this program are, for reports and for choosing what can be measured. Host name and
//! addresses are left out.

use crate::{Result, request::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{env::consts::ARCH, fs, thread::available_parallelism};
use tierdex::{StopSignal, codec::Kernel, io::FORMAT_VERSION};

/// The machine and this program. There are no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineRequest {}

impl ExperimentRequest for MachineRequest {
    /// `threads` are the hardware threads available to this process, and `memory_bytes` is 0 if unknown.
    /// `kernels` are slowest first.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let cpu = first_value("/proc/cpuinfo", "model name");
        let memory = first_value("/proc/meminfo", "MemTotal").unwrap_or_default();
        let kib = memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok());
        Ok(json!({
            "cpu": cpu.unwrap_or_else(|| format!("unknown {ARCH}")),
            "threads": available_parallelism().map_or(1, usize::from),
            "memory_bytes": kib.unwrap_or_default() << 10,
            "kernels": Kernel::available().into_iter().map(Kernel::name).collect::<Vec<_>>(),
            "format": FORMAT_VERSION,
            "version": env!("CARGO_PKG_VERSION"),
        }))
    }
}

/// The value of the first line `name: value` of a file.
fn first_value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim().to_string())
}

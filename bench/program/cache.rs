//! `tierdex-bench cache`: queries per second by read mode, cache size and device.

use crate::failure::failure;
use std::io::stdout;
use tierdex::StopSignal;
use tierdex_bench::{cache::Flags, cache::run as measure, cell::Launch};
use tierdex_cli::{failure::Failure, failure::Outcome, interrupt};

pub fn run(flags: &Flags) -> Outcome {
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    measure(flags, "tierdex-bench cache", &launch()?, &stop, &mut stdout().lock()).map(drop).map_err(failure)
}

/// Starts cells as processes of this program.
pub fn launch() -> Outcome<Launch> {
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| Failure::Failed(format!("cannot find the path of this program: {error}")))?;
    Ok(Launch::Process(program, vec!["cell".to_string()]))
}

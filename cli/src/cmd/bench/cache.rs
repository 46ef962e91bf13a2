//! `tierdex bench cache`: queries a second by mode, cache size and device.

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::io::stdout;
use tierdex::index::Stop;
use tierdex_bench::cache::{Flags, Start, run as measure};

pub fn run(flags: &Flags) -> Outcome {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    let start = Start::Program(program, ["bench", "cache-cell"].map(str::to_string).to_vec());
    let stop = Stop::default();
    let _watched = interrupt::raises(stop.clone());
    measure(flags, "tierdex bench cache", &start, &stop, &mut stdout().lock())?;
    Ok(())
}

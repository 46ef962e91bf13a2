//! `tierdex-bench paper`: tables and figures of five papers.

use crate::{cache::launch, failure::failure};
use std::io::stdout;
use tierdex::StopSignal;
use tierdex_bench::paper::{Flags, list, run as make};
use tierdex_cli::{failure::Outcome, interrupt};

pub fn run(flags: &Flags) -> Outcome {
    let mut out = stdout().lock();
    if flags.list {
        return list(flags.callgrind, &mut out).map_err(failure);
    }
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    make(flags, &launch()?, &stop, &mut out).map_err(failure)
}

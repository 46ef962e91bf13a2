//! How lists that stay on disk are intersected: time, CPU and pages read of five algorithms, over the parameters of Wang, Lin,
//! Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs for Parallel I/O Skipping", and over real queries.
//!
//! 1. `lists` makes lists as the paper's section IV has them, `real` takes those of an index; both are written into files of
//!    pages, one for each codec;
//! 2. a `sweep` varies one parameter; at each of its points all algorithms run in turn, round after round, in a [`Room`], past
//!    the page cache, so that nothing is warm; what they find is compared with an intersection in memory;
//! 3. medians are [`Row`]s: tables, a report, JSON, and a plot a sweep.

mod device;
mod flags;
mod lists;
mod measure;
mod plot;
mod real;
mod report;
mod results;
mod room;
mod row;
mod sweep;
mod usage;
mod work;

pub use flags::Flags;
pub use results::Results;
pub use row::Row;

use crate::{Result, folder};
use std::io::{IsTerminal, Write, stderr};

/// Runs the sweeps that the flags ask for.
///
/// # Errors
/// If a flag cannot be, if a result is wrong, or if a file cannot be written or read.
pub fn run(flags: &Flags) -> Result<Results> {
    let settings = flags.settings()?;
    if let Some(dir) = &flags.out {
        folder::make(dir)?;
    }
    let work = work::Work::new(flags)?;
    let mut results = Results::new(flags, &settings);
    if settings.sweeps.iter().any(|sweep| !matches!(sweep, sweep::Sweep::Device | sweep::Sweep::Real)) {
        sweep::synthetic(&work, &settings, &mut results)?;
    }
    if settings.sweeps.contains(&sweep::Sweep::Device) {
        device::run(&work, &settings, &mut results)?;
    }
    if let (Some(index), Some(queries)) = (&flags.index, &flags.queries) {
        real::run(&work, &settings, (index, queries), &mut results)?;
    }
    say("");
    Ok(results)
}

/// Shows on a terminal what is being measured.
fn say(what: &str) {
    let mut terminal = stderr();
    if terminal.is_terminal() {
        // A terminal that has gone is no reason to stop.
        let _ = write!(terminal, "\r{what:<60}\r").and_then(|()| terminal.flush());
    }
}

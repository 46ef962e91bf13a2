//! Intersection of posting lists on disk: time, CPU and pages read of five algorithms, over the parameters
//! of Wang, Lin, Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs for Parallel I/O
//! Skipping", and over a query log.
//!
//! 1. `lists` generates lists as in section IV of the paper; `query_log` takes the lists of an index. Lists
//!    are written into files of pages, one file per codec.
//! 2. A `sweep` varies one parameter. At each of its points all algorithms run in turn, in an
//!    `IntersectionRunner`. Reads bypass the page cache, so that every read goes to the device. Results are
//!    compared with an intersection in memory. A hard disk is emulated (`seek_disk`).
//! 3. Each algorithm at each point is a [`SweepRow`].

mod cpu_time;
mod flags;
mod lists;
mod measure;
mod query_log;
mod row;
mod runner;
mod settings;
mod sweep;
mod work_dir;

pub use flags::Flags;
pub use row::SweepRow;

use crate::Result;
use settings::Settings;
use tierdex::StopSignal;
use work_dir::WorkDir;

/// Runs the sweeps that the flags select.
///
/// # Errors
/// If a flag is invalid, if an intersection is wrong, or if a file cannot be written or read;
/// [`Error::Interrupted`](crate::Error::Interrupted) if `stop` is raised.
pub fn run(flags: &Flags, stop: &StopSignal) -> Result<Vec<SweepRow>> {
    let settings = Settings { stop: stop.clone(), ..flags.settings()? };
    let work = WorkDir::new(flags, stop)?;
    let mut rows = Vec::new();
    if !settings.sweeps.is_empty() {
        sweep::run_sweeps(&work, &settings, &mut rows)?;
    }
    if let (Some(index), Some(queries)) = (&flags.index, &flags.queries) {
        query_log::run_query_log(&work, &settings, index, queries, &mut rows)?;
    }
    Ok(rows)
}

//! How fast queries are answered when postings have little memory: every mode of the executor, by the size of its cache, in
//! a process with a limit of memory.
//!
//! You have an index; you get queries a second, times, reads, misses and peaks of memory of each cell, with the answers of all
//! cells compared.
//!
//! 1. `queries` draws queries from the index's own dictionary, as the thesis does;
//! 2. each [`Cell`] is a combination of what the [`Flags`] list: queries, device, mode, size, and what else matters to it;
//! 3. `runner` starts a process for each, which joins a [`group`](crate::group), answers its queries twice (`process`), and says what it
//!    [`Measured`]; `machine` is what is changed of the machine meanwhile;
//! 4. [`Rows`] are what came of it: a table as it goes, then a report, rows of JSON and plots.
//!
//! The experiment must not know how the modes do what they do: it takes the executor as any program would.

mod cell;
mod flags;
mod machine;
mod measured;
mod named;
mod plot;
mod process;
mod queries;
mod report;
mod results;
mod rows;
mod runner;
mod task;

pub use cell::{Cell, Contender, Device};
pub use flags::Flags;
pub use measured::{Lists, Measured};
pub use process::run_cell;
pub use queries::{Class, Shape, Workload};
pub use rows::{Row, Rows};
pub use runner::Start;

use crate::{Error, Result, folder};
use runner::Plan;
use std::io::Write;
use tierdex::index::Stop;

/// Runs the experiment: a line a cell to `out` as it goes, then all that was found into the folder that the flags name.
/// `program` is how one calls the program that runs it.
///
/// # Errors
/// If the flags ask for what cannot be, the machine does not permit it, answers differ, or `stop` is raised; in the last two
/// cases what was measured is written all the same.
pub fn run(flags: &Flags, program: &str, start: &Start, stop: &Stop, out: &mut dyn Write) -> Result<Rows> {
    flags.check()?;
    let plan = Plan::new(flags)?;
    folder::make(&flags.out)?;
    let mut say =
        |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output);
    say(&report::heading())?;
    let mut rows = Rows::default();
    let whole = runner::run((flags, &plan), start, stop, &mut |row| {
        let mut one = Rows::default();
        one.push(row.clone());
        rows.push(row);
        one.medians().iter().try_for_each(|median| say(&report::line(median)))
    })?;
    results::save(program, flags, &plan, &rows, whole)?;
    if !whole {
        return Err(Error::Interrupted);
    }
    match rows.differences().first() {
        Some(first) => Err(Error::Failed(format!("wrong answers: {first}"))),
        None => Ok(rows),
    }
}

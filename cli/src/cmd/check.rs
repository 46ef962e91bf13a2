//! `tierdex check`: every byte and every invariant.

use crate::failure::{Failure, Outcome, output};
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    dir: PathBuf,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let disk = open::disk(&arguments.dir)?;
    let report = tierdex::index::check(disk.as_ref()).map_err(|error| Failure::Failed(error.to_string()))?;
    for name in &report.orphans {
        writeln!(stdout(), "{name}: no commit names this file; the next writer removes it")
            .map_err(output)?;
    }
    for problem in &report.problems {
        writeln!(stdout(), "{problem}").map_err(output)?;
    }
    match report.problems.len() {
        0 => writeln!(
            stdout(),
            "sound: commit {}, {} files, {}, {} documents, {} terms, {} postings",
            report.generation,
            report.files,
            size::show(report.bytes),
            size::group(report.documents),
            size::group(report.terms),
            size::group(report.postings)
        )
        .map_err(output),
        problems => Err(Failure::Failed(format!(
            "{}: {problems} {}; restore the index from a copy, or index again with --replace",
            arguments.dir.display(),
            if problems == 1 { "problem" } else { "problems" }
        ))),
    }
}

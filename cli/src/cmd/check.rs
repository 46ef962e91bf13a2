//! `tierdex check`: every byte and every invariant.

use crate::failure::{Failure, Outcome, output};
use crate::messages::printable;
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::Error;
use tierdex::io::ErrorKind;

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let disk = open::disk(&arguments.dir)?;
    let report = tierdex::index::check(disk.as_ref()).map_err(open::not_usage)?;
    for name in &report.orphans {
        writeln!(stdout(), "{name}: no commit names this file; the next writer removes it")
            .map_err(output)?;
    }
    let denied =
        |problem: &Error| matches!(problem, Error::Storage(error) if error.kind() == ErrorKind::Denied);
    let advice = match report.problems.iter().all(denied) {
        true => "let this user read the files of the index",
        false => "restore the index from a copy, or index again with --replace",
    };
    let problems = report.problems.len();
    for problem in report.problems {
        let problem = Failure::from(problem).within(&arguments.dir);
        writeln!(stdout(), "{}", printable(&problem.to_string())).map_err(output)?;
    }
    match problems {
        0 => writeln!(
            stdout(),
            "sound: commit {}, {}, {}, {}, {}, {}",
            report.generation,
            size::count(report.files as u64, "file", "files"),
            size::show(report.bytes),
            size::count(report.documents, "document", "documents"),
            size::count(report.terms, "term", "terms"),
            size::count(report.postings, "posting", "postings")
        )
        .map_err(output),
        problems => Err(Failure::Failed(format!(
            "{}: {}; {advice}",
            arguments.dir.display(),
            size::count(problems as u64, "problem", "problems")
        ))),
    }
}

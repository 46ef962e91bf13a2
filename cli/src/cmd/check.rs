//! `tierdex check`: verifies the checksums and invariants of all files of an index.

use crate::failure::{Failure, Outcome, output_error};
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
    let report = tierdex::index::check(disk.as_ref()).map_err(open::usage_as_failure)?;
    for name in &report.orphans {
        writeln!(stdout(), "{name}: orphan file that no commit refers to; the next writer removes it")
            .map_err(output_error)?;
    }
    let denied =
        |problem: &Error| matches!(problem, Error::Storage(error) if error.kind() == ErrorKind::Denied);
    let advice = match report.problems.iter().all(denied) {
        true => "give this user read permission for the files of the index",
        false => "restore the index from a backup, or index again with --replace",
    };
    let problems = report.problems.len();
    for problem in report.problems {
        let problem = Failure::from(problem).in_folder(&arguments.dir);
        writeln!(stdout(), "{}", printable(&problem.to_string())).map_err(output_error)?;
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
        .map_err(output_error),
        problems => Err(Failure::Failed(format!(
            "{}: {}; {advice}",
            arguments.dir.display(),
            size::count(problems as u64, "problem", "problems")
        ))),
    }
}

//! `tierdex check`: verifies the checksums and invariants of all files of an index.

use super::search::OutputFormat;
use crate::failure::{Failure, Outcome, output_error};
use crate::{messages::make_printable, open, size};
use clap::Args;
use serde_json::json;
use std::io::{Result, Write, stdout};
use std::path::PathBuf;
use tierdex::{CheckReport, Error, io::ErrorKind};

#[derive(Args)]
pub struct CheckCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run_check(arguments: &CheckCommandArguments) -> Outcome {
    // Fails with a clear message if the directory does not exist.
    open::open_directory(&arguments.dir)?;
    let mut report = tierdex::check(&arguments.dir).map_err(open::usage_as_failure)?;
    let denied =
        |problem: &Error| matches!(problem, Error::Storage(error) if error.kind() == ErrorKind::Denied);
    let advice = match report.problems.iter().all(denied) {
        true => "give this user read permission for the files of the index",
        false => "restore the index from a backup, or index again with --replace",
    };
    let in_folder = |problem: Error| Failure::from(problem).in_folder(&arguments.dir).to_string();
    let problems: Vec<String> = std::mem::take(&mut report.problems).into_iter().map(in_folder).collect();
    let written = match arguments.format {
        OutputFormat::Json => write_json(&report, &problems),
        OutputFormat::Table => write_lines(&report, &problems),
    };
    written.map_err(output_error)?;
    match problems.len() {
        0 => Ok(()),
        problems => Err(Failure::Failed(format!(
            "{}: {}; {advice}",
            arguments.dir.display(),
            size::show_count(problems as u64, "problem", "problems")
        ))),
    }
}

fn write_lines(report: &CheckReport, problems: &[String]) -> Result<()> {
    for name in &report.orphans {
        writeln!(stdout(), "{name}: orphan file that no commit refers to; the next writer removes it")?;
    }
    for problem in problems {
        writeln!(stdout(), "{}", make_printable(problem))?;
    }
    if !problems.is_empty() {
        return Ok(());
    }
    writeln!(
        stdout(),
        "sound: commit {}, {}, {}, {}, {}, {}",
        report.generation,
        size::show_count(report.files as u64, "file", "files"),
        size::show_bytes(report.bytes),
        size::show_count(report.documents, "document", "documents"),
        size::show_count(report.terms, "term", "terms"),
        size::show_count(report.postings, "posting", "postings")
    )
}

fn write_json(report: &CheckReport, problems: &[String]) -> Result<()> {
    let value = json!({
        "sound": problems.is_empty(),
        "generation": report.generation,
        "files": report.files,
        "bytes": report.bytes,
        "documents": report.documents,
        "terms": report.terms,
        "postings": report.postings,
        "problems": problems,
        "orphans": report.orphans,
    });
    writeln!(stdout(), "{value}")
}

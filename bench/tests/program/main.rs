//! The program `tierdex-bench`. Measured values are not checked.

mod budget;
mod documents;
mod experiments;
mod limits;
#[path = "../../../cli/tests/workspace/mod.rs"]
mod workspace;

use std::{io::Write, path::Path, process::Output, process::Stdio};
use tierdex::internal::index::check_on;
use tierdex::{CheckReport, IndexWriter, Merge, WriterOptions, io::PosixDisk, schema::Schema};
use workspace::{program_command, wait_for_output};

/// Indexes texts, whose ids are their numbers from 0.
fn index<T: AsRef<str>>(dir: &Path, texts: impl IntoIterator<Item = T>) {
    let mut writer = IndexWriter::create(dir, Schema::default(), WriterOptions::default()).unwrap();
    for (id, text) in texts.into_iter().enumerate() {
        writer.add(&id.to_string(), "", text.as_ref()).unwrap();
    }
    writer.commit(Merge::One).unwrap();
}

/// The report of a check, which has no problem.
fn check_index(dir: &Path) -> CheckReport {
    let report = check_on(&PosixDisk::open(dir).unwrap()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report
}

fn run_command(dir: &Path, arguments: &str) -> Output {
    program_command(arguments.split(' ')).current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

fn run_successfully(dir: &Path, arguments: &str) -> String {
    let output = run_command(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with `code` and one line that contains `words`.
fn run_failing(dir: &Path, code: i32, arguments: &str, words: &str) {
    let output = run_command(dir, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("tierdex: ") && error.contains(words), "`{error}` does not contain `{words}`");
}

/// The output lines of a server for these input lines.
fn serve_lines(dir: &Path, arguments: &str, lines: &[u8]) -> Vec<String> {
    let mut command = program_command(arguments.split(' '));
    command.current_dir(dir);
    let mut server =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.stdin.take().unwrap().write_all(lines).unwrap();
    let output = wait_for_output(server);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}

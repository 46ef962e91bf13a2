//! The program `tierdex-bench`. Measured values are not checked.

mod budget;
mod documents;
mod experiments;
mod limits;
mod requests;
#[path = "../../../cli/tests/workspace/mod.rs"]
mod workspace;

use std::{io::Write, path::Path};
use tierdex::internal::index::check_on;
use tierdex::{CheckReport, IndexWriter, Merge, WriterOptions, io::PosixDisk, schema::Schema};
use workspace::{Workspace, assert_succeeded, wait_for_output};

/// Indexes texts, whose ids are their numbers from 0.
fn index<T: AsRef<str>>(dir: &Path, texts: impl IntoIterator<Item = T>) {
    let mut writer = IndexWriter::create(dir, Schema::default(), WriterOptions::default()).unwrap();
    for (id, text) in texts.into_iter().enumerate() {
        writer.add(&id.to_string(), [("text", text.as_ref())]).unwrap();
    }
    writer.commit(Merge::One).unwrap();
}

/// The report of a check, which has no problem.
fn check_index(dir: &Path) -> CheckReport {
    let report = check_on(&PosixDisk::open(dir).unwrap()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report
}

/// The output lines of a server for these input lines.
fn serve_lines(workspace: &Workspace, arguments: &str, lines: &[u8]) -> Vec<String> {
    let (server, mut input) = workspace.spawn_with_input(arguments);
    input.write_all(lines).unwrap();
    drop(input);
    assert_succeeded(&wait_for_output(server)).lines().map(str::to_string).collect()
}

//! Messages about wrong flags and unknown kernels, and limits of the system.

use crate::index;
use crate::workspace::{Workspace, limited::count_failed_starts};
use std::fs;

#[test]
fn an_unknown_kernel_is_rejected_before_any_file_is_written() {
    let workspace = Workspace::new();
    index(&workspace.path("good"), ["cat"]);
    workspace.assert_unknown_kernel_rejected(&[
        "generate --docs 9 --postings 9 --vocabulary 5 --out new",
        "serve good",
    ]);
    let (code, _) = workspace.run_with_kernel("", "serve good");
    assert_eq!(code, Some(0), "an empty name counts as unset");
}

#[test]
fn threads_that_cannot_be_started_end_the_command_with_one_line() {
    let workspace = Workspace::with_documents();
    let generate = "generate --out out/c --docs 1000 --postings 5000 --vocabulary 50";
    let remove = || fs::remove_dir_all(workspace.path("out/c")).unwrap();
    let Some(failures) = count_failed_starts(&workspace, generate, remove) else { return };
    assert!(failures >= 2, "only {failures} commands had too few threads");
}

#[test]
fn usage_errors_are_one_line() {
    let workspace = Workspace::new();
    workspace.fails_in_one_line(2, "frob", "see `tierdex-bench --help`");
    workspace.fails_in_one_line(2, "cell", "the cell is no valid JSON");
}

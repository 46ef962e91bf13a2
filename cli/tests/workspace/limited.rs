//! Programs with limited memory, threads or permissions, by the commands `prlimit` and `setpriv`.

use super::{Workspace, program_command};
use std::process::{Command, Output};

/// A different user for each test and process: limits count all threads of a user, and limits and
/// permissions do not apply to root.
pub fn new_user(test: u32) -> [String; 4] {
    let id = 100_000 + 4 * std::process::id() + test;
    ["setpriv".to_string(), format!("--reuid={id}"), format!("--regid={id}"), "--clear-groups".to_string()]
}

/// Runs the program by a wrapper, such as `prlimit`, in the directory of a test. Its input is `docs.jsonl`.
pub fn run(workspace: &Workspace, wrapper: &[&str], arguments: &str) -> Output {
    let mut command = Command::new(wrapper[0]);
    let program = program_command(arguments.split(' '));
    command
        .args(&wrapper[1..])
        .arg(program.get_program())
        .args(program.get_args())
        .env("RUST_BACKTRACE", "1");
    let input = std::fs::File::open(workspace.path("docs.jsonl")).unwrap();
    command.current_dir(workspace.path("")).stdin(input).output().unwrap()
}

/// Whether the command succeeded; otherwise checks for exit code 1 and one line on standard error.
pub fn ends_well(output: &Output, context: &str) -> bool {
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(1), "{context}: {error}");
        assert!(error.starts_with("tierdex: "), "{context}: {error}");
        // A panic prints the backtrace, as RUST_BACKTRACE is set.
        let backtrace = error.starts_with("tierdex: internal error: zstd ");
        assert!(error.lines().count() == 1 || backtrace, "{context}: {error}");
    }
    output.status.success()
}

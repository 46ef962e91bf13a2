//! Programs with limited memory, threads or permissions, by the commands `prlimit` and `setpriv`.

use super::{Workspace, program_command};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// The wrapper that runs a program as a different user for each test and process: limits count all threads of
/// a user, and limits and permissions do not apply to root. `None`, with a message that the test is skipped,
/// if the system does not permit it.
pub fn new_user(workspace: &Workspace, test: u32) -> Option<String> {
    let id = 100_000 + 4 * std::process::id() + test;
    let user = format!("setpriv --reuid={id} --regid={id} --clear-groups");
    let permitted = run(workspace, &user, "--version").status.success();
    if !permitted {
        println!("skipped: it needs permission to change the user");
    }
    permitted.then_some(user)
}

/// Runs the program by a wrapper, such as `prlimit`, in the directory of a test. Its input is `docs.jsonl`.
pub fn run(workspace: &Workspace, wrapper: &str, arguments: &str) -> Output {
    let mut wrapper = wrapper.split(' ');
    let mut command = Command::new(wrapper.next().unwrap());
    let program = program_command(arguments.split(' '));
    command.args(wrapper).arg(program.get_program()).args(program.get_args()).env("RUST_BACKTRACE", "1");
    let input = fs::File::open(workspace.path("docs.jsonl")).unwrap();
    command.current_dir(workspace.path("")).stdin(input).output().unwrap()
}

/// Runs a command with 1 to 4 threads, by a user who may write to the directory `out`. Each run must succeed,
/// and is given to `succeeded`, or say in one line that a thread could not be started. Returns the number of
/// failures; `None` if the system does not permit this.
pub fn count_failed_starts(workspace: &Workspace, arguments: &str, succeeded: impl Fn()) -> Option<usize> {
    for folder in ["", "out"] {
        fs::create_dir_all(workspace.path(folder)).unwrap();
        fs::set_permissions(workspace.path(folder), Permissions::from_mode(0o777)).unwrap();
    }
    let user = new_user(workspace, 0)?;
    let mut failures = 0;
    for threads in 1..=4 {
        let output = run(workspace, &format!("{user} prlimit --nproc={threads}"), arguments);
        let context = format!("{arguments}, {threads} threads");
        if ends_well(&output, &context) {
            succeeded();
            continue;
        }
        failures += 1;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("start"), "{context}: {error}");
        assert_eq!(threads == 1, error.contains("handles Ctrl-C"), "{context}: {error}");
    }
    Some(failures)
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

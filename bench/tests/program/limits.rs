//! Messages about wrong flags and unknown kernels, and limits of the system.

use crate::index;
use crate::workspace::{Workspace, limited::ends_well, limited::new_user, limited::run, program_command};
use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

#[test]
fn an_unknown_kernel_is_rejected_before_any_file_is_written() {
    let dir = tempfile::tempdir().unwrap();
    index(&dir.path().join("good"), ["cat"]);
    let run = |kernel: &str, arguments: &str| {
        let mut command = program_command(arguments.split(' '));
        command.current_dir(dir.path()).stdin(Stdio::null());
        let output = command.env("TIERDEX_KERNEL", kernel).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for arguments in [
        "codecs --quick",
        "intersect --quick",
        "generate --docs 9 --postings 9 --vocabulary 5 --out new",
        "serve good",
        "cache good --out new",
    ] {
        let (code, error) = run("sse", arguments);
        let line =
            "tierdex: TIERDEX_KERNEL: no kernel is called `sse`; there are scalar, avx2, avx512f, avx512\n";
        assert_eq!((code, &*error), (Some(2), line), "{arguments}");
    }
    let left = fs::read_dir(dir.path().join("new")).map_or(0, |files| files.count());
    assert_eq!(left, 0, "files were created");
    assert_eq!(run("", "serve good").0, Some(0), "an empty name counts as unset");
}

#[test]
fn threads_that_cannot_be_started_end_the_command_with_one_line() {
    let workspace = Workspace::with_documents();
    for folder in ["", "out"] {
        fs::create_dir_all(workspace.path(folder)).unwrap();
        fs::set_permissions(workspace.path(folder), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let user = new_user(0);
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    if !run(&workspace, &user, "--version").status.success() {
        println!("skipped: it needs permission to change the user");
        return;
    }
    let mut failures = 0;
    for threads in 1..=4 {
        let limit = format!("--nproc={threads}");
        let generate = "generate --out out/c --docs 1000 --postings 5000 --vocabulary 50";
        let output = run(&workspace, &[&user[..], &["prlimit", &limit]].concat(), generate);
        if ends_well(&output, &format!("{threads} threads")) {
            fs::remove_dir_all(workspace.path("out/c")).unwrap();
            continue;
        }
        failures += 1;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("start"), "{threads} threads: {error}");
        assert_eq!(threads == 1, error.contains("handles Ctrl-C"), "{threads} threads: {error}");
    }
    assert!(failures >= 2, "only {failures} commands had too few threads");
}

#[test]
fn usage_errors_are_one_line() {
    let workspace = Workspace::new();
    workspace.fails(2, "frob", "see `tierdex-bench --help`");
    let output = workspace.run("frob");
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

#[test]
fn counts_of_one_are_singular() {
    let workspace = Workspace::new();
    let said = workspace.ok("generate --docs 1 --postings 1 --vocabulary 1 --out g");
    assert!(said.contains("1 document, 1 term, 1 posting, "), "{said}");
}

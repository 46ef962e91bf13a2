//! The run file of `tierdex batch`: links, permissions, concurrent batches, and files that are never
//! overwritten.

use crate::workspace::{Workspace, assert_failed, assert_succeeded, wait_for_output, wait_until};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::{fs, io::Write, process::Command};

fn with_index() -> Workspace {
    let workspace = Workspace::with_documents();
    workspace.file("q", "q1\tcat\n");
    workspace.ok("index docs.jsonl --out i");
    workspace
}

#[test]
fn of_two_concurrent_batches_the_later_run_remains() {
    let workspace = with_index();
    workspace.file("r.partial", "precious");
    workspace.fifo("slow");
    let mut first = workspace.spawn("batch i --queries slow --run r");
    let mut queries = workspace.open_fifo(&mut first, "slow");
    queries.write_all(b"first\tbird\n").unwrap();
    wait_until(&mut first, || {
        assert_eq!(fs::read_to_string(workspace.path("r.partial")).unwrap(), "precious");
        workspace.names().iter().any(|name| name.starts_with(".tierdex-run"))
    });
    workspace.ok("batch i --queries q --run r");
    assert!(fs::read_to_string(workspace.path("r")).unwrap().starts_with("q1 Q0 2 1 "));
    drop(queries);
    assert_succeeded(&wait_for_output(first));
    let run = fs::read_to_string(workspace.path("r")).unwrap();
    assert!(run.starts_with("first Q0 3 1 ") && run.lines().count() == 1, "{run}");

    workspace.fails(1, "batch none --queries q --run r", "no such directory");
    assert_eq!(fs::read_to_string(workspace.path("r.partial")).unwrap(), "precious");
    assert_eq!(workspace.names(), ["docs.jsonl", "i", "q", "r", "r.partial", "slow"]);
}

#[test]
fn links_are_followed_and_permissions_are_kept() {
    let workspace = with_index();
    fs::create_dir(workspace.path("runs")).unwrap();
    symlink("runs/new", workspace.path("link")).unwrap();
    symlink(workspace.path("link"), workspace.path("link to link")).unwrap();
    assert_succeeded(&workspace.run_with(["batch", "i", "--queries", "q", "--run", "link to link"]));
    assert!(workspace.path("link").is_symlink() && workspace.path("link to link").is_symlink());
    assert!(fs::read_to_string(workspace.path("runs/new")).unwrap().starts_with("q1 Q0 "));

    let mode = |name: &str| fs::metadata(workspace.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("runs/new"), mode("q"), "a new run has default permissions");
    for bits in [0o600, 0o660] {
        fs::set_permissions(workspace.path("runs/new"), fs::Permissions::from_mode(bits)).unwrap();
        workspace.ok("batch i --queries q --run link");
        assert_eq!(mode("runs/new"), bits);
    }
    assert_eq!(fs::read_dir(workspace.path("runs")).unwrap().count(), 1);

    symlink("nowhere/new", workspace.path("lost")).unwrap();
    workspace.fails(1, "batch i --queries q --run lost", "cannot write lost: ");
    symlink("round", workspace.path("round")).unwrap();
    workspace.fails(1, "batch i --queries q --run round", "cannot write round: ");
}

#[test]
fn arguments_that_name_the_same_file_are_rejected() {
    let workspace = with_index();
    fs::hard_link(workspace.path("q"), workspace.path("same")).unwrap();
    symlink("q", workspace.path("link")).unwrap();
    symlink("new", workspace.path("dangling")).unwrap();
    for (files, words) in [
        ("--queries q --run q", "--queries and --run name the same file"),
        ("--queries q --run ./same", "--queries and --run"),
        ("--queries link --run q", "--queries and --run"),
    ] {
        workspace.fails(2, &format!("batch i {files}"), words);
    }
    assert_eq!(fs::read_to_string(workspace.path("q")).unwrap(), "q1\tcat\n");
}

/// Descriptors that the shell has opened are appended to, not replaced.
#[test]
fn descriptors_are_appended_to() {
    let workspace = with_index();
    for (run, redirection) in [
        ("/dev/stdout", ">>log"),
        ("/dev/stderr", "2>>log"),
        ("/dev/fd/1", ">>log"),
        ("/proc/self/fd/1", ">>log"),
        ("/dev/fd/5", "5>>log"),
        ("link", ">>log"),
    ] {
        let _ = fs::remove_file(workspace.path("link"));
        symlink("/dev/stdout", workspace.path("link")).unwrap();
        workspace.file("log", "before\n");
        let tierdex = env!("CARGO_BIN_EXE_tierdex");
        let script = format!("{tierdex} batch i --queries q --run {run} {redirection}; echo after >>log");
        let mut shell = Command::new("bash");
        assert_succeeded(&shell.args(["-c", &script]).current_dir(workspace.path("")).output().unwrap());
        let log = fs::read_to_string(workspace.path("log")).unwrap();
        assert!(log.starts_with("before\n") && log.ends_with("after\n"), "{run}: {log}");
        assert!(log.contains("q1 Q0 2 1 "), "{run}: {log}");
    }
}

#[test]
fn a_run_in_the_index_or_over_the_queries_is_rejected() {
    let workspace = with_index();
    for name in ["manifest-0000000000000001", "0000000000000001.0.postings", "new"] {
        workspace.fails(2, &format!("batch i --queries q --run i/{name}"), "in the directory of the index");
    }
    assert!(workspace.ok("check i").starts_with("sound"));
    let queries = fs::File::open(workspace.path("q")).unwrap();
    let output = workspace.command("batch i --queries - --run q".split(' ')).stdin(queries).output().unwrap();
    assert_failed(&output, 2, "name the same file");
    assert_eq!(fs::read_to_string(workspace.path("q")).unwrap(), "q1\tcat\n");
}

#[test]
fn a_run_without_write_permission_is_not_replaced() {
    let workspace = with_index();
    let id = (200_000 + std::process::id()).to_string();
    fs::set_permissions(workspace.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    workspace.file("r", "another's");
    fs::set_permissions(workspace.path("r"), fs::Permissions::from_mode(0o444)).unwrap();
    let user = ["--reuid", &id, "--regid", &id, "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(user).arg(env!("CARGO_BIN_EXE_tierdex")).current_dir(workspace.path(""));
    let output = command.args("batch i --queries q --run r".split(' ')).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("setpriv") {
        println!("skipped: it needs permission to change the user");
        return;
    }
    assert_failed(&output, 1, "cannot write r: ");
    assert_eq!(fs::read_to_string(workspace.path("r")).unwrap(), "another's");
}

//! Signals: every command ends with one line and exit code 130.

mod workspace;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use workspace::{DOCUMENTS, Workspace, failed, succeeded};

fn spawn(workspace: &Workspace, arguments: &str) -> Child {
    let mut command = workspace.command(arguments.split(' '));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_signal_ends_commands_that_wait_for_input() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", DOCUMENTS);
    workspace.ok("index docs.jsonl --out i");
    assert!(Command::new("mkfifo").arg(workspace.path("fifo")).status().unwrap().success());
    for signal in ["-INT", "-TERM", "-HUP"] {
        for arguments in [
            "index docs.jsonl --out new --stop-words fifo",
            "batch i --queries fifo --run r",
            "eval docs.jsonl fifo",
        ] {
            let child = spawn(&workspace, arguments);
            // Opening blocks until the command opens the other end.
            let _writer = OpenOptions::new().write(true).open(workspace.path("fifo")).unwrap();
            send(&child, signal);
            let output = child.wait_with_output().unwrap();
            failed(&output, 130, "interrupted");
            assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments}");
        }
    }
    assert_eq!(workspace.names(), ["docs.jsonl", "fifo", "i"]);
}

#[test]
fn a_signal_ends_commands_that_write_output() {
    let workspace = Workspace::new();
    let documents = (0..5000).map(|id| format!("{{\"id\":\"{id}\",\"text\":\"the same cat again\"}}\n"));
    workspace.file("docs.jsonl", documents.collect::<String>());
    workspace.ok("index docs.jsonl --out i");
    for arguments in
        ["search i cat -k 5000", "search i cat -k 5000 --format json", "explain i cat -k 5000 --format json"]
    {
        let mut child = spawn(&workspace, arguments);
        // The output is larger than the pipe buffer, so the command blocks.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        send(&child, "-TERM");
        // The output is read after the exit; otherwise the command could finish before it handles the
        // signal.
        child.wait().unwrap();
        failed(&child.wait_with_output().unwrap(), 130, "interrupted");
    }
}

#[test]
fn signals_that_the_parent_ignores_stay_ignored() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", DOCUMENTS);
    workspace.ok("index docs.jsonl --out i");
    assert!(Command::new("mkfifo").arg(workspace.path("fifo")).status().unwrap().success());
    // As `nohup` and background jobs of a shell start a command.
    let script = "trap '' HUP INT; exec \"$0\" batch i --queries fifo --run r";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tierdex")]).current_dir(workspace.path(""));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut queries = OpenOptions::new().write(true).open(workspace.path("fifo")).unwrap();
    send(&child, "-HUP");
    send(&child, "-INT");
    queries.write_all(b"q1\tcat\n").unwrap();
    drop(queries);
    assert!(succeeded(&child.wait_with_output().unwrap()).starts_with("1 query, 2 hits"));
}

/// Whether a thread of the process is inside `write` to standard error.
fn writes_to_standard_error(child: &Child) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("syscall")).ok()).any(|call| {
        let call: Vec<&str> = call.split(' ').collect();
        call.starts_with(&["1", "0x2"])
    })
}

/// Messages fill a pipe that is not read, so the thread that writes them blocks with the lock of standard
/// error.
#[test]
fn a_blocked_standard_error_does_not_delay_a_signal() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", DOCUMENTS);
    workspace.file("q", "a line without a tab\n".repeat(20_000));
    workspace.ok("index docs.jsonl --out i");
    if std::fs::read_to_string("/proc/self/syscall").is_err() {
        println!("skipped: /proc/PID/syscall cannot be read");
        return;
    }
    let mut child = spawn(&workspace, "batch i --queries q --run r --on-error skip");
    while !writes_to_standard_error(&child) {
        assert!(child.try_wait().unwrap().is_none(), "the command has ended");
        std::thread::yield_now();
    }
    send(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(workspace.names(), ["docs.jsonl", "i", "q"]);
}

//! Signals: every command ends with one line and exit code 130.

use crate::workspace::{WAIT_MAX, Workspace, assert_failed, assert_succeeded};
use crate::workspace::{send_signal, spawn_and_finish, wait_for_output, wait_until};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;
use tierdex::io::start_with_default_signals;

/// Waits for the end of a process without reading its output.
fn wait_for_exit(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > WAIT_MAX {
            let _ = child.kill();
            panic!("the command did not end within {WAIT_MAX:?}");
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_signal_ends_commands_that_wait_for_input() {
    let workspace = Workspace::with_index("");
    workspace.fifo("fifo");
    for signal in ["-INT", "-TERM", "-HUP"] {
        for arguments in [
            "index docs.jsonl --out new --stop-words fifo",
            "batch i --queries fifo --run r",
            "eval docs.jsonl fifo",
        ] {
            let mut child = workspace.spawn(arguments);
            let _writer = workspace.open_fifo(&mut child, "fifo");
            send_signal(&child, signal);
            let output = wait_for_output(child);
            assert_failed(&output, 130, "interrupted");
            assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments}");
        }
    }
    assert_eq!(workspace.names(), ["docs.jsonl", "fifo", "i"]);
}

/// As under `nohup` and in the background of a shell.
#[test]
fn the_tests_do_not_depend_on_inherited_dispositions() {
    let script =
        "trap '' HUP INT TERM; exec \"$0\" --exact signals::a_signal_ends_commands_that_wait_for_input";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(std::env::current_exe().unwrap());
    assert!(assert_succeeded(&spawn_and_finish(&mut command)).contains("1 passed"));
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
        let mut child = workspace.spawn(arguments);
        // The output is larger than the pipe buffer, so the command blocks.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        send_signal(&child, "-TERM");
        // The output is read after the exit; otherwise the command could finish before it handles the
        // signal.
        wait_for_exit(&mut child);
        assert_failed(&wait_for_output(child), 130, "interrupted");
    }
}

#[test]
fn signals_that_the_parent_ignores_stay_ignored() {
    let workspace = Workspace::with_index("");
    workspace.fifo("fifo");
    // As `nohup` and background jobs of a shell start a command.
    let script = "trap '' HUP INT; exec \"$0\" batch i --queries fifo --run r";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tierdex")]).current_dir(workspace.path(""));
    start_with_default_signals(&mut command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut queries = workspace.open_fifo(&mut child, "fifo");
    send_signal(&child, "-HUP");
    send_signal(&child, "-INT");
    queries.write_all(b"q1\tcat\n").unwrap();
    drop(queries);
    assert!(assert_succeeded(&wait_for_output(child)).starts_with("1 query, 2 hits"));
}

/// Whether a thread of the process is inside `write` to standard error.
fn writes_to_standard_error(id: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("syscall")).ok()).any(|call| {
        let call: Vec<&str> = call.split(' ').collect();
        call.starts_with(&["1", "0x2"])
    })
}

/// Messages fill a pipe that is not read, so the thread that writes them blocks with the lock of standard
/// error.
#[test]
fn a_blocked_standard_error_does_not_delay_a_signal() {
    let workspace = Workspace::with_documents();
    workspace.file("q", "a line without a tab\n".repeat(20_000));
    workspace.ok("index docs.jsonl --out i");
    if std::fs::read_to_string("/proc/self/syscall").is_err() {
        println!("skipped: /proc/PID/syscall cannot be read");
        return;
    }
    let mut child = workspace.spawn("batch i --queries q --run r --on-error skip");
    let id = child.id();
    wait_until(&mut child, || writes_to_standard_error(id));
    send_signal(&child, "-TERM");
    assert_eq!(wait_for_exit(&mut child).code(), Some(130));
    assert_eq!(workspace.names(), ["docs.jsonl", "i", "q"]);
}

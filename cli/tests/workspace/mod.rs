//! A temporary directory for a test, with the commands run in it. The tests of the packages of `tierdex` and
//! of `tierdex-bench` share it.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod control_group;
pub mod limited;

use serde_json::Value;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs::File, os::unix::fs::OpenOptionsExt, path::PathBuf, sync::mpsc::channel};
use tempfile::TempDir;
use tierdex::io::start_with_default_signals;

/// Time after which a test fails that waits for a process: far longer than any of them needs.
pub const WAIT_MAX: Duration = Duration::from_secs(300);

/// The program of the package that is tested.
pub const PROGRAM: &str =
    match (option_env!("CARGO_BIN_EXE_tierdex"), option_env!("CARGO_BIN_EXE_tierdex-bench")) {
        (Some(path), _) | (None, Some(path)) => path,
        (None, None) => panic!("cargo names the program of a package to its tests"),
    };

/// Flag of `open`: does not wait for the other end of a pipe.
const O_NONBLOCK: i32 = 0o4000;

pub struct Workspace(TempDir);

impl Workspace {
    pub fn new() -> Workspace {
        Workspace(tempfile::tempdir().unwrap())
    }

    /// A directory with [`DOCUMENTS`] as `docs.jsonl`.
    pub fn with_documents() -> Workspace {
        let workspace = Workspace::new();
        workspace.file("docs.jsonl", DOCUMENTS);
        workspace
    }

    /// As [`Workspace::with_documents`], and an index of them in `i`, written with further options.
    pub fn with_index(options: &str) -> Workspace {
        let workspace = Workspace::with_documents();
        workspace.ok(format!("index docs.jsonl --out i {options}").trim_end());
        workspace
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Sorted names of the directory's entries.
    pub fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    /// Sorted names of the entries of a directory in this one.
    pub fn names_in(&self, directory: &str) -> Vec<String> {
        let names = std::fs::read_dir(self.path(directory)).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the command in this directory. `arguments` are separated by blanks.
    pub fn run(&self, arguments: &str) -> Output {
        self.run_with(arguments.split(' '))
    }

    pub fn run_with<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        spawn_and_finish(&mut self.command(arguments))
    }

    pub fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = program_command(arguments);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        // Costs of reads are kept there.
        command.env("XDG_CACHE_HOME", self.path(".cache"));
        command
    }

    /// Starts the command in this directory.
    pub fn spawn(&self, arguments: &str) -> Child {
        let mut command = self.command(arguments.split(' '));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// As [`Workspace::spawn`], with the end of the pipe that the command reads as its standard input.
    pub fn spawn_with_input(&self, arguments: &str) -> (Child, ChildStdin) {
        let mut command = self.command(arguments.split(' '));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        (child, input)
    }

    /// Exit code and standard error of a command with this name of a kernel.
    pub fn run_with_kernel(&self, kernel: &str, arguments: &str) -> (Option<i32>, String) {
        let mut command = self.command(arguments.split(' '));
        let output = command.env("TIERDEX_KERNEL", kernel).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    /// Checks that commands with the name of an unknown kernel fail, and write no file to `new`.
    pub fn assert_unknown_kernel_rejected(&self, commands: &[&str]) {
        let line =
            "tierdex: TIERDEX_KERNEL: no kernel is called `sse`; there are scalar, avx2, avx512f, avx512\n";
        for arguments in commands {
            let (code, error) = self.run_with_kernel("sse", arguments);
            assert_eq!((code, &*error), (Some(2), line), "{arguments}");
        }
        let left = std::fs::read_dir(self.path("new")).map_or(0, |files| files.count());
        assert_eq!(left, 0, "files were created");
    }

    /// Creates a named pipe.
    pub fn fifo(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().unwrap().success());
    }

    /// Opens a named pipe for writing, once the process reads it.
    pub fn open_fifo(&self, child: &mut Child, name: &str) -> File {
        let mut options = File::options();
        options.write(true).custom_flags(O_NONBLOCK);
        let mut opened = None;
        wait_until(child, || {
            opened = options.open(self.path(name)).ok();
            opened.is_some()
        });
        opened.unwrap()
    }

    pub fn ok(&self, arguments: &str) -> String {
        assert_succeeded(&self.run(arguments))
    }

    /// The JSON that a command writes.
    pub fn run_for_json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// Total and ids of a query.
    pub fn search_index(&self, index: &str, query: &str) -> (u64, Vec<String>) {
        let output = self.run_with(["search", index, query, "--format", "json", "-k", "100"]);
        let answer: Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
        let hits = answer["hits"].as_array().unwrap().iter();
        let ids = hits.map(|hit| hit["id"].as_str().unwrap().to_string());
        (answer["total"].as_u64().unwrap(), ids.collect())
    }

    /// The ids of the hits of a query, sorted.
    pub fn sorted_ids(&self, index: &str, query: &str) -> Vec<String> {
        let mut ids = self.search_index(index, query).1;
        ids.sort();
        ids
    }

    /// Runs a command that must fail with `code` and an error line that contains `words`.
    pub fn fails(&self, code: i32, arguments: &str, words: &str) {
        assert_failed(&self.run(arguments), code, words);
    }

    /// As [`Workspace::fails`], with no other line on standard error.
    pub fn fails_in_one_line(&self, code: i32, arguments: &str, words: &str) {
        let output = self.run(arguments);
        assert_failed(&output, code, words);
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments}");
    }
}

/// The program with these arguments. Signals end it, also if the tests run under `nohup` or in the background
/// of a shell.
pub fn program_command<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(PROGRAM);
    start_with_default_signals(command.args(arguments));
    command
}

/// Starts a command and waits for its end.
pub fn spawn_and_finish(command: &mut Command) -> Output {
    wait_for_output(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Waits for the end of a process and reads its output. Kills it and fails after [`WAIT_MAX`].
pub fn wait_for_output(child: Child) -> Output {
    let id = child.id();
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(WAIT_MAX).map(|output| output.unwrap()).unwrap_or_else(|_| {
        let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        panic!("process {id} did not end within {WAIT_MAX:?}")
    })
}

pub fn send_signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until a condition holds. Fails if the process ends before, and kills it and fails after
/// [`WAIT_MAX`].
pub fn wait_until(child: &mut Child, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(child.try_wait().unwrap().is_none(), "the command has ended");
        if start.elapsed() > WAIT_MAX {
            let _ = child.kill();
            panic!("the condition did not hold within {WAIT_MAX:?}");
        }
        std::thread::yield_now();
    }
}

pub fn assert_succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn assert_failed(output: &Output, code: i32, words: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    let last = error.lines().last().unwrap_or_default();
    assert!(last.starts_with("tierdex: ") && last.contains(words), "`{error}` does not contain `{words}`");
    assert!(!error.contains("panicked"), "{error}");
}

pub const DOCUMENTS: &str = r#"{"id":"1","title":"First","text":"the cat sat on the mat"}
{"id":"2","title":"","text":"the dog and the cat"}
{"id":3,"title":"Third","text":"a bird in the hand"}
"#;

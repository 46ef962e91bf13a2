//! A temporary directory for a test, with the commands run in it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub struct Workspace(TempDir);

impl Workspace {
    pub fn new() -> Workspace {
        Workspace(tempfile::tempdir().unwrap())
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
        let names = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the command in this directory. `arguments` are separated by blanks.
    pub fn run(&self, arguments: &str) -> Output {
        self.run_with(arguments.split(' '))
    }

    pub fn run_with<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = program(arguments);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    pub fn ok(&self, arguments: &str) -> String {
        succeeded(&self.run(arguments))
    }

    /// Runs a command that must fail with `code` and an error line that contains `words`.
    pub fn fails(&self, code: i32, arguments: &str, words: &str) {
        failed(&self.run(arguments), code, words);
    }
}

/// The program `tierdex` with these arguments, or `tierdex-bench` if that is the first argument.
/// SIGINT ends it, also if the tests run in the background of a shell, which ignores SIGINT there.
pub fn program<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut arguments = arguments.into_iter().peekable();
    let is_bench = arguments.next_if_eq(&"tierdex-bench").is_some();
    let tierdex = env!("CARGO_BIN_EXE_tierdex");
    let mut command = Command::new("env");
    command.arg("--default-signal=INT");
    command.arg(if is_bench { env!("CARGO_BIN_EXE_tierdex-bench") } else { tierdex }).args(arguments);
    command
}

pub fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn failed(output: &Output, code: i32, words: &str) {
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

//! An engine as a child process behind the line protocol.

use crate::engine::{Contender, Kind};
use crate::{flags::Flags, tools};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use tierdex_bench::{Error, Result};

/// A child that answers lines. It ends with its input, when this is dropped.
pub struct Server {
    /// Which engine it is.
    pub kind: Kind,
    /// How messages call it.
    pub name: String,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    child: Child,
    log: PathBuf,
}

/// What a batch took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// Lines.
    pub n: u64,
    /// From the first line to the last.
    pub wall_ns: u64,
    /// Latency of the line in the middle.
    pub p50_ns: u64,
    /// Latency that one line of a hundred exceeds.
    pub p99_ns: u64,
    /// All answers together.
    pub sum: u64,
    /// Lines that the engine does not answer.
    pub unsupported: u64,
}

impl Server {
    /// Starts the engine and waits until its index is in memory.
    ///
    /// # Errors
    /// If it cannot be started or says anything but `READY`.
    pub fn start(flags: &Flags, contender: &Contender) -> Result<Server> {
        tools::say(&format!("starting {}", contender.name));
        let words = contender.engine.serve_words(&contender.variant, &contender.dir(flags));
        Server::spawn(flags, contender.engine.kind, &contender.name, &words)
    }

    /// Starts an engine by other words and under another name.
    ///
    /// # Errors
    /// If it cannot be started or says anything but `READY`.
    pub fn spawn(flags: &Flags, kind: Kind, name: &str, words: &[OsString]) -> Result<Server> {
        let log = flags.work.join(format!("{}.log", name.replace(' ', "-")));
        let failed = |error: std::io::Error| Error::Failed(format!("cannot start {name}: {error}"));
        let mut child = tools::command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| Error::Failed(format!("{name} has no output")))?;
        let (name, output) = (name.to_string(), BufReader::new(output));
        let mut server = Server { kind, name, input, output, child, log };
        match server.answer()?.as_str() {
            "READY" => Ok(server),
            other => Err(Error::Failed(format!("{} should say READY and said `{other}`", server.name))),
        }
    }

    /// The answer to a line.
    ///
    /// # Errors
    /// If the engine has ended or answers `ERROR`.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        let name = self.name.clone();
        let gone = |error| Error::Failed(format!("{name} takes no more lines: {error}"));
        if let Some(input) = &mut self.input {
            writeln!(input, "{line}").and_then(|()| input.flush()).map_err(gone)?;
        }
        let answer = self.answer()?;
        match answer.strip_prefix("ERROR ") {
            Some(why) => Err(Error::Failed(format!("{name} answers `{line}` by: {why}"))),
            None => Ok(answer),
        }
    }

    /// Runs the lines of a file.
    ///
    /// # Errors
    /// If the engine fails or its answer cannot be read.
    pub fn batch(&mut self, file: &Path, threads: u32) -> Result<Batch> {
        let answer = self.ask(&format!("!BATCH\t{}\t{threads}\t-", file.display()))?;
        let name = &self.name;
        Batch::parse(&answer)
            .ok_or_else(|| Error::Failed(format!("{name} answers a batch by what cannot be read: {answer}")))
    }

    /// Bytes that the system has fetched from devices for it so far; none if the kernel does not say.
    pub fn fetched(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/io", self.child.id())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("read_bytes:")?.trim().parse().ok())
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        let name = &self.name;
        let read = self.output.read_line(&mut line);
        if read.map_err(|error| Error::Failed(format!("{name} cannot be read: {error}")))? == 0 {
            let said = fs::read_to_string(&self.log).unwrap_or_default();
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            return Err(Error::Failed(format!("{name} ended; the last that it said: {last}")));
        }
        Ok(line.trim_end().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Without input it ends by itself; what it says of that is of no interest.
        self.input = None;
        let _ = self.child.wait();
    }
}

impl Batch {
    fn parse(text: &str) -> Option<Batch> {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let number = |name| value.get(name)?.as_u64();
        Some(Batch {
            n: number("n")?,
            wall_ns: number("wall_ns")?,
            p50_ns: number("p50_ns")?,
            p99_ns: number("p99_ns")?,
            sum: number("sum")?,
            unsupported: number("unsupported")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;

    #[test]
    fn the_object_of_a_batch_is_read() {
        let text = r#"{"n":2,"wall_ns":9,"p50_ns":3,"p99_ns":4,"max_ns":4,"sum":7,"unsupported":0}"#;
        let batch = Batch { n: 2, wall_ns: 9, p50_ns: 3, p99_ns: 4, sum: 7, unsupported: 0 };
        assert_eq!(Batch::parse(text), Some(batch));
        assert_eq!(Batch::parse("UNSUPPORTED"), None);
    }
}

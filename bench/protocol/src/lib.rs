//! The line protocol of `tierdex-bench serve` and of the engines that it is compared with: commands, answers
//! and batches. An engine is a [`LineServer`].
//!
//! The first line of output is `READY`. A line `COMMAND<TAB>QUERY` has one line of answer. A line
//! `!BATCH<TAB>FILE<TAB>THREADS<TAB>LATENCIES` runs the lines of a file; its answer is a summary as a JSON
//! object. The answer to a line that fails is `ERROR` and the reason.

#![forbid(unsafe_code)]

use std::io::{BufRead, Error, Read, Write};
use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};
use std::{fmt, fs, process::ExitCode, thread::Builder, thread::scope, time::Instant};

/// The result of an operation; an error is a text of one line.
pub type Result<T> = std::result::Result<T, String>;

/// The exit code of a program; prints why it failed.
pub fn exit_code(done: Result<()>) -> ExitCode {
    let Err(why) = done else { return ExitCode::SUCCESS };
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// An engine behind the protocol.
pub trait LineServer: Sync {
    /// Answers `COMMAND<TAB>QUERY`.
    ///
    /// # Errors
    /// Why there is no answer.
    fn answer(&self, line: &str) -> Result<Answer>;

    /// Answers the lines of a batch, and times each.
    ///
    /// # Errors
    /// The first of [`LineServer::answer`]; if a thread cannot be started.
    fn answer_batch(&self, batch: &Batch) -> Result<Vec<LineResult>> {
        batch.answer(|line| self.answer(line))
    }
}

/// Why a server ends before its input does.
#[derive(Debug)]
pub enum ServeError {
    /// A line cannot be read.
    Input(Error),
    /// An answer cannot be written.
    Output(Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Input(error) => write!(f, "cannot read a line: {error}"),
            ServeError::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

/// The longest accepted line: a query of 64 KiB, and a command or file names.
const LINE_BYTES_MAX: usize = 80 << 10;

/// Answers the lines of `input` until it ends.
///
/// # Errors
/// If input or output fail.
pub fn serve(
    server: &impl LineServer,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> std::result::Result<(), ServeError> {
    let mut say =
        |line: &str| writeln!(output, "{line}").and_then(|()| output.flush()).map_err(ServeError::Output);
    say("READY")?;
    let mut line = Vec::new();
    while read_line(input, &mut line).map_err(ServeError::Input)? {
        say(&reply_to(server, &line).unwrap_or_else(|error| format!("ERROR {error}")))?;
    }
    Ok(())
}

/// Reads the next line into `line`; false at the end of the input. A line that is too long is cut at one byte
/// more than [`LINE_BYTES_MAX`].
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    input.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', line)?;
    if line.len() > LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}

/// The line of output that answers a line of input.
fn reply_to(server: &impl LineServer, line: &[u8]) -> Result<String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"));
    }
    let line = str::from_utf8(line.trim_ascii_end()).map_err(|_| "the line is not UTF-8".to_string())?;
    let Some(batch) = line.strip_prefix("!BATCH\t") else {
        return Ok(server.answer(line)?.to_string());
    };
    let batch = Batch::read(batch)?;
    let start = Instant::now();
    let results = server.answer_batch(&batch)?;
    batch.finish(results, start.elapsed().as_nanos())
}

/// The answer to a line.
pub enum Answer {
    /// A number of matches or of hits.
    Number(u64),
    /// Numbers of documents and scores, best first.
    Documents(Vec<(u64, f32)>),
    /// The command or the query is not supported.
    Unsupported,
}

impl Answer {
    /// The number in the answer, the number of hits of a list, or `None` if the line is not supported.
    pub fn value(&self) -> Option<u64> {
        match self {
            Answer::Number(number) => Some(*number),
            Answer::Documents(hits) => Some(hits.len() as u64),
            Answer::Unsupported => None,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Number(number) => write!(f, "{number}"),
            Answer::Unsupported => f.write_str("UNSUPPORTED"),
            Answer::Documents(hits) => {
                for (rank, (document, score)) in hits.iter().enumerate() {
                    write!(f, "{}{document}:{score}", if rank == 0 { "" } else { " " })?;
                }
                Ok(())
            }
        }
    }
}

/// A command of the line protocol; `k`, where there is one, is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineCommand {
    /// `COUNT`: the number of matches.
    Count,
    /// `TOP_k`: the number of hits, at most k.
    Top(usize),
    /// `TOP_k_COUNT`: the number of matches, found together with the best k.
    TopCount(usize),
    /// `DOCS_k`: documents and scores of the best k.
    Docs(usize),
}

impl LineCommand {
    /// The command and the query of a line; `None` if there is no such command.
    pub fn parse(line: &str) -> Option<(LineCommand, &str)> {
        let (word, query) = line.split_once('\t')?;
        let number = |k: &str| k.parse().ok().filter(|&k| k > 0);
        let command = if word == "COUNT" {
            LineCommand::Count
        } else if let Some(k) = word.strip_prefix("DOCS_") {
            LineCommand::Docs(number(k)?)
        } else {
            let k = word.strip_prefix("TOP_")?;
            match k.strip_suffix("_COUNT") {
                Some(k) => LineCommand::TopCount(number(k)?),
                None => LineCommand::Top(number(k)?),
            }
        };
        Some((command, query))
    }
}

/// The lines of a batch, and how to run them.
pub struct Batch {
    /// The lines of the file that are not empty.
    pub lines: Arc<[String]>,
    /// Threads that answer lines, 1 to 1,024.
    pub threads: usize,
    latencies: Option<String>,
}

/// The time and the answer of one line of a batch.
pub struct LineResult {
    /// Number of the line, from 0.
    pub line: usize,
    /// Nanoseconds from the parsing of the query to its answer.
    pub nanoseconds: u64,
    /// What [`Answer::value`] returns for the answer.
    pub value: Option<u64>,
}

impl Batch {
    /// Reads the file of `FILE<TAB>THREADS<TAB>LATENCIES`.
    ///
    /// # Errors
    /// If a part is missing or invalid, or the file cannot be read.
    fn read(batch: &str) -> Result<Batch> {
        let parts: Vec<&str> = batch.split('\t').collect();
        let [file, threads, latencies] = parts[..] else {
            return Err("!BATCH needs a file, a number of threads, and a file for latencies or -".to_string());
        };
        let threads = threads
            .parse()
            .ok()
            .filter(|threads| (1..=1024).contains(threads))
            .ok_or_else(|| format!("`{threads}` is no number of threads from 1 to 1024"))?;
        let text = fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        let lines = text.lines().filter(|line| !line.is_empty()).map(str::to_string).collect();
        Ok(Batch { lines, threads, latencies: (latencies != "-").then(|| latencies.to_string()) })
    }

    /// Answers the lines on the threads of the batch, which take them in order from a shared counter, and
    /// times each.
    ///
    /// # Errors
    /// The first of `answer`; if a thread cannot be started.
    pub fn answer(&self, answer: impl Fn(&str) -> Result<Answer> + Sync) -> Result<Vec<LineResult>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut results = Vec::with_capacity(self.lines.len());
            loop {
                let line = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = self.lines.get(line) else { return Ok(results) };
                let start = Instant::now();
                let value = answer(text)?.value();
                results.push(LineResult { line, nanoseconds: start.elapsed().as_nanos() as u64, value });
            }
        };
        let results: Vec<Result<Vec<LineResult>>> = scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, work);
            let workers: Vec<_> = (0..self.threads).map(start).collect::<std::io::Result<_>>()?;
            let panicked = |_| Err("a thread that answers lines panicked".to_string());
            Ok(workers.into_iter().map(|worker| worker.join().unwrap_or_else(panicked)).collect())
        })
        .map_err(|error: std::io::Error| format!("cannot start a thread that answers lines: {error}"))?;
        Ok(results.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Writes the latencies, if they are asked for, and returns the summary of a batch that took `wall`
    /// nanoseconds.
    ///
    /// # Errors
    /// If the latencies cannot be written.
    fn finish(&self, mut results: Vec<LineResult>, wall: u128) -> Result<String> {
        results.sort_unstable_by_key(|result| result.line);
        if let Some(latencies) = &self.latencies {
            let text: String = results.iter().map(|result| format!("{}\n", result.nanoseconds)).collect();
            fs::write(latencies, text).map_err(|error| format!("cannot write {latencies}: {error}"))?;
        }
        let mut times: Vec<u64> = results.iter().map(|result| result.nanoseconds).collect();
        times.sort_unstable();
        let at = |percent: usize| {
            times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(0)
        };
        let sum: u64 = results.iter().filter_map(|result| result.value).sum();
        let unsupported = results.iter().filter(|result| result.value.is_none()).count();
        let (n, p50, p99, max) = (results.len(), at(50), at(99), at(100));
        Ok(format!(
            "{{\"n\":{n},\"wall_ns\":{wall},\"p50_ns\":{p50},\"p99_ns\":{p99},\"max_ns\":{max},\"sum\":{sum},\
             \"unsupported\":{unsupported}}}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed() {
        assert_eq!(LineCommand::parse("COUNT\ta b"), Some((LineCommand::Count, "a b")));
        assert_eq!(LineCommand::parse("TOP_10\ta"), Some((LineCommand::Top(10), "a")));
        assert_eq!(LineCommand::parse("TOP_1024_COUNT\ta"), Some((LineCommand::TopCount(1024), "a")));
        assert_eq!(LineCommand::parse("DOCS_3\t"), Some((LineCommand::Docs(3), "")));
        for line in ["COUNT", "TOP_0\ta", "TOP_x\ta", "DOCS_-1\ta", "TOP_10_SUM\ta"] {
            assert_eq!(LineCommand::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_batch_answers_each_line_once_and_reports_the_first_error() {
        let lines = (0..100).map(|line| format!("COUNT\t{line}")).collect();
        let batch = Batch { lines, threads: 3, latencies: None };
        let number = |line: &str| LineCommand::parse(line).unwrap().1.parse::<u64>().unwrap();
        let results = batch.answer(|line| Ok(Answer::Number(number(line)))).unwrap();
        let summary = batch.finish(results, 5).unwrap();
        assert!(
            summary.starts_with("{\"n\":100,\"wall_ns\":5,") && summary.contains("\"sum\":4950,"),
            "{summary}"
        );
        let failing = |line: &str| match number(line) {
            50 => Err("line 50".to_string()),
            _ => Ok(Answer::Unsupported),
        };
        assert_eq!(batch.answer(failing).err().as_deref(), Some("line 50"));
        assert!(Batch::read("file\t0\t-").err().unwrap().contains("1 to 1024"));
    }

    #[test]
    fn lines_are_bounded_in_memory() {
        let (long, line) = (vec![b'x'; 1 << 24], &mut Vec::new());
        let input = [&long[..], b"\nCOUNT\tcat\n", &long[..], b"\nlast"].concat();
        let mut input = &input[..];
        for expected in [None, Some("COUNT\tcat\n"), None, Some("last")] {
            assert!(read_line(&mut input, line).unwrap());
            assert_eq!(str::from_utf8(line).ok().filter(|line| line.len() <= LINE_BYTES_MAX), expected);
            assert!(line.capacity() <= 4 * LINE_BYTES_MAX);
        }
        assert!(!read_line(&mut input, line).unwrap());
    }

    #[test]
    fn answers_are_written_as_the_protocol_has_them() {
        assert_eq!(Answer::Number(7).to_string(), "7");
        assert_eq!(Answer::Documents(vec![(3, 1.5), (0, 0.25)]).to_string(), "3:1.5 0:0.25");
        assert_eq!(Answer::Unsupported.to_string(), "UNSUPPORTED");
    }
}

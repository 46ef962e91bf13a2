//! A line protocol, so that any harness can drive the engine in a process of its own.
//!
//! You have an index; you get, for each line `COMMAND<TAB>QUERY` of the input, one line of output:
//!
//! | command | answer |
//! |---|---|
//! | `COUNT` | number of matches |
//! | `TOP_k` | number of hits, at most k |
//! | `TOP_k_COUNT` | number of matches; the best k are found too |
//! | `DOCS_k` | `document:score` of the best k, best first, with a space between |
//! | `!BATCH<TAB>FILE<TAB>THREADS<TAB>LATENCIES` | the lines of FILE, on so many threads; an object with the times |
//!
//! Other commands are answered by `UNSUPPORTED`, and what fails by `ERROR` and the reason. Everything that queries
//! need is in memory before the first line of output, `READY`; or, if so asked, an executor brings it near: then the lines
//! of a batch are its queue, and are of one command.

mod batch;

use crate::{Error, Result};
use clap::Args;
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use tierdex::engine::{Executor, ExecutorOptions};
use tierdex::index::{Found, Index, SearchOptions, Searcher};
use tierdex::limits::{DEFAULT_B, DEFAULT_K1, QUERY_BYTES_MAX};
use tierdex::query::Query;
use tierdex::rank::Bm25;

/// What to serve.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    pub dir: PathBuf,
    /// Score every matching document, also those that cannot be among the best
    #[arg(long)]
    pub exhaustive: bool,
    /// BM25: how slowly further occurrences lose weight
    #[arg(long, default_value_t = DEFAULT_K1, allow_negative_numbers = true)]
    pub k1: f64,
    /// BM25: how much a document's length matters
    #[arg(long, default_value_t = DEFAULT_B, allow_negative_numbers = true)]
    pub b: f64,
}

/// Answers the lines of `input` from `index` until it ends: from memory, or by an executor with the options `near`.
///
/// # Errors
/// If the index cannot be read, or if input or output fail.
pub fn run(
    index: &Index,
    near: Option<&ExecutorOptions>,
    flags: &Flags,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<()> {
    let bm25 = Bm25::new(flags.k1, flags.b)?;
    let source = match near {
        Some(options) => Source::Executor(Box::new(Executor::new(index, options)?)),
        None => {
            index.keep_in_memory()?;
            Source::Memory(index.searcher())
        }
    };
    let server = Server { index, source, exhaustive: flags.exhaustive, bm25 };
    say(output, "READY")?;
    let mut line = Vec::new();
    while next_line(input, &mut line)
        .map_err(|error| Error::Failed(format!("cannot read a line: {error}")))?
    {
        let reply = match line.len() {
            0..=LINE_BYTES_MAX => server.reply(line.trim_ascii_end()),
            _ => format!("ERROR the line is longer than {LINE_BYTES_MAX} bytes"),
        };
        say(output, &reply)?;
    }
    Ok(())
}

/// The longest line: a command or names of files, and a query.
const LINE_BYTES_MAX: usize = QUERY_BYTES_MAX + (16 << 10);

/// Reads a line, of one that is too long only the beginning. Whether there is one.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    input.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', line)?;
    if line.len() > LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}

fn say(output: &mut dyn Write, line: &str) -> Result<()> {
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(Error::Output)
}

/// What lines are answered from.
struct Server<'a> {
    index: &'a Index,
    source: Source,
    exhaustive: bool,
    bm25: Bm25,
}

/// Where postings are.
enum Source {
    Memory(Searcher),
    Executor(Box<Executor>),
}

/// An answer to a line.
enum Answer {
    Number(u64),
    Documents(Vec<(u32, f32)>),
    Unsupported,
}

impl Answer {
    /// The number that was answered; hits for a list of them; none for lines that are not supported.
    fn value(&self) -> Option<u64> {
        match self {
            Answer::Number(number) => Some(*number),
            Answer::Documents(hits) => Some(hits.len() as u64),
            Answer::Unsupported => None,
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Number(number) => write!(f, "{number}"),
            Answer::Unsupported => f.write_str("UNSUPPORTED"),
            Answer::Documents(hits) => {
                for (place, (document, score)) in hits.iter().enumerate() {
                    write!(f, "{}{document}:{score}", if place == 0 { "" } else { " " })?;
                }
                Ok(())
            }
        }
    }
}

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Count,
    Top(usize),
    TopCount(usize),
    Docs(usize),
}

impl Command {
    fn parse(word: &str) -> Option<Command> {
        if word == "COUNT" {
            return Some(Command::Count);
        }
        if let Some(k) = word.strip_prefix("DOCS_") {
            return k.parse().ok().map(Command::Docs);
        }
        let k = word.strip_prefix("TOP_")?;
        match k.strip_suffix("_COUNT") {
            Some(k) => k.parse().ok().map(Command::TopCount),
            None => k.parse().ok().map(Command::Top),
        }
    }
}

impl Command {
    /// What is told of what was found.
    fn answer(self, found: Found) -> Answer {
        match self {
            Command::Count | Command::TopCount(_) => Answer::Number(found.total),
            Command::Top(_) => Answer::Number(found.hits.len() as u64),
            Command::Docs(_) => {
                Answer::Documents(found.hits.iter().map(|hit| (hit.document, hit.score)).collect())
            }
        }
    }
}

impl Server<'_> {
    /// The line that answers a line.
    fn reply(&self, line: &[u8]) -> String {
        let Ok(line) = str::from_utf8(line) else { return "ERROR the line is not UTF-8".to_string() };
        let answer = match line.strip_prefix("!BATCH\t") {
            Some(batch) => batch::run(self, batch),
            None => self.answer(line).map(|answer| answer.to_string()),
        };
        answer.unwrap_or_else(|error| format!("ERROR {error}"))
    }

    fn answer(&self, line: &str) -> tierdex::Result<Answer> {
        let Some((command, query)) = line.split_once('\t') else { return Ok(Answer::Unsupported) };
        let Some(command) = Command::parse(command) else { return Ok(Answer::Unsupported) };
        let query = Query::parse(query, self.index.schema())?;
        let options = self.options(command);
        match &self.source {
            Source::Memory(searcher) => Ok(command.answer(searcher.search(&query, &options)?)),
            Source::Executor(executor) => {
                let (mut query, mut answer) = (Some(query), Ok(Answer::Unsupported));
                let ended: tierdex::Result<()> = executor.run(
                    || Ok(query.take()),
                    &options,
                    |_, found| {
                        answer = found.map(|found| command.answer(found));
                        Ok(())
                    },
                );
                ended.and(answer)
            }
        }
    }

    fn options(&self, command: Command) -> SearchOptions {
        let (k, count) = match command {
            Command::Count => (0, true),
            Command::Top(k) | Command::Docs(k) => (k, false),
            Command::TopCount(k) => (k, true),
        };
        SearchOptions { k, count, exhaustive: self.exhaustive, bm25: self.bm25 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_in_memory() {
        let (long, line) = (vec![b'x'; 1 << 24], &mut Vec::new());
        let input = [&long[..], b"\nCOUNT\tcat\n", &long[..], b"\nlast"].concat();
        let mut input = &input[..];
        for expected in [None, Some("COUNT\tcat\n"), None, Some("last")] {
            assert!(next_line(&mut input, line).unwrap());
            assert_eq!(str::from_utf8(line).ok().filter(|line| line.len() <= LINE_BYTES_MAX), expected);
            assert!(line.capacity() <= 4 * LINE_BYTES_MAX);
        }
        assert!(!next_line(&mut input, line).unwrap());
    }

    #[test]
    fn commands_are_told_apart() {
        let cases = [
            ("COUNT", Some(Command::Count)),
            ("TOP_10", Some(Command::Top(10))),
            ("TOP_1024_COUNT", Some(Command::TopCount(1024))),
            ("DOCS_3", Some(Command::Docs(3))),
        ];
        for (word, command) in cases {
            assert_eq!(Command::parse(word), command);
        }
        for word in ["", "TOP_", "TOP_x", "TOP__COUNT", "count", "DOCS_-1", "TOP_10_SUM"] {
            assert_eq!(Command::parse(word), None, "{word}");
        }
    }
}

//! A line protocol, so that any harness can drive the engine in a process of its own.
//!
//! For each input line `COMMAND<TAB>QUERY` the server prints one line:
//!
//! | command | answer |
//! |---|---|
//! | `COUNT` | number of matches |
//! | `TOP_k` | number of hits, at most k |
//! | `TOP_k_COUNT` | number of matches; the k best hits are computed too |
//! | `DOCS_k` | `document:score` of the k best hits, best first, separated by spaces |
//! | `!BATCH<TAB>FILE<TAB>THREADS<TAB>LATENCIES` | a JSON object with the times of the lines of FILE |
//!
//! An unknown command is answered by `UNSUPPORTED`, a failure by `ERROR` and the reason. The first line of
//! output is `READY`. By default the whole index is in memory before that line. With options of an engine,
//! queries go through an engine that reads and caches postings; the lines of a batch are then its requests,
//! and all of them must have the same command.

mod batch;
mod server;

use crate::{Error, HeldIndex, Result, slow_tier::ReadDelay};
use clap::Args;
use server::{ServedBackend, Server};
use std::{io::BufRead, io::Read, io::Write, path::PathBuf};
use tierdex::limits::{DEFAULT_B, DEFAULT_K1, QUERY_BYTES_MAX};
use tierdex::{Bm25, Engine, EngineOptions, Index, io::RegionKind};

/// Flags of the server.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    pub dir: PathBuf,
    /// Score every matching document, without pruning
    #[arg(long)]
    pub exhaustive: bool,
    /// BM25 k1: saturation of the term frequency
    #[arg(long, default_value_t = DEFAULT_K1, allow_negative_numbers = true)]
    pub k1: f64,
    /// BM25 b: weight of the document length, 0 to 1
    #[arg(long, default_value_t = DEFAULT_B, allow_negative_numbers = true)]
    pub b: f64,
    /// Emulate a slower memory tier for the lists of the index in memory, as `cache` does
    #[arg(long, value_name = "NS[,GBPS]")]
    pub slow_tier: Option<ReadDelay>,
}

/// Answers the lines of `input` until it ends: from memory, or through an engine if `engine` has its options.
///
/// # Errors
/// If the index cannot be read, or if input or output fail.
pub fn run(
    index: &Index,
    engine: Option<&EngineOptions>,
    flags: &Flags,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<()> {
    let bm25 = Bm25::new(flags.k1, flags.b)?;
    let backend = match engine {
        Some(options) => ServedBackend::Engine(Engine::new(index, options)?),
        None => ServedBackend::Memory(HeldIndex::load(index, &RegionKind::Dram, flags.slow_tier)?),
    };
    let server = Server { index, backend, exhaustive: flags.exhaustive, bm25 };
    write_line(output, "READY")?;
    let mut line = Vec::new();
    while read_line(input, &mut line).map_err(Error::failed("cannot read a line"))? {
        let reply = match line.len() {
            0..=LINE_BYTES_MAX => reply_to(&server, line.trim_ascii_end()),
            _ => format!("ERROR the line is longer than {LINE_BYTES_MAX} bytes"),
        };
        write_line(output, &reply)?;
    }
    Ok(())
}

/// The longest accepted line: a command or file names, and a query.
const LINE_BYTES_MAX: usize = QUERY_BYTES_MAX + (16 << 10);

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

fn write_line(output: &mut dyn Write, line: &str) -> Result<()> {
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(Error::Output)
}

/// The line of output that answers a line of input.
fn reply_to(server: &Server<'_>, line: &[u8]) -> String {
    let Ok(line) = str::from_utf8(line) else { return "ERROR the line is not UTF-8".to_string() };
    let answer = match line.strip_prefix("!BATCH\t") {
        Some(batch) => batch::run_batch(server, batch),
        None => server.answer(line).map(|answer| answer.to_string()),
    };
    answer.unwrap_or_else(|error| format!("ERROR {error}"))
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
            assert!(read_line(&mut input, line).unwrap());
            assert_eq!(str::from_utf8(line).ok().filter(|line| line.len() <= LINE_BYTES_MAX), expected);
            assert!(line.capacity() <= 4 * LINE_BYTES_MAX);
        }
        assert!(!read_line(&mut input, line).unwrap());
    }
}

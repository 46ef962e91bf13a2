//! Reads the lines of a file of queries or ids, which may be compressed.

use crate::failure::{Failure, Outcome};
use crate::input::{BYTE_ORDER_MARK, Compression, OpenInput};
use std::io::{BufRead, BufReader, Read, Result, stdin};
use std::{fs::File, path::Path};

/// An open file whose lines are read one by one.
pub struct LineReader {
    name: String,
    compression: Compression,
    lines: BufReader<Box<dyn Read + Send>>,
    line_bytes_max: usize,
    number: u64,
}

impl LineReader {
    /// Opens a file, or standard input if the path is `-`. Lines have at most `line_bytes_max` bytes.
    pub fn open(path: &Path, line_bytes_max: usize) -> Outcome<LineReader> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "stdin".to_string() } else { path.display().to_string() };
        let opened = match is_stdin {
            true => OpenInput::decompress(stdin(), &Default::default()),
            false => File::open(path).and_then(|file| OpenInput::decompress(file, &Default::default())),
        };
        let OpenInput { compression, reader } =
            opened.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        Ok(LineReader { name, compression, lines: BufReader::new(reader), line_bytes_max, number: 0 })
    }

    /// Name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of the last line that was read, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end, or what is wrong with it; `None` at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self) -> Outcome<Option<Outcome<String>>> {
        let line = self.read_line().map_err(|error| {
            Failure::Failed(format!("{}: {}", self.name, self.compression.explain_error(&error)))
        })?;
        Ok(line.map(|line| self.decode(line).map_err(|problem| self.line_failure(problem))))
    }

    /// The error of the last line that was read.
    pub fn line_failure(&self, problem: impl std::fmt::Display) -> Failure {
        Failure::Failed(format!("{}: line {}: {problem}", self.name, self.number))
    }

    /// Reads the next line with its end. A line that is too long is cut and the rest skipped.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>> {
        // A byte order mark and CR LF, which do not count.
        const ENDS_BYTES: usize = BYTE_ORDER_MARK.len() + 2;
        let (mut line, bytes_max) = (Vec::new(), self.line_bytes_max + ENDS_BYTES);
        self.lines.by_ref().take(bytes_max as u64).read_until(b'\n', &mut line)?;
        if line.len() == bytes_max && line.last() != Some(&b'\n') {
            self.lines.skip_until(b'\n')?;
        }
        self.number += 1;
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok((!line.is_empty()).then_some(line))
    }

    fn decode(&self, mut line: Vec<u8>) -> std::result::Result<String, String> {
        if line.last() == Some(&b'\n') {
            line.pop();
            line.pop_if(|last| *last == b'\r');
        }
        if line.len() > self.line_bytes_max {
            return Err(format!("the line is longer than {} bytes", self.line_bytes_max));
        }
        String::from_utf8(line).map_err(|_| "the line is not valid UTF-8".to_string())
    }
}

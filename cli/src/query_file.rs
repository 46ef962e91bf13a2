//! Reads a file of queries. Each line is an id, a tab and the query; the file may be compressed.

use crate::failure::{Failure, Outcome};
use crate::input::{BYTE_ORDER_MARK, Compression, OpenInput};
use std::io::{self, BufRead, BufReader, Read, stdin};
use std::{
    collections::HashMap, collections::hash_map::RandomState, fs::File, hash::BuildHasher, path::Path,
};
use tierdex::limits::QUERY_BYTES_MAX;

/// Maximum length of a line in bytes: an id and a query of maximum length.
const LINE_BYTES_MAX: u64 = 2 * QUERY_BYTES_MAX as u64;

/// An open file of queries, read line by line.
pub struct QueryFile {
    name: String,
    compression: Compression,
    lines: BufReader<Box<dyn Read + Send>>,
    number: u64,
    seen: SeenIds,
}

/// The query ids of all lines so far, to find repeated ones. An id is held as two hashes, of 96 bits
/// together, so that two ids are not taken for one in practice.
#[derive(Default)]
struct SeenIds {
    hasher: RandomState,
    /// Line number and second hash of an id, by its first hash.
    lines: HashMap<u64, (u32, u32)>,
}

impl SeenIds {
    /// Adds the id of a line. Returns the number of an earlier line with the same id.
    fn insert(&mut self, id: &str, line: u64) -> Option<u32> {
        let (first, second) = (self.hasher.hash_one(id), self.hasher.hash_one((id, 2)) as u32);
        let before = *self.lines.entry(first).or_insert((line as u32, second));
        (before.1 == second && u64::from(before.0) != line).then_some(before.0)
    }
}

impl QueryFile {
    /// Opens a file, which may be compressed, or standard input if the path is `-`.
    pub fn open(path: &Path) -> Outcome<QueryFile> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "stdin".to_string() } else { path.display().to_string() };
        let opened = match is_stdin {
            true => OpenInput::decompress(stdin(), &Default::default()),
            false => File::open(path).and_then(|file| OpenInput::decompress(file, &Default::default())),
        };
        let OpenInput { compression, reader } =
            opened.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        Ok(QueryFile {
            name,
            compression,
            lines: BufReader::new(reader),
            number: 0,
            seen: SeenIds::default(),
        })
    }

    /// Name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn read_failure(&self, error: &std::io::Error) -> Failure {
        Failure::Failed(format!("{}: {}", self.name, self.compression.explain_error(error)))
    }

    /// Id and text of the next query, or the error of its line; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self) -> Outcome<Option<Outcome<(String, String)>>> {
        loop {
            let line = self.read_line().map_err(|error| self.read_failure(&error))?;
            let Some(line) = line else { return Ok(None) };
            match parse_query_line(&line).and_then(|query| self.check_id(query)) {
                Ok(None) => {}
                Ok(Some(query)) => return Ok(Some(Ok(query))),
                Err(error) => {
                    let error = format!("{}: line {}: {error}", self.name, self.number);
                    return Ok(Some(Err(Failure::Failed(error))));
                }
            }
        }
    }

    /// Rejects an id that an earlier line has.
    fn check_id(&mut self, query: Option<(String, String)>) -> Result<Option<(String, String)>, String> {
        let before = query.as_ref().and_then(|(id, _)| Some((id, self.seen.insert(id, self.number)?)));
        match before {
            Some((id, line)) => {
                Err(format!("line {line} has the query id {id} too; an id is that of one query"))
            }
            None => Ok(query),
        }
    }

    /// Reads the next line with its newline. A line that is too long is cut and the rest skipped.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.lines.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)?;
        if line.len() as u64 > LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            self.lines.skip_until(b'\n')?;
        }
        self.number += 1;
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok((!line.is_empty()).then_some(line))
    }
}

/// Splits a line into id and text; `None` for a blank line.
fn parse_query_line(line: &[u8]) -> Result<Option<(String, String)>, String> {
    if line.len() as u64 > LINE_BYTES_MAX {
        return Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"));
    }
    let line = str::from_utf8(line).map_err(|_| "the line is not valid UTF-8")?;
    let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
    if line.trim().is_empty() {
        return Ok(None);
    }
    let (id, text) = line.split_once('\t').ok_or("no tab between query id and query text")?;
    if id.is_empty() {
        return Err("the query id is empty".to_string());
    }
    if id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("the query id contains white space or control characters".to_string());
    }
    Ok(Some((id.to_string(), text.to_string())))
}

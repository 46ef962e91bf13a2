//! A file of queries, one a line: an id, a tab, and the query.

use crate::failure::{Failure, Outcome};
use crate::input::{BYTE_ORDER_MARK, Opened, Packing};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, stdin};
use std::path::Path;
use tierdex::limits::QUERY_BYTES_MAX;

/// The longest line: an id and a query, each as long as can be.
const LINE_BYTES_MAX: u64 = 2 * QUERY_BYTES_MAX as u64;

/// Queries that are read as they are asked for.
pub struct Queries {
    name: String,
    packing: Packing,
    lines: BufReader<Box<dyn Read + Send>>,
    number: usize,
}

impl Queries {
    /// Opens a file, which may be packed, or standard input if it is called `-`.
    pub fn open(path: &Path) -> Outcome<Queries> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "stdin".to_string() } else { path.display().to_string() };
        let opened = match is_stdin {
            true => Opened::unpack(stdin(), &Default::default()),
            false => File::open(path).and_then(|file| Opened::unpack(file, &Default::default())),
        };
        let Opened { packing, reader } =
            opened.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        Ok(Queries { name, packing, lines: BufReader::new(reader), number: 0 })
    }

    /// How messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::Failed(format!("{}: {}", self.name, self.packing.explain(error)))
    }

    /// Id and text of the next query, or what is wrong with its line; none at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self) -> Outcome<Option<Outcome<(String, String)>>> {
        loop {
            let line = self.line().map_err(|error| self.failed(&error))?;
            let Some(line) = line else { return Ok(None) };
            match query(&line) {
                Ok(None) => {}
                Ok(Some(query)) => return Ok(Some(Ok(query))),
                Err(what) => {
                    let what = format!("{}: line {}: {what}", self.name, self.number);
                    return Ok(Some(Err(Failure::Failed(what))));
                }
            }
        }
    }

    /// The next line with its end; of one that is too long only the beginning.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
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

/// Id and text of a query; none in a blank line.
fn query(line: &[u8]) -> Result<Option<(String, String)>, String> {
    if line.len() as u64 > LINE_BYTES_MAX {
        return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
    }
    let line = str::from_utf8(line).map_err(|_| "no valid UTF-8")?;
    let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
    if line.trim().is_empty() {
        return Ok(None);
    }
    let (id, text) = line.split_once('\t').ok_or("no tab between the query's id and its text")?;
    if id.is_empty() || id.contains(char::is_whitespace) {
        return Err("the query's id is not one word".to_string());
    }
    Ok(Some((id.to_string(), text.to_string())))
}

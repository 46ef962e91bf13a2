//! Reads a file of queries. Each line is an id, a tab and the query; the file may be compressed.

use crate::{failure::Outcome, line_reader::LineReader};
use std::{collections::HashMap, collections::hash_map::RandomState, hash::BuildHasher, path::Path};
use tierdex::limits::QUERY_BYTES_MAX;

/// Maximum length of a line in bytes: an id and a query of maximum length.
const LINE_BYTES_MAX: usize = 2 * QUERY_BYTES_MAX;

/// An open file of queries, read line by line.
pub struct QueryFile {
    lines: LineReader,
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
        Ok(QueryFile { lines: LineReader::open(path, LINE_BYTES_MAX)?, seen: SeenIds::default() })
    }

    /// Name of the file in messages.
    pub fn name(&self) -> &str {
        self.lines.name()
    }

    /// Id and text of the next query, or the error of its line; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self) -> Outcome<Option<Outcome<(String, String)>>> {
        while let Some(line) = self.lines.next()? {
            let line = match line {
                Ok(line) => line,
                Err(failure) => return Ok(Some(Err(failure))),
            };
            match parse_query_line(&line).and_then(|query| self.check_id(query)) {
                Ok(None) => {}
                Ok(Some(query)) => return Ok(Some(Ok(query))),
                Err(problem) => return Ok(Some(Err(self.lines.line_failure(problem)))),
            }
        }
        Ok(None)
    }

    /// Rejects an id that an earlier line has.
    fn check_id(&mut self, query: Option<(String, String)>) -> Result<Option<(String, String)>, String> {
        let number = self.lines.number();
        let before = query.as_ref().and_then(|(id, _)| Some((id, self.seen.insert(id, number)?)));
        match before {
            Some((id, line)) => {
                Err(format!("line {line} has the query id {id} too; an id is that of one query"))
            }
            None => Ok(query),
        }
    }
}

/// Splits a line into id and text; `None` for a blank line.
fn parse_query_line(line: &str) -> Result<Option<(String, String)>, String> {
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

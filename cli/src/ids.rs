//! The ids of documents that a command line names, and the documents that have them.

use crate::{failure::Failure, failure::Outcome, line_reader::LineReader};
use clap::Args;
use std::{collections::HashMap, path::PathBuf};
use tierdex::{Index, limits::ID_BYTES_MAX};

/// Arguments for ids. Shared by `delete` and `get`.
#[derive(Args)]
pub struct IdArguments {
    /// Ids of documents; put -- before one that begins with -
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// File with an id in each line, or - for standard input; it may be compressed, and empty lines are
    /// skipped
    #[arg(long = "ids", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl IdArguments {
    /// The ids in their order, those of the file last.
    ///
    /// # Errors
    /// If the file cannot be read, a line is not valid UTF-8, or an id is too long.
    pub fn read_ids(&self) -> Outcome<Vec<String>> {
        let mut ids = self.ids.clone();
        if let Some(id) = ids.iter().find(|id| id.len() > ID_BYTES_MAX) {
            let bytes = id.len();
            return Err(Failure::Usage(format!("an id has {bytes} bytes; at most {ID_BYTES_MAX} are kept")));
        }
        let Some(file) = &self.file else { return Ok(ids) };
        let mut lines = LineReader::open(file, ID_BYTES_MAX)?;
        while let Some(line) = lines.next()? {
            ids.extend(Some(line?).filter(|id| !id.is_empty()));
        }
        Ok(ids)
    }
}

/// The document with each id, of several the last one; `None` if there is none. In an updatable index a page
/// of keys is read for each id and segment; in another one all ids are read once.
pub fn find_documents(index: &Index, ids: &[String]) -> tierdex::Result<Vec<Option<u32>>> {
    let searcher = index.searcher();
    if index.is_updatable() {
        return ids.iter().map(|id| searcher.find_id(id)).collect();
    }
    let numbers: HashMap<&str, usize> =
        ids.iter().zip(0..).map(|(id, number)| (id.as_str(), number)).collect();
    let mut documents = vec![None; ids.len()];
    searcher.scan_ids(
        |id| numbers.contains_key(id),
        |document, id| {
            documents[numbers[id]] = Some(document);
            Ok(())
        },
    )?;
    Ok(ids.iter().map(|id| documents[numbers[id.as_str()]]).collect())
}

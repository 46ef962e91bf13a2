//! The ids of documents that a command line names.

use crate::{failure::Failure, failure::Outcome, line_reader::LineReader};
use clap::Args;
use std::path::PathBuf;
use tierdex::limits::ID_BYTES_MAX;

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

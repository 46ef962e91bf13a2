//! Files with a query in each line.

use crate::{Error, Result};
use std::{fs, path::Path};
use tierdex::{Index, Query};

/// Parses a file with one query of the query language in each line. Empty lines are left out.
///
/// # Errors
/// If the file cannot be read, a query is invalid, or there is none.
pub(crate) fn read_queries(path: &Path, index: &Index) -> Result<Vec<Query>> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(Error::failed(format!("cannot read {name}")))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let queries =
        lines.map(|line| Query::parse(line, index.schema())).collect::<tierdex::Result<Vec<_>>>()?;
    if queries.is_empty() {
        return Err(Error::Usage(format!("{name} has no query")));
    }
    Ok(queries)
}

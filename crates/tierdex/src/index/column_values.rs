//! The values of documents in columns.

use super::searcher::Searcher;
use crate::Result;
use crate::schema::ColumnValue;
use crate::segment::read::{BlockSource, FILES};

impl Searcher {
    /// The values of a document in the column with this number, ascending, read from `source`.
    pub fn values(&self, document: u32, column: usize, source: &dyn BlockSource) -> Result<Vec<ColumnValue>> {
        let (segment, local) = self.locate(document)?;
        let Some(column) = segment.column(column) else { return Ok(Vec::new()) };
        let (mut bytes, mut units) = (Vec::new(), Vec::new());
        column.values_of(local, source, &mut bytes, &mut units)?;
        Ok(units.iter().map(|unit| column.value(*unit)).collect())
    }

    /// The values of a document in the column with this name, read from the files of the index.
    pub fn values_named(&self, document: u32, column: &str) -> Result<Vec<ColumnValue>> {
        self.values(document, self.index().schema().column_named(column)?, &FILES)
    }

    /// Bytes of memory in which [`Searcher::values`] reads.
    pub fn values_memory(&self, document: u32, column: usize) -> Result<u64> {
        let (segment, _) = self.locate(document)?;
        segment.column(column).map_or(Ok(0), |column| Ok(column.directory()?.block_bytes_max() as u64))
    }
}

//! The values of documents in columns, and sizes of columns.

use super::{reader::Index, searcher::Searcher};
use crate::Result;
use crate::schema::ColumnValue;
use crate::segment::read::{BlockSource, FILES};

/// Sizes of a column, summed over the segments. Deleted documents are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnSizes {
    /// Number of documents with a value.
    pub documents: u64,
    /// Number of values.
    pub values: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

impl Index {
    /// Sizes of the column with this number in the schema; zeros if there is none.
    #[doc(hidden)]
    pub fn column_sizes(&self, number: usize) -> ColumnSizes {
        let columns = self.segments().iter().filter_map(|segment| segment.column(number));
        columns.fold(ColumnSizes::default(), |sum, column| ColumnSizes {
            documents: sum.documents + column.tail().present,
            values: sum.values + column.tail().values,
            bytes: sum.bytes + column.file().seal().len,
        })
    }
}

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

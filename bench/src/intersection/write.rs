//! Writing a file of lists.
//!
//! ```text
//! payload   zeros to the end of the first page of the file
//!           pages of the lists, by list; for the format of a page see `page`
//! ```
//!
//! The skip pointers and the filters are kept in memory, as the file exists only as long as the lists are
//! used.

use crate::intersection::filter::{BloomFilters, PageIds};
use crate::intersection::list::{PagedList, SkipPointers};
use crate::intersection::page::{ID_MAX, PAGE_BYTES, fill_page};
use std::sync::Arc;
use tierdex::io::{Disk, Identity, SealedFile, SealedWriter};
use tierdex::{Error, Result, codec::Codec, codec::is_increasing};

/// Identity of a list file in its envelope. The file is not part of an index.
const LIST_FILE_IDENTITY: Identity = Identity { kind: 32, field: 0, segment: 0 };

/// Writes lists into a file.
pub struct PagedListsWriter {
    file: SealedWriter,
    name: String,
    codec: Codec,
    lists: Vec<SkipPointers>,
    /// Number of the next page in the file.
    next_page: u64,
}

impl PagedListsWriter {
    /// Creates the file. The codec is `raw`, or one for documents.
    ///
    /// # Errors
    /// When the file cannot be created, or the codec is not for ids.
    pub fn create(disk: &dyn Disk, name: &str, codec: Codec) -> Result<PagedListsWriter> {
        if !codec.is_delta() && codec != Codec::Raw {
            return Err(Error::Usage(format!("codec {} is not for ids", codec.name())));
        }
        let mut file = SealedWriter::create(disk, name, LIST_FILE_IDENTITY)?;
        file.pad_to_page()?;
        Ok(PagedListsWriter { file, name: name.to_owned(), codec, lists: Vec::new(), next_page: 1 })
    }

    /// Appends a list.
    ///
    /// # Errors
    /// When the ids do not increase, an id is larger than [`ID_MAX`], or the file cannot be written.
    pub fn add(&mut self, ids: &[u32]) -> Result<()> {
        if !is_increasing(ids) || ids.last().is_some_and(|last| *last > ID_MAX) {
            return Err(Error::Usage(format!("the ids of a list must increase and be at most {ID_MAX}")));
        }
        let mut skips = SkipPointers {
            codec: self.codec,
            first_page: self.next_page,
            firsts: Vec::new(),
            before: vec![0],
            last: ids.last().copied().unwrap_or(0),
            filters: BloomFilters::new(ids.len()),
        };
        let (mut before, mut page) = (0, Vec::with_capacity(PAGE_BYTES));
        while before < ids.len() {
            page.clear();
            let count = fill_page(self.codec, &ids[before..], &mut page);
            page.resize(PAGE_BYTES, 0);
            self.file.write(&page)?;
            let (here, numbers) = (&ids[before..before + count], PageIds { before: before as u64, count });
            here.iter().for_each(|id| skips.filters.add(numbers, *id));
            skips.firsts.push(here[0]);
            before += count;
            skips.before.push(before as u64);
        }
        self.next_page += skips.firsts.len() as u64;
        self.lists.push(skips);
        Ok(())
    }

    /// Syncs the file, and opens the lists for reads of the file of the same name on `disk`.
    ///
    /// # Errors
    /// When the file cannot be written or opened.
    pub fn finish(self, disk: &dyn Disk) -> Result<Vec<PagedList>> {
        let seal = self.file.finish()?;
        let file = SealedFile::open(disk, &self.name, LIST_FILE_IDENTITY, seal)?;
        file.load_tables(None)?;
        let file = Arc::new(file);
        Ok(self.lists.into_iter().map(|skips| PagedList::new(&file, skips)).collect())
    }
}

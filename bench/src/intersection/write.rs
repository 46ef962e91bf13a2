//! Writing a file of lists.
//!
//! ```text
//! payload   zeros to the end of the first page of the file
//!           pages of the lists, by list; for the format of a page see `page`
//!           directory: for each list, codec u8, filter bits per id u8, ids varint, pages varint, last id
//!             varint; for each page first id minus first id of the page before varint, ids varint; bytes of
//!             the filters
//!           tail: lists u64, pages u64, offset of the directory u64, length of the directory u64
//! ```

use crate::intersection::filter::{BloomFilters, PageIds};
use crate::intersection::page::{ID_MAX, PAGE_BYTES, fill_page};
use tierdex::internal::segment::layout::push_tail;
use tierdex::io::{Disk, Identity, Seal, SealedWriter};
use tierdex::{Error, Result, codec::Codec, codec::is_increasing, internal::bytes::push_varint};

/// Identity of a list file in its envelope. The file is not part of an index.
pub(super) const LIST_FILE_IDENTITY: Identity = Identity { kind: 32, field: 0, segment: 0 };

/// Bytes of the tail, with which a list file ends.
pub(super) const TAIL_BYTES: usize = 32;

/// Options of a list file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListsOptions {
    /// Codec of the ids: `raw`, or a codec for documents.
    pub codec: Codec,
    /// Bloom filter bits per id, at most 32; 0 for no filters.
    pub filter_bits: u32,
}

impl Default for ListsOptions {
    /// As in the paper: raw, 4 bits.
    fn default() -> ListsOptions {
        ListsOptions { codec: Codec::Raw, filter_bits: 4 }
    }
}

/// Writes lists into a file.
pub struct PagedListsWriter {
    file: SealedWriter,
    options: ListsOptions,
    directory: Vec<u8>,
    lists: u32,
    pages: u64,
}

impl PagedListsWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// When the file cannot be created, or the codec is not for ids.
    pub fn create(disk: &dyn Disk, name: &str, options: ListsOptions) -> Result<PagedListsWriter> {
        if !options.codec.is_delta() && options.codec != Codec::Raw {
            return Err(Error::Usage(format!("codec {} is not for ids", options.codec.name())));
        }
        let most = BloomFilters::BITS_PER_ID_MAX;
        if options.filter_bits > most {
            return Err(Error::Usage(format!("a filter has at most {most} bits per id")));
        }
        let mut file = SealedWriter::create(disk, name, LIST_FILE_IDENTITY)?;
        file.pad_to_page()?;
        Ok(PagedListsWriter { file, options, directory: Vec::new(), lists: 0, pages: 0 })
    }

    /// Appends a list.
    ///
    /// # Errors
    /// When the ids do not increase, an id is larger than [`ID_MAX`], or the file cannot be written.
    pub fn add(&mut self, ids: &[u32]) -> Result<()> {
        if !is_increasing(ids) || ids.last().is_some_and(|last| *last > ID_MAX) {
            return Err(Error::Usage(format!("the ids of a list must increase and be at most {ID_MAX}")));
        }
        let ListsOptions { codec, filter_bits } = self.options;
        let mut filter = BloomFilters::new(filter_bits, ids.len() as u64);
        let (mut skips, mut pages, mut before, mut first) = (Vec::new(), 0, 0, 0);
        let mut page = Vec::with_capacity(PAGE_BYTES);
        while before < ids.len() {
            page.clear();
            let count = fill_page(codec, &ids[before..], &mut page);
            page.resize(PAGE_BYTES, 0);
            self.file.write(&page)?;
            let here = &ids[before..before + count];
            if filter_bits > 0 {
                let page = PageIds { before: before as u64, count };
                here.iter().for_each(|id| filter.add(page, *id));
            }
            push_varint(&mut skips, u64::from(here[0] - first));
            push_varint(&mut skips, count as u64);
            first = here[0];
            before += count;
            pages += 1;
        }
        self.directory.extend_from_slice(&[codec.id(), filter_bits as u8]);
        push_varint(&mut self.directory, ids.len() as u64);
        push_varint(&mut self.directory, pages);
        push_varint(&mut self.directory, u64::from(ids.last().copied().unwrap_or(0)));
        self.directory.extend_from_slice(&skips);
        self.directory.extend_from_slice(filter.bytes());
        self.pages += pages;
        self.lists += 1;
        Ok(())
    }

    /// Writes the directory and syncs the file. The caller syncs the file name by [`Disk::sync_dir`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<Seal> {
        let at = self.file.position();
        let mut tail = Vec::with_capacity(TAIL_BYTES);
        push_tail(&mut tail, &[u64::from(self.lists), self.pages, at, self.directory.len() as u64]);
        self.file.write(&self.directory)?;
        self.file.write(&tail)?;
        Ok(self.file.finish()?)
    }
}

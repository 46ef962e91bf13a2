//! Writes `ids`: pages of prefix-coded external ids, then an index of the pages (docs/format/documents.md).

use super::super::layout::{FileKind, FileMeta, ID_PAGE_HEADER_BYTES, push_tail};
use super::file::{create, seal};
use crate::bytes::common_prefix;
use crate::limits::{ID_INDEX_PAGE_ENTRIES, ID_RESTART_INTERVAL};
use crate::{Error, Result, bytes::push_varint};
use tierdex_io::{Disk, PAGE, SealedWriter};

/// Writes external ids in the order of documents.
pub struct IdsWriter {
    file: SealedWriter,
    documents: u64,
    /// The page under construction: number of its ids so far, their entries, and its restart points.
    in_page: usize,
    entries: Vec<u8>,
    restarts: Vec<u8>,
    /// The previous id.
    last: Vec<u8>,
    /// For each page its first document and its number, four bytes each.
    index: Vec<u8>,
}

impl IdsWriter {
    /// Creates the file.
    pub fn create(disk: &dyn Disk, segment: u64) -> Result<IdsWriter> {
        let mut file = create(disk, segment, 0, FileKind::Ids)?;
        file.pad_to_page()?;
        let (entries, restarts, last, index) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(IdsWriter { file, documents: 0, in_page: 0, entries, restarts, last, index })
    }

    /// Appends the next document's id.
    pub fn add(&mut self, id: &[u8]) -> Result<()> {
        // The two lengths of an entry take at most five bytes, and a restart point two.
        let used = ID_PAGE_HEADER_BYTES + self.entries.len() + self.restarts.len();
        let shared = if self.starts_run() { 0 } else { common_prefix(&self.last, id) };
        if self.in_page > 0 && used + id.len() - shared + 7 > PAGE as usize {
            self.write_page()?;
        }
        let shared = if self.starts_run() { 0 } else { shared };
        if self.in_page == 0 {
            self.index.extend_from_slice(&(self.documents as u32).to_le_bytes());
            let page = u32::try_from(self.file.position() / PAGE);
            let page = page.map_err(|_| Error::TooLarge("external ids of more than 16 TiB".to_string()))?;
            self.index.extend_from_slice(&page.to_le_bytes());
        } else if self.starts_run() {
            let offset = ID_PAGE_HEADER_BYTES + self.entries.len();
            self.restarts.extend_from_slice(&(offset as u16).to_le_bytes());
        }
        push_varint(&mut self.entries, shared as u64);
        push_varint(&mut self.entries, (id.len() - shared) as u64);
        self.entries.extend_from_slice(&id[shared..]);
        self.last.clear();
        self.last.extend_from_slice(id);
        self.in_page += 1;
        self.documents += 1;
        Ok(())
    }

    /// Whether the next id of the page is stored whole.
    fn starts_run(&self) -> bool {
        self.in_page.is_multiple_of(ID_RESTART_INTERVAL)
    }

    /// Writes the page under construction, or two pages if its only id is longer than one.
    fn write_page(&mut self) -> Result<()> {
        self.file.write(&(self.in_page as u16).to_le_bytes())?;
        self.file.write(&self.entries)?;
        let used = ID_PAGE_HEADER_BYTES + self.entries.len() + self.restarts.len();
        self.file.write(&vec![0; used.next_multiple_of(PAGE as usize) - used])?;
        self.file.write(&self.restarts)?;
        self.entries.clear();
        self.restarts.clear();
        self.in_page = 0;
        Ok(())
    }

    /// Writes the index of the pages and seals the file.
    pub fn finish(mut self) -> Result<FileMeta> {
        if self.in_page > 0 {
            self.write_page()?;
        }
        let at = self.file.position();
        self.file.write(&self.index)?;
        let pages = self.index.len() / 8;
        let first = |page: &[u8]| [page[0], page[1], page[2], page[3]];
        let top: Vec<u8> = self.index.chunks(8 * ID_INDEX_PAGE_ENTRIES).flat_map(first).collect();
        self.file.write(&top)?;
        let mut tail = Vec::new();
        push_tail(&mut tail, &[self.documents, pages as u64, at]);
        self.file.write(&tail)?;
        seal(self.file, 0, FileKind::Ids)
    }
}

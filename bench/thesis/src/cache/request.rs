//! A request for a list: its key, and the byte ranges of files that it consists of.

use std::{fmt, ops::Range, sync::Arc};

use tierdex_io::{Error, ErrorKind, PAGE, Result, SealedFile};

use super::key::{ListKey, splitmix64};

/// Number of parts of a list, at most.
pub const PARTS_MAX: usize = 8;

/// A byte range of a file: not empty, and within the payload of the file.
///
/// Bytes that were read are checked by the file. Call [`SealedFile::load_tables`] after opening it;
/// otherwise the first check in each 4 MiB reads checksums.
#[derive(Clone)]
pub struct RequestedRange {
    file: Arc<SealedFile>,
    range: Range<u64>,
}

/// A request for a list: its key, and its parts in the order in which the cache stores them (thesis,
/// section 7.2.3: block offsets, then document blocks, then frequency blocks).
///
/// The cache stores whole pages, so that direct reads need no copy: of each part, the pages of its file
/// from that of its first byte to that of its last. They follow the pages of the previous part without a
/// gap, in the same cell as long as it has a page left. All requests with one key have the same parts; a
/// request whose parts differ from those in the cache is rejected as damaged.
#[derive(Clone)]
pub struct ListRequest {
    key: ListKey,
    parts: Arc<[RequestedRange]>,
    fingerprint: u32,
}

impl RequestedRange {
    /// Bytes `range` of `file`, in file offsets.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the range is empty or not within the payload.
    pub fn new(file: Arc<SealedFile>, range: Range<u64>) -> Result<RequestedRange> {
        let payload = file.payload();
        if range.is_empty() || range.start < payload.start || range.end > payload.end {
            let why = format!("bytes {range:?} are no part of its payload");
            return Err(Error::new(ErrorKind::Denied, "cache", file.name(), why));
        }
        Ok(RequestedRange { file, range })
    }

    /// The file that has the bytes.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// The bytes, in file offsets.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The pages that contain it, in file offsets. They may end after the end of the file.
    pub(crate) fn pages(&self) -> Range<u64> {
        self.range.start / PAGE * PAGE..self.range.end.next_multiple_of(PAGE)
    }

    /// Offset of the first byte of the range within the page that contains it.
    pub(crate) fn page_offset(&self) -> u64 {
        self.range.start % PAGE
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl ListRequest {
    /// A request for list `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when it has no parts, or more than [`PARTS_MAX`].
    pub fn new(key: ListKey, parts: Vec<RequestedRange>) -> Result<ListRequest> {
        if !(1..=PARTS_MAX).contains(&parts.len()) {
            let why = format!("it has {} parts, and may have 1 to {PARTS_MAX}", parts.len());
            return Err(Error::new(ErrorKind::Denied, "cache", format!("list {key}"), why));
        }
        let fingerprint = parts.iter().fold(0, |fingerprint, part| {
            splitmix64(splitmix64(fingerprint ^ part.range.start) ^ part.range.end)
        });
        Ok(ListRequest { key, parts: parts.into(), fingerprint: fingerprint as u32 })
    }

    /// The key of the list.
    pub fn key(&self) -> ListKey {
        self.key
    }

    /// The parts, in the order of their numbers.
    pub fn parts(&self) -> &[RequestedRange] {
        &self.parts
    }

    /// A hash of the ranges of its parts. It differs for two requests with the same key and other parts,
    /// which only a damaged index has.
    pub(crate) fn fingerprint(&self) -> u32 {
        self.fingerprint
    }

    /// The error for a request whose parts differ from those of the entry with its key.
    pub(crate) fn mismatch_error(&self) -> Error {
        let part = &self.parts[0];
        Error::corrupt(part.file.name(), part.range.start, "another list of the same key has other parts")
    }

    /// How many cells of `cell_bytes` bytes it takes: as few as hold the pages of its parts.
    pub fn cells(&self, cell_bytes: usize) -> u64 {
        let bytes = |pages: Range<u64>| pages.end - pages.start;
        let bytes: u64 = self.parts.iter().map(|part| bytes(part.pages())).sum();
        bytes.div_ceil(cell_bytes as u64)
    }
}

impl fmt::Debug for ListRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.parts.iter().map(|part| (part.file.name(), part.range())).collect();
        f.debug_struct("ListRequest").field("key", &self.key).field("parts", &parts).finish()
    }
}

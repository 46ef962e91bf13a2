//! What is to be brought near: a list, as byte ranges of files.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tierdex_io::{Error, ErrorKind, PAGE, Result, SealedFile};

use crate::chains::{Key, mix};

/// The most parts of a list.
pub const PARTS_MAX: usize = 8;

/// A byte range of a file, not empty and within its payload.
///
/// What is read is checked by the file. Call [`SealedFile::load_tables`] when it is opened: else the first check of each
/// 4 MiB makes a read of its own.
#[derive(Clone)]
pub struct Part {
    file: Arc<SealedFile>,
    range: Range<u64>,
}

/// A list to bring near: its key, and its parts in the order in which they are to stand in the cache (thesis, section
/// 7.2.3: block offsets, then document blocks, then frequency blocks).
///
/// What stands there are whole pages, so that those read past the page cache land where they stay: of each part the pages
/// of its file from the one that holds its first byte to the one that holds its last. They follow those of the part before
/// without a gap, in the same segment as long as it has room. Jobs of one key have the same parts: one that has others than
/// that which is in the cache is refused as damaged.
#[derive(Clone)]
pub struct Job {
    key: Key,
    parts: Arc<[Part]>,
    print: u32,
}

impl Part {
    /// Bytes `range` of `file`, in file offsets.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the range is empty or not all payload.
    pub fn new(file: Arc<SealedFile>, range: Range<u64>) -> Result<Part> {
        let payload = file.payload();
        if range.is_empty() || range.start < payload.start || range.end > payload.end {
            let why = format!("bytes {range:?} are no part of its payload");
            return Err(Error::new(ErrorKind::Denied, "cache", file.name(), why));
        }
        Ok(Part { file, range })
    }

    /// The file.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// The bytes, in file offsets.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The file offsets of the pages that hold it. They may end behind the end of the file.
    pub(crate) fn pages(&self) -> Range<u64> {
        self.range.start / PAGE * PAGE..self.range.end.next_multiple_of(PAGE)
    }

    /// Bytes of the first page that stand before it.
    pub(crate) fn skip(&self) -> u64 {
        self.range.start % PAGE
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Job {
    /// The list `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when it has no parts, or more than [`PARTS_MAX`].
    pub fn new(key: Key, parts: Vec<Part>) -> Result<Job> {
        if !(1..=PARTS_MAX).contains(&parts.len()) {
            let why = format!("it has {} parts, and may have 1 to {PARTS_MAX}", parts.len());
            return Err(Error::new(ErrorKind::Denied, "cache", format!("list {key}"), why));
        }
        let print = parts.iter().fold(0, |print, part| mix(mix(print ^ part.range.start) ^ part.range.end));
        Ok(Job { key, parts: parts.into(), print: print as u32 })
    }

    /// Which list.
    pub fn key(&self) -> Key {
        self.key
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What tells it from another job of the same key whose parts are others, as only a damaged index has it: scattered bits
    /// of where they are.
    pub(crate) fn print(&self) -> u32 {
        self.print
    }

    /// Why it is not read, when another job of its key has other parts.
    pub(crate) fn other_parts(&self) -> Error {
        let part = &self.parts[0];
        Error::corrupt(part.file.name(), part.range.start, "another list of the same key has other parts")
    }

    /// How many segments of `segment_bytes` bytes it takes: as few as hold the pages of its parts.
    pub fn segments(&self, segment_bytes: usize) -> u64 {
        let bytes = |pages: Range<u64>| pages.end - pages.start;
        let bytes: u64 = self.parts.iter().map(|part| bytes(part.pages())).sum();
        bytes.div_ceil(segment_bytes as u64)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.iter().map(|part| (part.file.name(), part.range()));
        f.debug_struct("Job").field("key", &self.key).field("parts", &parts.collect::<Vec<_>>()).finish()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

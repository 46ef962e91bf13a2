//! Reads byte ranges of a part of a list, from its cache entry or as a stream.
//!
//! Bytes within one cell are returned without a copy. A reader of a pinned entry takes no lock and makes no
//! system call.

use std::ops::Range;

use tierdex_io::{CellRef, Cells, Error, ErrorKind, PAGE, Result};

use crate::cache::{
    cell_walk::CellWalk, error::stopped_error, request::ListRequest, request::RequestedRange,
};
use crate::{
    cache::bounce_buffer::StreamChunk, cache::cell_links::PartLocation, cache::list_cache::ListCache,
};

/// Reads a part of a list. Ranges are relative to the beginning of the part.
pub struct ListReader<'a> {
    kind: ReaderKind<'a>,
    len: u64,
}

enum ReaderKind<'a> {
    Pinned(PinnedReader<'a>),
    Stream(StreamReader<'a>),
}

struct PinnedReader<'a> {
    cells: &'a Cells,
    walk: CellWalk<'a>,
    /// Byte offset of the part in the entry.
    start: usize,
    /// The cell at which the walk is, once it has been read.
    current: Option<CellRef<'a>>,
}

struct StreamReader<'a> {
    cache: &'a ListCache,
    request: &'a ListRequest,
    part: usize,
    /// Whole pages, from file offset `start` on.
    buffer: Vec<u8>,
    start: u64,
    /// Bytes of the buffer, at most: whole pages.
    buffer_bytes_max: u64,
}

impl<'a> ListReader<'a> {
    /// Reads part `part` of a pinned entry.
    pub(crate) fn pinned(cache: &'a ListCache, entry: u32, part: usize) -> ListReader<'a> {
        let (links, cells) = (cache.links(), &**cache.cells());
        let location = links.part_location(entry, part);
        let Some(PartLocation { start, len }) = location else { panic!("a list has no part {part}") };
        let number = |byte: u64| (byte / cells.cell_bytes() as u64) as usize;
        let walk = CellWalk::new(links, entry, number(start), number(start + len - 1));
        let reader = PinnedReader { cells, walk, start: start as usize, current: None };
        ListReader { kind: ReaderKind::Pinned(reader), len }
    }

    /// Reads part `part` of a list through the bounce buffer.
    pub(crate) fn streamed(cache: &'a ListCache, request: &'a ListRequest, part: usize) -> ListReader<'a> {
        let buffer_bytes_max = (cache.bounce_cells().len() * cache.cells().cell_bytes()) as u64;
        let reader = StreamReader { cache, request, part, buffer: Vec::new(), start: 0, buffer_bytes_max };
        ListReader { kind: ReaderKind::Stream(reader), len: request.parts()[part].len() }
    }

    /// The length of the part in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no part is empty")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Limits the buffer of a stream to `bytes`, rounded down to whole pages, but at least one page.
    #[must_use]
    pub fn with_buffer_bytes_max(mut self, bytes: usize) -> Self {
        if let ReaderKind::Stream(stream) = &mut self.kind {
            let limit = (bytes as u64 / PAGE * PAGE).max(PAGE);
            stream.buffer_bytes_max = stream.buffer_bytes_max.min(limit);
        }
        self
    }

    /// The bytes `range` of the part. They are copied into `scratch` if they are not adjacent in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the range exceeds the part; for a stream also read errors.
    #[inline]
    pub fn get<'r>(&'r mut self, range: Range<u64>, scratch: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        if range.start > range.end || range.end > self.len {
            return Err(outside_part_error(&range, self.len));
        }
        match &mut self.kind {
            ReaderKind::Pinned(pinned) => pinned.get(range, scratch),
            ReaderKind::Stream(stream) => stream.get(range, scratch),
        }
    }

    /// Replaces `out` by the bytes `range` of the part.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        if range.start > range.end || range.end > self.len {
            return Err(outside_part_error(&range, self.len));
        }
        match &mut self.kind {
            ReaderKind::Pinned(pinned) => pinned.read(range, out),
            ReaderKind::Stream(stream) => stream.read(range, out),
        }
    }
}

impl PinnedReader<'_> {
    #[inline]
    fn get<'r>(&'r mut self, range: Range<u64>, scratch: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        let len = (range.end - range.start) as usize;
        let (at, offset) = self.cell_position(range.start);
        if len == 0 {
            return Ok(&[]);
        }
        if offset + len <= self.cells.cell_bytes() {
            let cell = self.cell(at).ok_or_else(|| stopped_error(None))?;
            return Ok(&cell[offset..offset + len]);
        }
        self.read(range, scratch)?;
        Ok(scratch)
    }

    fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let len = (range.end - range.start) as usize;
        let (mut at, mut offset) = self.cell_position(range.start);
        out.clear();
        out.reserve_exact(len);
        while out.len() < len {
            let cell = self.cell(at).ok_or_else(|| stopped_error(None))?;
            let end = cell.len().min(offset + len - out.len());
            out.extend_from_slice(&cell[offset..end]);
            (at, offset) = (at + 1, 0);
        }
        Ok(())
    }

    /// The cell of the entry that holds byte `start` of the part, and the offset in that cell.
    #[inline]
    fn cell_position(&self, start: u64) -> (usize, usize) {
        // A part in memory is no longer than the address space, and the size of a cell is a power of two.
        let from = self.start + start as usize;
        let bytes = self.cells.cell_bytes();
        (from >> bytes.trailing_zeros(), from & (bytes - 1))
    }

    /// Cell number `at` of the entry. Never `None`: no thread writes to a pinned entry.
    #[inline]
    fn cell(&mut self, at: usize) -> Option<&[u8]> {
        if self.current.is_none() || self.walk.cell_index() != at {
            self.current = self.cells.read(self.walk.seek_cell(at) as usize);
        }
        self.current.as_deref()
    }
}

impl StreamReader<'_> {
    fn get<'r>(&'r mut self, range: Range<u64>, scratch: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        let wanted = self.file_range(&range);
        if wanted.is_empty() {
            return Ok(&[]);
        }
        self.load_chunk(&wanted)?;
        if self.buffer_end() >= wanted.end {
            return Ok(&self.buffer[self.buffer_range(&wanted)]);
        }
        self.read(range, scratch)?;
        Ok(scratch)
    }

    fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let mut wanted = self.file_range(&range);
        out.clear();
        out.reserve_exact((range.end - range.start) as usize);
        while !wanted.is_empty() {
            self.load_chunk(&wanted)?;
            let here = wanted.start..wanted.end.min(self.buffer_end());
            out.extend_from_slice(&self.buffer[self.buffer_range(&here)]);
            wanted.start = here.end;
        }
        Ok(())
    }

    /// A range of the part, in file offsets.
    fn file_range(&self, range: &Range<u64>) -> Range<u64> {
        let start = self.part().range().start;
        start + range.start..start + range.end
    }

    fn part(&self) -> &RequestedRange {
        &self.request.parts()[self.part]
    }

    fn buffer_end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// The range in the buffer of file offsets that the buffer holds.
    fn buffer_range(&self, range: &Range<u64>) -> Range<usize> {
        (range.start - self.start) as usize..(range.end - self.start) as usize
    }

    /// Makes sure that the buffer holds the first byte of `wanted`: else loads a chunk that begins at its
    /// page. The chunk has the pages of `wanted`. If it follows the last chunk directly, it has at least
    /// twice as many pages as that.
    fn load_chunk(&mut self, wanted: &Range<u64>) -> Result<()> {
        if (self.start..self.buffer_end()).contains(&wanted.start) {
            return Ok(());
        }
        let start = wanted.start / PAGE * PAGE;
        let ahead = if start == self.buffer_end() { 2 * self.buffer.len() as u64 } else { 0 };
        let end = wanted.end.next_multiple_of(PAGE).max(start + ahead).min(start + self.buffer_bytes_max);
        let end = self.part().pages().end.min(end);
        let chunk = StreamChunk { request: self.request.clone(), part: self.part, pages: start..end };
        self.start = start;
        let loaded = self.cache.read_chunk(chunk, &mut self.buffer);
        if loaded.is_err() {
            self.buffer.clear();
        }
        loaded
    }
}

#[cold]
fn outside_part_error(range: &Range<u64>, len: u64) -> Error {
    let why = format!("bytes {range:?} are not in a part of {len} bytes");
    Error::new(ErrorKind::Denied, "read", "a list", why)
}

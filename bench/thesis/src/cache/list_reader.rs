//! Reads byte ranges of a part of a list, from its cache entry or as a stream.
//!
//! A reader of a pinned entry takes no lock and makes no system call.

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

    /// Limits the buffer of a stream to `bytes`, rounded down to whole pages, but at least one page.
    #[must_use]
    pub fn with_buffer_bytes_max(mut self, bytes: usize) -> Self {
        if let ReaderKind::Stream(stream) = &mut self.kind {
            let limit = (bytes as u64 / PAGE * PAGE).max(PAGE);
            stream.buffer_bytes_max = stream.buffer_bytes_max.min(limit);
        }
        self
    }

    /// Replaces `out` by the bytes `range` of the part.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the range exceeds the part; for a stream also read errors.
    pub fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        if range.start > range.end || range.end > self.len {
            let why = format!("bytes {range:?} are not in a part of {} bytes", self.len);
            return Err(Error::new(ErrorKind::Denied, "read", "a list", why));
        }
        match &mut self.kind {
            ReaderKind::Pinned(pinned) => pinned.read(range, out),
            ReaderKind::Stream(stream) => stream.read(range, out),
        }
    }
}

impl PinnedReader<'_> {
    fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let len = (range.end - range.start) as usize;
        // A part in memory is no longer than the address space, and the size of a cell is a power of two.
        let (start, bytes) = (self.start + range.start as usize, self.cells.cell_bytes());
        let (mut at, mut offset) = (start >> bytes.trailing_zeros(), start & (bytes - 1));
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

    /// Cell number `at` of the entry. Never `None`: no thread writes to a pinned entry.
    fn cell(&mut self, at: usize) -> Option<&[u8]> {
        if self.current.is_none() || self.walk.cell_index() != at {
            self.current = self.cells.read(self.walk.seek_cell(at) as usize);
        }
        self.current.as_deref()
    }
}

impl StreamReader<'_> {
    fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let start = self.part().range().start;
        let mut wanted = start + range.start..start + range.end;
        out.clear();
        out.reserve_exact((range.end - range.start) as usize);
        while !wanted.is_empty() {
            self.load_chunk(&wanted)?;
            let end = wanted.end.min(self.buffer_end());
            let (from, to) = ((wanted.start - self.start) as usize, (end - self.start) as usize);
            out.extend_from_slice(&self.buffer[from..to]);
            wanted.start = end;
        }
        Ok(())
    }

    fn part(&self) -> &RequestedRange {
        &self.request.parts()[self.part]
    }

    fn buffer_end(&self) -> u64 {
        self.start + self.buffer.len() as u64
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

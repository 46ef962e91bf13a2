//! Reading a list, from its chain or as a stream.
//!
//! *You have* a [`List`]. *You get* for each of its parts a [`Reader`], and from it the bytes of any range: without a copy where
//! they stand in one segment. A reader of a chain takes no lock and makes no system call.

use std::ops::Range;
use std::sync::Arc;

use tierdex_io::{CellRef, Cells, Error, ErrorKind, PAGE, Result};

use crate::cache::{Cache, stopped};
use crate::job::{Job, Part};
use crate::queue;
use crate::segments::Place;
use crate::stream::Piece;
use crate::walk::Walk;

/// A list that can be read.
pub enum List {
    /// It stands in the cache, until this is dropped.
    Pinned(Pinned),
    /// It finds no room there.
    Stream(Stream),
}

/// A list that was begun to be fetched. Dropped before it was waited for, it is given up: what was read of it stays in the
/// cache as long as there is room.
#[must_use = "a list that is not waited for is given up"]
pub struct Begun(Result<List>);

/// A list in the cache. It is not evicted before this is dropped.
pub struct Pinned {
    cache: Arc<Cache>,
    chain: u32,
}

/// A list that is read piece by piece, checked, through a few segments. Each reader has a buffer of the pages that were
/// asked for last, and in reading on from there of twice as many each time, at most as large as these segments, and as
/// [`Reader::within`] says.
pub struct Stream {
    cache: Arc<Cache>,
    job: Job,
}

/// Reads a part of a list. Ranges are counted from the beginning of the part.
pub struct Reader<'a> {
    source: Source<'a>,
    len: u64,
}

enum Source<'a> {
    Chain(ChainReader<'a>),
    Stream(StreamReader<'a>),
}

struct ChainReader<'a> {
    cells: &'a Cells,
    walk: Walk<'a>,
    /// Bytes of the chain that stand before the part.
    start: usize,
    /// The segment at which the walk is, once it was read.
    current: Option<CellRef<'a>>,
}

struct StreamReader<'a> {
    cache: &'a Cache,
    job: &'a Job,
    part: usize,
    /// Whole pages, from this file offset on.
    buffer: Vec<u8>,
    start: u64,
    /// Bytes of the buffer, at most: whole pages.
    most: u64,
}

impl List {
    pub(crate) fn stream(cache: &Arc<Cache>, job: &Job) -> List {
        List::Stream(Stream { cache: Arc::clone(cache), job: job.clone() })
    }

    /// Whether it stands in the cache.
    pub fn is_pinned(&self) -> bool {
        matches!(self, List::Pinned(_))
    }

    /// Reads part `part`: see [`Pinned::reader`] and [`Stream::reader`].
    ///
    /// # Panics
    /// When there is no such part.
    pub fn reader(&self, part: usize) -> Reader<'_> {
        match self {
            List::Pinned(pinned) => pinned.reader(part),
            List::Stream(stream) => stream.reader(part),
        }
    }
}

impl Begun {
    /// Of a chain that is loading or settled, of a stream, or of none.
    pub(crate) fn new(list: Result<List>) -> Begun {
        Begun(list)
    }

    /// Waits until it can be read.
    ///
    /// # Errors
    /// Why it could not be read; the next one to ask tries anew.
    pub fn wait(self) -> Result<List> {
        let list = self.0?;
        if let List::Pinned(Pinned { cache, chain }) = &list {
            cache.settle(*chain)?;
        }
        Ok(list)
    }

    /// Whether [`Begun::wait`] would give it, or say why not, without sleeping; a stream is read only then. Takes no lock
    /// and makes no system call.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            Ok(List::Pinned(Pinned { cache, chain })) => cache.is_settled(Some(queue::Place::Chain(*chain))),
            Ok(List::Stream(_)) | Err(_) => true,
        }
    }

    /// Whether it stands in the cache, pinned: what is ready is that, a stream, or an error. Takes no lock and makes no
    /// system call.
    pub fn is_here(&self) -> bool {
        match &self.0 {
            Ok(List::Pinned(Pinned { cache, chain })) => cache.is_here(Some(queue::Place::Chain(*chain))),
            Ok(List::Stream(_)) | Err(_) => false,
        }
    }
}

impl Pinned {
    /// For a chain that was pinned for this.
    pub(crate) fn new(cache: Arc<Cache>, chain: u32) -> Pinned {
        Pinned { cache, chain }
    }

    /// Reads part `part`. Nothing is allocated.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn reader(&self, part: usize) -> Reader<'_> {
        let (links, cells) = (self.cache.links(), &**self.cache.cells());
        let place = links.place(self.chain, part);
        let Some(Place { start, len }) = place else { panic!("a list has no part {part}") };
        let number = |byte: u64| (byte / cells.cell_bytes() as u64) as usize;
        let walk = Walk::new(links, self.chain, number(start), number(start + len - 1));
        let reader = ChainReader { cells, walk, start: start as usize, current: None };
        Reader { source: Source::Chain(reader), len }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        state.unpin(self.chain);
        self.cache.publish(state);
    }
}

impl Stream {
    /// Reads part `part`.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn reader(&self, part: usize) -> Reader<'_> {
        let Stream { cache, job } = self;
        let most = (cache.window_cells().len() * cache.cells().cell_bytes()) as u64;
        let reader = StreamReader { cache, job, part, buffer: Vec::new(), start: 0, most };
        Reader { source: Source::Stream(reader), len: job.parts()[part].len() }
    }
}

impl Reader<'_> {
    /// The length of the part in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no part is empty")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The same, with a buffer of no more than so many bytes, if it has one: in whole pages, and a page at least.
    #[must_use]
    pub fn within(mut self, bytes: usize) -> Self {
        if let Source::Stream(stream) = &mut self.source {
            stream.most = stream.most.min((bytes as u64 / PAGE * PAGE).max(PAGE));
        }
        self
    }

    /// The bytes `range` of the part. `scratch` is used for those that do not stand together.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the part has no such bytes; of a stream also what reading reports.
    #[inline]
    pub fn get<'r>(&'r mut self, range: Range<u64>, scratch: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        if range.start > range.end || range.end > self.len {
            return Err(outside(&range, self.len));
        }
        match &mut self.source {
            Source::Chain(chain) => chain.get(range, scratch),
            Source::Stream(stream) => stream.get(range, scratch),
        }
    }

    /// Replaces `out` by the bytes `range` of the part.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        if range.start > range.end || range.end > self.len {
            return Err(outside(&range, self.len));
        }
        match &mut self.source {
            Source::Chain(chain) => chain.read(range, out),
            Source::Stream(stream) => stream.read(range, out),
        }
    }
}

impl<'a> ChainReader<'a> {
    #[inline]
    fn get<'r>(&'r mut self, range: Range<u64>, scratch: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        let len = (range.end - range.start) as usize;
        let (at, offset) = self.place(range.start);
        if len == 0 {
            return Ok(&[]);
        }
        if offset + len <= self.cells.cell_bytes() {
            let segment = self.segment(at).ok_or_else(|| stopped(None))?;
            return Ok(&segment[offset..offset + len]);
        }
        self.read(range, scratch)?;
        Ok(scratch)
    }

    fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let len = (range.end - range.start) as usize;
        let (mut at, mut offset) = self.place(range.start);
        out.clear();
        out.reserve_exact(len);
        while out.len() < len {
            let segment = self.segment(at).ok_or_else(|| stopped(None))?;
            let end = segment.len().min(offset + len - out.len());
            out.extend_from_slice(&segment[offset..end]);
            (at, offset) = (at + 1, 0);
        }
        Ok(())
    }

    /// In which of the chain's segments a byte of the part stands, and where in it.
    #[inline]
    fn place(&self, start: u64) -> (usize, usize) {
        // A part in memory is no longer than addresses are, and a segment is a power of two.
        let from = self.start + start as usize;
        let bytes = self.cells.cell_bytes();
        (from >> bytes.trailing_zeros(), from & (bytes - 1))
    }

    /// Segment `at` of the chain. Nobody writes to a chain that is pinned, so it is never none.
    #[inline]
    fn segment(&mut self, at: usize) -> Option<&[u8]> {
        if self.current.is_none() || self.walk.at() != at {
            self.current = self.cells.read(self.walk.go_to(at) as usize);
        }
        self.current.as_deref()
    }
}

impl StreamReader<'_> {
    fn get<'r>(&'r mut self, range: Range<u64>, scratch: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        let wanted = self.in_file(&range);
        if wanted.is_empty() {
            return Ok(&[]);
        }
        self.need(&wanted)?;
        if self.buffer_end() >= wanted.end {
            return Ok(&self.buffer[self.in_buffer(&wanted)]);
        }
        self.read(range, scratch)?;
        Ok(scratch)
    }

    fn read(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let mut wanted = self.in_file(&range);
        out.clear();
        out.reserve_exact((range.end - range.start) as usize);
        while !wanted.is_empty() {
            self.need(&wanted)?;
            let here = wanted.start..wanted.end.min(self.buffer_end());
            out.extend_from_slice(&self.buffer[self.in_buffer(&here)]);
            wanted.start = here.end;
        }
        Ok(())
    }

    /// A range of the part, in file offsets.
    fn in_file(&self, range: &Range<u64>) -> Range<u64> {
        let start = self.part().range().start;
        start + range.start..start + range.end
    }

    fn part(&self) -> &Part {
        &self.job.parts()[self.part]
    }

    fn buffer_end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Where bytes at file offsets that the buffer has stand in it.
    fn in_buffer(&self, range: &Range<u64>) -> Range<usize> {
        (range.start - self.start) as usize..(range.end - self.start) as usize
    }

    /// Has the first of the bytes that are wanted in the buffer: else loads the piece that begins with its page. It has
    /// the pages that are wanted, and behind a piece that was read to its end twice as many as that.
    fn need(&mut self, wanted: &Range<u64>) -> Result<()> {
        if (self.start..self.buffer_end()).contains(&wanted.start) {
            return Ok(());
        }
        let start = wanted.start / PAGE * PAGE;
        let ahead = if start == self.buffer_end() { 2 * self.buffer.len() as u64 } else { 0 };
        let end = wanted.end.next_multiple_of(PAGE).max(start + ahead).min(start + self.most);
        let end = self.part().pages().end.min(end);
        let piece = Piece { job: self.job.clone(), part: self.part, pages: start..end };
        self.start = start;
        let loaded = self.cache.stream(piece, &mut self.buffer);
        if loaded.is_err() {
            self.buffer.clear();
        }
        loaded
    }
}

#[cold]
fn outside(range: &Range<u64>, len: u64) -> Error {
    let why = format!("bytes {range:?} are not in a part of {len} bytes");
    Error::new(ErrorKind::Denied, "read", "a list", why)
}

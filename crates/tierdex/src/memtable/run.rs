//! A sorted run: the postings of a batch of documents, ordered by term, in one byte buffer.
//!
//! For each term: `length u8, term, bytes of postings [, bytes of positions]`, then the postings, then the
//! positions. Integers have variable length. A posting is the gap to the previous document (for the first,
//! the document itself) shifted left by one; the low bit is set if the frequency is 1, otherwise the
//! frequency follows. Positions are gaps minus one within their document. Documents are numbered from 0 in
//! the batch.

use crate::bytes::push_varint;

/// The postings of one field of a batch of documents, in the order of terms.
pub struct SortedRun {
    bytes: Vec<u8>,
    /// Whether postings have positions.
    positions: bool,
    lengths: Vec<u32>,
    /// Offsets of some terms: at least [`MARK_BYTES`] after one another, and from the start.
    marks: Vec<usize>,
}

/// Bytes of a run after which the offset of the next term is kept, so that cursors can start there.
pub const MARK_BYTES: usize = 16 << 10;

impl SortedRun {
    /// Number of indexed tokens of each document.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let marks = size_of::<usize>() * self.marks.capacity();
        self.bytes.capacity() + 4 * self.lengths.capacity() + marks
    }

    /// A cursor over the terms in order.
    pub fn cursor(&self) -> RunCursor<'_> {
        RunCursor { positions: self.positions, rest: &self.bytes }
    }

    /// A cursor over the terms from `first` on.
    pub fn cursor_from(&self, first: &[u8]) -> RunCursor<'_> {
        let marks = self.marks.partition_point(|mark| self.term_at(*mark) < first);
        let start = marks.checked_sub(1).map_or(0, |mark| self.marks[mark]);
        let mut cursor = RunCursor { positions: self.positions, rest: &self.bytes[start..] };
        loop {
            let rest = cursor.rest;
            if cursor.next().is_none_or(|term| term.term >= first) {
                return RunCursor { rest, ..cursor };
            }
        }
    }

    /// Terms that divide the run into parts of about equal size, in order; none if it is short.
    pub fn marked_terms(&self) -> impl Iterator<Item = &[u8]> {
        self.marks.iter().map(|mark| self.term_at(*mark))
    }

    fn term_at(&self, offset: usize) -> &[u8] {
        &self.bytes[offset + 1..][..usize::from(self.bytes[offset])]
    }
}

/// Writes a run, term by term.
pub(super) struct RunWriter {
    run: SortedRun,
    /// Scratch buffers: the encoded postings and positions of one term.
    postings: Vec<u8>,
    encoded_positions: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(positions: bool) -> RunWriter {
        let run = SortedRun { bytes: Vec::new(), positions, lengths: Vec::new(), marks: Vec::new() };
        RunWriter { run, postings: Vec::new(), encoded_positions: Vec::new() }
    }

    /// Appends a term with its occurrences, at least one: `document << 32 | position`, increasing.
    pub(super) fn add(&mut self, term: &[u8], occurrences: &[u64]) {
        self.postings.clear();
        self.encoded_positions.clear();
        let mut previous = 0;
        for occurrences in occurrences.chunk_by(|a, b| a >> 32 == b >> 32) {
            let document = occurrences[0] >> 32;
            let gap = document - previous;
            previous = document;
            match occurrences.len() {
                1 => push_varint(&mut self.postings, gap << 1 | 1),
                frequency => {
                    push_varint(&mut self.postings, gap << 1);
                    push_varint(&mut self.postings, frequency as u64);
                }
            }
            if self.run.positions {
                push_positions(&mut self.encoded_positions, occurrences);
            }
        }
        let out = &mut self.run.bytes;
        if out.len() >= self.run.marks.last().map_or(0, |mark| *mark) + MARK_BYTES {
            self.run.marks.push(out.len());
        }
        out.push(term.len() as u8);
        out.extend_from_slice(term);
        push_varint(out, self.postings.len() as u64);
        if self.run.positions {
            push_varint(out, self.encoded_positions.len() as u64);
        }
        out.extend_from_slice(&self.postings);
        out.extend_from_slice(&self.encoded_positions);
    }

    pub(super) fn finish(mut self, lengths: Vec<u32>) -> SortedRun {
        self.run.bytes.shrink_to_fit();
        self.run.marks.shrink_to_fit();
        self.run.lengths = lengths;
        self.run
    }
}

/// Appends the positions of a document, as gaps minus one.
fn push_positions(out: &mut Vec<u8>, occurrences: &[u64]) {
    let mut next = 0;
    for &occurrence in occurrences {
        let position = u64::from(occurrence as u32);
        push_varint(out, position - next);
        next = position + 1;
    }
}

/// Moves forward over the terms of a run.
pub struct RunCursor<'a> {
    positions: bool,
    /// The encoded terms after the cursor.
    rest: &'a [u8],
}

/// One term of a run.
#[derive(Clone, Copy)]
pub struct RunTerm<'a> {
    /// The term.
    pub term: &'a [u8],
    postings: &'a [u8],
    encoded_positions: &'a [u8],
}

impl<'a> Iterator for RunCursor<'a> {
    type Item = RunTerm<'a>;

    fn next(&mut self) -> Option<RunTerm<'a>> {
        let (&len, rest) = self.rest.split_first()?;
        self.rest = rest;
        let term = take_bytes(&mut self.rest, usize::from(len));
        let postings_len = take_varint(&mut self.rest) as usize;
        let positions_len = if self.positions { take_varint(&mut self.rest) as usize } else { 0 };
        let postings = take_bytes(&mut self.rest, postings_len);
        let encoded_positions = take_bytes(&mut self.rest, positions_len);
        Some(RunTerm { term, postings, encoded_positions })
    }
}

impl RunTerm<'_> {
    /// Calls `body` with each document (numbered from 0 in the batch), its frequency and its positions, which
    /// are empty if the run has none. `positions` is a scratch buffer.
    pub fn for_each<E>(
        &self,
        positions: &mut Vec<u32>,
        mut body: impl FnMut(u32, u32, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut postings, mut encoded_positions) = (self.postings, self.encoded_positions);
        let mut document = 0;
        while !postings.is_empty() {
            let head = take_varint(&mut postings);
            document += (head >> 1) as u32;
            let frequency = if head & 1 == 1 { 1 } else { take_varint(&mut postings) as u32 };
            positions.clear();
            if !encoded_positions.is_empty() {
                let mut next = 0;
                for _ in 0..frequency {
                    let position = next + take_varint(&mut encoded_positions) as u32;
                    positions.push(position);
                    next = position + 1;
                }
            }
            body(document, frequency, positions)?;
        }
        Ok(())
    }
}

/// Removes the first `len` bytes of `rest` and returns them.
fn take_bytes<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (head, tail) = rest.split_at(len);
    *rest = tail;
    head
}

#[inline]
/// Removes a variable-length integer from `rest` and returns it.
fn take_varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let (&byte, tail) = rest.split_first().expect("a run ends at the end of a term");
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

//! Cuts a stream of lines into chunks of whole lines.
//!
//! 1. Fill the buffer to the size of a chunk, however short single reads are, so that the cuts do not depend
//!    on timing.
//! 2. Cut after the last newline. The bytes after it are copied to the start of the next buffer.
//! 3. Without a newline, grow the buffer until there is one.
//! 4. Drop a line longer than the limit; its remaining bytes are read and discarded.

use memchr::{memchr, memchr_iter, memrchr};
use std::io::{self, Read};
use tierdex::limits;

/// Sizes of chunks and documents. Tests use small ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkSizes {
    /// Target size of a chunk.
    pub chunk_bytes: usize,
    /// Maximum length of a line or of a text file.
    pub document_bytes_max: usize,
}

impl Default for ChunkSizes {
    fn default() -> ChunkSizes {
        ChunkSizes { chunk_bytes: limits::BATCH_BYTES, document_bytes_max: limits::DOCUMENT_BYTES_MAX }
    }
}

/// Whole lines, with the number of the first one, from 1.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineChunk {
    pub first_line: u64,
    pub bytes: Vec<u8>,
    /// Numbers of the lines before `first_line` that were dropped as too long.
    pub too_long: Vec<u64>,
}

/// Cuts a stream into chunks of whole lines.
pub(super) struct LineChunker {
    reader: Box<dyn Read + Send>,
    sizes: ChunkSizes,
    /// Bytes that have been read and follow the last chunk.
    rest: Vec<u8>,
    /// Number of the first line in `rest`.
    line: u64,
    /// Error of a read, returned after the whole lines before it.
    failed: Option<io::Error>,
}

impl LineChunker {
    pub fn new(reader: Box<dyn Read + Send>, sizes: ChunkSizes) -> LineChunker {
        LineChunker { reader, sizes, rest: Vec::new(), line: 1, failed: None }
    }

    /// Maximum length of a line.
    pub fn document_bytes_max(&self) -> usize {
        self.sizes.document_bytes_max
    }

    /// The next chunk; `None` at the end of the stream. Whole lines before a read error are returned first.
    pub fn next(&mut self) -> io::Result<Option<LineChunk>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut too_long = Vec::new();
        let bytes = loop {
            match self.fill_chunk()? {
                Some(bytes) => break bytes,
                None => too_long.push(self.skip_line()?),
            }
        };
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        let ended = bytes.is_empty() && too_long.is_empty();
        Ok((!ended).then_some(LineChunk { first_line, bytes, too_long }))
    }

    /// Whole lines from `rest` and the stream, empty at its end. `None` if the first line is too long;
    /// `rest` then holds its beginning.
    fn fill_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        // One byte more than the limit, for the newline of a line of maximum length.
        let len_max = self.sizes.document_bytes_max.saturating_add(1);
        let mut bytes = std::mem::take(&mut self.rest);
        let mut searched = 0usize;
        loop {
            let wanted = searched.saturating_add(self.sizes.chunk_bytes).min(len_max);
            let filled = read_until(&mut self.reader, &mut bytes, wanted);
            if let Some(at) = memrchr(b'\n', &bytes[searched..]) {
                self.keep_rest(&mut bytes, searched + at + 1);
                self.failed = filled.err();
                return Ok(Some(bytes));
            }
            let ended = !filled?;
            if bytes.len() >= len_max {
                self.rest = bytes;
                return Ok(None);
            }
            if ended {
                return Ok(Some(bytes));
            }
            searched = bytes.len();
        }
    }

    fn keep_rest(&mut self, bytes: &mut Vec<u8>, end: usize) {
        self.rest = Vec::with_capacity(self.sizes.chunk_bytes.max(bytes.len() - end));
        self.rest.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
    }

    /// Skips the line that begins in `rest` and returns its number.
    fn skip_line(&mut self) -> io::Result<u64> {
        let mut bytes = Vec::new();
        self.rest = Vec::new();
        loop {
            bytes.clear();
            let ended = !read_until(&mut self.reader, &mut bytes, self.sizes.chunk_bytes)?;
            let newline = memchr(b'\n', &bytes);
            if let Some(at) = newline {
                self.keep_rest(&mut bytes, at + 1);
            }
            if ended || newline.is_some() {
                self.line += 1;
                return Ok(self.line - 1);
            }
        }
    }
}

/// Appends to `bytes` up to a length of `wanted`; `false` if the stream ended before.
fn read_until(reader: &mut impl Read, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
    let missing = wanted.saturating_sub(bytes.len());
    bytes.reserve(missing);
    reader.by_ref().take(missing as u64).read_to_end(bytes)?;
    Ok(bytes.len() >= wanted)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::SmallReads, *};

    fn cut_into_chunks(input: &[u8], chunk_bytes: usize, document_bytes_max: usize) -> Vec<LineChunk> {
        let mut chunker = LineChunker::new(
            Box::new(SmallReads::new(input)),
            ChunkSizes { chunk_bytes, document_bytes_max },
        );
        std::iter::from_fn(|| chunker.next().unwrap()).collect()
    }

    /// Reference implementation: the lines within the limit, with their numbers, and the numbers of the
    /// others.
    fn split_lines(input: &[u8], document_bytes_max: usize) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let lines = input.split_inclusive(|&byte| byte == b'\n').enumerate();
        let numbered = lines.map(|(at, line)| (at as u64 + 1, line.to_vec()));
        let fits = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).len() <= document_bytes_max;
        let (kept, dropped): (Vec<_>, Vec<_>) = numbered.partition(|(_, line)| fits(line));
        (kept, dropped.into_iter().map(|(number, _)| number).collect())
    }

    fn lines_of_chunks(cuts: &[LineChunk]) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let numbered = |cut: &LineChunk| {
            let lines = cut.bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec);
            (cut.first_line..).zip(lines).collect::<Vec<_>>()
        };
        (cuts.iter().flat_map(numbered).collect(), cuts.iter().flat_map(|cut| cut.too_long.clone()).collect())
    }

    #[test]
    fn chunks_contain_all_lines_within_the_limit() {
        let mut state = 7u32;
        for round in 0..3000 {
            let mut random = |below: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % below
            };
            let length = random(60);
            let rarity = 1 + random(25);
            let input: Vec<u8> = (0..length)
                .map(|_| if random(rarity) == 0 { b'\n' } else { b'a' + random(3) as u8 })
                .collect();
            for (chunk_bytes, document_bytes_max) in [(1, 1), (4, 4), (4, 9), (5, 100), (64, 64)] {
                let cuts = cut_into_chunks(&input, chunk_bytes, document_bytes_max);
                let lines = split_lines(&input, document_bytes_max);
                assert_eq!(lines_of_chunks(&cuts), lines, "round {round}, {chunk_bytes} bytes");
                let again = cut_into_chunks(&input, chunk_bytes, document_bytes_max);
                assert_eq!(cuts, again, "round {round}: the cuts differ");
            }
        }
    }

    #[test]
    fn chunks_end_at_the_last_newline() {
        let cuts = cut_into_chunks(b"ab\ncd\nef\n", 7, 100);
        assert_eq!(cuts[0], LineChunk { first_line: 1, bytes: b"ab\ncd\n".to_vec(), too_long: vec![] });
        assert_eq!(cuts[1], LineChunk { first_line: 3, bytes: b"ef\n".to_vec(), too_long: vec![] });
        assert_eq!(cuts.len(), 2);
    }

    #[test]
    fn a_line_of_the_maximum_length_is_kept_and_a_longer_one_is_dropped() {
        for newline in ["", "\n"] {
            let input = format!("a\n{}\n{}\nb{newline}", "x".repeat(8), "y".repeat(9));
            let (kept, dropped) = lines_of_chunks(&cut_into_chunks(input.as_bytes(), 4, 8));
            assert_eq!(kept.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 4]);
            assert_eq!(dropped, [3]);
        }
        assert_eq!(
            cut_into_chunks(b"123456789", 4, 8),
            [LineChunk { first_line: 2, bytes: vec![], too_long: vec![1] }]
        );
        assert_eq!(cut_into_chunks(b"", 4, 8), []);
    }

    #[test]
    fn an_endless_line_is_not_held_in_memory() {
        let endless = Box::new(io::repeat(b'x').take(1 << 30));
        let sizes = ChunkSizes { chunk_bytes: 1 << 16, document_bytes_max: 1 << 20 };
        let mut chunker = LineChunker::new(endless, sizes);
        assert_eq!(
            chunker.next().unwrap(),
            Some(LineChunk { first_line: 2, bytes: vec![], too_long: vec![1] })
        );
        assert_eq!(chunker.next().unwrap(), None);
    }
}

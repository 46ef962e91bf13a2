//! You have a stream of lines; here are pieces of whole lines.
//!
//! 1. Fill the buffer to the size of a piece, however short the single reads are, so that the cuts do not
//!    depend on timing.
//! 2. Cut after the last newline in it; what follows is copied to the front of the next buffer.
//! 3. Without a newline, let the buffer grow until there is one.
//! 4. A line that outgrows the limit is dropped from memory and read past.

use memchr::{memchr, memchr_iter, memrchr};
use std::io::{self, Read};
use tierdex::limits;

/// The bounds of cutting; tests choose small ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes after which a piece is closed.
    pub piece: usize,
    /// Longest line or plain file that is held in memory.
    pub document_max: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { piece: limits::BATCH_BYTES, document_max: limits::DOCUMENT_BYTES_MAX }
    }
}

/// Whole lines with the number of the first, from 1.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    pub first: u64,
    pub bytes: Vec<u8>,
    /// Numbers of the lines before `first` that were too long to keep.
    pub too_long: Vec<u64>,
}

/// Cuts a stream into pieces of whole lines.
pub(super) struct Cutter {
    reader: Box<dyn Read + Send>,
    sizes: Sizes,
    /// What was read behind the last cut.
    rest: Vec<u8>,
    /// Number of the line with which `rest` begins.
    line: u64,
    /// Why reading failed behind the last cut.
    failed: Option<io::Error>,
}

impl Cutter {
    pub fn new(reader: Box<dyn Read + Send>, sizes: Sizes) -> Cutter {
        Cutter { reader, sizes, rest: Vec::new(), line: 1, failed: None }
    }

    /// Longest line that is held in memory.
    pub fn document_max(&self) -> usize {
        self.sizes.document_max
    }

    /// The next lines; `None` at the end of the stream. An error follows the whole lines before it.
    pub fn next(&mut self) -> io::Result<Option<Cut>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut too_long = Vec::new();
        let bytes = loop {
            match self.gather()? {
                Some(bytes) => break bytes,
                None => too_long.push(self.pass_line()?),
            }
        };
        let first = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        let ended = bytes.is_empty() && too_long.is_empty();
        Ok((!ended).then_some(Cut { first, bytes, too_long }))
    }

    /// Whole lines from `rest` and the stream, empty at its end; `None` when the first line is too long. Then
    /// `rest` holds its beginning.
    fn gather(&mut self) -> io::Result<Option<Vec<u8>>> {
        // One byte above the limit: there the newline of the longest line stands.
        let most = self.sizes.document_max.saturating_add(1);
        let mut bytes = std::mem::take(&mut self.rest);
        let mut searched = 0usize;
        loop {
            let wanted = searched.saturating_add(self.sizes.piece).min(most);
            let filled = fill(&mut self.reader, &mut bytes, wanted);
            if let Some(at) = memrchr(b'\n', &bytes[searched..]) {
                self.keep_rest(&mut bytes, searched + at + 1);
                self.failed = filled.err();
                return Ok(Some(bytes));
            }
            let ended = !filled?;
            if bytes.len() >= most {
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
        self.rest = Vec::with_capacity(self.sizes.piece.max(bytes.len() - end));
        self.rest.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
    }

    /// Reads past the line that `rest` begins and answers its number.
    fn pass_line(&mut self) -> io::Result<u64> {
        let mut bytes = Vec::new();
        self.rest = Vec::new();
        loop {
            bytes.clear();
            let ended = !fill(&mut self.reader, &mut bytes, self.sizes.piece)?;
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

/// Appends until `bytes` has `wanted` of them; `false` when the stream ended before.
fn fill(reader: &mut impl Read, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
    let missing = wanted.saturating_sub(bytes.len());
    bytes.reserve(missing);
    reader.by_ref().take(missing as u64).read_to_end(bytes)?;
    Ok(bytes.len() >= wanted)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Dribble;
    use super::*;

    fn cut(input: &[u8], piece: usize, document_max: usize) -> Vec<Cut> {
        let mut cutter = Cutter::new(Box::new(Dribble::new(input)), Sizes { piece, document_max });
        std::iter::from_fn(|| cutter.next().unwrap()).collect()
    }

    /// What the cuts must add up to: the lines that fit, with their numbers.
    fn naive(input: &[u8], document_max: usize) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let lines = input.split_inclusive(|&byte| byte == b'\n').enumerate();
        let numbered = lines.map(|(at, line)| (at as u64 + 1, line.to_vec()));
        let fits = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).len() <= document_max;
        let (kept, dropped): (Vec<_>, Vec<_>) = numbered.partition(|(_, line)| fits(line));
        (kept, dropped.into_iter().map(|(number, _)| number).collect())
    }

    fn lines(cuts: &[Cut]) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let numbered = |cut: &Cut| {
            let lines = cut.bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec);
            (cut.first..).zip(lines).collect::<Vec<_>>()
        };
        (cuts.iter().flat_map(numbered).collect(), cuts.iter().flat_map(|cut| cut.too_long.clone()).collect())
    }

    #[test]
    fn cuts_add_up_to_the_lines_that_fit() {
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
            for (piece, document_max) in [(1, 1), (4, 4), (4, 9), (5, 100), (64, 64)] {
                let cuts = cut(&input, piece, document_max);
                assert_eq!(lines(&cuts), naive(&input, document_max), "round {round}, piece {piece}");
                assert_eq!(cuts, cut(&input, piece, document_max), "round {round}: not the same twice");
            }
        }
    }

    #[test]
    fn pieces_end_at_the_last_newline() {
        let cuts = cut(b"ab\ncd\nef\n", 7, 100);
        assert_eq!(cuts[0], Cut { first: 1, bytes: b"ab\ncd\n".to_vec(), too_long: vec![] });
        assert_eq!(cuts[1], Cut { first: 3, bytes: b"ef\n".to_vec(), too_long: vec![] });
        assert_eq!(cuts.len(), 2);
    }

    #[test]
    fn a_line_at_the_limit_stays_and_one_above_goes() {
        for newline in ["", "\n"] {
            let input = format!("a\n{}\n{}\nb{newline}", "x".repeat(8), "y".repeat(9));
            let (kept, dropped) = lines(&cut(input.as_bytes(), 4, 8));
            assert_eq!(kept.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 4]);
            assert_eq!(dropped, [3]);
        }
        assert_eq!(cut(b"123456789", 4, 8), [Cut { first: 2, bytes: vec![], too_long: vec![1] }]);
        assert_eq!(cut(b"", 4, 8), []);
    }

    #[test]
    fn an_endless_line_is_not_held_in_memory() {
        let endless = Box::new(io::repeat(b'x').take(1 << 30));
        let sizes = Sizes { piece: 1 << 16, document_max: 1 << 20 };
        let mut cutter = Cutter::new(endless, sizes);
        assert_eq!(cutter.next().unwrap(), Some(Cut { first: 2, bytes: vec![], too_long: vec![1] }));
        assert_eq!(cutter.next().unwrap(), None);
    }
}

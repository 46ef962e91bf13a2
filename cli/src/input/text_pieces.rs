//! Reads a text file that is split into documents in pieces, so that its size is not bounded by memory.
//!
//! A part is the text of one document. A piece ends where a part ends, so that the parts are those into which
//! the whole file would be split.

use super::{byte_order_mark, chunk::TextFile, open::Compression, split};
use std::io::{self, Read};
use tierdex::limits::BATCH_BYTES;

/// Size of a read, in bytes.
const READ_BYTES: u64 = 256 << 10;

/// An open text file of more than [`TextPieces::BYTES`].
pub(super) struct TextPieces {
    pub name: String,
    pub compression: Compression,
    /// Whether the file is an argument itself, not found in a folder.
    pub named: bool,
    /// Value of the progress counter at the end of this file, in bytes.
    pub done_at: u64,
    /// Whether bytes that are not UTF-8 were replaced.
    pub replaced: bool,
    /// Number of the file, if its documents are recorded.
    pub number: Option<u32>,
    title: String,
    reader: Box<dyn Read + Send>,
    /// Maximum length of a part, which becomes a document, in bytes.
    part_bytes_max: usize,
    /// Bytes that are not decoded yet: the beginning of a character.
    undecoded: Vec<u8>,
    /// Decoded text that follows the last piece.
    rest: String,
    /// Number of the next part.
    next_part: u64,
}

impl TextPieces {
    /// Bytes of a piece, without a part that may go on.
    pub const BYTES: usize = BATCH_BYTES;

    /// Continues `reader` after `beginning`.
    pub fn new(
        text: TextFile,
        reader: Box<dyn Read + Send>,
        part_bytes_max: usize,
        compression: Compression,
        named: bool,
        done_at: u64,
    ) -> TextPieces {
        let undecoded = byte_order_mark::strip_byte_order_mark(&text.bytes).to_vec();
        let (rest, next_part, replaced) = (String::new(), 0, false);
        let (name, title, number) = (text.id, text.title, text.number);
        TextPieces {
            name,
            compression,
            named,
            done_at,
            replaced,
            number,
            title,
            reader,
            part_bytes_max,
            undecoded,
            rest,
            next_part,
        }
    }

    /// The next piece; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<TextFile>> {
        let mut ended = false;
        while !ended && self.rest.len() < TextPieces::BYTES + self.part_bytes_max {
            let before = self.undecoded.len();
            self.reader.by_ref().take(READ_BYTES).read_to_end(&mut self.undecoded)?;
            ended = self.undecoded.len() == before;
            self.decode(ended);
        }
        let (len, parts) = match ended {
            true => (self.rest.len(), 0),
            false => split::settled_parts(&self.rest, self.part_bytes_max),
        };
        if len == 0 {
            return Ok(None);
        }
        let rest = self.rest.split_off(len);
        let text = std::mem::replace(&mut self.rest, rest);
        let piece = TextFile {
            id: self.name.clone(),
            title: std::mem::take(&mut self.title),
            bytes: text.into_bytes(),
            first_part: Some(self.next_part),
            number: self.number,
        };
        self.next_part += parts;
        Ok(Some(piece))
    }

    /// Moves what is decoded to `rest`. The beginning of a character at the end stays, unless the file ends.
    fn decode(&mut self, ended: bool) {
        let bytes = std::mem::take(&mut self.undecoded);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.rest.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            let may_go_on = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && may_go_on && !ended {
                self.undecoded = invalid.to_vec();
            } else {
                self.rest.push(char::REPLACEMENT_CHARACTER);
                self.replaced = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_pieces_are_those_of_the_whole_file() {
        let words = ["one ", "größer ", "漢字\n", "\u{2003} ", "averyveryverylongword", "🦀 "];
        let (mut state, mut bytes) = (5u32, Vec::new());
        while bytes.len() < 3 * TextPieces::BYTES {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.extend_from_slice(words[(state >> 8) as usize % words.len()].as_bytes());
            if state >> 8 & 0xfff == 0 {
                bytes.push(0xff);
            }
        }
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        for part_bytes_max in [16, 1000, 1 << 20] {
            let (beginning, after) = bytes.split_at(12_345);
            let beginning = TextFile {
                id: "f".into(),
                title: "t".into(),
                bytes: beginning.to_vec(),
                first_part: None,
                number: None,
            };
            let reader = Box::new(io::Cursor::new(after.to_vec()));
            let mut pieces = TextPieces::new(beginning, reader, part_bytes_max, Compression::Plain, true, 0);
            let (mut found, mut count) = (Vec::new(), 0);
            while let Some(piece) = pieces.next().unwrap() {
                assert_eq!(piece.first_part, Some(found.len() as u64));
                let text = String::from_utf8(piece.bytes).unwrap();
                found.extend(split::split_text(&text, part_bytes_max).map(str::to_string));
                count += 1;
            }
            assert!(pieces.replaced && count > 2, "{count} pieces");
            assert!(found.iter().map(String::as_str).eq(split::split_text(&whole, part_bytes_max)));
        }
    }
}

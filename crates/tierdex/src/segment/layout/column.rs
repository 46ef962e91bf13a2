//! The directory and the tail of a file of a column.

use super::push_tail;
use crate::schema::ColumnType;

/// Bytes of the header of a chunk of values: the smallest value u64, the width of the others in bits u8.
pub const CHUNK_HEADER_BYTES: usize = 9;

/// Bytes of an entry of the directory.
pub const COLUMN_ENTRY_BYTES: usize = 32;

/// Number of integers of the tail.
pub const COLUMN_TAIL_LEN: usize = 8;

/// How a block tells which of its documents have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// None has.
    None = 0,
    /// All have.
    All = 1,
    /// One bit for each document.
    Bitmap = 2,
    /// The numbers of the documents in the block, two bytes each, ascending.
    Sparse = 3,
}

impl Presence {
    /// The shortest form for a block of which `present` of `documents` documents have a value.
    pub fn choose(present: usize, documents: usize) -> Presence {
        match present {
            0 => Presence::None,
            all if all == documents => Presence::All,
            few if 2 * few < Presence::Bitmap.bytes(few, documents) => Presence::Sparse,
            _ => Presence::Bitmap,
        }
    }

    /// Bytes of this form.
    pub fn bytes(self, present: usize, documents: usize) -> usize {
        match self {
            Presence::None | Presence::All => 0,
            Presence::Bitmap => 8 * documents.div_ceil(u64::BITS as usize),
            Presence::Sparse => 2 * present,
        }
    }
}

/// An entry of the directory of a column: a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnEntry {
    /// The smallest value, in the unit of the file: (integer of the value - minimum) / divisor; 0 if there are
    /// no values.
    pub minimum: u64,
    /// The largest value.
    pub maximum: u64,
    /// Offset of the block in the file. It ends where the next one starts.
    pub offset: u64,
    /// Number of values.
    pub values: u32,
    /// Number of documents with a value.
    pub present: u16,
    /// Which documents these are.
    pub presence: Presence,
}

impl ColumnEntry {
    /// Appends the entry.
    pub fn write(&self, out: &mut Vec<u8>) {
        push_tail(out, &[self.minimum, self.maximum, self.offset]);
        out.extend(self.values.to_le_bytes());
        out.extend(self.present.to_le_bytes());
        out.extend([self.presence as u8, 0]);
    }

    /// Decodes an entry; `None` if no presence has its number.
    pub fn read(bytes: &[u8; COLUMN_ENTRY_BYTES]) -> Option<ColumnEntry> {
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
        let presence = match bytes[30] {
            0 => Presence::None,
            1 => Presence::All,
            2 => Presence::Bitmap,
            3 => Presence::Sparse,
            _ => return None,
        };
        let (values, present) = (number(24) as u32, u16::from_le_bytes([bytes[28], bytes[29]]));
        Some(ColumnEntry {
            minimum: number(0),
            maximum: number(8),
            offset: number(16),
            values,
            present,
            presence,
        })
    }
}

/// The last part of a file of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnTail {
    /// Number of documents of the segment.
    pub documents: u64,
    /// Type of the values.
    pub of: ColumnType,
    /// Whether documents may have several values.
    pub multi: bool,
    /// Number of documents with a value.
    pub present: u64,
    /// Number of values.
    pub values: u64,
    /// The smallest value as an integer ([`ColumnType::to_bits`]).
    pub minimum: u64,
    /// The largest value as an integer.
    pub maximum: u64,
    /// At least 1; divides the differences between values.
    pub divisor: u64,
    /// Offset of the directory.
    pub directory: u64,
}

impl ColumnTail {
    /// Appends the tail.
    pub fn write(&self, out: &mut Vec<u8>) {
        let of = self.of as u64 | u64::from(self.multi) << 8;
        let ColumnTail { documents, present, values, minimum, maximum, divisor, directory, .. } = *self;
        push_tail(out, &[documents, of, present, values, minimum, maximum, divisor, directory]);
    }

    /// The tail of these numbers; `None` if no type has its number.
    pub fn read(numbers: [u64; COLUMN_TAIL_LEN]) -> Option<ColumnTail> {
        let [documents, of, present, values, minimum, maximum, divisor, directory] = numbers;
        let multi = match of >> 8 {
            0 => false,
            1 => true,
            _ => return None,
        };
        let of = ColumnType::from_id(of & 0xff)?;
        Some(ColumnTail { documents, of, multi, present, values, minimum, maximum, divisor, directory })
    }
}

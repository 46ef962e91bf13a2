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
    /// The smallest value, in the unit of the file: (integer of the value - minimum) / divisor; 0 if there
    /// are no values.
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

    /// Decodes an entry; `None` if no presence has its number, or if the byte after it is not 0.
    pub fn read(bytes: &[u8; COLUMN_ENTRY_BYTES]) -> Option<ColumnEntry> {
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
        let presence = match [bytes[30], bytes[31]] {
            [0, 0] => Presence::None,
            [1, 0] => Presence::All,
            [2, 0] => Presence::Bitmap,
            [3, 0] => Presence::Sparse,
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
    /// The smallest value as an integer in the order of values.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_form_of_presence_is_chosen() {
        let forms = [Presence::None, Presence::All, Presence::Bitmap, Presence::Sparse];
        for documents in (1..140).chain([4095, 4096]) {
            for present in 0..=documents {
                let is_possible = |form: &Presence| match form {
                    Presence::None => present == 0,
                    Presence::All => present == documents,
                    Presence::Bitmap | Presence::Sparse => true,
                };
                let chosen = Presence::choose(present, documents);
                let lengths = forms.iter().filter(|form| is_possible(form));
                let shortest = lengths.map(|form| form.bytes(present, documents)).min();
                assert!(is_possible(&chosen), "{present} of {documents}: {chosen:?}");
                assert_eq!(Some(chosen.bytes(present, documents)), shortest, "{present} of {documents}");
            }
        }
        assert_eq!(Presence::choose(3, 64), Presence::Sparse);
        assert_eq!(Presence::choose(4, 64), Presence::Bitmap);
        assert_eq!(Presence::choose(4096, 4096), Presence::All);
    }

    #[test]
    fn entries_and_tails_round_trip() {
        for presence in [Presence::None, Presence::All, Presence::Bitmap, Presence::Sparse] {
            let (minimum, maximum, offset) = (u64::MAX - 1, u64::MAX, 1 << 40);
            let entry =
                ColumnEntry { minimum, maximum, offset, values: u32::MAX, present: u16::MAX, presence };
            let mut bytes = Vec::new();
            entry.write(&mut bytes);
            let mut bytes: [u8; COLUMN_ENTRY_BYTES] = bytes.try_into().unwrap();
            assert_eq!(ColumnEntry::read(&bytes), Some(entry));
            bytes[31] = 1;
            assert_eq!(ColumnEntry::read(&bytes), None);
        }
        for (of, multi) in ColumnType::ALL.into_iter().flat_map(|of| [(of, false), (of, true)]) {
            let (documents, present, values, minimum, maximum) = (1, 2, 3, 4, 5);
            let (divisor, directory) = (6, u64::MAX);
            let tail =
                ColumnTail { documents, of, multi, present, values, minimum, maximum, divisor, directory };
            let mut bytes = Vec::new();
            tail.write(&mut bytes);
            let numbers: Vec<u64> = bytes.as_chunks().0.iter().map(|of| u64::from_le_bytes(*of)).collect();
            let mut numbers: [u64; COLUMN_TAIL_LEN] = numbers.try_into().unwrap();
            assert_eq!(ColumnTail::read(numbers), Some(tail));
            for of in [0, 6, 255, 1 << 8, 2 << 8 | 1, 1 << 63 | 1] {
                numbers[1] = of;
                assert_eq!(ColumnTail::read(numbers), None);
            }
        }
    }
}

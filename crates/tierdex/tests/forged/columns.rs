//! Forged files of columns: blocks, the directory and the tail with impossible contents.

use crate::support::{assert_sound, forge::read_payload, random::Random};
use crate::{assert_forgery_found, run_all_operations};
use std::sync::Arc;
use tierdex::codec::WideBlock;
use tierdex::commit::FileKind;
use tierdex::internal::segment::layout::{
    COLUMN_ENTRY_BYTES, COLUMN_TAIL_LEN, ColumnEntry, ColumnTail, Presence, file_name,
};
use tierdex::io::{Identity, MemDisk};
use tierdex::schema::{Column, ColumnType, ColumnValue, Schema};
use tierdex::{DocumentRef, IndexWriter, Merge, OpenMode, WriterOptions};

/// Offset of the first byte of a payload in its file.
const PAYLOAD_START: u64 = 64;

/// Documents of [`columns_index`]: three blocks, of which the last one is short.
const DOCUMENTS: usize = 9000;

/// Numbers of the columns of [`columns_index`]. Their blocks have all documents, some, or few.
const ALL: usize = 0;
const SOME: usize = 1;
const FEW: usize = 2;
const MULTI: usize = 3;

/// An index of one segment with columns of several blocks.
pub fn columns_index() -> MemDisk {
    let column = |name: &str| Column::new(name, ColumnType::U64);
    let multi = Column { multi: true, ..column("multi") };
    let columns = vec![column("all"), column("some"), column("few"), multi];
    let schema = Schema { columns, ..crate::support::schema() };
    let disk = MemDisk::new();
    let mut writer =
        IndexWriter::open(Arc::new(disk.clone()), schema, OpenMode::New, WriterOptions::default()).unwrap();
    for number in 0..DOCUMENTS {
        let value = |column, value: usize| (column, ColumnValue::U64(7 + 3 * value as u64));
        let mut columns = vec![value(ALL, number)];
        columns.extend((number % 3 != 1).then(|| value(SOME, number * number % 1000)));
        columns.extend((number % 50 == 3).then(|| value(FEW, number)));
        columns.extend((0..number % 4).map(|other| value(MULTI, number % 100 + 10 * other)));
        let values = [(1, if number % 40 == 0 { "all w0" } else { "all" })];
        let document = DocumentRef { id: "", values: &values, columns: &columns, ..DocumentRef::default() };
        writer.add_document(document).unwrap();
    }
    writer.commit(Merge::Keep).unwrap();
    drop(writer);
    assert_sound(&disk);
    disk
}

/// The parts of a file of a column, to be changed.
#[derive(Clone)]
struct ColumnParts {
    blocks: Vec<Vec<u8>>,
    entries: Vec<ColumnEntry>,
    tail: ColumnTail,
}

impl ColumnParts {
    fn read(payload: &[u8]) -> ColumnParts {
        let (rest, tail) = payload.split_at(payload.len() - 8 * COLUMN_TAIL_LEN);
        let numbers: Vec<u64> = tail.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let tail = ColumnTail::read(numbers.try_into().unwrap()).unwrap();
        let (blocks, directory) = rest.split_at((tail.directory - PAYLOAD_START) as usize);
        let entries = directory.as_chunks::<COLUMN_ENTRY_BYTES>().0.iter();
        let entries: Vec<ColumnEntry> = entries.map(|bytes| ColumnEntry::read(bytes).unwrap()).collect();
        let offset = |number: usize| entries.get(number).map_or(tail.directory, |entry| entry.offset);
        let block = |number| {
            let range = offset(number) - PAYLOAD_START..offset(number + 1) - PAYLOAD_START;
            blocks[range.start as usize..range.end as usize].to_vec()
        };
        ColumnParts { blocks: (0..entries.len()).map(block).collect(), entries, tail }
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = self.blocks.concat();
        self.entries.iter().for_each(|entry| entry.write(&mut payload));
        self.tail.write(&mut payload);
        payload
    }

    /// Sets the offsets of blocks whose lengths have changed.
    fn set_offsets(&mut self) {
        let mut offset = PAYLOAD_START;
        for (entry, block) in self.entries.iter_mut().zip(&self.blocks) {
            entry.offset = offset;
            offset += block.len() as u64;
        }
        self.tail.directory = offset;
    }

    /// Adds to the number of values of a block and of the file.
    fn add_values(&mut self, block: usize, count: u32) {
        self.entries[block].values += count;
        self.tail.values += u64::from(count);
    }

    /// Offset in a block of the header of a chunk of the first packed numbers.
    fn header(&self, block: usize, chunk: usize) -> usize {
        let entry = &self.entries[block];
        let documents = if block + 1 < self.entries.len() { 4096 } else { DOCUMENTS % 4096 };
        entry.presence.bytes(usize::from(entry.present), documents) + 9 * chunk
    }
}

/// The file of a column of an intact index.
struct IntactColumn {
    name: String,
    identity: Identity,
    parts: ColumnParts,
}

fn intact(disk: &MemDisk, column: usize) -> IntactColumn {
    let name = file_name(1, column, FileKind::Column);
    let (identity, payload) = read_payload(disk, &name);
    let parts = ColumnParts::read(&payload);
    assert_eq!(parts.payload(), payload);
    IntactColumn { name, identity, parts }
}

type Change = fn(&mut ColumnParts);

/// Checks that each change of a file of a column is found.
fn assert_changes_found(cases: &[(usize, &str, &[Change])]) {
    let disk = columns_index();
    (0..4).for_each(|seed| run_all_operations(&disk.snapshot(), &mut Random::new(seed)).unwrap());
    for (column, expected, changes) in cases {
        let IntactColumn { name, identity, parts } = intact(&disk, *column);
        for change in *changes {
            let mut forged = parts.clone();
            change(&mut forged);
            assert_forgery_found(&disk, &name, identity, &forged.payload(), expected);
        }
    }
}

#[test]
fn the_columns_have_all_forms_of_presence() {
    let disk = columns_index();
    let presence = |column| intact(&disk, column).parts.entries[0].presence;
    let found = [ALL, SOME, FEW, MULTI].map(presence);
    assert_eq!(found, [Presence::All, Presence::Bitmap, Presence::Sparse, Presence::Bitmap]);
}

#[test]
fn impossible_tails_are_rejected() {
    let another = "the column of another segment or of another type";
    let unfit = "the tail does not fit the file";
    let count = "another number of values";
    assert_changes_found(&[
        (
            SOME,
            another,
            &[
                |of| of.tail.documents += 1,
                |of| of.tail.documents = u64::MAX,
                |of| of.tail.of = ColumnType::I64,
                |of| of.tail.multi = true,
            ],
        ),
        (MULTI, another, &[|of| of.tail.multi = false]),
        (
            SOME,
            unfit,
            &[
                |of| of.tail.directory += 1,
                |of| of.tail.directory -= 32,
                |of| of.tail.directory = 0,
                |of| of.tail.directory = u64::MAX,
                |of| of.tail.divisor = 0,
                |of| of.tail.minimum = of.tail.maximum + 1,
                |of| of.tail.present = 0,
                |of| of.entries.truncate(2),
                |of| of.entries.push(of.entries[0]),
                |of| of.blocks[0].push(0),
            ],
        ),
        (
            MULTI,
            count,
            &[
                |of| of.tail.present += 1,
                |of| of.tail.present = u64::MAX,
                |of| of.tail.values -= 1,
                |of| of.tail.values = u64::MAX,
            ],
        ),
        (
            SOME,
            "impossible numbers of a block",
            &[|of| of.tail.divisor += 1, |of| of.tail.divisor = u64::MAX, |of| of.tail.maximum -= 3],
        ),
        (
            SOME,
            "the tail has another smallest or largest value",
            &[
                |of| of.tail.maximum += 3,
                |of| of.tail.maximum = u64::MAX,
                |of| of.tail.minimum -= 3,
                |of| of.tail.divisor -= 1,
            ],
        ),
    ]);
}

#[test]
fn an_unknown_type_of_a_column_is_rejected() {
    let disk = columns_index();
    let IntactColumn { name, identity, parts } = intact(&disk, SOME);
    let payload = parts.payload();
    let at = payload.len() - 8 * COLUMN_TAIL_LEN + 8;
    for of in [0, 6, 0xff, 2 << 8 | 2, u64::MAX] {
        let mut forged = payload.clone();
        forged[at..at + 8].copy_from_slice(&of.to_le_bytes());
        assert_forgery_found(&disk, &name, identity, &forged, "unknown type of values");
    }
    // The presence of the second block, and the byte after it.
    let entry = at - 8 - 2 * COLUMN_ENTRY_BYTES;
    for (offset, byte) in [(30, 4), (30, 0xff), (31, 1)] {
        let mut forged = payload.clone();
        forged[entry + offset] = byte;
        assert_forgery_found(&disk, &name, identity, &forged, "an unknown form of a block");
    }
    let truncated = &payload[payload.len() - 8 * COLUMN_TAIL_LEN + 8..];
    assert_forgery_found(&disk, &name, identity, truncated, "too short");
}

#[test]
fn impossible_directories_are_rejected() {
    let (numbers, length) = ("impossible numbers of a block", "a block of an impossible length");
    assert_changes_found(&[
        (
            SOME,
            numbers,
            &[
                |of| of.entries[1].present = 4097,
                |of| of.entries[1].present = u16::MAX,
                |of| of.entries[1].present += 1,
                |of| of.entries[1].present = 0,
                |of| of.entries[1].values += 1,
                |of| of.entries[1].values = u32::MAX,
                |of| of.entries[1].presence = Presence::All,
                |of| of.entries[1].presence = Presence::None,
                |of| of.entries[1].presence = Presence::Sparse,
                |of| of.entries[2].present = 809,
                |of| of.entries[1].minimum = of.entries[1].maximum + 1,
                |of| of.entries[1].maximum = u64::MAX,
            ],
        ),
        (
            MULTI,
            numbers,
            &[
                |of| of.entries[1].values = u32::from(of.entries[1].present) - 1,
                |of| of.entries[1].values = 255 * u32::from(of.entries[1].present) + 1,
            ],
        ),
        (
            SOME,
            length,
            &[
                |of| of.entries[0].offset += 1,
                |of| of.entries[0].offset = 0,
                |of| of.entries[1].offset = 0,
                |of| of.entries[1].offset = u64::MAX,
                |of| of.entries[2].offset = of.entries[1].offset - 1,
                |of| of.entries[2].offset = of.tail.directory + 1,
            ],
        ),
        (ALL, length, &[|of| of.entries.swap(0, 1)]),
        (MULTI, "another number of values", &[|of| of.entries[1].values += 1]),
        (
            SOME,
            "the directory has another smallest or largest value",
            &[|of| of.entries[1].minimum += 1, |of| of.entries[1].maximum -= 1],
        ),
        (
            ALL,
            "the directory has another smallest or largest value",
            &[|of| of.entries[1].minimum -= 1, |of| of.entries[1].maximum += 1],
        ),
    ]);
}

#[test]
fn impossible_blocks_are_rejected() {
    let (bitmap, order) =
        ("a bitmap does not have the documents with values", "documents with values are not in order");
    let (early, counts) = ("a block ends early", "impossible numbers of values of documents");
    let width: &[Change] =
        &[|of| set_byte(of, 1, of.header(1, 2) + 8, 65), |of| set_byte(of, 1, of.header(1, 0) + 8, 255)];
    assert_changes_found(&[
        (ALL, "impossible width of values", width),
        (SOME, "impossible width of values", width),
        (MULTI, "impossible width of values", width),
        (
            SOME,
            bitmap,
            &[
                |of| of.blocks[1][0] ^= 1,
                |of| of.blocks[1][511] ^= 0x80,
                |of| of.blocks[1][..8].fill(0xff),
                // A document behind the last one, in place of the first.
                |of| {
                    of.blocks[2][0] &= of.blocks[2][0] - 1;
                    of.blocks[2][8 * 13 - 1] |= 0x80;
                },
            ],
        ),
        (
            FEW,
            order,
            &[
                |of| of.blocks[1].swap(0, 2),
                |of| of.blocks[1].copy_within(0..2, 2),
                |of| set_last_document(of, 1, 4096),
                |of| set_last_document(of, 1, u16::MAX),
                |of| set_last_document(of, 2, 808),
            ],
        ),
        (
            ALL,
            early,
            &[
                |of| change_block(of, 1, |block| block.truncate(block.len() - 1)),
                |of| change_block(of, 1, |block| block.truncate(9)),
                |of| change_block(of, 1, Vec::clear),
                |of| set_byte(of, 1, of.header(1, 2) + 8, 64),
            ],
        ),
        (FEW, early, &[|of| change_block(of, 1, |block| block.truncate(1))]),
        (
            ALL,
            "bytes follow the values of a block",
            &[|of| change_block(of, 1, |block| block.push(0)), |of| set_byte(of, 1, of.header(1, 2) + 8, 7)],
        ),
        (MULTI, early, &[|of| change_block(of, 1, |block| block.truncate(600))]),
        (
            MULTI,
            counts,
            &[
                |of| set_byte(of, 1, of.header(1, 0), 1),
                |of| set_byte(of, 1, of.header(1, 0), 255),
                |of| set_byte(of, 1, of.header(1, 0) + 7, 255),
            ],
        ),
        (MULTI, "the values of a document are not sorted", &[set_descending_values]),
    ]);
}

/// A block of as many values as it can have, which are equal and take no bytes.
#[test]
fn many_values_without_bytes_take_little_memory() {
    let counts = "impossible numbers of values of documents";
    assert_changes_found(&[(
        MULTI,
        counts,
        &[|of| {
            let present = usize::from(of.entries[1].present);
            let values = 255 * present;
            let headers = |count: usize| vec![0; 9 * count.div_ceil(256)];
            change_block(of, 1, |block| {
                block.truncate(512);
                block.extend([headers(present), headers(values)].concat());
            });
            of.add_values(1, values as u32 - of.entries[1].values);
        }],
    )]);
}

fn set_byte(of: &mut ColumnParts, block: usize, at: usize, byte: u8) {
    of.blocks[block][at] = byte;
}

/// Changes the length of a block, and the offsets of those behind it.
fn change_block(of: &mut ColumnParts, block: usize, change: impl FnOnce(&mut Vec<u8>)) {
    change(&mut of.blocks[block]);
    of.set_offsets();
}

/// Sets the last document of a block in sparse form.
fn set_last_document(of: &mut ColumnParts, block: usize, document: u16) {
    let end = of.header(block, 0);
    of.blocks[block][end - 2..end].copy_from_slice(&document.to_le_bytes());
}

/// Replaces the values of a block of the multi-valued column by others that descend.
fn set_descending_values(of: &mut ColumnParts) {
    let present = usize::from(of.entries[1].present);
    let counts = of.header(1, 0);
    let headers = 9 * present.div_ceil(256);
    let bits = (0..present.div_ceil(256)).map(|chunk| {
        let width = usize::from(of.blocks[1][counts + 9 * chunk + 8]);
        (256.min(present - 256 * chunk) * width).div_ceil(8)
    });
    let values = counts + headers + bits.sum::<usize>();
    let count = of.entries[1].values as usize;
    let mut packed = Vec::new();
    let unsorted: Vec<u64> = (0..count as u64).rev().map(|value| value % 128).collect();
    let blocks = unsorted.chunks(256).map(|chunk| WideBlock::encode(chunk, &mut packed));
    let headers: Vec<u8> =
        blocks.flat_map(|block| [&block.smallest.to_le_bytes()[..], &[block.width]].concat()).collect();
    change_block(of, 1, |block| {
        block.truncate(values);
        block.extend([headers, packed].concat());
    });
}

//! Look-ups in block indexes of several pages, which begin at any offset of a page.

use super::*;
use crate::segment::layout::{FileKind, file_name, identity};
use crate::segment::write::{StoredBlocks, StoredWriter};
use tierdex_io::MemDisk;

/// A file of documents with one member, in blocks with these numbers of documents. The first document is
/// followed by bytes that zstd does not compress.
fn stored_of(blocks: &[u32], first_bytes: usize) -> StoredReader {
    let disk = MemDisk::new();
    let mut writer = StoredWriter::create(&disk, 1, 1).unwrap();
    let (mut packed, mut document) = (StoredBlocks::default(), 0);
    for count in blocks {
        for _ in 0..*count {
            packed.add_values(std::iter::once(value_of(document, first_bytes).as_str()));
            packed.finish_document().unwrap();
            document += 1;
        }
        packed.close_block().unwrap();
        writer.add_blocks(&mut packed).unwrap();
    }
    let kind = FileKind::Stored;
    let seal = writer.finish().unwrap().seal;
    let file = SealedFile::open(&disk, &file_name(1, 0, kind), identity(1, 0, kind), seal).unwrap();
    StoredReader::open(file, document, 1).unwrap()
}

fn value_of(document: u32, first_bytes: usize) -> String {
    let noise = |at: usize| {
        let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        char::from(b'0' + ((mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 58) as u8)
    };
    let noise: String = (0..if document == 0 { first_bytes } else { 0 }).map(noise).collect();
    format!("document {document}{noise}")
}

/// Reads from the disk, and bytes of them, by `body`.
fn reads_by(stored: &StoredReader, body: impl FnOnce()) -> (u64, u64) {
    let before = (stored.file.reads(), stored.file.bytes_read());
    body();
    (stored.file.reads() - before.0, stored.file.bytes_read() - before.1)
}

#[test]
fn every_document_is_found_by_one_page_of_the_block_index() {
    let mut straddling = 0;
    for (blocks, first_bytes) in
        [(1, 0), (2, 4070), (255, 0), (256, 1), (700, 3000), (700, 3005), (1300, 3010), (1300, 2000)]
    {
        let counts: Vec<u32> = (0..blocks).map(|block| 1 + block % 3).collect();
        let stored = stored_of(&counts, first_bytes);
        straddling += u32::from(!stored.index_at.is_multiple_of(INDEX_ENTRY_BYTES));
        let left = Cell::new(usize::MAX);
        let get = |document| stored.get(document, &FILES, |_| Some(&left)).unwrap();
        // From the last on: the first look-ups read entries of several pages.
        for document in (0..stored.documents).rev() {
            assert_eq!(get(document), [[value_of(document, first_bytes)]], "{blocks} blocks, {document}");
        }
        let mut document = 0;
        for (number, count) in (0..).zip(counts) {
            for _ in 0..count {
                let (reads, bytes) = reads_by(&stored, || {
                    let found = stored.find_block(document, &FILES).unwrap();
                    let expected = stored.block_documents(number).unwrap();
                    assert_eq!(found.first..found.first + found.count, expected);
                });
                let (of_number, of_number_bytes) = reads_by(&stored, || {
                    stored.block_documents(number).unwrap();
                });
                assert!(reads - of_number <= 1 && bytes - of_number_bytes <= PAGE, "{blocks}, {document}");
                document += 1;
            }
        }
        assert!(stored.find_block(document, &FILES).is_err());
        assert_eq!(stored.memory(), 24 * stored.page_entries.len() as u64);
        assert!(stored.page_entries.len() as u32 <= blocks / 256 + 2);
    }
    assert!(straddling > 2, "entries that cross pages are wanted");
}

#[test]
fn a_block_index_begins_at_any_offset_of_a_page() {
    let mut offsets = std::collections::BTreeSet::new();
    for first_bytes in 4800..5440 {
        let stored = stored_of(&[1, 2], first_bytes);
        offsets.insert(stored.index_at % PAGE);
        let found = [0, 1, 2].map(|document| stored.find_block(document, &FILES).unwrap().first);
        assert_eq!(found, [0, 1, 1], "at {}", stored.index_at);
    }
    assert!(offsets.iter().any(|offset| (PAGE - 15..PAGE).contains(offset)), "{offsets:?}");
}

#[test]
fn many_documents_are_found_in_order() {
    let stored = stored_of(&[2; 600], 100);
    let documents: Vec<u32> = (0..1200).filter(|document| document % 7 < 2).collect();
    let mut found = Vec::new();
    let read = stored.for_each_of(&documents, |document, values| {
        assert_eq!(values, [[value_of(document, 100)]]);
        found.push(document);
        Ok(())
    });
    read.unwrap();
    assert_eq!(found, documents);
}

//! Searches for blocks by document in skip records, valid and damaged.

use super::*;
use proptest::prelude::*;

/// The skip record of a list of `postings` postings, with 40 bytes of impacts; `fill` returns the byte at an
/// offset.
fn skip_record(postings: u32, positions: bool, fill: impl FnMut(usize) -> u8) -> BlockList<'static> {
    let len = BlockList::bytes_without_impacts(postings, positions) as usize + 40;
    let bytes: Vec<u8> = (0..len).map(fill).collect();
    let skips = 0..len as u64;
    let occurrences = u64::from(postings);
    let term = TermInfo { document_frequency: postings, occurrences, skips, blocks: Some(0..9), deleted: 0 };
    BlockList::parse("skips", &term, bytes.into(), positions).unwrap()
}

proptest! {
    /// A damaged record may have any bytes.
    #[test]
    fn searches_in_any_record_move_forward_to_a_block_that_may_contain_the_document(
        postings in 256u32..30_000,
        positions in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 64..400),
        small in any::<bool>(),
        searches in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 1..40),
    ) {
        // Small bytes make last documents that are often equal or nearly in order.
        let byte = |at: usize| bytes[at % bytes.len()] & if small { 1 } else { 255 };
        let list = skip_record(postings, positions, byte);
        for (from, document) in searches {
            let (from, document) = (from.index(list.blocks()), if small { document & 0x0101_0101 } else { document });
            let found = list.find_block(from, document);
            prop_assert!((from..=list.blocks()).contains(&found));
            prop_assert!(found == list.blocks() || list.last(found) >= document);
            let found = list.seek(from, document);
            prop_assert!(found <= list.blocks());
            prop_assert!(found == list.blocks() || list.last(found) >= document);
            let (block, superblock) = (from, from / SUPERBLOCK);
            list.max_share(from..=list.blocks() - 1);
            list.range(ListPart::Docs, block).ok();
            list.encoded_impacts(block).ok();
            list.superblock_impacts(superblock).ok();
            list.impact_bytes().ok();
            list.last_documents_agree();
        }
    }
}

#[test]
fn searches_find_the_first_block_that_ends_at_the_document_or_later() {
    let mut list = skip_record(256 * 75, false, |_| 0);
    let last = |block: usize| 1000 * (block as u32 + 1);
    let bytes = list.bytes.to_mut();
    for block in 0..75usize {
        let (superblock, at) = (block / SUPERBLOCK, block % SUPERBLOCK);
        let array = list.arrays + superblock * list.entry_len;
        bytes[array + 4 * at..][..4].copy_from_slice(&last(block).to_le_bytes());
        bytes[list.superblock_last + 4 * superblock..][..4].copy_from_slice(&last(block).to_le_bytes());
        let before = if block == 0 { u32::MAX } else { last(block - 1) };
        if at == 0 {
            bytes[array - 4..][..4].copy_from_slice(&before.to_le_bytes());
        }
    }
    assert!(list.last_documents_agree());
    for document in (0..76_000).step_by(250) {
        let expected = (document as usize).div_ceil(1000).saturating_sub(1);
        for from in [0, 1, 31, 32, 33, 63, 64, 74] {
            assert_eq!(list.find_block(from, document), expected.max(from).min(75), "{document}");
            assert_eq!(list.seek(from, document), expected.min(75), "{document}");
        }
    }
}

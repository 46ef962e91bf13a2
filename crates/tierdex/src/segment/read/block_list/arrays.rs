//! Searches in the arrays of last documents of a skip record.

use crate::limits::SUPERBLOCK;

/// Number of documents in an array of at most 32 that are less than `document`. Counts without branches,
/// which is faster than a binary search.
#[inline]
pub(super) fn count_less(documents: &[[u8; 4]], document: u32) -> usize {
    let count = |documents: &[[u8; 4]]| {
        documents.iter().map(|other| u32::from(u32::from_le_bytes(*other) < document)).sum::<u32>() as usize
    };
    match documents.first_chunk::<SUPERBLOCK>() {
        Some(documents) => count(documents),
        None => count(documents),
    }
}

/// The first index from `from` on of an increasing array of documents whose document is at least `document`;
/// its length if there is none. A galloping search: the step doubles until it passes `document`.
#[inline]
pub(super) fn gallop(last: &[[u8; 4]], from: usize, document: u32) -> usize {
    let at = |i: usize| u32::from_le_bytes(last[i]);
    let mut step = 1;
    let mut low = from;
    while low < last.len() && at(low) < document {
        let next = low + step;
        if next >= last.len() || at(next) >= document {
            let (mut a, mut b) = (low + 1, next.min(last.len()));
            while a < b {
                let middle = (a + b) / 2;
                if at(middle) < document { a = middle + 1 } else { b = middle }
            }
            return a;
        }
        low = next;
        step *= 2;
    }
    low
}

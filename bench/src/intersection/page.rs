//! A page of a list: 4 KiB that can be decoded without any other.
//!
//! ```text
//! raw      ids of four bytes, little-endian, up to 1,024
//! others   blocks of 256 ids one after another, the last one shorter, each as the codec writes it; zeros
//! ```
//!
//! How many ids a page holds and which is the first stands in memory (section III-B: skip pointers). A block is encoded
//! against the id before it, the first one of a page against one less than its first id, so that a page needs no other.

use tierdex::codec::{Codec, is_increasing};
use tierdex::error::{Error, Result};
use tierdex::limits::BLOCK;

/// The bytes of a page.
pub(super) const PAGE_BYTES: usize = tierdex::io::PAGE as usize;

/// The largest id: the largest number of 32 bits is a mark for "none".
pub const ID_MAX: u32 = u32::MAX - 1;

/// Ids of a page, at most: however well they compress, a page is decoded whole.
pub const PAGE_IDS_MAX: usize = 1 << 15;

/// Appends as many of the rising `ids` as fit into an empty page; returns how many.
pub(super) fn fill(codec: Codec, ids: &[u32], page: &mut Vec<u8>) -> usize {
    let ids = &ids[..ids.len().min(PAGE_IDS_MAX)];
    let mut block = Vec::new();
    let mut taken = 0;
    let mut prev = before(ids[0]);
    while taken < ids.len() {
        let mut count = BLOCK.min(ids.len() - taken);
        let room = PAGE_BYTES - page.len();
        encode(codec, &ids[taken..taken + count], prev, &mut block);
        let whole = block.len() <= room;
        if !whole {
            count = fitting(codec, &ids[taken..taken + count], prev, room, &mut block);
        }
        page.extend_from_slice(&block);
        taken += count;
        if !whole || count == 0 {
            break;
        }
        prev = ids[taken - 1];
    }
    taken
}

/// How many of the ids fit into `room` bytes, their block in `block`.
fn fitting(codec: Codec, ids: &[u32], prev: u32, room: usize, block: &mut Vec<u8>) -> usize {
    let (mut fits, mut not) = (0, ids.len());
    while fits + 1 < not {
        let middle = fits.midpoint(not);
        encode(codec, &ids[..middle], prev, block);
        if block.len() <= room { fits = middle } else { not = middle }
    }
    encode(codec, &ids[..fits], prev, block);
    fits
}

fn encode(codec: Codec, ids: &[u32], prev: u32, block: &mut Vec<u8>) {
    block.clear();
    codec.encode(ids, prev, block);
}

/// What the first block of a page is encoded against; -1 is `u32::MAX`.
fn before(first: u32) -> u32 {
    first.wrapping_sub(1)
}

/// What the skip pointers say of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The first id.
    pub(super) first: u32,
    /// No id is larger.
    pub(super) most: u32,
    /// Whether that one is the last id.
    pub(super) exact: bool,
}

/// Decodes a page of `out.len()` ids. They rise, begin as `bounds` says, and end where the next page begins or before.
///
/// # Errors
/// A damaged page, with the file's name and the page's offset in it.
pub(super) fn decode(
    codec: Codec,
    bytes: &[u8],
    bounds: Bounds,
    out: &mut [u32],
    (file, offset): (&str, u64),
) -> Result<()> {
    let mut at = 0;
    let mut prev = before(bounds.first);
    for block in out.chunks_mut(BLOCK) {
        let used = codec.decode(&bytes[at..], prev, block).map_err(|error| {
            let what = format!("ids of codec {} cannot be decoded: {error}", codec.name());
            Error::corrupt(file, offset + at as u64, what)
        })?;
        at += used;
        prev = block[block.len() - 1];
    }
    let fits = is_increasing(out) && out.first() == Some(&bounds.first);
    if fits && (if bounds.exact { prev == bounds.most } else { prev <= bounds.most }) {
        return Ok(());
    }
    Err(Error::corrupt(file, offset, "the ids of a page do not fit its skip pointers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_filled_and_read_again() {
        for &codec in Codec::ALL.iter().filter(|codec| codec.is_delta() || **codec == Codec::Raw) {
            for gap in [1, 2, 900, 70_000] {
                let ids: Vec<u32> = (0..40_000).map(|k| k * gap + k * k % gap.max(2) / 2).collect();
                let mut at = 0;
                while at < ids.len() {
                    let mut page = Vec::new();
                    let count = fill(codec, &ids[at..], &mut page);
                    assert!(count > 0 && page.len() <= PAGE_BYTES, "{codec:?}");
                    page.resize(PAGE_BYTES, 0);
                    let want = &ids[at..at + count];
                    let bounds = Bounds { first: want[0], most: want[count - 1], exact: true };
                    let mut out = vec![0; count];
                    decode(codec, &page, bounds, &mut out, ("f", 0)).unwrap();
                    assert_eq!(out, want, "{codec:?} {gap}");
                    for wrong in [
                        Bounds { first: bounds.first + 1, ..bounds },
                        Bounds { most: bounds.most - 1, exact: false, ..bounds },
                        Bounds { most: bounds.most + 1, ..bounds },
                    ] {
                        assert!(decode(codec, &page, wrong, &mut out, ("f", 0)).is_err());
                    }
                    at += count;
                }
            }
        }
    }
}

//! A page of a list: 4 KiB that can be decoded on its own.
//!
//! ```text
//! raw      up to 1,024 ids of four bytes, little-endian
//! others   blocks of 256 ids, the last one shorter, each encoded by the codec; zero padding
//! ```
//!
//! The number of ids and the first id of a page are in memory (section III-B: skip pointers). A block is
//! encoded relative to the id before it, the first block of a page relative to its first id minus one, so
//! that a page can be decoded on its own.

use tierdex::{Error, Result, codec::Codec, codec::is_increasing, limits::BLOCK};

/// Bytes of a page.
pub(super) const PAGE_BYTES: usize = tierdex::io::PAGE as usize;

/// The largest id. The largest 32-bit number means "none".
pub const ID_MAX: u32 = u32::MAX - 1;

/// Largest number of ids of a page. It bounds the work of decoding a page of well compressed ids.
const PAGE_IDS_MAX: usize = 1 << 15;

/// Encodes as many of the increasing `ids` as fit into an empty page. Returns their number.
pub(super) fn fill_page(codec: Codec, ids: &[u32], page: &mut Vec<u8>) -> usize {
    let ids = &ids[..ids.len().min(PAGE_IDS_MAX)];
    let mut block = Vec::new();
    let mut taken = 0;
    let mut prev = value_before(ids[0]);
    while taken < ids.len() {
        let mut count = BLOCK.min(ids.len() - taken);
        let space = PAGE_BYTES - page.len();
        encode_block(codec, &ids[taken..taken + count], prev, &mut block);
        let whole = block.len() <= space;
        if !whole {
            count = encode_ids_that_fit(codec, &ids[taken..taken + count], prev, space, &mut block);
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

/// Encodes as many ids as fit into `space` bytes, as one block. Returns their number.
fn encode_ids_that_fit(codec: Codec, ids: &[u32], prev: u32, space: usize, block: &mut Vec<u8>) -> usize {
    let (mut fits, mut not) = (0, ids.len());
    while fits + 1 < not {
        let middle = fits.midpoint(not);
        encode_block(codec, &ids[..middle], prev, block);
        if block.len() <= space { fits = middle } else { not = middle }
    }
    encode_block(codec, &ids[..fits], prev, block);
    fits
}

fn encode_block(codec: Codec, ids: &[u32], prev: u32, block: &mut Vec<u8>) {
    block.clear();
    codec.encode(ids, prev, block);
}

/// The value before the first id of a page, from which its first difference is taken; before 0 it is
/// `u32::MAX`.
fn value_before(first: u32) -> u32 {
    first.wrapping_sub(1)
}

/// The range of a page according to the skip pointers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageBounds {
    /// The first id.
    pub(super) first: u32,
    /// Upper bound of the ids.
    pub(super) most: u32,
    /// Whether the bound is the last id.
    pub(super) exact: bool,
}

/// Decodes a page of `out.len()` ids and checks that they increase and fit `bounds`.
///
/// # Errors
/// A damaged page, with the name of the file and the offset of the page.
pub(super) fn decode_page(
    codec: Codec,
    bytes: &[u8],
    bounds: PageBounds,
    out: &mut [u32],
    file: &str,
    offset: u64,
) -> Result<()> {
    let mut at = 0;
    let mut prev = value_before(bounds.first);
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
    fn pages_round_trip() {
        for &codec in Codec::ALL.iter().filter(|codec| codec.is_delta() || **codec == Codec::Raw) {
            for gap in [1, 2, 900, 70_000] {
                let ids: Vec<u32> = (0..40_000).map(|k| k * gap + k * k % gap.max(2) / 2).collect();
                let mut at = 0;
                while at < ids.len() {
                    let mut page = Vec::new();
                    let count = fill_page(codec, &ids[at..], &mut page);
                    assert!(count > 0 && page.len() <= PAGE_BYTES, "{codec:?}");
                    page.resize(PAGE_BYTES, 0);
                    let expected = &ids[at..at + count];
                    let bounds = PageBounds { first: expected[0], most: expected[count - 1], exact: true };
                    let mut out = vec![0; count];
                    decode_page(codec, &page, bounds, &mut out, "f", 0).unwrap();
                    assert_eq!(out, expected, "{codec:?} {gap}");
                    for wrong in [
                        PageBounds { first: bounds.first + 1, ..bounds },
                        PageBounds { most: bounds.most - 1, exact: false, ..bounds },
                        PageBounds { most: bounds.most + 1, ..bounds },
                    ] {
                        assert!(decode_page(codec, &page, wrong, &mut out, "f", 0).is_err());
                    }
                    at += count;
                }
            }
        }
    }
}

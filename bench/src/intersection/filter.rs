//! One Bloom filter per page; the filters of a list are concatenated (section III-D; Bloom, CACM 13(7),
//! 1970).
//!
//! The filter of a page of n ids has 4 n bits, as in the paper. Its offset follows from the number of ids
//! before the page, so no offsets are stored.

/// Bits of the filters per id.
const BITS_PER_ID: u64 = 4;

/// Number of bits that an id sets: the bits per id times ln 2, which minimizes the false positive rate.
const HASH_COUNT: u32 = 3;

/// Which ids of a list are in a page.
#[derive(Clone, Copy)]
pub(super) struct PageIds {
    /// Number of the ids before the page.
    pub(super) before: u64,
    /// Number of the ids in the page.
    pub(super) count: usize,
}

/// The filters of all pages of a list.
pub(super) struct BloomFilters {
    bytes: Vec<u8>,
}

impl BloomFilters {
    /// Empty filters for a list of `ids` ids.
    pub(super) fn new(ids: usize) -> BloomFilters {
        BloomFilters { bytes: vec![0; (ids * BITS_PER_ID as usize).div_ceil(8)] }
    }

    /// Adds an id to the filter of its page.
    pub(super) fn add(&mut self, page: PageIds, id: u32) {
        for bit in bit_positions(page, id) {
            self.bytes[(bit / 8) as usize] |= 1 << (bit % 8);
        }
    }

    /// Whether the page may contain an id. There are no false negatives.
    pub(super) fn may_hold(&self, page: PageIds, id: u32) -> bool {
        bit_positions(page, id).all(|bit| self.bytes[(bit / 8) as usize] & 1 << (bit % 8) != 0)
    }
}

/// The false positive rate in theory.
pub(super) fn false_positive_rate() -> f64 {
    (1.0 - (-f64::from(HASH_COUNT) / BITS_PER_ID as f64).exp()).powf(f64::from(HASH_COUNT))
}

/// The bit positions of an id: linear combinations of the two halves of one hash (Kirsch and Mitzenmacher,
/// ESA 2006).
fn bit_positions(page: PageIds, id: u32) -> impl Iterator<Item = u64> {
    let mut mixed = u64::from(id).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^= mixed >> 32;
    let (first, step) = ((mixed >> 32) as u32, mixed as u32 | 1);
    let (start, bits) = (page.before * BITS_PER_ID, page.count as u64 * BITS_PER_ID);
    (0..HASH_COUNT).map(move |k| {
        let hash = first.wrapping_add(step.wrapping_mul(k));
        start + ((u64::from(hash) * bits) >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_ids_pass_and_others_at_the_false_positive_rate() {
        let pages = [(0, 1000), (1000, 1), (1001, 700)].map(|(before, count)| PageIds { before, count });
        let mut filter = BloomFilters::new(1701);
        for (number, &page) in (1..).zip(&pages) {
            (0..page.count as u32).for_each(|k| filter.add(page, k * 7919 * number));
        }
        for (number, &page) in (1..).zip(&pages) {
            assert!((0..page.count as u32).all(|k| filter.may_hold(page, k * 7919 * number)));
        }
        let passed = (0..100_000).filter(|k| filter.may_hold(pages[0], 100_000_000 + k * 13)).count();
        let share = passed as f64 / 100_000.0;
        assert!((share - false_positive_rate()).abs() < 0.03, "{share}");
    }
}

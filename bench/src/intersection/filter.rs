//! A Bloom filter a page, all of a list in one string of bits (section III-D; Bloom, CACM 13(7), 1970).
//!
//! A page of n ids has the n times b bits that stand behind those of the ids before it: where they begin follows from
//! how many ids there are before, so that nothing else is kept.

/// Bits of all pages of a list.
pub(super) struct Filter {
    bits_per_id: u32,
    bytes: Box<[u8]>,
}

impl Filter {
    /// The most bits an id.
    pub(super) const BITS_MAX: u32 = 32;

    /// One without any id set, for a list of `ids` ids.
    pub(super) fn new(bits_per_id: u32, ids: u64) -> Filter {
        let bytes = vec![0; Filter::bytes_of(bits_per_id, ids) as usize];
        Filter { bits_per_id, bytes: bytes.into() }
    }

    /// The one whose bytes these are.
    pub(super) fn from_bytes(bits_per_id: u32, bytes: &[u8]) -> Filter {
        Filter { bits_per_id, bytes: bytes.into() }
    }

    /// Bytes of a filter for `ids` ids.
    pub(super) fn bytes_of(bits_per_id: u32, ids: u64) -> u64 {
        ids.saturating_mul(u64::from(bits_per_id)).div_ceil(8)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds an id of the page that has `ids` ids and `before` ids before it.
    pub(super) fn add(&mut self, (before, ids): (u64, usize), id: u32) {
        for bit in places(self.bits_per_id, before, ids, id) {
            self.bytes[(bit / 8) as usize] |= 1 << (bit % 8);
        }
    }

    /// Whether the page may hold an id: false only if it does not.
    pub(super) fn may_hold(&self, (before, ids): (u64, usize), id: u32) -> bool {
        places(self.bits_per_id, before, ids, id)
            .all(|bit| self.bytes[(bit / 8) as usize] & 1 << (bit % 8) != 0)
    }

    /// The share of other ids that pass, as theory has it for full pages.
    pub(super) fn false_share(&self) -> f64 {
        let (hashes, bits) = (f64::from(hashes(self.bits_per_id)), f64::from(self.bits_per_id));
        (1.0 - (-hashes / bits).exp()).powf(hashes)
    }
}

/// How many bits an id sets: bits an id times ln 2 lets the fewest others pass.
fn hashes(bits_per_id: u32) -> u32 {
    ((f64::from(bits_per_id) * std::f64::consts::LN_2).round() as u32).max(1)
}

/// The bits of an id: two halves of one hash, combined (Kirsch and Mitzenmacher, ESA 2006).
fn places(bits_per_id: u32, before: u64, ids: usize, id: u32) -> impl Iterator<Item = u64> {
    let mut mixed = u64::from(id).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^= mixed >> 32;
    let (first, step) = ((mixed >> 32) as u32, mixed as u32 | 1);
    let (start, bits) = (before * u64::from(bits_per_id), ids as u64 * u64::from(bits_per_id));
    (0..hashes(bits_per_id)).map(move |k| {
        let hash = first.wrapping_add(step.wrapping_mul(k));
        start + ((u64::from(hash) * bits) >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_passes_and_few_others_do() {
        for bits in [1, 4, 10] {
            let pages = [(0, 1000), (1000, 1), (1001, 700)];
            let mut filter = Filter::new(bits, 1701);
            for (number, &page) in (1..).zip(&pages) {
                (0..page.1 as u32).for_each(|k| filter.add(page, k * 7919 * number));
            }
            for (number, &page) in (1..).zip(&pages) {
                assert!((0..page.1 as u32).all(|k| filter.may_hold(page, k * 7919 * number)));
            }
            let passed = (0..100_000).filter(|k| filter.may_hold(pages[0], 100_000_000 + k * 13)).count();
            let share = passed as f64 / 100_000.0;
            assert!((share - filter.false_share()).abs() < 0.03, "{bits}: {share}");
        }
    }
}

//! Interning: maps terms to ids 0, 1, 2 and so on.
//!
//! The hash table is optimized for short terms that are already present: a slot contains the whole term if it
//! has at most eight bytes, so a lookup reads one cache line. For a longer term the slot contains its hash,
//! and the term is compared with the buffer of all terms.

use crate::bytes::prefix_key;
use ahash::RandomState;

/// Assigns each distinct term the next id. All terms are concatenated in one buffer.
pub struct Interner {
    hasher: RandomState,
    /// Randomizes the buckets of short terms, as the hasher does for long ones.
    seed: u64,
    /// Open addressing; the number of slots is a power of two, at most half of them are used.
    slots: Vec<TermSlot>,
    /// All terms, concatenated in order of their ids, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// The terms of an interner in byte order.
pub struct SortedTerms<'i> {
    interner: &'i Interner,
    ids: Vec<u32>,
    /// By id, the number of smaller terms.
    pub(super) rank_of: Vec<u32>,
}

impl SortedTerms<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ids.iter().map(|&id| self.interner.term(id))
    }
}

/// A slot of the hash table; empty if `len` is 0.
#[derive(Clone, Copy)]
struct TermSlot {
    /// The term itself ([`short_key`]), or its hash if it has more than eight bytes.
    key: u64,
    /// Bytes of the term.
    len: u32,
    id: u32,
}

const EMPTY_SLOT: TermSlot = TermSlot { key: 0, len: 0, id: 0 };

/// Number of slots of a new table.
const SLOTS_MIN: usize = 1 << 12;

/// Number of slots that are retained between batches: enough for an ordinary batch.
const SLOTS_RETAINED: usize = 1 << 18;

impl Interner {
    /// An interner without terms.
    pub fn new() -> Interner {
        let hasher = RandomState::new();
        let seed = hasher.hash_one(0u64);
        Interner { hasher, seed, slots: vec![EMPTY_SLOT; SLOTS_MIN], bytes: Vec::new(), ends: Vec::new() }
    }

    /// The id of `term`, a new one if the term is new. Terms have 1 to 255 bytes.
    #[inline]
    pub(super) fn intern(&mut self, term: &[u8]) -> u32 {
        let len = term.len() as u32;
        let key = if len <= 8 { short_key(term) } else { self.hasher.hash_one(term) };
        let mask = self.slots.len() - 1;
        let mut at = self.bucket(key, len) & mask;
        loop {
            let slot = self.slots[at];
            if slot.len == 0 {
                return self.insert(at, key, term);
            }
            if slot.key == key && slot.len == len && (len <= 8 || self.term(slot.id) == term) {
                return slot.id;
            }
            at = (at + 1) & mask;
        }
    }

    /// The term with this id.
    pub(super) fn term(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.bytes[start..self.ends[id] as usize]
    }

    /// All terms in byte order.
    pub fn sorted_terms(&self) -> SortedTerms<'_> {
        let mut keys: Vec<(u64, u32)> =
            (0..self.ends.len() as u32).map(|id| (prefix_key(self.term(id)), id)).collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.term(a.1).cmp(self.term(b.1))));
        let ids: Vec<u32> = keys.into_iter().map(|(_, id)| id).collect();
        let mut rank_of = vec![0; ids.len()];
        for (rank, &id) in ids.iter().enumerate() {
            rank_of[id as usize] = rank as u32;
        }
        SortedTerms { interner: self, ids, rank_of }
    }

    /// Removes all terms; the memory of an ordinary batch is retained.
    pub fn clear(&mut self) {
        if self.slots.len() > SLOTS_RETAINED {
            self.slots = vec![EMPTY_SLOT; SLOTS_MIN];
            (self.bytes, self.ends) = (Vec::new(), Vec::new());
        }
        self.slots.fill(EMPTY_SLOT);
        self.bytes.clear();
        self.ends.clear();
    }

    /// The hash of a term, whose low bits are the number of its first slot.
    #[inline]
    fn bucket(&self, key: u64, len: u32) -> usize {
        let wide = u128::from(key ^ self.seed) * u128::from(0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(len));
        (wide as u64 ^ (wide >> 64) as u64) as usize
    }

    /// Adds a new term in the empty slot `at`; returns its id.
    #[cold]
    fn insert(&mut self, at: usize, key: u64, term: &[u8]) -> u32 {
        let id = self.ends.len() as u32;
        self.bytes.extend_from_slice(term);
        self.ends.push(self.bytes.len() as u32);
        self.slots[at] = TermSlot { key, len: term.len() as u32, id };
        if self.ends.len() * 2 > self.slots.len() {
            self.double_slots();
        }
        id
    }

    fn double_slots(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![EMPTY_SLOT; old.len() * 2];
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.len > 0) {
            let mut at = self.bucket(slot.key, slot.len) & mask;
            while self.slots[at].len > 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

/// An integer for a term of 1 to 8 bytes, distinct for distinct terms of the same length.
#[inline]
fn short_key(term: &[u8]) -> u64 {
    let len = term.len();
    if len >= 4 {
        let low = u32::from_le_bytes([term[0], term[1], term[2], term[3]]);
        let high = u32::from_le_bytes([term[len - 4], term[len - 3], term[len - 2], term[len - 1]]);
        u64::from(low) | u64::from(high) << 32
    } else {
        u64::from(term[0]) | u64::from(term[len / 2]) << 8 | u64::from(term[len - 1]) << 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn equal_terms_have_equal_ids(terms in prop::collection::vec("[ab\u{0}]{1,5}|[a-c]{6,14}", 0..400)) {
            let mut interner = Interner::new();
            for round in 0..2 {
                let mut model = HashMap::new();
                for term in &terms {
                    let next = model.len() as u32;
                    let id = *model.entry(term.clone()).or_insert(next);
                    prop_assert_eq!(interner.intern(term.as_bytes()), id, "round {}", round);
                    prop_assert_eq!(interner.term(id), term.as_bytes());
                }
                let sorted: Vec<_> = interner.sorted_terms().iter().map(<[u8]>::to_vec).collect();
                prop_assert_eq!(sorted.len(), model.len());
                prop_assert!(sorted.is_sorted_by(|a, b| a < b));
                interner.clear();
            }
        }
    }

    #[test]
    fn the_table_grows() {
        let mut interner = Interner::new();
        for round in 0..2 {
            for i in 0..20_000u32 {
                assert_eq!(interner.intern(format!("t{i}").as_bytes()), i, "round {round}");
            }
        }
    }
}

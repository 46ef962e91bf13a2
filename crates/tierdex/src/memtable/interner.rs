//! Terms to small numbers.

use super::run::sort_prefix;
use ahash::RandomState;
use hashbrown::HashTable;

/// Gives each distinct term the next number. Terms stand one behind another in one buffer.
pub(super) struct Interner {
    hasher: RandomState,
    table: HashTable<u32>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Interner {
    pub(super) fn new() -> Interner {
        Interner {
            hasher: RandomState::new(),
            table: HashTable::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Number of `term`, given now if it is new.
    #[inline]
    pub(super) fn intern(&mut self, term: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(term);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(&id) = self.table.find(hash, |&id| slice(bytes, ends, id) == term) {
            return id;
        }
        self.insert(hash, term)
    }

    #[cold]
    fn insert(&mut self, hash: u64, term: &[u8]) -> u32 {
        let id = self.ends.len() as u32;
        self.bytes.extend_from_slice(term);
        self.ends.push(self.bytes.len() as u32);
        let (hasher, bytes, ends) = (&self.hasher, &self.bytes, &self.ends);
        self.table.insert_unique(hash, id, |&id| hasher.hash_one(slice(bytes, ends, id)));
        id
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn term(&self, id: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, id)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + 4 * self.ends.capacity() + 5 * self.table.capacity()
    }

    /// Numbers of all terms in the order of their bytes.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut keys: Vec<(u64, u32)> =
            (0..self.ends.len() as u32).map(|id| (sort_prefix(self.term(id)), id)).collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.term(a.1).cmp(self.term(b.1))));
        keys.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

#[inline]
fn slice<'a>(bytes: &'a [u8], ends: &[u32], id: u32) -> &'a [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] as usize };
    &bytes[start..ends[id] as usize]
}

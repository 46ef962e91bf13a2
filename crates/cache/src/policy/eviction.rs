//! The interface of an eviction policy.
//!
//! An entry has a number below the capacity of the policy, the hash of its key and a size in cells. The
//! policy knows neither the bytes nor the pins of entries: the caller of [`Policy::victim`] tells it which
//! entries can be evicted. A policy allocates memory only on creation. A hit takes constant time.

/// An eviction policy: decides which entry leaves the cache next. Entries are numbered from 0.
pub trait Policy: Send {
    /// Adds an entry. `hash` is that of its key, `cells` its size.
    fn insert(&mut self, entry: u32, hash: u64, cells: u32);

    /// Records that an entry was used.
    fn touch(&mut self, entry: u32);

    /// Removes an entry: it is evicted, or could not be read.
    fn remove(&mut self, entry: u32);

    /// The entry to evict next among those for which `is_evictable` is true; `None` when there is no such
    /// entry.
    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32>;

    /// Bytes of memory that the policy uses.
    fn bytes(&self) -> usize;
}

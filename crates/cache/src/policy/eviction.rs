//! The interface of an eviction policy.
//!
//! A policy knows entries by number (fewer than it was made for), by the hash of their key and by their size
//! in cells. It knows neither bytes nor pins: the caller of [`Policy::victim`] says which entries can be
//! evicted. It allocates when it is made, and never again. A hit takes constant time.

/// The interface of an eviction policy. Entries are numbers from 0 on.
pub trait Policy: Send {
    /// Adds an entry. `hash` is that of its key, `cells` its size.
    fn insert(&mut self, entry: u32, hash: u64, cells: u32);

    /// An entry was used.
    fn touch(&mut self, entry: u32);

    /// Removes an entry: it is evicted, or could not be read.
    fn remove(&mut self, entry: u32);

    /// The entry to evict next among those for which `is_evictable` is true; `None` when there is no such
    /// entry.
    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32>;

    /// Bytes of memory.
    fn bytes(&self) -> usize;
}

//! The interface of an eviction policy.
//!
//! An entry has a number below the capacity of the policy, its key as a number, and a size in cells. The
//! policy knows neither the bytes nor the pins of entries: the caller of [`Policy::victim`] tells it which
//! entries can be evicted. A policy allocates memory only on creation. A hit takes constant time.

/// Number of classes into which [`Policy::visit`] divides entries.
pub const HEAT_CLASSES: usize = 4;

/// An eviction policy: decides which entry leaves the cache next. Entries are numbered from 0.
pub trait Policy: Send {
    /// Adds an entry. `key` is a number of the cached object, such as a page; `cells` is its size.
    fn insert(&mut self, entry: u32, key: u64, cells: u32);

    /// Adds an entry that was of this class ([`Policy::visit`]) in a cache before. Entries are added in the
    /// order of their classes.
    fn restore(&mut self, entry: u32, key: u64, cells: u32, class: usize);

    /// Records that an entry was used.
    fn touch(&mut self, entry: u32);

    /// Removes an entry: it is evicted, or could not be read.
    fn remove(&mut self, entry: u32);

    /// The entry to evict next among those for which `is_evictable` is true; `None` when there is no such
    /// entry.
    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32>;

    /// Calls `visit` with each entry and its class: 0 for those that the policy keeps longest, up to
    /// [`HEAT_CLASSES`] - 1 for those that it evicts first.
    fn visit(&self, visit: &mut dyn FnMut(u32, usize));

    /// Bytes of memory that the policy uses.
    fn bytes(&self) -> usize;
}

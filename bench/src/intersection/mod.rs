//! You have sorted lists that stay on disk, in pages of 4 KiB, with the first id of each page in memory. You get the ids
//! that stand in all of them, and how much was read for it.
//!
//! The algorithms are those of Wang, Lin, Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs for Parallel
//! I/O Skipping", section III, one file each, and one of ours:
//!
//! | name | what it reads | by |
//! |---|---|---|
//! | `bl` | every list whole (III-A) | a thread a list; then many intersect in memory |
//! | `sl` | pages whose range covers a candidate of the shortest list (III-B) | many threads, a page at a time |
//! | `zz` | pages that hold a successor of the eliminator (III-C) | the same |
//! | `bf` | as `sl`, if the page's Bloom filter lets the candidate pass (III-D) | the same |
//! | `direct` | as `sl` or `bf`, neighbours together when that is cheaper | one thread with many reads in flight |
//!
//! Work is cut for threads as section III-E has it (`partition`). A [`Crew`] is the threads; a [`ListsWriter`] writes the
//! file of lists and [`PagedLists`] opens it. Pages that a list keeps in memory ([`PagedList::keep`]) cost no read. A page is
//! checked when it enters memory, and its ids when they are decoded: damage is an error.
//!
//! It knows no terms, queries or scores.

mod algorithm;
pub mod bf;
pub mod bl;
mod cost;
mod crew;
pub mod direct;
mod fetch;
mod filter;
mod list;
mod page;
mod partition;
mod reads;
pub mod sl;
mod walker;
mod write;
pub mod zz;

pub use algorithm::Algorithm;
pub use bl::Bl;
pub use cost::CostModel;
pub use crew::Crew;
pub use direct::{Direct, DirectOptions};
pub use list::{PagedList, PagedLists};
pub use page::{ID_MAX, PAGE_IDS_MAX};
pub use reads::{Found, Reads};
pub use write::{ListsOptions, ListsWriter};

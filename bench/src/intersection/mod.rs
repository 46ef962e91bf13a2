//! Intersection of sorted lists on disk, in pages of 4 KiB, with the first id of each page in memory. The
//! result is the ids that are in all lists, and the number of reads.
//!
//! Four algorithms are those of Wang, Lin, Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs
//! for Parallel I/O Skipping", section III; `direct` is this project's own. One file per algorithm, but `bf`
//! is in `sl`:
//!
//! | name | pages read | execution |
//! |---|---|---|
//! | `bl` | all pages (III-A) | one thread per list reads; all threads intersect in memory |
//! | `sl` | pages whose range covers a candidate (III-B) | many threads, one page at a time |
//! | `zz` | pages with a successor of the eliminator (III-C) | the same |
//! | `bf` | as `sl`, if the page's Bloom filter passes the candidate (III-D) | the same |
//! | `direct` | as `sl` or `bf`; near pages in one read if cheaper | one thread, many reads in flight |
//!
//! `partition` divides the work among threads as in section III-E. [`ReaderThreads`] are the threads; a
//! [`PagedListsWriter`] writes a file of lists and opens it. Pages that a list keeps in memory
//! ([`PagedList::keep_pages`]) cost no read. The checksum of a page is verified when it is read, and the
//! order of its ids when they are decoded: damage is an error.
//!
//! The module knows no terms, queries or scores.

mod algorithm;
mod bl;
mod cost;
mod direct;
mod filter;
mod list;
mod page;
mod page_cursor;
mod page_reader;
mod partition;
mod reader_threads;
mod reads;
mod sl;
mod write;
mod zz;

pub use algorithm::{Algorithm, Intersector};
pub use bl::Bl;
pub use cost::CostModel;
pub use direct::Direct;
pub use list::PagedList;
pub use page::ID_MAX;
pub use reader_threads::ReaderThreads;
pub use reads::{IntersectionResult, ReadStats};
pub use write::PagedListsWriter;

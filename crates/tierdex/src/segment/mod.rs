//! A segment: immutable files that hold some documents and their postings.
//!
//! `write/` makes the files and `read/` reads them, under the same names; [`layout`] holds what both share.
//! docs/format draws every structure to scale.

pub mod layout;
pub mod read;
pub mod write;

pub use layout::{FieldStats, FileKind, SegmentMeta};

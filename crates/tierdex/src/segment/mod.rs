//! A segment: immutable files with some documents of the index and their postings.
//!
//! `write/` writes the files and `read/` reads them, in modules of the same names; [`layout`] has the
//! definitions that both use. docs/format describes every structure. Documents are deleted by files of their
//! own ([`deletes`], [`deleted_statistics`]).

pub mod deleted_statistics;
pub mod deletes;
pub mod layout;
pub mod manifest_segment;
pub mod read;
pub mod write;

pub use deletes::{DeletedDocuments, SegmentDeletes};
pub use layout::{FieldStats, FileKind, FileMeta, KeySeed, ListSizes, SegmentMeta};
pub use manifest_segment::{DeletesMeta, ManifestSegment, NumberedFile};

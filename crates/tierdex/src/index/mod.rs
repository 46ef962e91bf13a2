//! An index on a disk: a writer, which commits; readers, each of one whole commit; and searchers, which
//! evaluate queries over all segments of a commit.
//!
//! Commit, step by step (docs/format/manifest.md):
//! 1. write the files of new segments, each sealed by its footer, and sync each;
//! 2. sync the directory;
//! 3. write the manifest of the next generation under a temporary name, and sync it;
//! 4. rename it; sync the directory;
//! 5. report the commit to the caller; remove files that the newest manifest does not name.
//!
//! A reader opens the manifest with the highest generation. If it is damaged, opening fails: an older commit
//! is never read in its place. After a crash there may be temporary files and files that no manifest names;
//! the next writer syncs the directory, which makes the newest manifest durable, and removes them. A writer
//! whose commit failed in steps 3 or 4 removes nothing: only the next writer, which reads the directory
//! again, can tell which manifest is the newest.

mod batch;
mod builder;
mod check;
mod column_values;
mod copy;
mod deleted;
mod divided;
mod encode;
mod explain;
mod external_id;
mod hit_ids;
mod import;
mod ingest;
mod input_files;
mod kept_prefixes;
mod manifest;
mod merge;
mod policy;
mod reader;
mod recovery;
mod replaced;
mod search_result;
mod searcher;
mod segment_terms;
mod stop;
mod stored_document;
mod writer;

pub use crate::eval::{EvaluationLog, ListUse, StrategyKind, Tuning};
pub use batch::{BatchBuilder, DocumentRef, SkippedTokens};
pub use check::{CheckReport, check, check_on};
pub use column_values::ColumnSizes;
pub use copy::{copy_index, copy_on};
pub use explain::{Explanation, FileUse, SegmentExplanation};
pub use external_id::{check_id, run_id};
pub(crate) use hit_ids::{IDS_READ_BYTES, result_ids_bytes};
pub use import::{EncodedPostings, ListBuilder, ListEncoder, ListsBuilder, PIECE_POSTINGS};
pub use ingest::Document;
pub use input_files::{InputFile, InputFilePosition, InputFilesReader, InputFilesWriter};
pub use manifest::Manifest;
pub use reader::Index;
pub use recovery::OpenMode;
pub(crate) use search_result::PartialResult;
pub use search_result::{HitIds, SearchHit, SearchOptions, SearchResult};
pub use searcher::Searcher;
pub(crate) use searcher::{KEPT_PREFIXES_BYTES, PlannedQuery};
pub(crate) use segment_terms::SegmentTerms;
pub use stop::StopSignal;
pub use stored_document::{PreviewBytes, StoredDocument};
pub use writer::{IndexWriter, Merge, WriterOptions};

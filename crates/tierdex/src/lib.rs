//! Full-text search for indexes larger than memory.
//!
//! tierdex answers ranked queries (BM25) over an index on a solid-state disk within a memory budget in bytes
//! that the application sets. Postings are compressed with SIMD codecs; block-max scores determine which
//! blocks a query needs; the engine reads these with direct I/O into a cache of its own, while it evaluates
//! other queries.
//!
//! | to | use |
//! |---|---|
//! | add documents | [`IndexWriter`], [`WriterOptions`], [`schema`], [`Document`], [`Merge`] |
//! | stop a writer | [`StopSignal`] |
//! | read changed files only | [`input_files`] |
//! | search | [`Engine`], [`EngineOptions`], [`Query`], [`SearchRequest`], [`Hits`] |
//! | search without waiting | [`Ticket`], [`CancelHandle`], [`Priority`] |
//! | search indexes as one | [`Index::open_all`]; by several processes [`Statistics`], [`merge_hits`] |
//! | search indexes one by one | [`Engine::for_indexes`], [`AttachedIndex`] |
//! | show hits | [`Snapshot::highlighter`], [`Snapshot::snippet`], [`Snapshot::stored`] |
//! | look at a commit | [`Index`], [`Snapshot`], [`Snapshot::terms`], [`check`], [`copy_index`] |
//! | complete and correct what a user types | [`Snapshot::suggest`] |
//! | see how a query is evaluated | [`Snapshot::explain`], [`explain`] |
//! | analyse text as the index does | [`analysis`] |
//! | forecast the speed of caches of several sizes | [`advise`] |
//! | exchange indexes with other engines | [`ciff`] |
//! | handle errors | [`Error`], [`Result`] |
//!
//! # Index and search
//!
//! ```
//! use tierdex::{Engine, EngineOptions, IndexWriter, Merge, Query, Schema, SearchRequest, WriterOptions};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let dir = temporary.path().join("my-index");
//!
//! let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
//! writer.add("d1", [("title", "Solid-state disk"), ("text", "A disk without moving parts.")])?;
//! writer.add("d2", [("title", "Hard disk"), ("text", "A disk with platters that turn.")])?;
//! writer.commit(Merge::Keep)?;
//!
//! let engine = Engine::open(&dir, &EngineOptions::new())?;
//! let snapshot = engine.snapshot();
//! let query = Query::parse("disk AND (platters OR tape)", snapshot.schema())?;
//! let hits = engine.search(SearchRequest::new(query))?;
//! for (hit, id) in hits.hits.iter().zip(hits.ids()?) {
//!     let stored = snapshot.stored(hit.document)?.unwrap_or_default();
//!     println!("{:.3} {id} {}", hit.score, stored.title());
//! }
//! # assert_eq!(hits.ids()?, ["d2"]);
//! # Ok::<(), tierdex::Error>(())
//! ```
//!
//! # An index larger than memory
//!
//! [`EngineOptions::dram`] bounds the memory of the engine. A budget that is too small is an error at the
//! start; its message contains the number of bytes needed. [`Engine::memory`] reports the memory by part.
//!
//! ```
//! use tierdex::{Document, Engine, EngineOptions, IndexWriter, Merge, Query, SearchRequest, TotalHits};
//! # use tierdex::{Schema, WriterOptions};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let dir = temporary.path().join("my-index");
//!
//! // Any iterator: lines of a file, rows of a database.
//! let documents = (0..10_000).map(|number| {
//!     Document::new(number).with("text", format!("entry {number} of device {}", number % 7))
//! });
//! let options = WriterOptions { memory: 64 << 20, ..WriterOptions::default() };
//! let mut writer = IndexWriter::create(&dir, Schema::default(), options)?;
//! writer.add_all(documents, 2)?;
//! writer.commit(Merge::One)?;
//!
//! let engine = Engine::open(&dir, &EngineOptions::new().dram(30_000_000).threads(2))?;
//! println!("{}", engine.memory());
//! let query = Query::parse("device AND 3", engine.snapshot().schema())?;
//! let hits = engine.search(SearchRequest::new(query).k(5).count(true))?;
//! assert_eq!(hits.hits.len(), 5);
//! assert_eq!(hits.total, TotalHits::Exact(1429));
//! # Ok::<(), tierdex::Error>(())
//! ```
//!
//! # A batch of queries
//!
//! [`Engine::run_ordered`] evaluates several queries at the same time and returns results in order. While
//! one waits for the disk, others are evaluated.
//!
//! ```
//! use tierdex::{Engine, EngineOptions, Error, Query, SearchRequest};
//! # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let dir = temporary.path().join("my-index");
//! # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
//! # writer.add("d1", [("text", "one")])?;
//! # writer.add("d2", [("text", "two")])?;
//! # writer.commit(Merge::Keep)?;
//!
//! let engine = Engine::open(&dir, &EngineOptions::new())?;
//! let schema = engine.snapshot().schema().clone();
//! let mut queries = ["one", "two", "one OR two"].into_iter();
//! engine.run_ordered(
//!     || queries.next().map(|text| Ok(SearchRequest::new(Query::parse(text, &schema)?))).transpose(),
//!     |number, result| {
//!         println!("query {number}: {:?}", result?.ids()?);
//!         Ok::<(), Error>(())
//!     },
//! )?;
//! # Ok::<(), tierdex::Error>(())
//! ```
//!
//! # Limits
//!
//! Linux on a 64-bit processor. One writer at a time. Modules that this page does not list are internal and
//! change without notice.
#![forbid(unsafe_code)]

// ARCHITECTURE.md says which of these modules may use which.
pub mod advise;
mod bytes;
pub mod ciff;
mod cursor;
mod engine;
mod error;
mod eval;
mod index;
pub mod limits;
mod memtable;
mod query;
mod rank;
pub mod schema;
mod segment;
mod text;
mod transform;

pub use engine::{
    AttachedIndex, CancelHandle, Engine, EngineMetrics, EngineOptions, EngineSettings, Highlighter, Hits,
    Latencies, MemoryReport, MemoryUse, MergedHit, MergedHits, MetaTier, Preview, PreviewOptions, Priority,
    RequestCost, RequestMetrics, SearchRequest, ShardHits, Snapshot, Ticket, TotalHits, merge_hits,
};
pub use error::{Error, ErrorKind, Result, StorageError};
pub use index::{
    CheckReport, Document, DocumentRef, Index, IndexWriter, Merge, OpenMode, SearchHit, SearchOptions,
    SkippedTokens, StopSignal, StoredDocument, WriterOptions, check, check_id, copy_index, run_id,
};
pub use query::{Query, Suggestions, TermStats};
pub use rank::{Bm25, Scorer, Statistics};
pub use schema::Schema;
#[doc(inline)]
pub use tierdex_cache::{CacheStats, PolicyKind, ReadCosts};
#[doc(inline)]
pub use tierdex_io::{ReadKind, RegionKind, Size};

/// Text analysis: the tokens of documents and queries, and snippets.
pub mod analysis {
    pub use crate::text::{
        ANALYSIS_VERSION, Analyzer, ENGLISH_STOP_WORDS, RunPart, Snippet, TermMatch, Token, snippet,
    };
}

/// What a commit consists of ([`Index::manifest`]).
pub mod commit {
    pub use crate::index::{ColumnSizes, Manifest};
    pub use crate::segment::{
        DeletesMeta, FieldStats, FileKind, FileMeta, KeySeed, ManifestSegment, NumberedFile, SegmentMeta,
    };
    pub use tierdex_io::{FORMAT_VERSION, FORMAT_VERSION_MIN};
}

/// What [`Snapshot::explain`] tells about the evaluation of a query.
pub mod explain {
    pub use crate::cursor::BlockCounts;
    pub use crate::index::{
        EvaluationLog, Explanation, FileUse, HitIds, ListUse, SearchResult, SegmentExplanation, StrategyKind,
    };
}

/// The files from which documents were read, so that a later run reads only those that have changed.
pub mod input_files {
    pub use crate::index::{InputFile, InputFilePosition, InputFilesReader, InputFilesWriter};
}

pub use tierdex_codec as codec;
pub use tierdex_io as io;

/// For the tests, benchmarks and fuzzers of the project: not a part of the interface, and changed without
/// notice. So are the methods and fields of public types that are hidden from this page, such as
/// `Engine::page_cache`, `EngineOptions::policy` and `Index::segments`.
#[doc(hidden)]
pub mod internal {
    pub mod bytes {
        pub use crate::bytes::{ByteReader, push_bytes, push_varint};
    }
    pub mod cache {
        pub use tierdex_cache::{CacheStats, GhostCaches, GhostCounts, PolicyKind};
    }
    pub mod cursor {
        pub use crate::cursor::{NO_DOCUMENT, PostingsCursor, verify_uncompressed};
    }
    pub mod engine {
        pub use crate::engine::{MetaTier, MetadataLocation, ResidentSizes, load_metadata};
        pub mod part_sizes {
            pub use crate::engine::part_sizes::{
                PROGRAM_BYTES, READ_CELL_BYTES, READ_STATE_BYTES, READ_THREAD_BYTES, RETAINED_BYTES,
                SEARCH_THREAD_BYTES, STACK_BYTES, check_hits, check_query_memory, hits_bytes,
                ordinary_lists_bytes, ordinary_plan_bytes, output_bytes, result_bytes,
            };
        }
    }
    pub mod eval {
        pub use crate::eval::SearchPlan;
    }
    pub mod index {
        pub use crate::index::{
            BatchBuilder, EncodedPostings, ListEncoder, ListsBuilder, PIECE_POSTINGS, PreviewBytes, Searcher,
            Tuning, check_on, copy_on,
        };
    }
    pub mod query {
        pub use crate::query::{FileRange, QueryList};
        pub mod fuzzy {
            pub use crate::query::fuzzy::Levenshtein;
        }
    }
    pub mod segment {
        pub use crate::segment::ListSizes;
        pub mod deletes {
            pub use crate::segment::SegmentDeletes;
            pub use crate::segment::deleted_statistics::{
                DeletedStatistics, DeletedStatisticsBuilder, FieldDeletes, TermDeletes,
            };
            pub use crate::segment::read::open_deletes;
        }
        pub mod layout {
            pub use crate::segment::layout::{
                COLUMN_ENTRY_BYTES, COLUMN_TAIL_LEN, ColumnEntry, ColumnTail, Presence, file_name, identity,
                parse_file_name, push_tail,
            };
        }
        pub mod read {
            pub use crate::segment::read::{
                Automaton, BlockSource, FILES, FieldReader, Files, ListPart, OpenSegment, RecordPart,
                SkipRecord, TermInfo,
            };
        }
    }
    pub mod transform {
        pub use crate::transform::norm;
    }
}

//! All limits of the engine. Relations between them are asserted at compile time.

/// Longest term in bytes of UTF-8; longer tokens are dropped by analysis.
pub const TERM_BYTES_MAX: usize = 255;

/// Documents in one index. Document numbers are `u32`; the largest value is reserved for "no document".
pub const DOCUMENTS_MAX: u64 = u32::MAX as u64 - 1;

/// Indexed tokens of one field of one document; later tokens are not indexed.
pub const FIELD_TOKENS_MAX: u32 = 1 << 26;

/// Bytes of a document's external id.
pub const ID_BYTES_MAX: usize = 4096;

/// Text fields in a schema.
pub const FIELDS_MAX: usize = 64;

/// Stop words of one field.
pub const STOP_WORDS_MAX: usize = 100_000;

/// Bytes of a field's name.
pub const FIELD_NAME_BYTES_MAX: usize = 64;

/// Postings in a block, the unit of compression and skipping.
pub const BLOCK: usize = tierdex_codec::BLOCK;

/// Blocks under one entry of the second skip level.
pub const SUPERBLOCK: usize = 32;

/// Bytes of a page of the term dictionary, equal to the page that one checksum covers.
pub const TERM_PAGE: usize = tierdex_io::PAGE as usize;

/// Terms between two restart points in a page of the term dictionary.
pub const TERM_RESTART_INTERVAL: usize = 16;

/// External ids between two restart points in a page of ids.
pub const ID_RESTART_INTERVAL: usize = 16;

/// Entries in a page of the index of external ids.
pub const ID_INDEX_PAGE_ENTRIES: usize = tierdex_io::PAGE as usize / 8;

/// Uncompressed bytes after which a block of stored documents is closed.
pub const STORED_BLOCK_BYTES: usize = 16 << 10;

/// Largest text of one document in bytes, title included.
pub const DOCUMENT_BYTES_MAX: usize = 512 << 20;

/// Bytes of a title shown with a hit. With [`PREVIEW_TEXT_BYTES`], the memory to show a hit does not depend
/// on the size of its document.
pub const PREVIEW_TITLE_BYTES: usize = 16 << 10;

/// Bytes of a text, from its start, in which a snippet is searched.
pub const PREVIEW_TEXT_BYTES: usize = 256 << 10;

/// Bytes of a query string.
pub const QUERY_BYTES_MAX: usize = 64 << 10;

/// Words and phrases in one query.
pub const QUERY_CLAUSES_MAX: usize = 1024;

/// Terms in one query after analysis, including those of phrases.
pub const QUERY_TERMS_MAX: usize = 1024;

/// Terms in one phrase.
pub const PHRASE_TERMS_MAX: usize = 64;

/// Depth of nested parentheses in a query.
pub const QUERY_DEPTH_MAX: usize = 64;

/// Warnings that lenient parsing returns.
pub const QUERY_WARNINGS_MAX: usize = 20;

/// Largest boost, and largest product of nested boosts; keeps scores finite.
pub const BOOST_MAX: f64 = 1e9;

/// Largest edit distance of a fuzzy word.
pub const FUZZY_DISTANCE_MAX: u8 = 2;

/// Bytes of a fuzzy word: its automaton takes 1.8 MB for 64 single-byte characters, and grows with the
/// square of the number of distinct multi-byte characters.
pub const FUZZY_BYTES_MAX: usize = 64;

/// Terms that a fuzzy word expands to.
pub const FUZZY_EXPANSIONS_MAX: usize = 50;

/// Terms that all prefixes of a query expand to, in total.
pub const PREFIX_EXPANSIONS_MAX: usize = 65_536;

/// Terms that the last character of a phrase stands for, if it is a run of text without blanks of its own.
/// With more terms its position does not count.
pub const PHRASE_EXPANSIONS_MAX: usize = 1024;

/// Prefixes and fuzzy words in one query.
pub const QUERY_EXPANDED_MAX: usize = 64;

/// Segments that one merge reads at the same time; more are merged in passes.
pub const MERGE_FAN_IN: usize = 64;

/// Segments that a commit leaves unmerged; a reader opens seven files for each, with one field.
pub const SEGMENTS_KEPT_MAX: usize = 64;

/// Segments in one manifest.
pub const SEGMENTS_MAX: usize = 1 << 20;

/// Largest manifest in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Overhead of a document in a batch, in bytes, beside its text and id.
pub const DOCUMENT_COST: usize = 64;

/// Default k1 of BM25. Stored block max shares are computed for it.
pub const DEFAULT_K1: f64 = 1.2;

/// Default b of BM25. Stored block max shares are computed for it.
pub const DEFAULT_B: f64 = 0.75;

/// Raw input bytes that one worker analyses at a time.
pub const BATCH_BYTES: usize = 4 << 20;

/// Smallest memory budget that an index writer accepts, in bytes.
pub const MEMORY_MIN: usize = 16 << 20;

const _: () = assert!(TERM_BYTES_MAX <= u8::MAX as usize);
const _: () = assert!(TERM_PAGE >= 8 * (TERM_BYTES_MAX + 32));
const _: () = assert!(DOCUMENT_BYTES_MAX + STORED_BLOCK_BYTES + 1024 <= u32::MAX as usize);
const _: () = assert!(BLOCK * 5 + 8 <= u16::MAX as usize);

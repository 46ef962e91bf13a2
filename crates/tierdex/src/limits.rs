//! The limits of the engine, with assertions on how they depend on each other.

/// Maximum bytes of a term; analysis drops longer tokens.
pub const TERM_BYTES_MAX: usize = 255;

/// Maximum number of documents of an index. Documents are `u32`; the largest value stands for "no document".
pub const DOCUMENTS_MAX: u64 = u32::MAX as u64 - 1;

/// Maximum number of positions of a document in a field, with the gaps between its values; tokens behind them
/// are not indexed.
pub const FIELD_TOKENS_MAX: u32 = 1 << 26;

/// Number of positions between the values of a document in a field. A phrase with its slop is shorter, so
/// that it never matches across values. The index of 60,000 documents of 170 words with a title is larger by
/// 0.9% with 128, 1.0% with 256 and 1.5% with 1,024.
pub const POSITION_GAP: u32 = 128;

/// Maximum bytes of an external id.
pub const ID_BYTES_MAX: usize = 4096;

/// Maximum bytes of the path of a file from which documents are read, as in Linux.
pub const INPUT_PATH_BYTES_MAX: usize = 4096;

/// Maximum bytes of the settings by which files are read.
pub const INPUT_SETTINGS_BYTES_MAX: usize = 1 << 20;

/// Maximum number of fields of a schema.
pub const FIELDS_MAX: usize = 64;

/// Maximum number of columns of a schema.
pub const COLUMNS_MAX: usize = 256;

/// Maximum number of values of a document in a column that is multi-valued.
pub const COLUMN_VALUES_MAX: usize = 255;

/// Number of documents in a block of a column, equal to that of a window of the evaluation: the directory of
/// a column tells which windows cannot match.
pub const COLUMN_BLOCK_DOCS: usize = 4096;

/// Maximum number of stop words of a field.
pub const STOP_WORDS_MAX: usize = 100_000;

/// Maximum number of rules for synonyms of a field.
pub const SYNONYMS_MAX: usize = 1 << 20;

/// Maximum bytes of the rules for synonyms of a field.
pub const SYNONYM_BYTES_MAX: usize = 16 << 20;

/// Maximum number of words of an entry of a rule for synonyms.
pub const SYNONYM_WORDS_MAX: usize = 16;

/// Maximum number of synonyms of the same words.
pub const SYNONYMS_OF_WORDS_MAX: usize = 256;

/// Maximum bytes of an entry of a rule for synonyms.
pub const SYNONYM_ENTRY_BYTES_MAX: usize = SYNONYM_WORDS_MAX * (TERM_BYTES_MAX + 1);

/// Maximum number of synonyms of all words of a field together. Each takes 16 bytes of memory.
pub const SYNONYMS_IN_ALL_MAX: usize = 1 << 22;

/// Maximum number of variants of a phrase with synonyms.
pub const PHRASE_VARIANTS_MAX: usize = 64;

/// Maximum bytes of the name of a field.
pub const FIELD_NAME_BYTES_MAX: usize = 64;

/// Number of postings in a block, the unit of compression and of skipping.
pub const BLOCK: usize = tierdex_codec::BLOCK;

/// Number of blocks in a superblock. A skip record has one entry for each superblock.
pub const SUPERBLOCK: usize = 32;

/// Bytes of a page of the term dictionary, equal to the page that one checksum covers.
pub const TERM_PAGE: usize = tierdex_io::PAGE as usize;

/// Number of terms from one restart point to the next, in a page of the term dictionary.
pub const TERM_RESTART_INTERVAL: usize = 16;

/// Number of external ids from one restart point to the next, in a page of ids.
pub const ID_RESTART_INTERVAL: usize = 16;

/// Number of entries in a page of the index of external ids.
pub const ID_INDEX_PAGE_ENTRIES: usize = tierdex_io::PAGE as usize / 8;

/// Bytes of stored values after which a block of documents is compressed.
pub const STORED_BLOCK_BYTES: usize = 16 << 10;

/// Maximum bytes of a document, all values together.
pub const DOCUMENT_BYTES_MAX: usize = 512 << 20;

/// Maximum bytes of the title in a preview of a hit. With [`PREVIEW_TEXT_BYTES`] it bounds the memory of a
/// preview.
pub const PREVIEW_TITLE_BYTES: usize = 16 << 10;

/// Maximum bytes of the text in a preview of a hit, in which a snippet is searched.
pub const PREVIEW_TEXT_BYTES: usize = 256 << 10;

/// Maximum bytes of the text of a query.
pub const QUERY_BYTES_MAX: usize = 64 << 10;

/// Maximum number of words and phrases of a query.
pub const QUERY_CLAUSES_MAX: usize = 1024;

/// Bytes of memory that each value of a member but the first counts as, in addition to its text.
pub const VALUE_COST: usize = 32;

/// Maximum number of members of the documents of a schema.
pub const MEMBERS_MAX: usize = 256;

/// Maximum bytes of the name of a member.
pub const MEMBER_NAME_BYTES_MAX: usize = 255;

/// Maximum number of terms of a query after analysis, with those of phrases.
pub const QUERY_TERMS_MAX: usize = 1024;

/// Maximum number of terms of a phrase.
pub const PHRASE_TERMS_MAX: usize = 64;

/// Maximum depth of nested parentheses in a query.
pub const QUERY_DEPTH_MAX: usize = 64;

/// Maximum number of warnings that lenient parsing of a query returns.
pub const QUERY_WARNINGS_MAX: usize = 20;

/// Largest boost, and largest product of nested boosts, so that scores are finite.
pub const BOOST_MAX: f64 = 1e9;

/// Largest edit distance of a fuzzy word.
pub const FUZZY_DISTANCE_MAX: u8 = 2;

/// Maximum bytes of a fuzzy word. The automaton that accepts similar words takes 1.8 MB for 64 ASCII
/// characters, and grows with the square of the number of distinct other characters.
pub const FUZZY_BYTES_MAX: usize = 64;

/// Maximum number of terms to which a fuzzy word expands.
pub const FUZZY_EXPANSIONS_MAX: usize = 50;

/// Maximum number of terms to which all prefixes of a query expand together.
pub const PREFIX_EXPANSIONS_MAX: usize = 65_536;

/// Maximum number of terms of a prefix of which a plan keeps where their short lists are. If there are more,
/// each evaluation walks the dictionary again.
pub const PREFIX_SHORT_LISTS_MAX: usize = 8192;

/// Maximum number of lists with blocks of a prefix whose dictionary entries a plan keeps, in each segment. If
/// there are more, each evaluation reads all lists.
pub const PREFIX_LONG_LISTS_MAX: usize = 1024;

/// Maximum number of terms to which the last character of a phrase expands, if it is a single character of
/// text without blanks. If there are more terms, documents match whatever the position of that character.
pub const PHRASE_EXPANSIONS_MAX: usize = 1024;

/// Maximum number of prefixes and fuzzy words of a query.
pub const QUERY_EXPANDED_MAX: usize = 64;

/// Maximum number of terms in the statistics of a query, with the candidates of its fuzzy words.
pub const STATISTICS_TERMS_MAX: usize = 1 << 18;

/// Maximum bytes of the statistics of a query.
pub const STATISTICS_BYTES_MAX: usize = 64 << 20;

/// Maximum number of segments that are merged at the same time; more are merged in several passes.
pub const MERGE_FAN_IN: usize = 64;

/// Maximum number of layers of statistics of the deleted documents of a segment.
pub const DELETES_LAYERS_MAX: usize = 4;

/// Maximum number of segments that a manifest may name when it is read.
pub const SEGMENTS_MAX: usize = 1 << 20;

/// Maximum bytes of a manifest.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Maximum bytes of a file of hot pages: those of a cache of a terabyte take less.
pub const HOT_PAGES_BYTES_MAX: u64 = 1 << 30;

/// Bytes of memory of a document in a batch, beside its text and its id, approximately.
pub const DOCUMENT_COST: usize = 64;

/// Default k1 of BM25, with which the max shares in skip records are computed.
pub const DEFAULT_K1: f64 = 1.2;

/// Default b of BM25, with which the max shares in skip records are computed.
pub const DEFAULT_B: f64 = 0.75;

/// Bytes of documents after which a batch is full; each value counts once for each field that indexes it.
pub const BATCH_BYTES: usize = 4 << 20;

/// Smallest memory budget that an index writer accepts, in bytes.
pub const MEMORY_MIN: usize = 16 << 20;

const _: () = assert!(TERM_BYTES_MAX <= u8::MAX as usize);
const _: () = assert!(TERM_PAGE >= 8 * (TERM_BYTES_MAX + 32));
const _: () = assert!(DOCUMENT_BYTES_MAX + STORED_BLOCK_BYTES + 1024 <= u32::MAX as usize);
const _: () = assert!(BLOCK * 5 + 8 <= u16::MAX as usize);

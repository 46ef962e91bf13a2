//! Tuning constants of evaluation, chosen by measurement. Those that tests make small are the fields of
//! [`Tuning`]; an evaluation reads them once.
//!
//! Figures are CPU times of a hundred to three hundred queries of a set over 414,229 documents of English
//! text, one thread, in memory, relative to the value chosen: frequent terms (h) are in more than 1% of the
//! documents, medium ones (m) in 200 documents to 1%.

/// Sizes from which on long lists are evaluated in another way. They do not change results. Tests make them
/// small, so that the lists of small indexes are long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Superblocks of a list whose blocks are put in impact order at a time, at least 1.
    pub superblocks_ordered: usize,
    /// Shortest skip record, in bytes, of which only the head and the entries that are needed are read from
    /// disk for a single term.
    pub head_record_bytes_min: u64,
    /// Longest skip record, in bytes, that is read from disk with its impacts.
    pub impact_record_bytes_max: u64,
}

impl Default for Tuning {
    /// 512 superblocks have 4 million postings; a record of 1 MB is that of about 8 million postings.
    fn default() -> Tuning {
        Tuning { superblocks_ordered: 512, head_record_bytes_min: 32 << 10, impact_record_bytes_max: 1 << 20 }
    }
}

/// Documents per window of sums, which fit in the L1 cache. 2048: 0.90 to
/// 1.36; 8192: 1.02 to 1.18 for two lists (but 0.82 for ten hits of a frequent and a medium one), 0.87 to
/// 0.94 for three to five.
pub(super) const WINDOW_DOCUMENTS: usize = 4096;

/// Documents per range that is counted with bitsets. 2^14: 1.08 to 1.24; 2^15: 1.03 to 1.11; 2^17: 0.95 to
/// 1.02 of the time with 2^15, for four times its memory.
pub(super) const COUNTED_DOCUMENTS: usize = 1 << 16;

/// Up to this number, blocks of one term are evaluated one by one, the best first; more in rounds. Rounds
/// only: 1.08 to 1.18 for ten hits; no rounds: 1.07 for 1,024 hits of `+h -h`, and sorting all blocks of
/// longer lists.
pub(super) const ONE_BY_ONE_BLOCKS_MAX: usize = 48;

/// Cost of looking up one candidate, in postings added to a window. 4: up to 1.13; 8: up
/// to 1.06; 32 and 64: 0.98 to 1.04.
pub(super) const LOOK_UP_COST_POSTINGS: usize = 16;

/// Windows that are evaluated exhaustively after one with too many candidates to look up.
/// None: 1.17 for three to five terms; 3 and 15: 0.90 to 1.05.
pub(super) const EXHAUSTIVE_WINDOWS: usize = 7;

/// Up to this number of postings per window of documents, whole lists are merged: skipping windows would
/// take as long. 24: 1.15 (ten hits) and 1.65 (1,024) for two medium terms; 400: 1.19 and 0.93 for two
/// frequent ones. More for more lists: 0.93 to 1.2 for 12 to 40 medium terms.
pub(super) const MERGED_PER_WINDOW_MAX: u64 = 128;

/// Maximum total postings of merged lists, which are in memory with their scores.
pub(super) const MERGED_POSTINGS_MAX: u64 = 1 << 16;

/// SegmentLists are counted with bitsets if each contains more than 1 / `DENSE_DIVISOR` of the documents. 8: 1.03 for two
/// frequent required terms, 1.12 for two alternatives; 64: 1.08 and 1.03; 128: 1.3 for three to five terms.
pub(super) const DENSE_DIVISOR: u64 = 32;

/// With a filter, the scored term is evaluated in impact order if the rarest list is at least this many
/// times longer than the expected number of candidates: a conjunction looks up candidates in document order,
/// which is cheaper. 32: 1.13 for ten hits of `+h #h`; 512: the same as 128, but filters that most documents
/// pass are seldom in these sets.
pub(super) const IMPACT_ORDER_RATIO: f64 = 128.0;

/// Minimum blocks of the first round of impact-ordered evaluation if blocks are read from disk; rounds
/// double.
pub(super) const FIRST_ROUND_BLOCKS_MIN: usize = 4;

/// Largest k for which an initial threshold is computed: a larger k allows hardly any block to be pruned.
pub(super) const INITIAL_THRESHOLD_K_MAX: usize = 1 << 11;

/// All postings of the rarest alternative are scored first, for an initial threshold, if the lists of all
/// terms are at least this many times longer together.
pub(super) const PRESCORED_RATIO: u64 = 64;

/// Maximum postings of that alternative: they fit in the memory reserved for windows, none of which is in
/// use yet.
pub(super) const PRESCORED_POSTINGS_MAX: u64 = 1 << 13;

/// Maximum blocks of a list that are prefetched for the candidates of a block of the lead: 256 candidates
/// fall into most pages of 256 blocks.
pub(super) const LOOK_UP_BLOCKS_MAX: usize = 256;

/// Maximum blocks of a non-essential list per block of the essential lists for which blocks are prefetched
/// before the candidates are known.
pub(super) const NON_ESSENTIAL_BLOCKS_RATIO: usize = 16;

/// Maximum blocks of the lead of a conjunction that are prefetched at a time.
pub(super) const LEAD_BLOCKS_AHEAD_MAX: usize = 1 << 10;

/// Documents whose blocks are prefetched together, several windows.
pub(super) const PREFETCH_DOCUMENTS: u32 = 8 * WINDOW_DOCUMENTS as u32;

/// Number of terms of a phrase in whose lists candidates are looked up before positions are read, without
/// slop. Few documents that contain two terms contain them at the right distance, and only those are looked
/// up in the other lists.
pub(super) const PHRASE_TERMS_LOOKED_UP_FIRST: usize = 2;

/// If the constant parts of `k`, stored and in ranking, differ by more than this, bounds from stored shares
/// are so loose that decoding impacts pays.
pub(super) const LOOSE_BOUNDS_MIN: f64 = 0.05;

/// Maximum number of entries of skip data that are read together.
pub(super) const ENTRIES_READ_MAX: usize = 64;

/// Maximum number of list buffers retained for the next query.
pub(super) const LIST_BUFFERS_MAX: usize = 8;

/// Maximum sort keys retained for the next query.
pub(super) const SORT_KEYS_MAX: usize = 1 << 11;

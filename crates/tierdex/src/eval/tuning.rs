//! Tuning constants of evaluation, chosen by measurement. Those that tests make small are the fields of
//! [`Tuning`].
//!
//! A comment such as "2048: 0.90 to 1.36" gives CPU times with another value, relative to those with the
//! value chosen, so more than 1 is slower. Each set has a hundred to three hundred queries over 414,229
//! documents of English text, in memory, on one thread. In queries, h is a frequent term, in more than 1% of
//! the documents, and m a medium one, in 200 documents to 1%.

/// Sizes of lists from which on they are evaluated as long ones, with less memory or fewer reads. Results do
/// not depend on them. Tests make them small, so that the lists of small indexes count as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Number of superblocks whose blocks are sorted by max score at a time, at least 1.
    pub superblocks_ordered: usize,
    /// Minimum size, in bytes, of a skip record that a query of a single term reads in parts from disk: only
    /// the head and the entries that are needed.
    pub head_record_bytes_min: u64,
    /// Minimum number of superblocks, for each expected candidate, of a list whose record is read in parts.
    /// Frequent terms in 160M documents, top 1,024, one run: 1.14 times the queries a second with 8, not 2.
    pub head_superblocks_per_candidate: usize,
    /// Longest skip record, in bytes, that is read from disk with its impacts.
    pub impact_record_bytes_max: u64,
}

impl Default for Tuning {
    /// 512 superblocks have 4 million postings; a record of 1 MB is that of about 8 million postings.
    fn default() -> Tuning {
        Tuning {
            superblocks_ordered: 512,
            head_record_bytes_min: 32 << 10,
            head_superblocks_per_candidate: 8,
            impact_record_bytes_max: 1 << 20,
        }
    }
}

/// Documents of a score window, whose sums fit in the L1 cache. 2048: 0.90 to 1.36; 8192: 1.02 to 1.18 for
/// two lists (but 0.82 for ten hits of a frequent and a medium one), 0.87 to 0.94 for three to five.
pub(super) const WINDOW_DOCS: usize = 4096;

/// Documents of a range whose matches are counted with bitsets. 2^14: 1.08 to 1.24; 2^15: 1.03 to 1.11; 2^17:
/// 0.95 to 1.02 of the time with 2^15, for four times its memory.
pub(super) const COUNTED_DOCS: usize = 1 << 16;

/// Documents at a larger average distance are added to a bitset as bits, others as bytes that are converted
/// to bits, unless bytes have to be converted anyway. Bytes only: 1.25 to 1.39 for counts of a minimum match.
pub(super) const MARKED_DISTANCE_MAX: usize = 32;

/// In impact order, up to this number of remaining blocks are evaluated one by one, the highest max score
/// first; more are evaluated in rounds. Rounds only: 1.08 to 1.18 for ten hits; no rounds: 1.07 for 1,024
/// hits of `+h -h`, and all blocks of longer lists would be sorted.
pub(super) const ONE_BY_ONE_BLOCKS_MAX: usize = 48;

/// Assumed cost of looking up one candidate, in units of adding one posting to a window (`MaxScore`). 4: up
/// to 1.13; 8: up to 1.06; 32 and 64: 0.98 to 1.04.
pub(super) const LOOK_UP_COST_POSTINGS: usize = 16;

/// Number of windows whose clauses are all summed after a window with too many candidates to look up
/// (`MaxScore`). None: 1.17 for three to five terms; 3 and 15: 0.90 to 1.05.
pub(super) const EXHAUSTIVE_WINDOWS: usize = 7;

/// Of scored alternatives `MaxScore` reads about one in this number of postings, so they propose candidates
/// of a conjunction unless another clause has that many times fewer postings.
pub(super) const PRUNED_ALTERNATIVES_RATIO: u64 = 4;

/// Documents of a chunk, the unit in which the set of a prefix is filled. 2^14: 1.02 for ten hits of a
/// prefix.
pub(super) const CHUNK_DOCS: u32 = 1 << 12;

/// Each time documents of a prefix are missing, this many times more chunks are filled than the time before,
/// because each time all its lists are searched. 2: 1.05 to 1.1 for a prefix beside a term; the whole set the
/// second time: 1.2 for two required prefixes.
pub(super) const CHUNKS_AHEAD_FACTOR: usize = 16;

/// Cost of finding the phrases in a block of their rarest term, in units of adding its postings to a window.
pub(super) const PHRASE_COST_POSTINGS: usize = 16;

/// Up to this number of sparse alternatives are merged block by block, which prunes more; of more of them
/// longer ranges are merged. None: 1.09 for ten hits of two medium terms; 4: 1.05 for four; all: 1.5 for
/// twelve, and 4 for thirty rare ones.
pub(super) const PRUNED_BY_BLOCKS_MAX: usize = 3;

/// Matches are counted with bitsets if each list contains more than 1/32 of the documents. 8: 1.03 for two
/// frequent required terms, 1.12 for two alternatives; 64: 1.08 and 1.03; 128: 1.3 for three to five terms.
pub(super) const DENSE_DIVISOR: u64 = 32;

/// Number of sparse alternatives from which a merge of their blocks costs more for each posting than windows.
/// Ten hits and the number of matches of medium terms, merged relative to windows, if together they are in
/// less than 1/32 of the documents: 8 times the queries a second for two, 4 for four, 1.5 for twelve, 0.6 for
/// thirty.
pub(super) const MERGED_LISTS: usize = 12;

/// Matches of alternatives that have terms are counted by a merge of blocks if together they are in less than
/// 1/512 of the documents. Four rare terms: 20 times the queries a second of bitsets; four terms in 1/200 of
/// the documents: 0.57.
pub(super) const MARKED_DIVISOR: u64 = 512;

/// With a filter, the scored term is evaluated in impact order if the rarest list is more than this many
/// times longer than the expected number of candidates: a conjunction looks up candidates in document order,
/// which is cheaper. 32: 1.13 for ten hits of `+h #h`; 512: the same as 128, but filters that most documents
/// pass are seldom in these sets.
pub(super) const IMPACT_ORDER_RATIO: f64 = 128.0;

/// Minimum number of blocks in the first round of impact order if blocks are read from disk.
pub(super) const FIRST_ROUND_BLOCKS_MIN: usize = 4;

/// Blocks of a round of impact order, relative to the round before: in memory, and if blocks are read from
/// disk, where each round waits for its reads. One frequent term, top 1,024, 5% and 20% of the postings
/// cached: 1.09 and 1.08 times the queries a second with 4 instead of 2, 1.21 and 1.11 times with 8, for 0.96
/// and 0.98 times the bytes.
pub(super) const ROUND_GROWTH: usize = 2;
pub(super) const ROUND_GROWTH_READ: usize = 8;

/// Largest `k` for which an initial threshold is computed from max scores: a larger k allows hardly any block
/// to be pruned.
pub(super) const INITIAL_THRESHOLD_K_MAX: usize = 1 << 11;

/// All postings of the rarest alternative are scored before the evaluation, for an initial threshold, if the
/// lists of all terms together are more than this many times longer.
pub(super) const PRESCORED_RATIO: u64 = 64;

/// Maximum number of postings of the alternative that is scored before the evaluation. With their scores they
/// fit in the memory that is reserved for windows, none of which is in use yet.
pub(super) const PRESCORED_POSTINGS_MAX: u64 = 1 << 13;

/// Candidates of a block of the rarest list are looked up in the blocks of another list in the same range of
/// documents. These are prefetched if they are at most this many: of more, many pages contain no candidate.
pub(super) const LOOK_UP_BLOCKS_MAX: usize = 256;

/// `MaxScore` prefetches the blocks of a non-essential list before its candidates are known, if it has at
/// most this many blocks for each block of the essential lists in the same range.
pub(super) const NON_ESSENTIAL_BLOCKS_RATIO: usize = 16;

/// In impact order, all blocks that may contain hits are read at once if that costs at most this many times
/// as much as the first round.
pub(super) const ALL_BLOCKS_COST: u64 = 2;

/// Maximum number of adjacent blocks that are prefetched together.
pub(super) const RUN_BLOCKS_MAX: usize = 16;

/// Maximum number of blocks of the rarest list of a conjunction that are prefetched before they are
/// evaluated.
pub(super) const LEAD_BLOCKS_AHEAD_MAX: usize = 1 << 10;

/// Documents of the range, several windows, whose blocks are prefetched in one step.
pub(super) const PREFETCH_DOCS: u32 = 8 * WINDOW_DOCS as u32;

/// Number of terms of a phrase without slop, the rarest ones, in whose lists candidates are looked up before
/// positions are read. Of the documents that contain two terms, few contain them at the right distance; only
/// those are looked up in the lists of the other terms.
pub(super) const PHRASE_TERMS_LOOKED_UP_FIRST: usize = 2;

/// Bounds from stored max shares count as loose if the constant part of `k`, `k1 * (1 - b)`, of the ranking
/// differs by at least this from that of the stored shares, after scaling
/// ([`ShareBounds`](super::nodes::ShareBounds)). Decoding impacts then saves more than it costs.
pub(super) const LOOSE_BOUNDS_MIN: f64 = 0.05;

/// Maximum number of lists whose buffers are kept for the next query, and that have look-up buffers of their
/// own during a query.
pub(super) const LIST_BUFFERS_MAX: usize = 8;

/// Vectors of sort keys with a larger capacity are freed after a query.
pub(super) const SORT_KEYS_MAX: usize = 1 << 11;

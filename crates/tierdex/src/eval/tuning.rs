//! Constants of evaluation that were chosen by measurement.
//!
//! Figures are CPU times of a hundred to three hundred queries of a set over 414,229 documents of English
//! text, one thread, in memory, relative to the value chosen: frequent terms (h) are in more than 1% of the
//! documents, medium ones (m) in 200 documents to 1%.

/// Documents of a window whose scores are summed: the sums stay in the first-level cache. 2048: 0.90 to
/// 1.36; 8192: 1.02 to 1.18 for two lists (but 0.82 for ten hits of a frequent and a medium one), 0.87 to
/// 0.94 for three to five.
pub(super) const WINDOW: usize = 4096;

/// Documents of a range that is counted by bits. 2^13: 1.02 to 1.21; 2^17: 0.95 to 1.02, for four times the
/// memory.
pub(super) const COUNTED: usize = 1 << 15;

/// Blocks of one term that are evaluated one by one, the best first; more are taken in rounds. Rounds only:
/// 1.08 to 1.18 for ten hits; no rounds: 1.07 for 1,024 hits of `+h -h`, and sorting all blocks of longer
/// lists.
pub(super) const ONE_BY_ONE: usize = 48;

/// Postings that are added to a window in the time in which one candidate is looked up. 4: up to 1.13; 8: up
/// to 1.06; 32 and 64: 0.98 to 1.04.
pub(super) const LOOK_UP_POSTINGS: usize = 16;

/// Windows over which all clauses are summed after one in which too many candidates had to be looked up.
/// None: 1.17 for three to five terms; 3 and 15: 0.90 to 1.05.
pub(super) const EXHAUSTIVE_WINDOWS: usize = 7;

/// Postings for each window of documents below which lists are merged whole: skipping windows would take as
/// long. 24: 1.15 (ten hits) and 1.65 (1,024) for two medium terms; 400: 1.19 and 0.93 for two frequent
/// ones. More for more lists: 0.93 to 1.2 for 12 to 40 medium terms.
pub(super) const MERGED_IN_WINDOW: u64 = 128;

/// Postings of all terms together that are merged, at most: they are in memory, with their scores.
pub(super) const MERGED_MAX: u64 = 1 << 16;

/// Lists are counted by bits if each holds more than one of this many documents. 8: 1.03 for two frequent
/// required terms, 1.12 for two alternatives; 64: 1.08 and 1.03; 128: 1.3 for three to five terms.
pub(super) const DENSE: u64 = 32;

/// With a filter, blocks of the scored term are taken in impact order if the rarest list is this many times
/// longer than the candidates that are expected to be looked up: a conjunction looks candidates up in
/// document order, which is cheaper. 32: 1.13 for ten hits of `+h #h`; 512: the same as 128, but filters
/// that most documents pass are seldom in these sets.
pub(super) const IMPACT_ORDER_RATIO: f64 = 128.0;

/// Blocks of one term that are read in the first round where they are read from a disk; twice as many in
/// each further one.
pub(super) const FIRST_PREFETCHED: usize = 4;

/// Hits, at most, for which a threshold is computed before any segment is searched: more leave hardly a
/// block to be skipped.
pub(super) const INITIAL_THRESHOLD_HITS: usize = 1 << 11;

/// All postings of the rarest alternative are scored first, for the threshold that the best of them give, if
/// those of all together are this many times as many.
pub(super) const FIRST_SCORED_RATIO: u64 = 64;

/// Postings of it, at most: they take no more memory than is counted for windows, of which none is in use
/// yet.
pub(super) const FIRST_SCORED_MAX: u64 = 1 << 13;

/// Blocks of a list, at most, that are prefetched together with a block of the lead whose candidates are
/// looked up in them: 256 candidates fall into most pages of 256 blocks.
pub(super) const LOOKED_UP_BLOCKS: usize = 256;

/// Blocks of a list in which candidates are looked up, for each block of the lists that propose them, above
/// which they are prefetched only when the candidates are known.
pub(super) const CANDIDATE_BLOCKS: usize = 16;

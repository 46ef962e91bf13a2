//! Constants of evaluation that were chosen by measurement.

/// Documents of a window whose scores are summed: the sums stay in the first-level cache.
pub(super) const WINDOW: usize = 4096;

/// Documents of a range that is counted by bits: fewer ranges, and the bits still stay in the first-level
/// cache.
pub(super) const COUNTED: usize = 1 << 15;

/// Blocks of one term that are evaluated one by one, the best first.
pub(super) const ONE_BY_ONE: usize = 48;

/// Candidates of several blocks that are looked up together in other lists.
pub(super) const CANDIDATES_TOGETHER: usize = 128;

/// Postings that are added to a window in the time in which one candidate is looked up.
pub(super) const LOOK_UP_POSTINGS: usize = 16;

/// Windows over which all clauses are summed after one in which too many candidates had to be looked up.
pub(super) const EXHAUSTIVE_WINDOWS: usize = 7;

/// Postings for each window of documents below which lists are merged whole: skipping windows would take as
/// long.
pub(super) const MERGED_IN_WINDOW: u64 = 24;

/// Postings of all terms together that are merged in any case, and at most.
pub(super) const MERGED_MIN: u64 = 1024;
pub(super) const MERGED_MAX: u64 = 1 << 16;

/// Lists that are merged, at most: each is passed once for each that follows it.
pub(super) const MERGED_LISTS: usize = 8;

/// Lists are counted by bits if each holds more than one of so many documents.
pub(super) const DENSE: u64 = 8;

/// Candidates that are tested in a bitmap one by one; more are found by vectors.
pub(super) const TESTED_ONE_BY_ONE: usize = 16;

/// With a filter, blocks of the scored term are taken in impact order if the rarest list is so many times
/// longer than the candidates that are expected to be looked up: a conjunction looks candidates up in
/// document order, which is cheaper.
pub(super) const IMPACT_ORDER_RATIO: f64 = 32.0;

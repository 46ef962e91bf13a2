//! The priority of a request.

/// The queue that a request waits in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A user waits for the result: evaluated before requests of batches, with eight time slices for one of
    /// theirs.
    #[default]
    Interactive,
    /// One of many: throughput matters, latency does not.
    Batch,
}

//! Eviction policies, one per file.

mod entry_list;
mod eviction;
mod lru;
mod s3_fifo;
mod sieve;

use s3_fifo::S3Fifo;
use sieve::Sieve;
use std::{fmt, str::FromStr};
use tierdex_io::{Error, ErrorKind};

pub use eviction::Policy;
pub use lru::Lru;

/// A policy by its name on the command line: `lru`, `s3-fifo` or `sieve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Least recently used first, as in the APCache thesis.
    Lru,
    /// S3-FIFO: three queues, of which two hold entries.
    S3Fifo,
    /// SIEVE: one queue and a hand.
    Sieve,
}

impl PolicyKind {
    /// All policies.
    pub const ALL: [PolicyKind; 3] = [PolicyKind::Lru, PolicyKind::S3Fifo, PolicyKind::Sieve];

    /// A policy of this kind for a cache of `cells` cells. Its entries are numbered below `cells`.
    pub fn policy(self, cells: u32) -> Box<dyn Policy> {
        match self {
            PolicyKind::Lru => Box::new(Lru::new(cells)),
            PolicyKind::S3Fifo => Box::new(S3Fifo::new(cells)),
            PolicyKind::Sieve => Box::new(Sieve::new(cells)),
        }
    }

    /// Maximum bytes of memory that the policy uses for each entry.
    pub fn bytes_per_entry_max(self) -> usize {
        match self {
            PolicyKind::Lru => Lru::BYTES_PER_ENTRY,
            PolicyKind::S3Fifo => S3Fifo::BYTES_PER_ENTRY_MAX,
            PolicyKind::Sieve => Sieve::BYTES_PER_ENTRY,
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PolicyKind::Lru => "lru",
            PolicyKind::S3Fifo => "s3-fifo",
            PolicyKind::Sieve => "sieve",
        })
    }
}

impl FromStr for PolicyKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<PolicyKind, Error> {
        let found = PolicyKind::ALL.into_iter().find(|kind| kind.to_string() == text);
        let why = "a policy is lru, s3-fifo or sieve";
        found.ok_or_else(|| Error::new(ErrorKind::Denied, "use", format!("policy {text:?}"), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_policies_round_trip() {
        for kind in PolicyKind::ALL {
            assert_eq!(kind.to_string().parse::<PolicyKind>().unwrap(), kind);
        }
        let error = "LRU".parse::<PolicyKind>().unwrap_err();
        assert_eq!(error.to_string(), "cannot use policy \"LRU\": a policy is lru, s3-fifo or sieve");
    }

    #[test]
    fn only_evictable_entries_are_chosen() {
        for kind in PolicyKind::ALL {
            let mut policy = kind.policy(8);
            assert_eq!(policy.victim(&|_| true), None, "{kind}");
            (0..8).for_each(|entry| policy.insert(entry, entry.into(), 1));
            assert_eq!(policy.victim(&|_| false), None, "{kind}");
            for only in [3, 0, 7, 5] {
                policy.touch(only);
                assert_eq!(policy.victim(&|entry| entry == only), Some(only), "{kind}");
                policy.remove(only);
                assert_eq!(policy.victim(&|entry| entry == only), None, "{kind}");
            }
            let mut left = Vec::new();
            while let Some(entry) = policy.victim(&|_| true) {
                policy.remove(entry);
                left.push(entry);
            }
            left.sort_unstable();
            assert_eq!(left, [1, 2, 4, 6], "{kind}");
        }
    }
}

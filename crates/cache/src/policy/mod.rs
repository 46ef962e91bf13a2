//! Eviction policies, one per file.

mod entry_list;
mod eviction;
mod lru;
mod observed;
mod s3_fifo;
mod sieve;

use s3_fifo::S3Fifo;
use sieve::Sieve;
use std::{fmt, str::FromStr};
use tierdex_io::{Error, ErrorKind};

pub use eviction::{HEAT_CLASSES, Policy};
pub use lru::Lru;
pub(crate) use observed::{ObservedPolicy, RequestObserver};

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

    /// The entries of each class.
    fn classes(policy: &dyn Policy) -> [Vec<u32>; HEAT_CLASSES] {
        let mut classes = [const { Vec::new() }; HEAT_CLASSES];
        policy.visit(&mut |entry, class| classes[class].push(entry));
        classes.iter_mut().for_each(|class| class.sort_unstable());
        classes
    }

    #[test]
    fn entries_are_restored_in_their_classes() {
        let expected: [[&[u32]; HEAT_CLASSES]; 3] = [
            [&[1, 8], &[6, 7], &[4, 5], &[0, 3]],
            [&[8], &[1], &[0, 3, 4, 5, 6, 7], &[]],
            [&[1, 8], &[0, 3, 4, 5, 6, 7], &[], &[]],
        ];
        for (kind, expected) in PolicyKind::ALL.into_iter().zip(expected) {
            let mut policy = kind.policy(20);
            (0..9).for_each(|entry| policy.insert(entry, entry.into(), 1));
            [8, 1, 8].into_iter().for_each(|entry| policy.touch(entry));
            policy.remove(2);
            assert_eq!(classes(&*policy), expected, "{kind}");
            let mut restored = kind.policy(20);
            let by_class = expected
                .iter()
                .zip(0..)
                .flat_map(|(entries, class)| entries.iter().map(move |e| (*e, class)));
            by_class.for_each(|(entry, class)| restored.restore(entry, entry.into(), 1, class));
            assert_eq!(classes(&*restored), expected, "{kind}");
            // The coldest are evicted first.
            let victim = restored.victim(&|_| true).unwrap();
            let coldest = expected.iter().rev().find(|class| !class.is_empty()).unwrap();
            assert!(coldest.contains(&victim), "{kind}: {victim}");
        }
        // The small queue of S3-FIFO has the entries that do not fit into the main queue.
        let mut policy = PolicyKind::S3Fifo.policy(20);
        (0..20).for_each(|entry| policy.insert(entry, entry.into(), 1));
        assert_eq!(classes(&*policy)[3], [18, 19]);
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

//! Eviction policies of the cache of lists: those of the page cache, and Belady's rule within the window of
//! waiting queries.

use std::{fmt, str::FromStr};

use tierdex_cache::{Policy, PolicyKind};
use tierdex_io::{Error, ErrorKind};

use super::window::BeladyWindow;

/// A policy by its name on the command line: `lru`, `s3-fifo`, `sieve` or `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListPolicy {
    /// Least recently used first (the thesis).
    Lru,
    /// S3-FIFO: three queues, without moves on a hit.
    S3Fifo,
    /// SIEVE: one queue, and a hand that moves over it.
    Sieve,
    /// Belady's rule for the lists of waiting queries, LRU for all others.
    Window,
}

/// The state of a policy for the entries of a cache.
pub(crate) enum ListEviction {
    /// A policy that knows only past requests.
    Past(Box<dyn Policy>),
    Window(BeladyWindow),
}

impl ListPolicy {
    /// All policies, in the order of reports.
    pub const ALL: [ListPolicy; 4] =
        [ListPolicy::Lru, ListPolicy::S3Fifo, ListPolicy::Sieve, ListPolicy::Window];

    /// The policy of the page cache of this name; `None`: it looks ahead, which only the cache of lists can.
    pub fn page_policy(self) -> Option<PolicyKind> {
        match self {
            ListPolicy::Lru => Some(PolicyKind::Lru),
            ListPolicy::S3Fifo => Some(PolicyKind::S3Fifo),
            ListPolicy::Sieve => Some(PolicyKind::Sieve),
            ListPolicy::Window => None,
        }
    }

    /// The policy for entries numbered below `cells`, of `cells` cells in all.
    pub(crate) fn eviction(self, cells: u32) -> ListEviction {
        match self.page_policy() {
            Some(kind) => ListEviction::Past(kind.policy(cells)),
            None => ListEviction::Window(BeladyWindow::new(cells, BeladyWindow::USES_AHEAD)),
        }
    }

    /// Bytes of memory for each entry, at most.
    pub(crate) fn bytes_per_entry_max(self) -> usize {
        self.page_policy().map_or(BeladyWindow::BYTES_PER_ENTRY_MAX, PolicyKind::bytes_per_entry_max)
    }
}

impl ListEviction {
    pub(crate) fn policy(&self) -> &dyn Policy {
        match self {
            ListEviction::Past(policy) => &**policy,
            ListEviction::Window(window) => window,
        }
    }

    pub(crate) fn policy_mut(&mut self) -> &mut dyn Policy {
        match self {
            ListEviction::Past(policy) => &mut **policy,
            ListEviction::Window(window) => window,
        }
    }
}

impl fmt::Display for ListPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page_policy() {
            Some(kind) => kind.fmt(f),
            None => f.write_str("window"),
        }
    }
}

impl FromStr for ListPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<ListPolicy, Error> {
        let found = ListPolicy::ALL.into_iter().find(|policy| policy.to_string() == text);
        let why = "a policy is lru, s3-fifo, sieve or window";
        found.ok_or_else(|| Error::new(ErrorKind::Denied, "use", format!("policy {text:?}"), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_policies_round_trip() {
        for policy in ListPolicy::ALL {
            assert_eq!(policy.to_string().parse::<ListPolicy>().unwrap(), policy);
        }
        let error = "LRU".parse::<ListPolicy>().unwrap_err();
        assert_eq!(error.to_string(), "cannot use policy \"LRU\": a policy is lru, s3-fifo, sieve or window");
    }

    #[test]
    fn only_evictable_entries_are_chosen() {
        for of in ListPolicy::ALL {
            let mut eviction = of.eviction(8);
            let policy = eviction.policy_mut();
            assert_eq!(policy.victim(&|_| true), None, "{of}");
            (0..8).for_each(|entry| policy.insert(entry, entry.into(), 1));
            assert_eq!(policy.victim(&|_| false), None, "{of}");
            for only in [3, 0, 7, 5] {
                policy.touch(only);
                assert_eq!(policy.victim(&|entry| entry == only), Some(only), "{of}");
                policy.remove(only);
                assert_eq!(policy.victim(&|entry| entry == only), None, "{of}");
            }
            let mut left = Vec::new();
            while let Some(entry) = policy.victim(&|_| true) {
                policy.remove(entry);
                left.push(entry);
            }
            left.sort_unstable();
            assert_eq!(left, [1, 2, 4, 6], "{of}");
        }
    }
}

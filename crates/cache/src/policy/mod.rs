//! Which chain to evict: one policy a file.
//!
//! *You have* chains that come, are used and go. *You get* one to evict. A policy knows chains by number (fewer than it
//! was made for), their hash and their size in segments; it knows no bytes and no pins: what must not go is refused by the
//! caller of [`Policy::victim`]. It allocates when it is made, and never again. A hit costs constant time.

mod list;
mod lru;
mod s3_fifo;
mod sieve;
mod window;

use std::fmt;
use std::str::FromStr;

use tierdex_io::{Error, ErrorKind};

pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use window::Window;

/// A way to choose what to evict. Chains are numbers from 0 on.
pub trait Policy: Send {
    /// A chain comes. `hash` is that of its key, `segments` its size.
    fn insert(&mut self, chain: u32, hash: u64, segments: u32);

    /// A chain that is there is used.
    fn touch(&mut self, chain: u32);

    /// A chain goes: it was chosen, or its bytes could not be had.
    fn remove(&mut self, chain: u32);

    /// The chain to evict among those that may go. None when none of them may.
    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32>;

    /// How many uses ahead [`Policy::expect`] wants to know; 0 for policies that look back only.
    fn window(&self) -> usize {
        0
    }

    /// Tells, before victims are asked for, which of the chains that are there will be used next, the nearest first;
    /// a chain may occur more than once. It replaces what was told before.
    fn expect(&mut self, _uses: &mut dyn Iterator<Item = u32>) {}

    /// Bytes of memory.
    fn bytes(&self) -> usize;
}

/// A policy, as users write it: `lru`, `s3-fifo`, `sieve` or `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Least recently used first (the thesis).
    Lru,
    /// Three queues, of which two hold chains.
    S3Fifo,
    /// One queue and a hand.
    Sieve,
    /// What the waiting queries need last, or not at all.
    Window,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [PolicyKind; 4] =
        [PolicyKind::Lru, PolicyKind::S3Fifo, PolicyKind::Sieve, PolicyKind::Window];

    /// The policy for chains numbered below `segments`, of so many segments in all.
    pub fn policy(self, segments: u32) -> Box<dyn Policy> {
        match self {
            PolicyKind::Lru => Box::new(Lru::new(segments)),
            PolicyKind::S3Fifo => Box::new(S3Fifo::new(segments)),
            PolicyKind::Sieve => Box::new(Sieve::new(segments)),
            PolicyKind::Window => Box::new(Window::new(segments, Window::USES)),
        }
    }

    /// Bytes of memory for each segment, at most.
    pub(crate) fn bytes_per_segment_max(self) -> usize {
        match self {
            PolicyKind::Lru => Lru::BYTES_PER_CHAIN,
            PolicyKind::S3Fifo => S3Fifo::BYTES_PER_CHAIN_MAX,
            PolicyKind::Sieve => Sieve::BYTES_PER_CHAIN,
            PolicyKind::Window => Window::BYTES_PER_CHAIN_MAX,
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PolicyKind::Lru => "lru",
            PolicyKind::S3Fifo => "s3-fifo",
            PolicyKind::Sieve => "sieve",
            PolicyKind::Window => "window",
        })
    }
}

impl FromStr for PolicyKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<PolicyKind, Error> {
        let found = PolicyKind::ALL.into_iter().find(|kind| kind.to_string() == text);
        let why = "a policy is lru, s3-fifo, sieve or window";
        found.ok_or_else(|| Error::new(ErrorKind::Denied, "use", format!("policy {text:?}"), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in PolicyKind::ALL {
            assert_eq!(kind.to_string().parse::<PolicyKind>().unwrap(), kind);
        }
        let error = "LRU".parse::<PolicyKind>().unwrap_err();
        assert_eq!(error.to_string(), "cannot use policy \"LRU\": a policy is lru, s3-fifo, sieve or window");
    }

    #[test]
    fn what_may_not_go_is_not_chosen() {
        for kind in PolicyKind::ALL {
            let mut policy = kind.policy(8);
            assert_eq!(policy.victim(&|_| true), None, "{kind}");
            (0..8).for_each(|chain| policy.insert(chain, chain.into(), 1));
            assert_eq!(policy.victim(&|_| false), None, "{kind}");
            for only in [3, 0, 7, 5] {
                policy.touch(only);
                assert_eq!(policy.victim(&|chain| chain == only), Some(only), "{kind}");
                policy.remove(only);
                assert_eq!(policy.victim(&|chain| chain == only), None, "{kind}");
            }
            let mut left = Vec::new();
            while let Some(chain) = policy.victim(&|_| true) {
                policy.remove(chain);
                left.push(chain);
            }
            left.sort_unstable();
            assert_eq!(left, [1, 2, 4, 6], "{kind}");
        }
    }
}

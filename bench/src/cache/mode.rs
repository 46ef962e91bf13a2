//! The modes that are compared, and the text form of a lookahead.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;
use tierdex::cache::Lookahead;
use tierdex::engine::{Mode, QUERIES_AHEAD};

/// How queries are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellMode {
    /// By a searcher over an index that is wholly in memory, without a memory limit.
    Memory,
    /// By an executor in this mode.
    Executor(Mode),
}

impl CellMode {
    /// Whether the mode has a postings cache.
    pub(super) fn has_cache(self) -> bool {
        matches!(self, CellMode::Executor(mode) if mode.has_cache())
    }

    /// Whether the mode prefetches the lists of queued queries.
    pub(super) fn looks_ahead(self) -> bool {
        matches!(self, CellMode::Executor(Mode::BasePrefetch | Mode::HybridPrefetch | Mode::Direct))
    }

    /// The default lookahead of the mode.
    pub(super) fn default_lookahead(self) -> Lookahead {
        if self == CellMode::Executor(Mode::BasePrefetch) {
            Lookahead::Queries(QUERIES_AHEAD)
        } else {
            Lookahead::Adaptive
        }
    }
}

impl fmt::Display for CellMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CellMode::Memory => f.write_str("memory"),
            CellMode::Executor(mode) => mode.fmt(f),
        }
    }
}

impl FromStr for CellMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<CellMode> {
        if text == "memory" {
            return Ok(CellMode::Memory);
        }
        let mode = text.parse().map(CellMode::Executor);
        mode.map_err(|error: tierdex::Error| {
            Error::Usage(format!("{error}; or memory, for an index in memory"))
        })
    }
}

/// A lookahead as flags write it: `adaptive`, or a number of queries.
pub(super) fn show_lookahead(lookahead: Lookahead) -> String {
    match lookahead {
        Lookahead::Adaptive => "adaptive".to_string(),
        Lookahead::Queries(queries) => queries.to_string(),
        Lookahead::Pins => "pins".to_string(),
    }
}

/// Largest lookahead in queries: the executor plans no further ahead.
const LOOKAHEAD_MAX: u64 = 1023;

/// Parses what [`show_lookahead`] writes, except `pins`.
pub(super) fn read_lookahead(text: &str) -> std::result::Result<Lookahead, String> {
    if text == "adaptive" {
        return Ok(Lookahead::Adaptive);
    }
    let queries = text.parse().ok().filter(|queries| (1..=LOOKAHEAD_MAX).contains(queries));
    let queries = queries.map(Lookahead::Queries);
    queries.ok_or_else(|| format!("write adaptive, or a number of queries from 1 to {LOOKAHEAD_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["memory", "base", "base-prefetch", "hybrid", "hybrid-prefetch", "direct"] {
            assert_eq!(name.parse::<CellMode>().unwrap().to_string(), name);
        }
        for name in ["adaptive", "1", "1023"] {
            assert_eq!(show_lookahead(read_lookahead(name).unwrap()), name);
        }
        assert!("ram".parse::<CellMode>().is_err());
        assert!(["", "0", "1024", "pins"].iter().all(|wrong| read_lookahead(wrong).is_err()));
    }
}

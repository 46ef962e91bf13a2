//! The modes that are compared.

use crate::{Error, Result};
use std::{fmt, str::FromStr};
use tierdex_thesis::{Lookahead, Mode, QUERIES_AHEAD};

/// How queries are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellMode {
    /// By a searcher over an index that is wholly in memory, without a memory limit.
    Memory,
    /// By an engine.
    Direct,
    /// By a `ListExecutor` in this read mode of the thesis.
    Lists(Mode),
}

impl CellMode {
    /// Whether the mode has a cache of its own.
    pub(super) fn has_cache(self) -> bool {
        match self {
            CellMode::Memory => false,
            CellMode::Direct => true,
            CellMode::Lists(mode) => mode.has_cache(),
        }
    }

    /// Whether the cache has segments (thesis, section 7.2).
    pub(super) fn has_segments(self) -> bool {
        self.has_cache() && self != CellMode::Direct
    }

    /// Whether the mode prefetches the lists of queued queries.
    pub(super) fn looks_ahead(self) -> bool {
        matches!(self, CellMode::Lists(Mode::BasePrefetch | Mode::HybridPrefetch))
    }

    /// The default lookahead of the mode.
    pub(super) fn default_lookahead(self) -> Lookahead {
        if self == CellMode::Lists(Mode::BasePrefetch) {
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
            CellMode::Direct => f.write_str("direct"),
            CellMode::Lists(mode) => mode.fmt(f),
        }
    }
}

impl FromStr for CellMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<CellMode> {
        match text {
            "memory" => return Ok(CellMode::Memory),
            "direct" => return Ok(CellMode::Direct),
            _ => {}
        }
        let mode = text.parse().map(CellMode::Lists);
        mode.map_err(|error: tierdex::Error| {
            Error::Usage(format!("{error}; or memory, for an index in memory"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["memory", "base", "base-prefetch", "hybrid", "hybrid-prefetch", "direct"] {
            assert_eq!(name.parse::<CellMode>().unwrap().to_string(), name);
        }
        assert!("ram".parse::<CellMode>().is_err());
    }
}

//! The flags of a comparison.

use crate::{Error, Result};
use clap::Args;
use std::path::PathBuf;

/// With fewer pairs an interval would say nothing.
const PAIRS_MIN: usize = 6;

/// Flags of a comparison. Cells are read from standard input, one line of JSON each; a member `name` is shown
/// in the table.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Program `tierdex-bench` of the first build
    pub a: PathBuf,
    /// Program `tierdex-bench` of the second build
    pub b: PathBuf,
    /// Pairs of each cell, at least 6
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub pairs: usize,
    /// Pairs of each cell, at most: more than --pairs are run while the interval of the geometric mean of all
    /// cells is wider than 0.02, and of cells whose own interval is wider than 0.06 and contains 0.97 or is
    /// undecided
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub pairs_max: usize,
    /// Write a line of JSON for each pair into this file
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
}

impl Flags {
    /// Rejects invalid values.
    pub(super) fn check(&self) -> Result<()> {
        if self.pairs < PAIRS_MIN || self.pairs > self.pairs_max {
            let why = format!("--pairs must be {PAIRS_MIN} or more, and --pairs-max at least --pairs");
            return Err(Error::Usage(why));
        }
        Ok(())
    }
}

//! The parameters of the experiment, and their valid ranges.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Parameters of the experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IntersectRequest {
    /// Lists of a hundredth of the size: one or two seconds.
    quick: bool,
    /// Directory for the list files, which are removed at the end.
    pub(super) work: PathBuf,
    /// Directory of an index over whose lists the queries are measured.
    pub(super) index: Option<PathBuf>,
    /// File of queries, one per line: words, or an id, a tab and words; a query is the conjunction of its
    /// terms.
    pub(super) queries: Option<PathBuf>,
    /// Largest number of queries, taken at even distances from the file.
    pub(super) limit: usize,
    /// The parameter that varies.
    pub(super) sweep: Sweep,
    /// Whether lists are read as from a hard disk, which is emulated by a file system that delays reads by
    /// seeks (FUSE; needs root).
    pub(super) hdd: bool,
    /// Threads of bl, sl, zz and bf.
    pub(super) threads: usize,
    /// Ids of the shorter list [default: 10000; 100 if `quick`].
    short: Option<u32>,
    /// Ids of the longer list [default: 10000000; 100000 if `quick`].
    long: Option<u32>,
}

/// The parameter that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sweep {
    Threads,
    Ratio,
    Intersection,
    Lists,
    Codec,
    Memory,
    /// No parameter: queries of a log over an index.
    #[serde(rename(deserialize = "none", serialize = "real"))]
    Queries,
}

/// Most ids of a list.
const IDS_MAX: u32 = 1 << 30;

impl Default for IntersectRequest {
    fn default() -> IntersectRequest {
        IntersectRequest {
            quick: false,
            work: std::env::temp_dir(),
            index: None,
            queries: None,
            limit: 300,
            sweep: Sweep::Queries,
            hdd: false,
            threads: 32,
            short: None,
            long: None,
        }
    }
}

impl IntersectRequest {
    /// Numbers of ids of the shorter and the longer list.
    pub(super) fn lengths(&self) -> (u32, u32) {
        let (short, long) = if self.quick { (100, 100_000) } else { (10_000, 10_000_000) };
        (self.short.unwrap_or(short), self.long.unwrap_or(long))
    }

    /// Rejects values that no measurement can have.
    ///
    /// # Errors
    /// [`Error::Usage`] with the member.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |message: String| Err(Error::Usage(message));
        let (short, long) = self.lengths();
        if short == 0 || short > long || long > IDS_MAX {
            return wrong(format!("`short` is {short}, `long` is {long}: lists have 1 to {IDS_MAX} ids"));
        }
        for (name, number, most) in [("threads", self.threads, 256), ("limit", self.limit, 1 << 20)] {
            if !(1..=most).contains(&number) {
                return wrong(format!("`{name}` is {number}, and must be 1 to {most}"));
            }
        }
        match self.index.is_some() == self.queries.is_some() {
            true => Ok(()),
            false => wrong("`index` and `queries` need each other".to_string()),
        }
    }
}

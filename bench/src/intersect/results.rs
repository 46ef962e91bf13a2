//! The results of a run.

use crate::intersect::{flags::Flags, row::SweepRow, settings::Settings};
use crate::{Machine, intersection::CostModel};

/// The results of a run.
pub struct IntersectResults {
    pub(super) flags: Flags,
    pub(super) settings: Settings,
    pub(super) machine: Machine,
    /// Cost model of reads of the generated lists.
    pub(super) cost: Option<CostModel>,
    /// How pages are read: description of the read queue, in one line.
    pub(super) read_method: String,
    /// Numbers of queries of the log and of their terms.
    pub(super) queries: Option<(usize, usize)>,
    pub(super) rows: Vec<SweepRow>,
}

impl IntersectResults {
    pub(super) fn new(flags: &Flags, settings: &Settings) -> IntersectResults {
        IntersectResults {
            flags: flags.clone(),
            settings: settings.clone(),
            machine: Machine::here(),
            cost: None,
            read_method: String::new(),
            queries: None,
            rows: Vec::new(),
        }
    }

    /// All rows.
    pub fn rows(&self) -> &[SweepRow] {
        &self.rows
    }

    /// The measured sweeps, in order.
    pub(super) fn sweeps(&self) -> Vec<&'static str> {
        let mut sweeps: Vec<&'static str> = self.rows.iter().map(|row| row.sweep).collect();
        sweeps.dedup();
        sweeps
    }
}

//! `tierdex-bench batch` and `stats`: the commands of `tierdex`, with flags for experiments.

use crate::read_flags::ReadFlags;
use clap::Args;
use std::path::PathBuf;
use tierdex::engine::ExecutorOptions;
use tierdex_cli::cmd::{batch, stats};
use tierdex_cli::failure::Outcome;

/// Samples in a log of the lookahead, at most: the last ones.
const LOOKAHEAD_SAMPLES: usize = 1 << 16;

#[derive(Args)]
pub struct Batch {
    #[command(flatten)]
    batch: batch::Arguments,
    #[command(flatten)]
    reads: ReadFlags,
    /// Score every matching document, also those that cannot be among the best; the hits are the same
    #[arg(long)]
    exhaustive: bool,
    /// File to write: the number of queries whose lists were prefetched, each time a query ended (the last 65,536
    /// times)
    #[arg(long, value_name = "FILE")]
    lookahead_log: Option<PathBuf>,
}

#[derive(Args)]
pub struct Stats {
    #[command(flatten)]
    stats: stats::Arguments,
    #[command(flatten)]
    reads: ReadFlags,
}

impl Batch {
    pub fn run(&self) -> Outcome {
        let samples = if self.lookahead_log.is_some() { LOOKAHEAD_SAMPLES } else { 0 };
        let defaults = ExecutorOptions { samples, ..ExecutorOptions::default() };
        let experiment = batch::Experiment {
            defaults: self.reads.options(&self.batch.memory, defaults)?,
            meta_tier: self.reads.meta_tier(),
            exhaustive: self.exhaustive,
            lookahead_log: self.lookahead_log.clone(),
        };
        batch::run(&self.batch, &experiment).map_err(|failure| failure.within(&self.batch.dir))
    }
}

impl Stats {
    pub fn run(&self) -> Outcome {
        let defaults = self.reads.options(&self.stats.memory, ExecutorOptions::default())?;
        let outcome = stats::run(&self.stats, defaults, self.reads.meta_tier());
        outcome.map_err(|failure| failure.within(&self.stats.dir))
    }
}

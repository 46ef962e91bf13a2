//! `tierdex-bench batch` and `tierdex-bench stats`: the commands of `tierdex` with additional flags for
//! experiments.

use crate::read_flags::{ReadFlags, held_or_cached};
use clap::Args;
use std::path::PathBuf;
use tierdex::engine::{ExecutorOptions, MetaTier, Mode};
use tierdex_bench::HeldIndexFlags;
use tierdex_cli::cmd::{batch, stats};
use tierdex_cli::failure::Outcome;

/// Maximum number of samples in a log of the lookahead. The last ones are kept.
const LOOKAHEAD_SAMPLES_MAX: usize = 1 << 16;

#[derive(Args)]
pub struct BatchArguments {
    #[command(flatten)]
    batch: batch::Arguments,
    #[command(flatten)]
    reads: ReadFlags,
    #[command(flatten)]
    held: HeldIndexFlags,
    /// Disable pruning: score every matching document; the hits are the same
    #[arg(long)]
    exhaustive: bool,
    /// File for a log of the lookahead: number of prefetched queries and cells at the end of each query, for
    /// the last 65,536 queries
    #[arg(long, value_name = "FILE")]
    lookahead_log: Option<PathBuf>,
}

#[derive(Args)]
pub struct StatsArguments {
    #[command(flatten)]
    stats: stats::Arguments,
    #[command(flatten)]
    reads: ReadFlags,
}

impl BatchArguments {
    pub fn run(&self) -> Outcome {
        let samples = if self.lookahead_log.is_some() { LOOKAHEAD_SAMPLES_MAX } else { 0 };
        let defaults = ExecutorOptions { lookahead_samples: samples, ..ExecutorOptions::default() };
        let mut options = self.reads.options(&self.batch.memory, defaults)?;
        let mut meta_tier = self.reads.meta_tier();
        let held = self.held.is_given().then(|| self.held.region());
        if held.is_some() {
            if !(self.reads.is_default() && self.batch.memory.is_default()) || self.lookahead_log.is_some() {
                return Err(held_or_cached());
            }
            // A resident index is read by no mode, and has no cache.
            (options.mode, meta_tier) = (Mode::Base, Some(MetaTier::Disk));
        }
        let experiment = batch::ExperimentOptions {
            defaults: options,
            meta_tier,
            held,
            exhaustive: self.exhaustive,
            lookahead_log: self.lookahead_log.clone(),
        };
        batch::run(&self.batch, &experiment).map_err(|failure| failure.in_folder(&self.batch.dir))
    }
}

impl StatsArguments {
    pub fn run(&self) -> Outcome {
        let defaults = self.reads.options(&self.stats.memory, ExecutorOptions::default())?;
        let outcome = stats::run(&self.stats, defaults, self.reads.meta_tier());
        outcome.map_err(|failure| failure.in_folder(&self.stats.dir))
    }
}

//! `tierdex stats`: reports the memory that searching an index needs.

use super::search::QueryThreads;
use crate::failure::{Outcome, output_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::{index_size, open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::engine::{Executor, ExecutorOptions, MetaTier, THREADS_AUTO};

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    pub memory: MemoryFlags,
    #[command(flatten)]
    threads: QueryThreads,
}

/// Prints the report. `defaults` and `meta_tier` apply where no flag is given.
pub fn run(arguments: &Arguments, defaults: ExecutorOptions, meta_tier: Option<MetaTier>) -> Outcome {
    let index = open::index(&arguments.dir)?;
    let threads = arguments.threads.threads.unwrap_or(THREADS_AUTO);
    let options = arguments.memory.options(&index, ExecutorOptions { threads, ..defaults }, meta_tier);
    let report = Executor::memory_report(&index, &options);
    write!(
        stdout(),
        "{}\n{report}{} of document numbers and frequencies in {} of files\n",
        memory_flags::describe(&options),
        size::show(index.postings_bytes()),
        size::show(index_size::total_bytes(index.manifest())),
    )
    .map_err(output_error)?;
    Ok(report.check()?)
}

//! `tierdex stats`: which memory answering from an index would take, before any is taken.

use super::search::QueryThreads;
use crate::cache_flags::{self, CacheFlags};
use crate::failure::{Outcome, output};
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::engine::{Executor, ExecutorOptions, THREADS_CHOSEN};

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    cache: CacheFlags,
    #[command(flatten)]
    threads: QueryThreads,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    let threads = arguments.threads.threads.unwrap_or(THREADS_CHOSEN);
    let defaults = ExecutorOptions { threads, ..ExecutorOptions::default() };
    let options = arguments.cache.options(&index, defaults)?;
    let accounts = Executor::accounts(&index, &options);
    write!(
        stdout(),
        "{}\n{accounts}{} of documents and frequencies in {} of files\n",
        cache_flags::chosen(&options),
        size::show(index.postings_bytes()),
        size::show(super::info::total_bytes(index.manifest())),
    )
    .map_err(output)?;
    Ok(accounts.check()?)
}

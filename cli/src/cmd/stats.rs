//! `tierdex stats`: which memory answering from an index would take, before any is taken.

use crate::failure::{Outcome, output};
use crate::near::{self, Near};
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::index::{Executor, ExecutorOptions};

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    near: Near,
    /// Threads that would answer queries, one each
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = super::search::threads)]
    threads: usize,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    let defaults = ExecutorOptions { threads: arguments.threads, ..ExecutorOptions::default() };
    let options = arguments.near.options(&index, defaults)?;
    let accounts = Executor::accounts(&index, &options);
    write!(
        stdout(),
        "{}\n{accounts}{} of documents and frequencies in {} of files\n",
        near::chosen(&options),
        size::show(index.postings_bytes()),
        size::show(super::info::total_bytes(index.manifest())),
    )
    .map_err(output)?;
    Ok(accounts.check()?)
}

//! `tierdex stats`: reports the memory that searching an index needs.

use super::search::{OutputFormat, parse_threads};
use crate::failure::{Outcome, output_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::{index_size, open, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::engine::{Executor, ExecutorOptions, MemoryReport, MemoryUse, MetaTier};

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    pub memory: MemoryFlags,
    /// Number of threads that evaluate queries, for `tierdex batch` [default: 1, for `tierdex search`]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

/// Prints the report. `defaults` and `meta_tier` apply where no flag is given. If the budget is too small,
/// the report is that of the smallest sufficient one, and the command fails.
pub fn run(arguments: &Arguments, defaults: ExecutorOptions, meta_tier: Option<MetaTier>) -> Outcome {
    let index = open::index(&arguments.dir)?;
    let threads = arguments.threads.unwrap_or(defaults.threads);
    let options = arguments.memory.options(&index, ExecutorOptions { threads, ..defaults }, meta_tier);
    let given = Executor::memory_report(&index, &options);
    let options = match given.least() {
        Some(least) => ExecutorOptions { dram: Some(least), ..options },
        None => options,
    };
    let report = Executor::memory_report(&index, &options);
    let (postings, files) = (index.postings_bytes(), index_size::total_bytes(index.manifest()));
    let written = match arguments.format {
        OutputFormat::Json => writeln!(stdout(), "{}", as_json(&report, &options, (postings, files))),
        OutputFormat::Table => write!(
            stdout(),
            "{}\n{report}{} of document numbers and frequencies in {} of files\n",
            memory_flags::describe(&options),
            size::show(postings),
            size::show(files),
        ),
    };
    written.map_err(output_error)?;
    Ok(given.check()?)
}

fn as_json(report: &MemoryReport, options: &ExecutorOptions, (postings, files): (u64, u64)) -> Value {
    let part = |part: &MemoryUse| json!({ "part": part.what, "bytes": part.bytes, "region": part.region });
    json!({
        "mode": options.mode.to_string(),
        "meta_tier": options.meta_tier.to_string(),
        "threads": options.threads,
        "dram": report.dram,
        "needed": report.needed(),
        "parts": report.rows.iter().map(part).collect::<Vec<_>>(),
        "postings_bytes": postings,
        "files_bytes": files,
    })
}

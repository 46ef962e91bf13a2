//! `tierdex stats`: reports the memory that searching an index needs.

use super::search::{OutputFormat, parse_threads};
use crate::failure::{Outcome, output_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::{index_size, open, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::{EngineSettings, MemoryReport, MemoryUse};

#[derive(Args)]
pub struct StatsCommandArguments {
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

/// Prints the report. If the budget is too small, the report is that of the smallest sufficient one, and the
/// command fails.
pub fn run_stats(arguments: &StatsCommandArguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    let options = memory_flags::search_options(0).threads(arguments.threads.unwrap_or(1));
    let mut settings = arguments.memory.options(options).resolve(&index);
    let given = settings.memory_report(&index);
    settings.dram = given.least().or(settings.dram);
    let report = settings.memory_report(&index);
    let (postings, files) = (index.postings_bytes(), index_size::total_bytes(index.manifest()));
    let written = match arguments.format {
        OutputFormat::Json => writeln!(stdout(), "{}", as_json(&report, &settings, postings, files)),
        OutputFormat::Table => write!(
            stdout(),
            "{settings}\n{report}{} of document numbers and frequencies in {} of files\n",
            size::show_bytes(postings),
            size::show_bytes(files),
        ),
    };
    written.map_err(output_error)?;
    Ok(given.check()?)
}

fn as_json(report: &MemoryReport, settings: &EngineSettings, postings: u64, files: u64) -> Value {
    let part = |part: &MemoryUse| json!({ "part": part.what, "bytes": part.bytes, "region": part.region });
    json!({
        "meta_tier": settings.meta_tier.to_string(),
        "threads": settings.threads,
        "dram": report.dram,
        "needed": report.needed(),
        "cache_min": report.cache_min,
        "cache_max": report.cache_max,
        "parts": report.rows.iter().map(part).collect::<Vec<_>>(),
        "postings_bytes": postings,
        "files_bytes": files,
    })
}

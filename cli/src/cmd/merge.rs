//! `tierdex merge`: merges segments of an index without adding documents.

use super::index::{checked_memory, thread_count};
use crate::failure::{Outcome, output_error};
use crate::index_size::total_bytes;
use crate::{index_job::commit_in_doubt, interrupt, messages::make_printable, open, size};
use clap::{Args, ValueEnum};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tierdex::{Merge, StopSignal, WriterOptions, commit::Manifest};

#[derive(Args)]
pub struct MergeCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Number of segments after the merge [default: few; adjacent segments of similar size are merged]
    #[arg(long, value_enum)]
    to: Option<MergeTarget>,
    /// Make the index updatable: documents are found by their ids, and of documents with the same id all but
    /// the last are deleted
    #[arg(long)]
    updatable: bool,
    /// Number of threads that encode posting lists [default: number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Memory for reading and encoding, in bytes, at least 16M [default: 1G, but at most a third of the
    /// memory that the system and the control group leave]
    #[arg(long, value_name = "BYTES", value_parser = size::parse_size)]
    memory: Option<usize>,
    /// Wait up to this many seconds while another writer is at work [default: 0, exit code 75]
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    wait: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum MergeTarget {
    /// One: the fastest index to search, but the whole index is written again
    One,
}

pub fn run_merge(arguments: &MergeCommandArguments) -> Outcome {
    let start = Instant::now();
    let (memory, threads) = (checked_memory(arguments.memory)?, thread_count(arguments.threads)?);
    let disk = open::open_directory(&arguments.dir)?;
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    let options = WriterOptions { memory, threads, stop, ..WriterOptions::default() };
    let wait = Duration::from_secs(arguments.wait.into());
    let mut writer = open::wait_for_writer(&options.stop, Some(wait), || {
        tierdex::IndexWriter::open_extended(disk.clone(), options.clone(), |newest| Ok(newest.clone()))
    })?;
    let segments = || -> Outcome<(usize, u64)> {
        let manifest = Manifest::read_newest(disk.as_ref())?;
        Ok(manifest.map_or((0, 0), |manifest| (manifest.segments.len(), total_bytes(&manifest))))
    };
    let (before, _) = segments()?;
    let replaced = if arguments.updatable { writer.make_updatable()? } else { 0 };
    let merge = if arguments.to.is_some() { Merge::One } else { Merge::Keep };
    if let Err(error) = writer.commit(merge) {
        return Err(if writer.in_doubt() { commit_in_doubt(&error) } else { error.into() });
    }
    let (after, bytes) = segments()?;
    let seconds = start.elapsed().as_secs_f64();
    let show = |segments: usize| size::show_count(segments as u64, "segment", "segments");
    let (dir, bytes) = (arguments.dir.display().to_string(), size::show_bytes(bytes));
    let mut line =
        format!("{}: {} to {after} in {seconds:.1} s, {bytes}", make_printable(&dir), show(before));
    if replaced > 0 {
        let documents = size::show_count(replaced, "document", "documents");
        line += &format!("; {documents} replaced by later ones with their ids");
    }
    writeln!(stdout(), "{line}").map_err(output_error)
}

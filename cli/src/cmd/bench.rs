//! `tierdex bench`: experiments, one a subcommand. What they do stands in the crate `tierdex-bench`.

mod cache;
mod generate;

use crate::failure::{Failure, Outcome, output};
use crate::near::Near;
use clap::{Args, Subcommand};
use std::io::{stdin, stdout};
use tierdex::engine::{ExecutorOptions, THREADS_CHOSEN};
use tierdex_bench::{Error, cache as caches, codecs, generate as generator, intersect, latency, serve};

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Queries a second by mode, cache size and device, each cell in a process with a limit of memory
    Cache(Box<caches::Flags>),
    /// Measure the cell that is described on standard input
    #[command(hide = true)]
    CacheCell,
    /// Bits an integer and speed of every codec by every kernel
    Codecs(codecs::Flags),
    /// Make an index of any size, without text: lists as those of English documents of 1 KB
    Generate(generator::Flags),
    /// Time, pages and bytes that five algorithms take to intersect lists on disk
    Intersect(intersect::Flags),
    /// Latency of single requests, alone and beside a batch that never ends
    Latency(Latency),
    /// Answer lines of COMMAND<TAB>QUERY on standard input: from an index in memory, or with flags that say otherwise from
    /// where these bring postings
    Serve(Serve),
}

#[derive(Args)]
struct Latency {
    #[command(flatten)]
    flags: latency::Flags,
    #[command(flatten)]
    near: Near,
}

#[derive(Args)]
struct Serve {
    #[command(flatten)]
    flags: serve::Flags,
    #[command(flatten)]
    near: Near,
}

pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.experiment {
        Experiment::Cache(flags) => cache::run(flags),
        Experiment::CacheCell => Ok(caches::run_cell(&mut stdin().lock(), &mut stdout().lock())?),
        Experiment::Codecs(flags) => run_codecs(flags),
        Experiment::Generate(flags) => generate::run(flags),
        Experiment::Intersect(flags) => run_intersect(flags),
        Experiment::Latency(Latency { flags, near }) => {
            let index = crate::open::index(&flags.dir)?;
            let defaults = ExecutorOptions {
                threads: flags.threads.map_or(THREADS_CHOSEN, std::num::NonZero::get),
                hits: flags.k,
                ..ExecutorOptions::default()
            };
            let options = near.options(&index, defaults)?;
            Ok(latency::run(&index, &options, flags, &mut stdout().lock())?)
        }
        Experiment::Serve(Serve { flags, near }) => {
            let index = crate::open::index(&flags.dir)?;
            let silent = near.is_silent();
            let options = (!silent)
                .then(|| {
                    near.options(
                        &index,
                        ExecutorOptions { threads: THREADS_CHOSEN, ..ExecutorOptions::default() },
                    )
                })
                .transpose()?;
            Ok(serve::run(&index, options.as_ref(), flags, &mut stdin().lock(), &mut stdout().lock())?)
        }
    }
}

fn run_codecs(flags: &codecs::Flags) -> Outcome {
    let results = codecs::run(flags, Vec::new())?;
    results.save("tierdex bench codecs", &[])?;
    results.print(&mut stdout(), &[])?;
    Ok(())
}

fn run_intersect(flags: &intersect::Flags) -> Outcome {
    let results = intersect::run(flags)?;
    results.save()?;
    results.print(&mut stdout())?;
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Usage(message) => Failure::Usage(message),
            Error::Failed(message) => Failure::Failed(message),
            Error::Output(error) => output(error),
            Error::Interrupted => {
                Failure::Interrupted("interrupted; what was measured so far is in the report".to_string())
            }
        }
    }
}

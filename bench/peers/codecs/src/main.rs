//! The codecs of this project beside those of other crates, on the same lists in the same run.
//!
//! Each peer has a file of its own that says how it is used; [`ratios`] compares them. Short blocks that a
//! peer cannot encode are encoded by this project's scalar `vbyte-delta` or `vbyte`.

mod bitpackers;
mod fastpfors;
mod plain;
mod ratios;
mod streamvbytes;

use clap::Parser;
use std::{io::stdout, process::ExitCode};
use tierdex::StopSignal;
use tierdex_bench::codecs::{self, Flags, Peer};
use tierdex_bench::{Error, Result};

/// The experiment of `tierdex-bench codecs` with other projects' codecs beside this one's.
#[derive(Parser)]
#[command(version, max_term_width = 110)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn run(flags: &Flags) -> Result<()> {
    let results = codecs::run(flags, peers(), &StopSignal::default())?;
    let more = ratios::sections(results.rows(), &flags.kernels()?);
    results.save("cargo run --release --", &more)?;
    results.print(&mut stdout(), &more)
}

fn peers() -> Vec<Box<dyn Peer>> {
    let mut peers = bitpackers::all();
    peers.extend(fastpfors::all());
    peers.extend(streamvbytes::all());
    peers
}

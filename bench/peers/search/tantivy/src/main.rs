//! Tantivy behind the line protocol of `tierdex-bench serve`.
//!
//! *Input*: a file of tokens separated by spaces, one document per line. `index` writes a directory with an
//! index of one segment, and `serve` answers `COMMAND<TAB>QUERY` from it.
//!
//! How the peer is used: the newest release from the registry; ids and frequencies, and positions only if
//! they are requested; lengths in one byte, as it always keeps them; one indexing thread; all files copied
//! into memory before `READY`, or mapped if `--advice` says so; for each command the fastest way that its
//! public interface has (see [`serve`]). The constants of its BM25 are fixed.

#![forbid(unsafe_code)]

mod index;
mod query;
mod serve;

use clap::{Parser, Subcommand};
use std::io::{stdin, stdout};
use std::{net::SocketAddr, path::PathBuf, process::ExitCode};
use tierdex_bench_protocol::exit_code;

/// Tantivy behind the line protocol of `tierdex-bench serve`.
#[derive(Parser)]
#[command(max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Index a file of tokens, one document per line
    Index {
        /// The file
        tokens: PathBuf,
        /// Directory of the index; must not exist
        dir: PathBuf,
        #[command(flatten)]
        options: index::Options,
    },
    /// Print the release of the engine
    Version,
    /// Answer lines of COMMAND<TAB>QUERY on standard input
    Serve {
        /// Directory of the index
        dir: PathBuf,
        /// Read from mapped files, with this advice to the system, instead of a copy in memory
        #[arg(long)]
        advice: Option<serve::Advice>,
        /// Answer HTTP requests at this address instead
        #[arg(long, value_name = "ADDRESS")]
        http: Option<SocketAddr>,
    },
}

fn main() -> ExitCode {
    exit_code(match Arguments::parse().command {
        Command::Index { tokens, dir, options } => index::run(&tokens, &dir, &options),
        Command::Version => {
            println!("{}", tantivy::version_string());
            Ok(())
        }
        Command::Serve { dir, advice, http: Some(address) } => serve::run_http(&dir, advice, address),
        Command::Serve { dir, advice, http: None } => {
            serve::run(&dir, advice, &mut stdin().lock(), &mut stdout().lock())
        }
    })
}

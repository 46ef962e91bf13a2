//! SeekStorm behind the line protocol of `tierdex-bench serve`.
//!
//! *Input*: a file of tokens separated by spaces, one document per line. `index` writes a directory with an
//! index of one shard, and `serve` answers `COMMAND<TAB>QUERY` from it.
//!
//! How the peer is used: the newest release from the registry; one shard, the index in memory, the tokenizer
//! that cuts at whitespace; neither stop words, frequent words nor n-grams of them; BM25F of one field,
//! whose constants are fixed. Positions are always kept. A query of one shard runs on the thread that asks.

#![forbid(unsafe_code)]

mod index;
mod query;
mod serve;

use clap::{Parser, Subcommand};
use std::{io::stdin, net::SocketAddr, path::PathBuf, process::ExitCode};
use tierdex_bench_protocol::exit_code;

/// SeekStorm behind the line protocol of `tierdex-bench serve`.
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
        /// Ignored: the library commits every 65,536 documents
        #[arg(long)]
        memory: Option<usize>,
        /// Ignored: positions are always kept
        #[arg(long)]
        positions: bool,
    },
    /// Print the release of the engine
    Version,
    /// Answer lines of COMMAND<TAB>QUERY on standard input
    Serve {
        /// Directory of the index
        dir: PathBuf,
        /// Answer HTTP requests at this address instead
        #[arg(long, value_name = "ADDRESS")]
        http: Option<SocketAddr>,
    },
}

fn main() -> ExitCode {
    exit_code(match Arguments::parse().command {
        Command::Index { tokens, dir, .. } => index::run(&tokens, &dir),
        Command::Version => {
            println!("SeekStorm {}", seekstorm::index::version());
            Ok(())
        }
        Command::Serve { dir, http: Some(address) } => serve::run_http(&dir, address),
        Command::Serve { dir, http: None } => serve::run(&dir, &mut stdin().lock()),
    })
}

//! `tierdex serve`: answers searches over HTTP.

use super::search::parse_threads;
use crate::failure::{Failure, Outcome};
use crate::memory_flags::parse_bytes;
use crate::{interrupt, messages, size};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tierdex::io::available_memory;
use tierdex::{EngineOptions, ReadCosts, StopSignal};
use tierdex_server::{ServerOptions, serve};

/// The default budget: a part of the available memory, at least.
const AVAILABLE_DIVISOR: u64 = 4;
const DRAM_MIN: u64 = 64 << 20;

#[derive(Args)]
#[command(after_help = "\
An index is found by the name of its directory. In a folder of indexes, new ones
are found while the server runs, and new commits of all indexes are served
within a second. Documents are added by `tierdex index` or the libraries.

  /                                   a page to search, and to see the server work
  /api/v1/indexes/NAME/search?q=...   hits as JSON; /openapi.json has all paths
  /health/ready, /metrics             for load balancers and Prometheus

A request that would wait for long is rejected with status 429 and the header
Retry-After. SIGTERM and Ctrl-C stop the server when the requests in progress
have ended; a second signal stops it at once. The log is one JSON object a line
on standard error.
")]
pub struct ServeCommandArguments {
    /// Directories of indexes, or of folders that contain them
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Address and port to listen on; port 0 is any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8765")]
    listen: SocketAddr,
    /// File with the keys of clients, one a line: a name, the role read, and the SHA-256 of the key. Requests
    /// then need `Authorization: Bearer KEY`, or the key as the password of `Basic`
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,
    /// Without keys, let everybody who can reach the address search
    #[arg(long)]
    insecure: bool,
    /// Accept this value of the header Host, beside the names of this machine; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Memory budget of the process in bytes, such as 512M [default: a quarter of the available memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    dram: Option<u64>,
    /// Number of threads that evaluate searches [default: number of processors]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// What reads of the device cost, in nanoseconds for 1, 4, 16 and 64 pages of 4 KiB [default: measured at
    /// the start]
    #[arg(long, value_name = "NS,NS,NS,NS")]
    read_costs: Option<ReadCosts>,
    /// Milliseconds that a search may have to wait for a thread; one that would wait longer is rejected, and
    /// while searches are rejected, others wait at most as long as an average search takes
    #[arg(long, value_name = "MS", default_value_t = 100)]
    wait_max: u64,
    /// Milliseconds after which a search is logged with its memory and reads
    #[arg(long, value_name = "MS", default_value_t = 500)]
    slow: u64,
    /// Log the queries of slow searches
    #[arg(long)]
    log_queries: bool,
    /// Log slow searches and events only, not every request
    #[arg(long)]
    quiet: bool,
    /// Seconds that a stopping server waits for requests in progress
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    drain: u64,
    /// Seconds that a stopping server goes on accepting connections, while /health/ready fails
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    drain_delay: u64,
}

pub fn run_serve(arguments: &ServeCommandArguments) -> Outcome {
    let available = || available_memory().map_or(DRAM_MIN, |bytes| bytes / AVAILABLE_DIVISOR);
    let dram = arguments.dram.unwrap_or_else(|| available().max(DRAM_MIN));
    let costs = arguments.read_costs.iter();
    let options = ServerOptions {
        dirs: arguments.dirs.clone(),
        listen: arguments.listen,
        keys: arguments.api_keys.clone(),
        insecure: arguments.insecure,
        allowed_hosts: arguments.allow_host.clone(),
        dram,
        threads: arguments.threads,
        engine: costs.fold(EngineOptions::new(), |options, costs| options.read_costs(*costs)),
        drain: Duration::from_secs(arguments.drain),
        drain_delay: Duration::from_secs(arguments.drain_delay),
        wait_max: Duration::from_millis(arguments.wait_max),
        slow: Duration::from_millis(arguments.slow),
        log_queries: arguments.log_queries,
        log_requests: !arguments.quiet,
    };
    let stop = StopSignal::default();
    let _guard = interrupt::raise_on_signal(stop.clone());
    let ready = |address: SocketAddr| {
        messages::print_message(format_args!(
            "listening on http://{address}, with {} of memory; Ctrl-C stops",
            size::show_bytes(dram)
        ));
    };
    serve(options, &stop, ready).map_err(|error| match error {
        // The message names the budget of the engine; here is the flag.
        tierdex::Error::Usage(message) if message.starts_with("a budget of ") => {
            Failure::Usage(format!("{message}; --dram sets it"))
        }
        error => error.into(),
    })
}

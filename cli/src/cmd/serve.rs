//! `tierdex serve`: answers searches over HTTP.

use crate::failure::{Failure, Outcome, output_error};
use crate::serve_settings::{DEFAULT_LISTEN, ServeSettings, default_dram};
use crate::{interrupt, messages, size};
use clap::Args;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tierdex::{EngineOptions, ReadCosts, StopSignal};
use tierdex_server::{ServerOptions, TlsFiles, serve};

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
have ended; a second signal stops it at once. SIGHUP reads the files of
--api-keys and --tls-cert again; without these and --config it stops the
server. The log is one JSON object a line on standard error.

A file of --config has entries with the names of the flags, such as
`dram = \"512M\"` and `dirs = [\"indexes\"]`; its paths are relative to
its folder. A flag wins over its environment variable, and both over the file.
")]
pub struct ServeCommandArguments {
    #[command(flatten)]
    settings: ServeSettings,
    /// TOML file with settings
    #[arg(long, value_name = "FILE", env = "TIERDEX_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Print all settings as such a file, and do not serve
    #[arg(long)]
    print_config: bool,
    /// What reads of the device cost, in nanoseconds for 1, 4, 16 and 64 pages of 4 KiB [default: measured at
    /// the start]
    #[arg(long, value_name = "NS,NS,NS,NS")]
    read_costs: Option<ReadCosts>,
}

impl ServeCommandArguments {
    /// The directories on the command line.
    pub fn dirs(&self) -> &[PathBuf] {
        &self.settings.dirs
    }
}

pub fn run_serve(arguments: &ServeCommandArguments) -> Outcome {
    let file = arguments.config.as_deref().map(ServeSettings::read).transpose()?.unwrap_or_default();
    let settings = arguments.settings.clone().merged_with(file);
    if arguments.print_config {
        let printed = std::io::stdout().write_all(settings.to_toml()?.as_bytes());
        return printed.map_err(output_error);
    }
    let options = server_options(settings, arguments.read_costs)?;
    let (stop, reload) = (StopSignal::default(), Arc::<AtomicBool>::default());
    let reloads = options.keys.is_some() || options.tls.is_some() || arguments.config.is_some();
    let _guard = interrupt::raise_or_reload_on_signal(stop.clone(), reloads.then(|| reload.clone()));
    let (dram, scheme) = (options.dram, if options.tls.is_some() { "https" } else { "http" });
    let ready = |address: SocketAddr| {
        messages::print_message(format_args!(
            "listening on {scheme}://{address}, with {} of memory; Ctrl-C stops",
            size::show_bytes(dram)
        ));
    };
    serve(options, &stop, &reload, ready).map_err(|error| match error {
        // The message names the budget of the engine; here is the flag.
        tierdex::Error::Usage(message) if message.starts_with("a budget of ") => {
            Failure::Usage(format!("{message}; --dram sets it"))
        }
        error => error.into(),
    })
}

/// The options of settings that were merged.
fn server_options(settings: ServeSettings, costs: Option<ReadCosts>) -> Outcome<ServerOptions> {
    let millis = |value: Option<u64>| Duration::from_millis(value.unwrap_or_default());
    let seconds = |value: Option<u64>| Duration::from_secs(value.unwrap_or_default());
    if settings.dirs.is_empty() {
        return Err(Failure::Usage("no directory is given; name one, or set `dirs` in the file".to_string()));
    }
    let tls = match (settings.tls_cert, settings.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
        (None, None) => None,
        (Some(_), None) => return Err(Failure::Usage("--tls-cert needs --tls-key".to_string())),
        (None, Some(_)) => return Err(Failure::Usage("--tls-key needs --tls-cert".to_string())),
    };
    Ok(ServerOptions {
        dirs: settings.dirs,
        listen: settings.listen.unwrap_or(DEFAULT_LISTEN),
        keys: settings.api_keys,
        tls,
        insecure: settings.insecure == Some(true),
        allowed_hosts: settings.allow_host,
        compat: settings.compat.unwrap_or_default(),
        dram: settings.dram.unwrap_or_else(default_dram),
        threads: settings.threads,
        engine: costs.into_iter().fold(EngineOptions::new(), |options, costs| options.read_costs(costs)),
        drain: seconds(settings.drain),
        drain_delay: seconds(settings.drain_delay),
        wait_max: millis(settings.wait_max),
        slow: millis(settings.slow),
        log_queries: settings.log_queries == Some(true),
        log_requests: settings.quiet != Some(true),
    })
}

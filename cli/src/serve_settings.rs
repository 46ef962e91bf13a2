//! Settings of `tierdex serve`, each a flag, an environment variable, or an entry of a TOML file. A flag wins
//! over a variable, and both over the file.

use crate::cmd::search::parse_threads;
use crate::failure::{Failure, Outcome};
use crate::memory_flags::parse_bytes;
use clap::Args;
use clap::builder::BoolishValueParser;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tierdex::io::available_memory;
use tierdex_server::Compat;

/// The default budget: a part of the available memory, at least.
const AVAILABLE_DIVISOR: u64 = 4;
const DRAM_MIN: u64 = 64 << 20;

/// Where a server listens if nothing else is given.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8765);

/// Settings; those that are not given are `None`, or have no values.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServeSettings {
    /// Directories of indexes, or of folders that contain them
    #[arg(required_unless_present_any = ["config", "print_config"], value_name = "DIR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<PathBuf>,
    /// Address and port to listen on; port 0 is any free port [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDR", env = "TIERDEX_LISTEN", hide_env_values = true)]
    pub listen: Option<SocketAddr>,
    /// File with the keys of clients, one a line: a name, the role read or monitor, the SHA-256 of the key,
    /// and optionally the largest number of its requests in progress. Requests then need `Authorization:
    /// Bearer KEY`, or the key as the password of `Basic`
    #[arg(long, value_name = "FILE", env = "TIERDEX_API_KEYS", hide_env_values = true)]
    pub api_keys: Option<PathBuf>,
    /// File with the certificate of the server, PEM: connections then need TLS
    #[arg(long, value_name = "FILE", env = "TIERDEX_TLS_CERT", hide_env_values = true)]
    pub tls_cert: Option<PathBuf>,
    /// File with the private key of the certificate, PEM
    #[arg(long, value_name = "FILE", env = "TIERDEX_TLS_KEY", hide_env_values = true)]
    pub tls_key: Option<PathBuf>,
    /// Without keys, let everybody who can reach the address search
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(env = "TIERDEX_INSECURE", hide_env_values = true, value_parser = BoolishValueParser::new())]
    pub insecure: Option<bool>,
    /// Accept this value of the header Host, beside the names of this machine; may be repeated, or several
    /// with commas between them
    #[arg(
        long,
        value_name = "HOST",
        env = "TIERDEX_ALLOW_HOST",
        value_delimiter = ',',
        hide_env_values = true
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_host: Vec<String>,
    /// Whose clients may search, beside the API of the server: opensearch, or elasticsearch, whose clients
    /// check the version and a header of answers [default: opensearch]
    #[arg(long, value_name = "CLIENTS", env = "TIERDEX_COMPAT", hide_env_values = true)]
    pub compat: Option<Compat>,
    /// Memory budget of the process in bytes, such as 512M [default: a quarter of the available memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, env = "TIERDEX_DRAM", hide_env_values = true)]
    #[serde(deserialize_with = "bytes_of")]
    pub dram: Option<u64>,
    /// Number of threads that evaluate searches [default: number of processors]
    #[arg(long, value_name = "N", value_parser = parse_threads, env = "TIERDEX_THREADS", hide_env_values = true)]
    #[serde(deserialize_with = "threads_of")]
    pub threads: Option<usize>,
    /// Milliseconds that a search may have to wait for a thread; one that would wait longer is rejected, and
    /// while searches are rejected, others wait at most as long as an average search takes [default: 100]
    #[arg(long, value_name = "MS", env = "TIERDEX_WAIT_MAX", hide_env_values = true)]
    pub wait_max: Option<u64>,
    /// Milliseconds after which a search is logged with its memory and reads [default: 500]
    #[arg(long, value_name = "MS", env = "TIERDEX_SLOW", hide_env_values = true)]
    pub slow: Option<u64>,
    /// Log the queries of slow searches
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(env = "TIERDEX_LOG_QUERIES", hide_env_values = true, value_parser = BoolishValueParser::new())]
    pub log_queries: Option<bool>,
    /// Log slow searches and events only, not every request
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(env = "TIERDEX_QUIET", hide_env_values = true, value_parser = BoolishValueParser::new())]
    pub quiet: Option<bool>,
    /// Seconds that a stopping server waits for requests in progress [default: 10]
    #[arg(long, value_name = "SECONDS", env = "TIERDEX_DRAIN", hide_env_values = true)]
    pub drain: Option<u64>,
    /// Seconds that a stopping server goes on accepting connections, while /health/ready fails [default: 0]
    #[arg(long, value_name = "SECONDS", env = "TIERDEX_DRAIN_DELAY", hide_env_values = true)]
    pub drain_delay: Option<u64>,
}

impl ServeSettings {
    /// Reads a file; relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// If it cannot be read, has a syntax error, an unknown entry, or a wrong value: with the line.
    pub fn read(path: &Path) -> Outcome<ServeSettings> {
        let shown = path.display();
        let failed = |error| tierdex::io::Error::from_os("read", shown.to_string(), &error);
        let text = std::fs::read_to_string(path).map_err(|error| Failure::Storage(failed(error)))?;
        let mut settings: ServeSettings = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            let message = error.message().replace('\n', ", ");
            Failure::Usage(format!("{shown}, line {line}: {message}"))
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let ServeSettings { dirs, api_keys, tls_cert, tls_key, .. } = &mut settings;
        let files = [api_keys, tls_cert, tls_key].into_iter().flatten();
        dirs.iter_mut().chain(files).for_each(|path| *path = folder.join(&*path));
        Ok(settings)
    }

    /// These settings; those that are not given are those of `file`, or the defaults. Names of hosts are
    /// without blanks, and paths absolute.
    pub fn merged_with(self, file: ServeSettings) -> ServeSettings {
        let first = |given: Vec<_>, other: Vec<_>| if given.is_empty() { other } else { given };
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let file_of = |given: Option<PathBuf>, other: Option<PathBuf>| given.or(other).map(absolute);
        let hosts = if self.allow_host.is_empty() { file.allow_host } else { self.allow_host };
        let hosts = hosts.iter().map(|host| host.trim().to_string()).filter(|host| !host.is_empty());
        ServeSettings {
            dirs: first(self.dirs, file.dirs).into_iter().map(absolute).collect(),
            listen: self.listen.or(file.listen).or(Some(DEFAULT_LISTEN)),
            api_keys: file_of(self.api_keys, file.api_keys),
            tls_cert: file_of(self.tls_cert, file.tls_cert),
            tls_key: file_of(self.tls_key, file.tls_key),
            insecure: self.insecure.or(file.insecure).or(Some(false)),
            allow_host: hosts.collect(),
            compat: self.compat.or(file.compat).or(Some(Compat::default())),
            dram: self.dram.or(file.dram).or_else(|| Some(default_dram())),
            threads: self.threads.or(file.threads),
            wait_max: self.wait_max.or(file.wait_max).or(Some(100)),
            slow: self.slow.or(file.slow).or(Some(500)),
            log_queries: self.log_queries.or(file.log_queries).or(Some(false)),
            quiet: self.quiet.or(file.quiet).or(Some(false)),
            drain: self.drain.or(file.drain).or(Some(10)),
            drain_delay: self.drain_delay.or(file.drain_delay).or(Some(0)),
        }
    }

    /// The settings as the text of a file.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub fn to_toml(&self) -> Outcome<String> {
        let failed = |error| Failure::Usage(format!("the settings cannot be printed: {error}"));
        toml::to_string(self).map_err(failed)
    }
}

/// A quarter of the available memory.
pub fn default_dram() -> u64 {
    available_memory().map_or(DRAM_MIN, |bytes| bytes / AVAILABLE_DIVISOR).max(DRAM_MIN)
}

/// A number of threads in the limits of the flag.
fn threads_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let threads = usize::deserialize(deserializer)?;
    parse_threads(&threads.to_string()).map(Some).map_err(serde::de::Error::custom)
}

/// A number of bytes, or text such as `512M`.
fn bytes_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Bytes {
        Number(u64),
        Text(String),
    }
    let bytes = Bytes::deserialize(deserializer)
        .map_err(|_| serde::de::Error::custom("expected bytes, such as \"512M\""))?;
    match bytes {
        Bytes::Number(bytes) => Ok(Some(bytes)),
        Bytes::Text(text) => parse_bytes(&text).map(Some).map_err(serde::de::Error::custom),
    }
}

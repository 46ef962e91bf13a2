//! Options of a server, and the limits that follow from its memory budget.

use crate::tls::TlsFiles;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;
use tierdex::EngineOptions;

/// Bytes of the headers of a request, at most: also the size of the buffers of hyper.
pub(crate) const HEADER_BYTES_MAX: usize = 16 << 10;

/// Bytes of the buffers of a connection in the kernel, which doubles them. With less than a segment of the
/// loopback device in the buffer of sent bytes, long answers wait 40 ms for each acknowledgement.
pub(crate) const SEND_BUFFER_BYTES: u32 = 64 << 10;
pub(crate) const RECEIVE_BUFFER_BYTES: u32 = 16 << 10;

/// Bytes of a connection: its task, the buffers of hyper, and those of the kernel.
const CONNECTION_BYTES: u64 =
    (16 << 10) + 3 * HEADER_BYTES_MAX as u64 + 2 * (SEND_BUFFER_BYTES + RECEIVE_BUFFER_BYTES) as u64;

/// Bytes of a connection for TLS: its state, a record that is read and its text, and bytes to be sent.
const TLS_BYTES: u64 = 56 << 10;

/// Connections beyond the limit: for health checks and metrics, and for requests that wait until another
/// connection can be closed.
pub(crate) const RESERVED_CONNECTIONS: usize = 8;

/// Time that a request waits for memory or a connection, at most.
pub(crate) const MEMORY_WAIT: Duration = Duration::from_secs(1);

/// Batches in progress, at most, and bytes of each: lines that have arrived, and answers.
pub(crate) const BATCHES_MAX: usize = 4;
pub(crate) const BATCH_LINES_BYTES: usize = 256 << 10;
pub(crate) const BATCH_ANSWERS_BYTES: usize = 512 << 10;

/// Bytes of metrics, latency histograms, samples and queued log lines.
const METRICS_BYTES: u64 = 2 << 20;

/// The HTTP server beside the parts that are counted one by one: its code, its threads and their stacks.
const SERVER_BYTES: u64 = 4 << 20;

/// What a server serves, and how.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Directories: each an index, or a folder of indexes.
    pub dirs: Vec<PathBuf>,
    /// The address to listen on; port 0 is any free port.
    pub listen: SocketAddr,
    /// A file with the keys of clients: without one, every client may search.
    pub keys: Option<PathBuf>,
    /// The certificate; without one, connections are not encrypted.
    pub tls: Option<TlsFiles>,
    /// Whether the address may be reached from other machines although there are no keys.
    pub insecure: bool,
    /// Values of the header `Host` that are accepted beside those of the address.
    pub allowed_hosts: Vec<String>,
    /// Whose clients the server answers.
    pub compat: Compat,
    /// The memory budget in bytes.
    pub dram: u64,
    /// Threads that evaluate searches; one for each processor by default.
    pub threads: Option<usize>,
    /// The other options of the engine.
    pub engine: EngineOptions,
    /// How long a stopped server waits for requests in progress, before it cancels them.
    pub drain: Duration,
    /// How long a stopped server goes on accepting connections, so that a load balancer can notice.
    pub drain_delay: Duration,
    /// A search that would wait longer for a thread is rejected.
    pub wait_max: Duration,
    /// Requests that take longer are logged with their costs.
    pub slow: Duration,
    /// Whether the log of slow requests contains queries.
    pub log_queries: bool,
    /// Whether every request is logged.
    pub log_requests: bool,
}

/// Whose clients a server answers: they check what `GET /` and the headers of answers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// Clients of OpenSearch.
    #[default]
    Opensearch,
    /// Clients of Elasticsearch.
    Elasticsearch,
}

impl FromStr for Compat {
    type Err = String;

    fn from_str(text: &str) -> Result<Compat, String> {
        match text {
            "opensearch" => Ok(Compat::Opensearch),
            "elasticsearch" => Ok(Compat::Elasticsearch),
            _ => Err("must be opensearch or elasticsearch".to_string()),
        }
    }
}

/// Limits that follow from the memory budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Open connections.
    pub(crate) connections: usize,
    /// Bytes of all request bodies in memory.
    pub(crate) bodies: usize,
    /// Bytes of all results and answers in memory.
    pub(crate) answers: usize,
}

impl Limits {
    /// 24 connections with a budget of 50 MB, 128 with 400 MB, and 256 with 800 MB or more.
    pub(crate) fn of(dram: u64) -> Limits {
        let share = |divisor: u64, least: u64, most: u64| (dram / divisor).clamp(least, most) as usize;
        Limits {
            connections: share(3_125_000, 24, 256),
            bodies: share(64, 2 << 20, 8 << 20),
            answers: share(32, 4 << 20, 16 << 20),
        }
    }

    /// The lines of the memory report.
    fn memory(self, has_tls: bool) -> [(&'static str, u64); 6] {
        let connection = CONNECTION_BYTES + if has_tls { TLS_BYTES } else { 0 };
        let connections = (self.connections + RESERVED_CONNECTIONS) as u64 * connection;
        let batches = BATCHES_MAX * (BATCH_LINES_BYTES + BATCH_ANSWERS_BYTES);
        [
            ("HTTP server", SERVER_BYTES),
            ("connections", connections),
            ("request bodies", self.bodies as u64),
            ("results and answers", self.answers as u64),
            ("batches", batches as u64),
            ("metrics, samples and logs", METRICS_BYTES),
        ]
    }
}

impl ServerOptions {
    /// Search threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get))
    }

    /// The options of the engine, with the budget and the memory of the server.
    pub(crate) fn engine_options(&self) -> EngineOptions {
        let lines = Limits::of(self.dram).memory(self.tls.is_some()).into_iter();
        let options = self.engine.clone().dram(self.dram).threads(self.threads());
        lines.fold(options, |options, (what, bytes)| options.other_memory(what, bytes))
    }
}

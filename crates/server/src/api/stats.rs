//! What the server does now, and samples of the last minutes.

use crate::api_error::{ApiError, ApiErrorKind, ErrorBody};
use crate::extract::Parameters;
use crate::history::{SAMPLES, ServerSample};
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tierdex::{Engine, RequestMetrics};
use utoipa::{IntoParams, ToSchema};

/// What the server does now, and has done since its start.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsAnswer {
    /// Seconds since the start.
    uptime_s: u64,
    /// Whether the server is stopping.
    draining: bool,
    /// `null` while there is no index.
    engine: Option<EngineBody>,
    server: ServerBody,
}

/// The engine.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EngineBody {
    /// Search threads.
    threads: usize,
    /// How files are read.
    read_method: String,
    /// The memory report.
    memory: Vec<MemoryBody>,
    /// The memory budget in bytes.
    dram: Option<u64>,
    cache: CacheBody,
    reads: ReadsBody,
    requests: ClassesBody,
}

/// A part of the memory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemoryBody {
    what: &'static str,
    /// Bytes, at most.
    bytes: u64,
    /// The memory region, if it is not in the budget.
    region: Option<String>,
}

/// The page cache.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CacheBody {
    /// Its size now.
    bytes: u64,
    /// Requested pages that were cached.
    hits: u64,
    /// Requested pages that were not cached.
    misses: u64,
    evictions: u64,
}

/// Reads into the page cache.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadsBody {
    count: u64,
    bytes: u64,
}

/// Requests of both priorities.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassesBody {
    interactive: RequestsBody,
    batch: RequestsBody,
}

/// Requests of one priority.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestsBody {
    queued: u64,
    oldest_wait_us: u64,
    running: u64,
    answered: u64,
    cancelled: u64,
    expired: u64,
    p50_us: u64,
    p99_us: u64,
    p999_us: u64,
}

/// The HTTP server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerBody {
    /// Open connections.
    connections: usize,
    connections_max: usize,
    /// Searches that were answered.
    requests: u64,
    /// Requests that were rejected, by reason.
    refused: BTreeMap<&'static str, u64>,
    /// Requests whose client went away.
    cancelled: u64,
    /// Time that a new search would wait.
    expected_wait_us: u64,
    /// A search that would wait longer is rejected.
    wait_max_us: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryParameters {
    /// The last seconds, at most 600.
    #[param(maximum = 600, default = 600)]
    seconds: Option<usize>,
}

/// Samples of the last minutes, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryAnswer {
    columns: Columns,
}

/// A value for each second.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Columns {
    /// Seconds since 1970.
    time: Vec<u64>,
    /// Searches that were answered.
    answered: Vec<u64>,
    /// Requests that were rejected.
    refused: Vec<u64>,
    /// Percentiles of the time of searches; `null` without a search.
    p50_us: Vec<Option<u64>>,
    p99_us: Vec<Option<u64>>,
    p999_us: Vec<Option<u64>>,
    queued: Vec<u64>,
    running: Vec<u64>,
    /// Part of the requested pages that were cached; `null` if none was requested.
    cache_hit_rate: Vec<Option<f64>>,
    /// Bytes that were read.
    read_bytes: Vec<u64>,
    expected_wait_us: Vec<u64>,
    connections: Vec<u64>,
    cache_bytes: Vec<u64>,
}

/// Statistics
#[utoipa::path(
    get,
    path = "/stats",
    responses((status = 200, body = StatsAnswer), (status = "4XX", body = ErrorBody), (status = "5XX", body = ErrorBody)),
    tag = "stats"
)]
pub(crate) async fn get_stats(State(state): State<Arc<ServerState>>) -> Json<StatsAnswer> {
    let (expected, metrics) = (state.admission.expectation(), &state.metrics);
    Json(StatsAnswer {
        uptime_s: state.began.elapsed().as_secs(),
        draining: state.is_stopping(),
        engine: state.catalog.engine().map(EngineBody::of),
        server: ServerBody {
            connections: state.connections.count(),
            connections_max: state.connections.max(),
            requests: metrics.answered.load(Ordering::Relaxed),
            refused: metrics.refused.counts().into_iter().collect(),
            cancelled: metrics.cancelled.load(Ordering::Relaxed),
            expected_wait_us: expected.wait.as_micros() as u64,
            wait_max_us: expected.wait_max.as_micros() as u64,
        },
    })
}

/// Statistics of each of the last seconds
#[utoipa::path(
    get,
    path = "/stats/history",
    params(HistoryParameters),
    responses(
        (status = 200, body = HistoryAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "stats"
)]
pub(crate) async fn get_history(
    State(state): State<Arc<ServerState>>,
    Parameters(parameters): Parameters<HistoryParameters>,
) -> Result<Json<HistoryAnswer>, ApiError> {
    let seconds = parameters.seconds.unwrap_or(SAMPLES);
    if seconds > SAMPLES {
        let message = format!("seconds is {seconds}; at most {SAMPLES} is allowed");
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    let mut columns = Columns::default();
    let samples = state.history.last(seconds);
    samples.into_iter().for_each(|sample| columns.push(sample));
    Ok(Json(HistoryAnswer { columns }))
}

impl EngineBody {
    fn of(engine: &Engine) -> EngineBody {
        let (metrics, report) = (engine.metrics(), engine.memory());
        let memory = report.rows.iter();
        EngineBody {
            threads: engine.settings().threads,
            read_method: engine.read_method().to_string(),
            memory: memory
                .map(|row| MemoryBody { what: row.what, bytes: row.bytes, region: row.region.clone() })
                .collect(),
            dram: report.dram,
            cache: CacheBody {
                bytes: metrics.cache_bytes,
                hits: metrics.cache_hits,
                misses: metrics.cache_misses,
                evictions: metrics.evictions,
            },
            reads: ReadsBody { count: metrics.reads, bytes: metrics.bytes_read },
            requests: ClassesBody {
                interactive: RequestsBody::of(&metrics.interactive),
                batch: RequestsBody::of(&metrics.batch),
            },
        }
    }
}

impl RequestsBody {
    fn of(requests: &RequestMetrics) -> RequestsBody {
        RequestsBody {
            queued: requests.queued,
            oldest_wait_us: requests.oldest_wait.as_micros() as u64,
            running: requests.running,
            answered: requests.answered,
            cancelled: requests.cancelled,
            expired: requests.expired,
            p50_us: requests.latencies.p50.as_micros() as u64,
            p99_us: requests.latencies.p99.as_micros() as u64,
            p999_us: requests.latencies.p999.as_micros() as u64,
        }
    }
}

impl Columns {
    fn push(&mut self, sample: ServerSample) {
        let [p50, p99, p999] = sample.latencies.map_or([None; 3], |latencies| latencies.map(Some));
        self.time.push(sample.time);
        self.answered.push(sample.answered);
        self.refused.push(sample.refused);
        self.p50_us.push(p50);
        self.p99_us.push(p99);
        self.p999_us.push(p999);
        self.queued.push(sample.queued);
        self.running.push(sample.running);
        self.cache_hit_rate.push(sample.cache_hit_rate);
        self.read_bytes.push(sample.read_bytes);
        self.expected_wait_us.push(sample.expected_wait_us);
        self.connections.push(sample.connections);
        self.cache_bytes.push(sample.cache_bytes);
    }
}

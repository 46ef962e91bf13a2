//! Takes a sample of a server each second.

use crate::history::ServerSample;
use crate::state::ServerState;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tierdex::EngineMetrics;

/// Counters at the last sample.
#[derive(Default)]
struct Counted {
    answered: u64,
    refused: u64,
    hits: u64,
    misses: u64,
    bytes_read: u64,
}

/// Takes a sample each second, until its task ends.
pub(crate) async fn sample_each_second(state: &ServerState) {
    let mut counted = Counted::default();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sample = take_sample(state, &mut counted);
        state.history.push(sample);
    }
}

fn take_sample(state: &ServerState, before: &mut Counted) -> ServerSample {
    let engine = state.catalog.engine().map_or_else(EngineMetrics::default, |engine| engine.metrics());
    let now = Counted {
        answered: state.metrics.answered.load(Ordering::Relaxed),
        refused: state.metrics.refused.counts().iter().map(|(_, count)| count).sum(),
        hits: engine.cache_hits,
        misses: engine.cache_misses,
        bytes_read: engine.bytes_read,
    };
    let (hits, misses) = (now.hits - before.hits, now.misses - before.misses);
    let sample = ServerSample {
        time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        answered: now.answered - before.answered,
        refused: now.refused - before.refused,
        latencies: state.metrics.take_recent(),
        queued: engine.interactive.queued + engine.batch.queued,
        running: engine.interactive.running + engine.batch.running,
        cache_hit_rate: (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64),
        read_bytes: now.bytes_read - before.bytes_read,
        expected_wait_us: state.admission.expectation().wait.as_micros() as u64,
        connections: state.connections.count() as u64,
        cache_bytes: engine.cache_bytes,
    };
    *before = now;
    sample
}

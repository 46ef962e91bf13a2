//! The metrics of a server as text, in the format OpenMetrics or in the older one of Prometheus.

use crate::state::ServerState;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use tierdex::RequestMetrics;

/// Indexes with metrics of their own, at most.
const INDEXES_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabel {
    what: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IndexLabel {
    index: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
    read_method: String,
}

/// Converts text from OpenMetrics to the format of Prometheus (0.0.4): names of counters have their suffix,
/// and there are neither units nor an end.
pub(crate) fn prometheus_text(open_metrics: &str) -> String {
    let counter_of = |line: &str| Some(line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?.to_string());
    let counters: HashSet<String> = open_metrics.lines().filter_map(counter_of).collect();
    let mut text = String::with_capacity(open_metrics.len() + 8 * counters.len());
    for line in open_metrics.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let named = ["# HELP ", "# TYPE "].iter().find_map(|start| Some((start, line.strip_prefix(start)?)));
        match named.and_then(|(start, rest)| Some((start, rest.split_once(' ')?))) {
            Some((start, (name, rest))) if counters.contains(name) => {
                text.extend([start, name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// All metrics of a server in the format OpenMetrics. Values are read when it is called.
pub(crate) fn metrics_text(state: &ServerState) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("tierdex");
    add_requests(&mut registry, state);
    add_engine(&mut registry, state);
    add_indexes(&mut registry, state);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn add_requests(registry: &mut Registry, state: &ServerState) {
    let metrics = &state.metrics;
    registry.register("http_requests", "Requests by route and status", metrics.requests.clone());
    let refused = Family::<ReasonLabel, Counter>::default();
    for (reason, count) in metrics.refused.counts() {
        refused.get_or_create(&ReasonLabel { reason }).inc_by(count);
    }
    registry.register("refused", "Requests that were rejected, by reason", refused);
    add_counter(
        registry,
        "cancelled",
        "Requests whose client went away",
        metrics.cancelled.load(Ordering::Relaxed),
    );
    let failures = metrics.reload_failures.load(Ordering::Relaxed);
    let help = "Files of keys or of the certificate that could not be read again";
    add_counter(registry, "reload_failures", help, failures);
    let seconds = |registry: &mut Registry, name, help, histogram: &Histogram| {
        registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
    };
    seconds(registry, "request", "Time of searches from arrival to result", &metrics.request_seconds);
    seconds(registry, "queue", "Time of searches in the queue", &metrics.queue_seconds);
    let read = metrics.read_bytes.clone();
    registry.register_with_unit("query_read", "Bytes that a search read from disk", Unit::Bytes, read);
    let wait = state.admission.expectation().wait.as_secs_f64();
    let help = "Time that a new request would wait";
    registry.register_with_unit("expected_wait", help, Unit::Seconds, ConstGauge::new(wait));
    add_gauge(registry, "connections", "Open connections", state.connections.count() as u64);
    add_counter(
        registry,
        "refresh_failures",
        "Commits that could not be opened",
        state.catalog.refresh_failures(),
    );
}

fn add_engine(registry: &mut Registry, state: &ServerState) {
    let read_method = state.catalog.engine().map_or("none", |engine| engine.read_method()).to_string();
    let build = Family::<BuildLabels, Gauge>::default();
    build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION"), read_method }).set(1);
    registry.register("build_info", "Version, and how files are read", build);
    let Some(engine) = state.catalog.engine() else { return };
    let memory = Family::<PartLabel, Gauge>::default();
    for row in &engine.memory().rows {
        memory.get_or_create(&PartLabel { what: row.what }).inc_by(row.bytes as i64);
    }
    registry.register_with_unit("memory", "The memory report, by part", Unit::Bytes, memory);
    let metrics = engine.metrics();
    registry.register_with_unit("budget", "Memory budget", Unit::Bytes, ConstGauge::new(state.options.dram));
    let cache = ConstGauge::new(metrics.cache_bytes);
    registry.register_with_unit("cache", "Bytes of the page cache now", Unit::Bytes, cache);
    for (name, help, value) in [
        ("cache_hits", "Pages that were cached when they were requested", metrics.cache_hits),
        ("cache_misses", "Pages that were not cached when they were requested", metrics.cache_misses),
        ("cache_evictions", "Pages that were evicted from the cache", metrics.evictions),
        ("reads", "Reads into the cache", metrics.reads),
        ("read_bytes", "Bytes of the reads into the cache", metrics.bytes_read),
    ] {
        add_counter(registry, name, help, value);
    }
    let classes = [("interactive", &metrics.interactive), ("batch", &metrics.batch)];
    let of_classes = |value: fn(&RequestMetrics) -> u64| {
        let family = Family::<ClassLabel, Gauge>::default();
        classes.into_iter().for_each(|(class, requests)| {
            family.get_or_create(&ClassLabel { class }).set(value(requests) as i64);
        });
        family
    };
    registry.register("queue_depth", "Queued requests", of_classes(|requests| requests.queued));
    registry.register("running", "Running evaluations", of_classes(|requests| requests.running));
}

fn add_indexes(registry: &mut Registry, state: &ServerState) {
    let of_indexes = Family::<IndexLabel, Gauge>::default;
    let (generation, documents, segments) = (of_indexes(), of_indexes(), of_indexes());
    let stale = Family::<IndexLabel, Gauge<f64, AtomicU64>>::default();
    for served in state.catalog.indexes().iter().take(INDEXES_MAX) {
        let label = IndexLabel { index: served.name.clone() };
        let snapshot = served.snapshot();
        let manifest = snapshot.index().manifest();
        generation.get_or_create(&label).set(manifest.generation as i64);
        documents.get_or_create(&label).set(manifest.live_documents() as i64);
        segments.get_or_create(&label).set(manifest.segments.len() as i64);
        let since = served.stale().map(|stale| stale.since.elapsed().unwrap_or_default());
        stale.get_or_create(&label).set(since.unwrap_or_default().as_secs_f64());
    }
    registry.register("index_generation", "Number of the commit that is served", generation);
    registry.register("index_documents", "Documents that are not deleted", documents);
    registry.register("index_segments", "Segments", segments);
    let help = "Time since the newest commit could not be opened, 0 if it is served";
    registry.register_with_unit("index_stale", help, Unit::Seconds, stale);
}

fn add_counter(registry: &mut Registry, name: &'static str, help: &'static str, value: u64) {
    let counter: Counter = Counter::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

fn add_gauge(registry: &mut Registry, name: &'static str, help: &'static str, value: u64) {
    registry.register(name, help, ConstGauge::new(value));
}

#[cfg(test)]
mod tests {
    use super::prometheus_text;

    #[test]
    fn names_of_counters_have_their_suffix() {
        let open = "# HELP a_b Things.\n# TYPE a_b counter\na_b_total{c=\"d\"} 1\n# HELP e_seconds Time.\n\
                    # TYPE e_seconds histogram\n# UNIT e_seconds seconds\ne_seconds_sum 1.5\n# EOF\n";
        let text = "# HELP a_b_total Things.\n# TYPE a_b_total counter\na_b_total{c=\"d\"} 1\n# HELP e_seconds \
                    Time.\n# TYPE e_seconds histogram\ne_seconds_sum 1.5\n";
        assert_eq!(prometheus_text(open), text);
    }
}

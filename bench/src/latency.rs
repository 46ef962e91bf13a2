//! Latency of single requests, alone and beside a batch.
//!
//! *Input*: an index, queries, and options of an engine. *Output*: median and 99th percentile of the latency
//! of interactive requests, submitted one at a time, while the engine is idle otherwise and while an endless
//! batch runs; and of requests that arrive at given rates.
//!
//! 1. All queries are answered once to fill the cache.
//! 2. In each of three rounds the queries are submitted alone, and then beside the batch. The hits of
//!    both passes must be equal.
//! 3. For each rate, as many requests as in all rounds arrive at random times (a Poisson process), whether
//!    or not earlier ones are answered. A request that finds the queue of the engine full is rejected.
//! 4. The latencies of all rounds are pooled. A latency is the time from the arrival of a request to its
//!    answer.

use crate::{Error, Result, query_lines, random::Random};
use clap::Args;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{collections::VecDeque, io::Write, path::PathBuf, time::Duration, time::Instant};
use tierdex::{Engine, EngineOptions, Hits, Index, Query, SearchHit, SearchRequest, Ticket};

/// Flags of the experiment.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    pub dir: PathBuf,
    /// File of queries in the query language, one per line
    #[arg(long)]
    pub queries: PathBuf,
    /// Hits per query
    #[arg(short, default_value_t = 10)]
    pub k: usize,
    /// Count all matching documents; without it the number of matches is a lower bound
    #[arg(long)]
    pub count: bool,
    /// Query threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZero<usize>>,
    /// Measure also requests that arrive at random times, RATE per second
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = parse_rate)]
    pub rates: Vec<f64>,
    /// Do not read the external ids of hits
    #[arg(long)]
    pub without_ids: bool,
    /// Measure only requests that arrive at these rates, each query once, with an empty cache
    #[arg(long, requires = "rates")]
    pub cold: bool,
}

fn parse_rate(text: &str) -> std::result::Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (1e-3..=1e6).contains(rate));
    rate.ok_or_else(|| "expected requests per second, from 0.001 to 1000000".to_string())
}

/// How often all queries are submitted alone, and as often beside the batch, in turn.
const SUBMISSION_ROUNDS: usize = 3;

/// Seed of arrival times.
const ARRIVAL_SEED: u64 = 1;

/// The requests of one row: submitted alone, beside the batch, or at a rate of arrivals.
#[derive(Default)]
struct LatencyCase {
    latencies: Vec<Duration>,
    hits: Vec<Vec<SearchHit>>,
    time: Duration,
    /// Number of requests that were divided among several threads.
    divided: usize,
    /// Number of requests that were rejected because the queue was full.
    rejected: usize,
}

impl LatencyCase {
    fn add(&mut self, late: Duration, answer: &Hits) {
        self.latencies.push(late + answer.took);
        self.divided += usize::from(answer.parts > 1);
    }

    fn percentile_micros(&self, percent: usize) -> f64 {
        let at = (self.latencies.len() * percent / 100).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(at).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e6)
    }

    /// The row of these requests. The latencies must be sorted.
    fn row(&self, requests: &str) -> Value {
        let count = self.latencies.len() as f64;
        json!({
            "requests": requests,
            "p50_us": self.percentile_micros(50),
            "p99_us": self.percentile_micros(99),
            "divided": self.divided as f64 / count,
            "qps": count / self.time.as_secs_f64(),
            "rejected": self.rejected,
        })
    }
}

/// Measures, and prints a line of JSON for requests alone, beside a batch, and at each rate.
///
/// # Errors
/// If the queries or the index cannot be read, if the memory budget is too small, or if output fails.
pub fn run(index: &Index, options: &EngineOptions, flags: &Flags, out: &mut dyn Write) -> Result<()> {
    let queries = query_lines::read_queries(&flags.queries, index)?;
    let request = |query: &Query| {
        let request = SearchRequest::new(query.clone()).k(flags.k).count(flags.count);
        request.ids(!flags.without_ids)
    };
    let mut rows = Vec::new();
    if flags.cold {
        for rate in &flags.rates {
            let engine = Engine::new(index, options)?;
            rows.push(submit_at_rate(&engine, &[], &queries, request, *rate)?.row(&format!("{rate}/s")));
        }
        return write_rows(&rows, out);
    }
    let engine = Engine::new(index, options)?;
    let mut warm = queries.iter();
    engine.run_ordered(|| Ok(warm.next().map(request)), |_, answer| answer.map(drop))?;
    let (mut alone, mut beside) = (LatencyCase::default(), LatencyCase::default());
    let (answered, mut in_batch) = (AtomicU64::new(0), 0);
    for _ in 0..SUBMISSION_ROUNDS {
        submit_all(&engine, &queries, request, &mut alone)?;
        let ends = AtomicBool::new(false);
        let batch = || {
            let mut endless = queries.iter().cycle();
            let next =
                || Ok((!ends.load(Ordering::Relaxed)).then(|| request(endless.next().expect("a query"))));
            engine.run_ordered(next, |_, answer| {
                answered.fetch_add(1, Ordering::Relaxed);
                answer.map(drop)
            })
        };
        std::thread::scope(|scope| {
            let batch = scope.spawn(batch);
            let before = answered.load(Ordering::Relaxed);
            let submitted = submit_all(&engine, &queries, request, &mut beside);
            in_batch += answered.load(Ordering::Relaxed) - before;
            ends.store(true, Ordering::Relaxed);
            submitted.and(batch.join().expect("a batch does not panic"))
        })?;
        if alone.hits != beside.hits {
            return Err(Error::Failed("a query has other hits beside a batch than alone".to_string()));
        }
    }
    [&mut alone, &mut beside].into_iter().for_each(|case| case.latencies.sort_unstable());
    rows.extend([alone.row("alone"), beside.row("beside")]);
    rows[1]["batch_qps"] = (in_batch as f64 / beside.time.as_secs_f64()).into();
    for rate in &flags.rates {
        rows.push(submit_at_rate(&engine, &alone.hits, &queries, request, *rate)?.row(&format!("{rate}/s")));
    }
    write_rows(&rows, out)
}

fn write_rows(rows: &[Value], out: &mut dyn Write) -> Result<()> {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    out.write_all(lines.as_bytes()).map_err(Error::Output)
}

/// Submits all queries, each after the answer to the one before.
fn submit_all(
    engine: &Engine,
    queries: &[Query],
    request: impl Fn(&Query) -> SearchRequest,
    case: &mut LatencyCase,
) -> tierdex::Result<()> {
    let began = Instant::now();
    case.hits.clear();
    for query in queries {
        let answer = engine.submit(request(query))?.wait()?;
        case.add(Duration::ZERO, &answer);
        case.hits.push(answer.hits);
    }
    case.time += began.elapsed();
    Ok(())
}

/// Submits all queries in each round, at random times: `rate` per second. Their hits must be `hits`; if there
/// are none, the queries are submitted once. The latencies are sorted.
fn submit_at_rate(
    engine: &Engine,
    hits: &[Vec<SearchHit>],
    queries: &[Query],
    request: impl Fn(&Query) -> SearchRequest,
    rate: f64,
) -> Result<LatencyCase> {
    let mut random = Random::new(ARRIVAL_SEED);
    let (mut arrival, began) = (Duration::ZERO, Instant::now());
    let (mut waiting, mut case) = (VecDeque::new(), LatencyCase::default());
    let end = |case: &mut LatencyCase, late: Duration, answer: Hits, hits: Option<&Vec<SearchHit>>| {
        case.add(late, &answer);
        if hits.is_some_and(|hits| answer.hits != *hits) {
            return Err(Error::Failed(format!("a query has other hits at {rate} requests/s than alone")));
        }
        Ok(())
    };
    let rounds = if hits.is_empty() { 1 } else { SUBMISSION_ROUNDS };
    for number in 0..rounds * queries.len() {
        let (query, hits) = (&queries[number % queries.len()], hits.get(number % queries.len()));
        // Results count towards the budget until they are taken.
        while let Some((late, answer, hits)) = waiting
            .front()
            .and_then(|(late, ticket, hits): &(_, Ticket, _)| Some((*late, ticket.poll()?, *hits)))
        {
            end(&mut case, late, answer?, hits)?;
            waiting.pop_front();
        }
        arrival += Duration::from_secs_f64(-(1.0 - random.unit()).ln() / rate);
        std::thread::sleep(arrival.saturating_sub(began.elapsed()));
        // A request that is submitted late has waited since its arrival.
        let late = began.elapsed().saturating_sub(arrival);
        match engine.submit(request(query)) {
            Ok(ticket) => waiting.push_back((late, ticket, hits)),
            Err(tierdex::Error::Overloaded { .. }) => case.rejected += 1,
            Err(error) => return Err(error.into()),
        }
    }
    for (late, ticket, hits) in waiting {
        end(&mut case, late, ticket.wait()?, hits)?;
    }
    case.time = began.elapsed();
    case.latencies.sort_unstable();
    Ok(case)
}

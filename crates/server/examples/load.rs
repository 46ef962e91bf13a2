//! Sends searches to servers, and prints how many were answered or rejected and how fast: at a rate that does
//! not depend on the answers (an open loop), or one after the other on each connection.
//!
//! ```text
//! cargo run --release -p tierdex-server --example load -- 127.0.0.1:8765[,HOST:PORT...] INDEX QUERIES \
//!     [--words N-M] [--rate N] [--connections N] [--seconds N] [--rounds N] [--k N] [--count]
//! ```
//!
//! *Input*: QUERIES has a query in each line, or behind its last tab. With `--words` it is a text with a
//! document in each line, and N to M words of a line are a query. Several servers have their turn in each
//! round, in alternating order.
//!
//! *Output*: for each status its number and rate, and percentiles of the latency in milliseconds, from the
//! time at which a request was due, so that one that the generator sends late counts as slow; percentiles of
//! the latency without the search; and how late requests were sent. Of several rounds the median of the
//! rate; of several servers the ratio of the first to each of the others in a round, median, least and
//! greatest, and which part of the documents of the hits they have in common.

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: load HOST:PORT[,HOST:PORT...] INDEX QUERIES [--words N-M] [--rate N] \
                     [--connections N] [--seconds N] [--rounds N] [--k N] [--count]";

/// Queries of a text, at most.
const TEXT_QUERIES_MAX: usize = 2000;

/// What is sent, and how.
struct Load {
    addresses: Vec<String>,
    requests: Vec<Vec<u8>>,
    rounds: usize,
    /// Requests a second; `None` sends each when the one before was answered.
    rate: Option<f64>,
    connections: usize,
    time: Duration,
}

/// One request and its answer.
struct RequestSample {
    /// Number of the query.
    query: usize,
    /// The documents of the hits.
    documents: Vec<u64>,
    status: u16,
    latency: Duration,
    late: Duration,
    /// Time from the arrival of the search to its result, as the server says.
    took: Duration,
}

impl RequestSample {
    /// What the way over HTTP adds to the search.
    fn added(&self) -> Duration {
        self.latency.saturating_sub(self.took + self.late)
    }
}

/// The samples of one server in a round.
struct RoundSamples {
    samples: Vec<RequestSample>,
    elapsed: Duration,
}

impl RoundSamples {
    /// Answered requests a second.
    fn rate(&self) -> f64 {
        let answered = self.samples.iter().filter(|sample| sample.status == 200).count();
        answered as f64 / self.elapsed.as_secs_f64()
    }
}

impl Load {
    fn parse(arguments: &[String]) -> Result<Load, Box<dyn Error>> {
        let [addresses, index, queries, flags @ ..] = arguments else { return Err(USAGE.into()) };
        let (mut rate, mut connections, mut seconds, mut k, mut count) = (None, 8, 5.0, 10, false);
        let (mut words, mut rounds) = (None, 1);
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || flags.next().ok_or(USAGE);
            match flag.as_str() {
                "--words" => {
                    let (least, greatest) = value()?.split_once('-').ok_or(USAGE)?;
                    let range: RangeInclusive<usize> = least.parse()?..=greatest.parse()?;
                    if *range.start() == 0 || range.is_empty() {
                        return Err(USAGE.into());
                    }
                    words = Some(range);
                }
                "--rate" => rate = Some(value()?.parse()?),
                "--connections" => connections = value()?.parse()?,
                "--seconds" => seconds = value()?.parse()?,
                "--rounds" => rounds = value()?.parse::<NonZero<usize>>()?.get(),
                "--k" => k = value()?.parse()?,
                "--count" => count = true,
                _ => return Err(USAGE.into()),
            }
        }
        let text = std::fs::read_to_string(queries)?;
        let queries: Vec<String> = match words {
            Some(words) => queries_of_text(&text, &words),
            None => {
                text.lines().map(|line| line.rsplit('\t').next().unwrap_or_default().trim().into()).collect()
            }
        };
        let requests: Vec<Vec<u8>> = queries
            .iter()
            .filter(|query| !query.is_empty())
            .map(|query| {
                let body = json!({ "query": query, "syntax": "lenient", "k": k, "count": count }).to_string();
                let head = format!(
                    "POST /api/v1/indexes/{index}/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: \
                     application/json\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                (head + &body).into_bytes()
            })
            .collect();
        if requests.is_empty() {
            return Err("there are no queries".into());
        }
        let addresses = addresses.split(',').map(str::to_string).collect();
        let time = Duration::from_secs_f64(seconds);
        Ok(Load { addresses, requests, rounds, rate, connections, time })
    }

    /// The samples of each server, by rounds.
    fn run(&self) -> std::io::Result<Vec<Vec<RoundSamples>>> {
        let mut servers: Vec<Vec<RoundSamples>> = self.addresses.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            for turn in 0..servers.len() {
                let server = if round % 2 == 0 { turn } else { servers.len() - 1 - turn };
                let begin = Instant::now();
                let samples = self.send(&self.addresses[server])?;
                servers[server].push(RoundSamples { samples, elapsed: begin.elapsed() });
            }
        }
        Ok(servers)
    }

    /// Sends requests until the time is over.
    fn send(&self, address: &str) -> std::io::Result<Vec<RequestSample>> {
        let (next, begin) = (AtomicUsize::new(0), Instant::now());
        let send = || {
            let mut stream = BufReader::new(TcpStream::connect(address)?);
            stream.get_ref().set_nodelay(true)?;
            let mut samples = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let due = match self.rate {
                    Some(rate) => begin + Duration::from_secs_f64(number as f64 / rate),
                    None => Instant::now(),
                };
                if due - begin > self.time {
                    return Ok(samples);
                }
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let late = due.elapsed();
                let query = number % self.requests.len();
                let (status, answer) = ask(&mut stream, &self.requests[query])?;
                let latency = due.elapsed();
                let took = Duration::from_micros(answer["took_us"].as_u64().unwrap_or_default());
                let hits = answer["hits"].as_array().into_iter().flatten();
                let documents = hits.filter_map(|hit| hit["document"].as_u64()).collect();
                samples.push(RequestSample { query, documents, status, latency, late, took });
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections).map(|_| scope.spawn(send)).collect();
            let results = threads.into_iter().map(|thread| thread.join().expect("a connection failed"));
            Ok(results.collect::<std::io::Result<Vec<_>>>()?.into_iter().flatten().collect())
        })
    }
}

/// Queries of some words of some lines, spread evenly over lines and their words.
fn queries_of_text(text: &str, words: &RangeInclusive<usize>) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let chosen = lines.iter().step_by(lines.len().div_ceil(TEXT_QUERIES_MAX).max(1)).enumerate();
    let query = |(number, line): (usize, &&str)| {
        let all: Vec<&str> = line.split_whitespace().collect();
        let count = words.start() + number % (words.end() + 1 - words.start());
        let query: Vec<&str> = (0..count).filter_map(|at| all.get(at * all.len() / count).copied()).collect();
        (all.len() >= count).then(|| query.join(" "))
    };
    chosen.filter_map(query).collect()
}

/// Sends a request; returns the status and the body of the answer.
fn ask(stream: &mut BufReader<TcpStream>, request: &[u8]) -> std::io::Result<(u16, Value)> {
    stream.get_mut().write_all(request)?;
    let (mut line, mut status, mut length) = (String::new(), 0, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::Error::other("the server closed a connection"));
        }
        match line.trim_end().split_once([' ', ':']) {
            None if line.trim_end().is_empty() => break,
            Some(("HTTP/1.1", rest)) => status = rest[..3].parse().unwrap_or_default(),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or_default();
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Prints the samples of all rounds of a server.
fn print_server(rounds: &[RoundSamples]) {
    let at = |sorted: &[Duration], part: f64| {
        sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3
    };
    let percentiles = |mut times: Vec<Duration>| {
        times.sort_unstable();
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|part| at(&times, part));
        format!("p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, p99.9 {p999:.3} ms")
    };
    let samples = || rounds.iter().flat_map(|round| &round.samples);
    let elapsed: Duration = rounds.iter().map(|round| round.elapsed).sum();
    let mut by_status: BTreeMap<u16, Vec<&RequestSample>> = BTreeMap::new();
    samples().for_each(|sample| by_status.entry(sample.status).or_default().push(sample));
    for (status, samples) in by_status {
        let rate = samples.len() as f64 / elapsed.as_secs_f64();
        let latencies = percentiles(samples.iter().map(|sample| sample.latency).collect());
        println!("{status}: {} requests, {rate:.0}/s, {latencies}", samples.len());
        let added = percentiles(samples.iter().map(|sample| sample.added()).collect());
        println!("  beside the search: {added}");
    }
    if samples().next().is_some() {
        println!("sent late: {}", percentiles(samples().map(|sample| sample.late).collect()));
    }
    if rounds.len() > 1 {
        let [median, ..] = spread(rounds.iter().map(RoundSamples::rate).collect());
        println!("median of {} rounds: {median:.0}/s answered", rounds.len());
    }
}

/// Prints the ratio of the rates of two servers, and what their hits have in common.
fn print_ratio(first: &[RoundSamples], other: &[RoundSamples]) {
    let ratios = first.iter().zip(other).map(|(first, other)| first.rate() / other.rate());
    let [median, least, greatest] = spread(ratios.collect());
    let hits = |rounds: &[RoundSamples]| -> HashMap<usize, Vec<u64>> {
        let samples = rounds.iter().flat_map(|round| &round.samples);
        samples.map(|sample| (sample.query, sample.documents.clone())).collect()
    };
    let (first, other) = (hits(first), hits(other));
    let both = first.iter().filter_map(|(query, hits)| Some((hits, other.get(query)?)));
    let (mut common, mut all) = (0, 0);
    for (hits, others) in both {
        common += hits.iter().filter(|document| others.contains(document)).count();
        all += hits.len().max(others.len());
    }
    println!(
        "the first to this: {median:.2} ({least:.2} to {greatest:.2}); {common} of {all} hits in common"
    );
}

/// Median, least and greatest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    [(low + high) / 2.0, values[0], values[values.len() - 1]]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = Load::parse(&arguments).and_then(|load| Ok((load.run()?, load.addresses)));
    let (servers, addresses) = match run {
        Ok(run) => run,
        Err(error) => {
            eprintln!("load: {error}");
            return ExitCode::from(2);
        }
    };
    for (number, (rounds, address)) in servers.iter().zip(addresses).enumerate() {
        println!("{address}");
        print_server(rounds);
        if number > 0 {
            print_ratio(&servers[0], rounds);
        }
    }
    ExitCode::SUCCESS
}

//! Sends searches to a server at a rate that does not depend on its answers (an open loop), or one after the
//! other on each connection, and prints how many were answered, rejected and how fast.
//!
//! ```text
//! cargo run --release -p tierdex-server --example load -- 127.0.0.1:8765 INDEX QUERIES \
//!     [--rate N] [--connections N] [--seconds N] [--k N] [--count]
//! ```
//!
//! *Input*: QUERIES has a query in each line, or behind its last tab. *Output*: for each status its number
//! and rate, and percentiles of the latency in milliseconds, from the time at which a request was due, so
//! that one that the generator sends late counts as slow; percentiles of the latency without the search; and
//! how late requests were sent.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str =
    "usage: load HOST:PORT INDEX QUERIES [--rate N] [--connections N] [--seconds N] [--k N] [--count]";

/// What is sent, and how.
struct Load {
    address: String,
    requests: Vec<Vec<u8>>,
    /// Requests a second; `None` sends each when the one before was answered.
    rate: Option<f64>,
    connections: usize,
    time: Duration,
}

/// One request and its answer.
struct RequestSample {
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

impl Load {
    fn parse(arguments: &[String]) -> Result<Load, Box<dyn Error>> {
        let [address, index, queries, flags @ ..] = arguments else { return Err(USAGE.into()) };
        let (mut rate, mut connections, mut seconds, mut k, mut count) = (None, 8, 5.0, 10, false);
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || flags.next().ok_or(USAGE);
            match flag.as_str() {
                "--rate" => rate = Some(value()?.parse()?),
                "--connections" => connections = value()?.parse()?,
                "--seconds" => seconds = value()?.parse()?,
                "--k" => k = value()?.parse()?,
                "--count" => count = true,
                _ => return Err(USAGE.into()),
            }
        }
        let text = std::fs::read_to_string(queries)?;
        let queries = text.lines().map(|line| line.rsplit('\t').next().unwrap_or_default().trim());
        let requests: Vec<Vec<u8>> = queries
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
        let time = Duration::from_secs_f64(seconds);
        Ok(Load { address: address.clone(), requests, rate, connections, time })
    }

    /// Sends requests until the time is over.
    fn run(&self) -> std::io::Result<Vec<RequestSample>> {
        let (next, begin) = (AtomicUsize::new(0), Instant::now());
        let send = || {
            let mut stream = BufReader::new(TcpStream::connect(&self.address)?);
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
                let (status, took) = ask(&mut stream, &self.requests[number % self.requests.len()])?;
                samples.push(RequestSample { status, latency: due.elapsed(), late, took });
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections).map(|_| scope.spawn(send)).collect();
            let results = threads.into_iter().map(|thread| thread.join().expect("a connection failed"));
            Ok(results.collect::<std::io::Result<Vec<_>>>()?.into_iter().flatten().collect())
        })
    }
}

/// Sends a request; returns the status of the answer and the time of the search.
fn ask(stream: &mut BufReader<TcpStream>, request: &[u8]) -> std::io::Result<(u16, Duration)> {
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
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok((status, Duration::from_micros(answer["took_us"].as_u64().unwrap_or_default())))
}

fn print(samples: &[RequestSample], elapsed: Duration) {
    let at = |sorted: &[Duration], part: f64| {
        sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3
    };
    let percentiles = |mut times: Vec<Duration>| {
        times.sort_unstable();
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|part| at(&times, part));
        format!("p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, p99.9 {p999:.3} ms")
    };
    let mut by_status: BTreeMap<u16, Vec<&RequestSample>> = BTreeMap::new();
    samples.iter().for_each(|sample| by_status.entry(sample.status).or_default().push(sample));
    for (status, samples) in by_status {
        let rate = samples.len() as f64 / elapsed.as_secs_f64();
        let latencies = percentiles(samples.iter().map(|sample| sample.latency).collect());
        println!("{status}: {} requests, {rate:.0}/s, {latencies}", samples.len());
        println!(
            "  beside the search: {}",
            percentiles(samples.iter().map(|sample| sample.added()).collect())
        );
    }
    println!("sent late: {}", percentiles(samples.iter().map(|sample| sample.late).collect()));
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = Load::parse(&arguments).and_then(|load| {
        let begin = Instant::now();
        Ok((load.run()?, begin.elapsed()))
    });
    match run {
        Ok((samples, elapsed)) => print(&samples, elapsed),
        Err(error) => {
            eprintln!("load: {error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

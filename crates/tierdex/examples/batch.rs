//! Answers a file of queries, one per line, and reports the throughput:
//! `cargo run --release --example batch -- DIR QUERIES BYTES`

use std::io::{BufRead, BufReader};
use std::time::Instant;
use tierdex::{Engine, EngineOptions, Query, SearchRequest};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, queries, bytes] = arguments.as_slice() else {
        return Err("usage: batch DIR QUERIES BYTES".into());
    };
    let engine = Engine::open(dir, &EngineOptions::new().dram(bytes.parse()?))?;
    let schema = engine.snapshot().schema().clone();
    let mut lines = BufReader::new(std::fs::File::open(queries)?).lines();
    let (start, mut answered, mut hits) = (Instant::now(), 0, 0);
    engine.run_ordered(
        || {
            let Some(line) = lines.next().transpose()? else { return Ok(None) };
            Ok(Some(SearchRequest::new(Query::parse(&line, &schema)?)))
        },
        |_, result| {
            answered += 1;
            hits += result?.hits.len();
            Ok::<(), Box<dyn std::error::Error>>(())
        },
    )?;
    println!("{answered} queries, {hits} hits in {:?}", start.elapsed());
    Ok(())
}

//! Answers queries from standard input, one per line, within a memory budget:
//! `cargo run --release --example search -- DIR [BYTES]`

use std::time::{Duration, Instant};
use tierdex::{Engine, EngineOptions, Query, SearchRequest};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("usage: search DIR [BYTES]")?;
    let mut options = EngineOptions::new();
    if let Some(bytes) = arguments.next() {
        options = options.dram(bytes.parse()?);
    }
    let engine = Engine::open(&dir, &options)?;
    println!("{}", engine.memory());
    for line in std::io::stdin().lines() {
        let snapshot = engine.snapshot();
        let query = match Query::parse(&line?, snapshot.schema()) {
            Ok(query) => query,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        let deadline = Instant::now() + Duration::from_secs(1);
        let hits = engine.search(SearchRequest::new(query).deadline(deadline))?;
        println!("{:?} in {:?}", hits.total, hits.took);
        for (hit, id) in hits.hits.iter().zip(hits.ids()?) {
            println!("{:8.3}  {id}", hit.score);
        }
    }
    Ok(())
}

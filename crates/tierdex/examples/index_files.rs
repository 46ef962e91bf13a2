//! Indexes text files: `cargo run --release --example index_files -- DIR FILE...`

use std::{num::NonZero, thread::available_parallelism};
use tierdex::{Document, IndexWriter, Merge, Schema, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("usage: index_files DIR FILE...")?;
    let paths: Vec<String> = arguments.collect();
    let documents = paths.into_iter().filter_map(|path| match std::fs::read_to_string(&path) {
        Ok(text) => Some(Document::new(path).with("text", text)),
        Err(error) => {
            eprintln!("{path}: {error}; skipped");
            None
        }
    });
    let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
    writer.add_all(documents, available_parallelism().map_or(1, NonZero::get))?;
    writer.commit(Merge::One)?;
    println!("{dir}: {} documents", writer.documents());
    Ok(())
}

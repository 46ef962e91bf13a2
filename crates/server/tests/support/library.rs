//! An index of two fields and of other members, for the requests of clients of Elasticsearch.
#![allow(dead_code, reason = "each test uses a part")]

use super::{TestServer, WORDS, options, text_of};
use serde_json::{Value, json};
use std::path::Path;
use tierdex::schema::{Field, Stored};
use tierdex::{Document, Engine, EngineOptions, IndexWriter, Merge, Schema, WriterOptions};
use tierdex_server::Compat;

pub const DOCUMENTS: usize = 400;

/// The title of a document: two words.
pub fn title_of(number: usize) -> String {
    format!("{} {}", WORDS[number % WORDS.len()], WORDS[number * 7 % 5])
}

/// What a document has beside title and text.
pub fn others_of(number: usize) -> Value {
    json!({
        "year": 1900 + number,
        "big": 9_007_199_254_740_993u64,
        "author": { "name": format!("author {number}"), "age": number % 90 },
        "notes": [{ "a": 1, "b": number }, { "a": 2 }],
    })
}

pub fn source_of(number: usize) -> Value {
    let mut source = json!({ "title": title_of(number), "text": text_of(number as u64) });
    let others = others_of(number);
    source.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    source
}

fn write_library(dir: &Path) {
    let mut fields = ["title", "text"].map(|name| Field::new(name, &[name]));
    fields.iter_mut().for_each(|field| field.positions = true);
    let mut schema = Schema::of(fields.into());
    schema.stored = Stored::All;
    let options = WriterOptions { memory: 16 << 20, updatable: true, ..WriterOptions::default() };
    let mut writer = IndexWriter::create(dir, schema, options).unwrap();
    let documents = (0..DOCUMENTS).map(|number| {
        let document = Document::new(format!("d{number}")).with("title", title_of(number));
        let mut document = document.with("text", text_of(number as u64));
        document.others = others_of(number).to_string();
        document
    });
    writer.add_all(documents, 1).unwrap();
    writer.commit(Merge::One).unwrap();
}

/// A server of the index `library`, and an engine of the same index.
pub fn serve_library(compat: Compat) -> (tempfile::TempDir, TestServer, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("library");
    write_library(&dir);
    let mut options = options(&[folder.path()]);
    options.compat = compat;
    options.wait_max = std::time::Duration::from_secs(10);
    let engine = Engine::open(&dir, &EngineOptions::new()).unwrap();
    (folder, TestServer::start(options), engine)
}

//! Indexing: tokens as they stand, ids and frequencies, one thread, one segment.
//!
//! 1. each line is a document: its tokens, and its ordinal as a column, so that hits can be named by it;
//! 2. one thread indexes; what it flushed is merged to one segment at the end.

use crate::Result;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{FAST, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::WhitespaceTokenizer;
use tantivy::{Index, TantivyDocument};

/// Name of the field of tokens.
pub const TOKENS: &str = "tokens";
/// Name of the column of ordinals.
pub const ORDINAL: &str = "ordinal";
const TOKENIZER: &str = "blanks";

/// Indexes `tokens` into the new directory `dir`, with `memory` bytes for what waits to be written.
pub fn run(tokens: &Path, dir: &Path, memory: usize) -> Result<()> {
    let file = File::open(tokens).map_err(|error| format!("cannot read {}: {error}", tokens.display()))?;
    fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let documents = write(BufReader::with_capacity(1 << 20, file), dir, memory)
        .map_err(|error| format!("cannot index {} into {}: {error}", tokens.display(), dir.display()))?;
    println!("{documents} documents");
    Ok(())
}

/// A tokenizer is kept by name only: whoever opens an index must name it again.
pub fn register(index: &Index) {
    index.tokenizers().register(TOKENIZER, WhitespaceTokenizer::default());
}

fn schema() -> Schema {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(true);
    schema.add_text_field(TOKENS, TextOptions::default().set_indexing_options(indexing));
    schema.add_u64_field(ORDINAL, FAST);
    schema.build()
}

fn write(mut lines: impl BufRead, dir: &Path, memory: usize) -> tantivy::Result<u64> {
    let schema = schema();
    let (tokens, ordinal) = (schema.get_field(TOKENS)?, schema.get_field(ORDINAL)?);
    let index = Index::create_in_dir(dir, schema)?;
    register(&index);
    let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, memory)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let mut documents = 0;
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let mut document = TantivyDocument::new();
        document.add_text(tokens, line.trim_end());
        document.add_u64(ordinal, documents);
        writer.add_document(document)?;
        documents += 1;
        line.clear();
    }
    writer.commit()?;
    let segments = index.searchable_segment_ids()?;
    if segments.len() > 1 {
        writer.merge(&segments).wait()?;
    }
    writer.garbage_collect_files().wait()?;
    writer.wait_merging_threads()?;
    Ok(documents)
}

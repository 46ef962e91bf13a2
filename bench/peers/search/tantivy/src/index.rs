//! Indexing: unmodified tokens, ids and frequencies, optionally positions; one thread, one segment.
//!
//! 1. Each line is a document: its tokens, and its ordinal as a column that identifies hits.
//! 2. One thread indexes; the flushed segments are merged into one at the end.
//! 3. With a commit after each N documents, segments are never merged.

use clap::Args;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::{num::NonZeroU64, path::Path};
use tantivy::schema::{FAST, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, TantivyDocument, indexer::NoMergePolicy, tokenizer::WhitespaceTokenizer};
use tierdex_bench_protocol::Result;

/// Name of the field of tokens.
pub const TOKENS: &str = "tokens";
/// Name of the column of ordinals.
pub const ORDINAL: &str = "ordinal";
const TOKENIZER: &str = "blanks";

/// Options of the index.
#[derive(Args)]
pub struct Options {
    /// Memory of the index writer in bytes
    #[arg(long, default_value_t = 256 << 20)]
    memory: usize,
    /// Index positions
    #[arg(long)]
    positions: bool,
    /// Commit a segment after this number of documents, instead of one segment of all
    #[arg(long, value_name = "DOCUMENTS")]
    commit_every: Option<NonZeroU64>,
}

/// Indexes `tokens` into the new directory `dir`.
pub fn run(tokens: &Path, dir: &Path, options: &Options) -> Result<()> {
    let file = File::open(tokens).map_err(|error| format!("cannot read {}: {error}", tokens.display()))?;
    fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let (documents, segments) = write(BufReader::with_capacity(1 << 20, file), dir, options)
        .map_err(|error| format!("cannot index {} into {}: {error}", tokens.display(), dir.display()))?;
    let wanted = options.commit_every.map_or(1, |every| documents.div_ceil(every.get()));
    if segments != wanted {
        return Err(format!("there are {segments} segments instead of {wanted}; give more --memory"));
    }
    println!("{documents} documents");
    Ok(())
}

/// A tokenizer is kept by name only: whoever opens an index must name it again.
pub fn register(index: &Index) {
    index.tokenizers().register(TOKENIZER, WhitespaceTokenizer::default());
}

fn schema(positions: bool) -> Schema {
    let mut schema = Schema::builder();
    let record =
        if positions { IndexRecordOption::WithFreqsAndPositions } else { IndexRecordOption::WithFreqs };
    let indexing =
        TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(record).set_fieldnorms(true);
    schema.add_text_field(TOKENS, TextOptions::default().set_indexing_options(indexing));
    schema.add_u64_field(ORDINAL, FAST);
    schema.build()
}

/// Returns the numbers of documents and of segments.
fn write(mut lines: impl BufRead, dir: &Path, options: &Options) -> tantivy::Result<(u64, u64)> {
    let schema = schema(options.positions);
    let (tokens, ordinal) = (schema.get_field(TOKENS)?, schema.get_field(ORDINAL)?);
    let index = Index::create_in_dir(dir, schema)?;
    register(&index);
    let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, options.memory)?;
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
        if options.commit_every.is_some_and(|every| documents % every == 0) {
            writer.commit()?;
        }
    }
    writer.commit()?;
    let segments = index.searchable_segment_ids()?;
    if segments.len() > 1 && options.commit_every.is_none() {
        writer.merge(&segments).wait()?;
    }
    writer.garbage_collect_files().wait()?;
    writer.wait_merging_threads()?;
    Ok((documents, index.searchable_segment_ids()?.len() as u64))
}

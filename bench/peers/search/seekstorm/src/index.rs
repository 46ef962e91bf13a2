//! Indexing: unmodified tokens, one shard. The library numbers documents in order from 0 on.

use seekstorm::index::{
    AccessType, Close, Clustering, Document, DocumentCompression, FileType, FrequentwordType, IndexArc,
    IndexDocument, IndexMetaObject, LexicalSimilarity, NgramSet, SchemaField, StemmerType, StopwordType,
    TokenizerType, create_index,
};
use seekstorm::{INDEX_RUNTIME, vector::Inference};
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::{path::Path, thread::sleep, time::Duration};
use tierdex_bench_protocol::Result;

/// Name of the field of tokens.
const TOKENS: &str = "tokens";
/// Segments by the hash of the term, as a power of two: what the library suggests.
const SEGMENT_BITS: usize = 11;

/// Indexes `tokens` into the new directory `dir`.
pub fn run(tokens: &Path, dir: &Path) -> Result<()> {
    let file = File::open(tokens).map_err(|error| format!("cannot read {}: {error}", tokens.display()))?;
    fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let schema: Vec<SchemaField> = serde_json::from_value(json!([
        {"field": TOKENS, "field_type": "Text", "store": false, "index_lexical": true}
    ]))
    .map_err(|error| error.to_string())?;
    let synonyms = Vec::new();
    let made = create_index(dir, meta(), &schema, &synonyms, true, Some(1));
    let index = INDEX_RUNTIME.block_on(made)?;
    let mut documents = 0;
    for line in BufReader::with_capacity(1 << 20, file).lines() {
        let line = line.map_err(|error| format!("cannot read {}: {error}", tokens.display()))?;
        let document: Document =
            serde_json::from_value(json!({ TOKENS: line })).map_err(|error| error.to_string())?;
        INDEX_RUNTIME.block_on(index.index_document(document, FileType::None));
        documents += 1;
    }
    wait(&index, documents);
    INDEX_RUNTIME.block_on(index.close());
    println!("{documents} documents");
    Ok(())
}

/// Waits until all documents are searchable: they are indexed after the call that takes them has returned,
/// and the library offers nothing to wait on but this count.
fn wait(index: &IndexArc, documents: usize) {
    let count = || INDEX_RUNTIME.block_on(async { index.read().await.indexed_doc_count().await });
    while count() < documents {
        sleep(Duration::from_millis(1));
    }
}

fn meta() -> IndexMetaObject {
    IndexMetaObject {
        id: 0,
        name: TOKENS.to_string(),
        lexical_similarity: LexicalSimilarity::Bm25f,
        tokenizer: TokenizerType::Whitespace,
        stemmer: StemmerType::None,
        stop_words: StopwordType::None,
        frequent_words: FrequentwordType::None,
        ngram_indexing: NgramSet::SingleTerm as u8,
        document_compression: DocumentCompression::None,
        access_type: AccessType::Ram,
        spelling_correction: None,
        query_completion: None,
        clustering: Clustering::None,
        inference: Inference::None,
        segment_number_bits: SEGMENT_BITS,
    }
}

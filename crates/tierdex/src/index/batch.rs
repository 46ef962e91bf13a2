//! A batch: documents that one thread has analysed.
//!
//! *Input*: documents. *Output*: a [`SealedBatch`] of ids, stored text and sorted runs of postings, from
//! which a segment is built.

use crate::limits::{BATCH_BYTES, DOCUMENT_COST, FIELD_TOKENS_MAX, ID_BYTES_MAX};
use crate::memtable::{FieldTable, SortedRun};
use crate::schema::{Schema, Source};
use crate::{Error, Result, segment::layout::id_too_long, segment::write::StoredBlocks, text::Analyzer};
use std::sync::Arc;

/// Collects analysed documents in memory, on one thread.
pub struct BatchBuilder {
    schema: Arc<Schema>,
    analyzers: Vec<Analyzer>,
    tables: Vec<FieldTable>,
    ids: ExternalIds,
    stored: Option<StoredBlocks>,
    /// Bytes of the largest document that is accepted, title and text together.
    document_bytes_max: usize,
    /// Estimate of the memory of the batch, compared with [`BATCH_BYTES`].
    bytes: usize,
    skipped_tokens: SkippedTokens,
}

/// Tokens of the added documents that were not indexed because they exceed a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedTokens {
    /// Number of tokens longer than [`TERM_BYTES_MAX`](crate::limits::TERM_BYTES_MAX) bytes.
    pub long_words: u64,
    /// Number of documents that contain such tokens.
    pub long_word_documents: u64,
    /// Number of tokens after the first [`FIELD_TOKENS_MAX`](crate::limits::FIELD_TOKENS_MAX) of a field of a
    /// document.
    pub tokens_beyond: u64,
}

impl SkippedTokens {
    pub(super) fn add(&mut self, other: SkippedTokens) {
        self.long_words += other.long_words;
        self.long_word_documents += other.long_word_documents;
        self.tokens_beyond += other.tokens_beyond;
    }
}

/// The analysed documents of a batch, to which no more are added.
pub struct SealedBatch {
    /// The postings of each field.
    pub(super) runs: Vec<SortedRun>,
    pub(super) ids: ExternalIds,
    pub(super) stored: Option<StoredBlocks>,
    pub(super) skipped_tokens: SkippedTokens,
}

/// External ids of documents, concatenated, with the end of each.
#[derive(Default)]
pub(super) struct ExternalIds {
    bytes: String,
    ends: Vec<usize>,
}

impl BatchBuilder {
    /// An empty batch, which rejects documents with more than `document_bytes_max` bytes of title and text.
    pub fn new(schema: Arc<Schema>, document_bytes_max: usize) -> BatchBuilder {
        BatchBuilder {
            analyzers: schema.fields.iter().map(|field| Analyzer::new(&field.analysis)).collect(),
            tables: schema.fields.iter().map(|_| FieldTable::new(FIELD_TOKENS_MAX)).collect(),
            ids: ExternalIds::default(),
            stored: schema.stored.then(StoredBlocks::default),
            document_bytes_max,
            bytes: 0,
            skipped_tokens: SkippedTokens::default(),
            schema,
        }
    }

    /// Adds a document. After [`Error::TooLarge`] the batch is unchanged; after another error it cannot be
    /// used.
    pub fn add(&mut self, id: &str, title: &str, text: &str) -> Result<()> {
        if id.len() > ID_BYTES_MAX {
            return Err(id_too_long(id.len()));
        }
        let bytes = title.len().saturating_add(text.len());
        if bytes > self.document_bytes_max {
            return Err(Error::TooLarge(format!(
                "document of {bytes} bytes; the writer's memory is enough for {}: split it or raise the memory",
                self.document_bytes_max
            )));
        }
        if let Some(stored) = &mut self.stored {
            stored.add(title, text)?;
        }
        self.ids.bytes.push_str(id);
        self.ids.ends.push(self.ids.bytes.len());
        let mut long_words = 0;
        for ((field, table), analyzer) in
            self.schema.fields.iter().zip(&mut self.tables).zip(&mut self.analyzers)
        {
            self.skipped_tokens.tokens_beyond += match field.source {
                Source::Title => table.add(analyzer, &[title]),
                Source::Text => table.add(analyzer, &[text]),
                Source::TitleAndText => table.add(analyzer, &[title, text]),
            };
            long_words += analyzer.take_too_long();
        }
        self.skipped_tokens.long_words += long_words;
        self.skipped_tokens.long_word_documents += u64::from(long_words > 0);
        self.bytes += bytes + id.len() + DOCUMENT_COST;
        Ok(())
    }

    /// Whether the batch has reached its size and should be sealed.
    pub fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }

    /// Number of documents added since the last [`BatchBuilder::seal`].
    pub fn documents(&self) -> usize {
        self.ids.ends.len()
    }

    /// Returns the added documents and resets the builder.
    pub fn seal(&mut self) -> Result<SealedBatch> {
        let mut stored = self.stored.as_mut().map(std::mem::take);
        stored.as_mut().map(StoredBlocks::close_block).transpose()?;
        let fields = self.schema.fields.iter();
        let runs =
            fields.zip(&mut self.tables).map(|(field, table)| table.take_run(field.positions)).collect();
        self.bytes = 0;
        let skipped_tokens = std::mem::take(&mut self.skipped_tokens);
        Ok(SealedBatch { runs, ids: std::mem::take(&mut self.ids), stored, skipped_tokens })
    }
}

impl SealedBatch {
    /// Number of documents in the batch.
    pub fn documents(&self) -> usize {
        self.ids.ends.len()
    }

    /// Bytes of memory that the runs take.
    pub fn memory(&self) -> usize {
        self.runs.iter().map(SortedRun::memory).sum()
    }
}

impl ExternalIds {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end])
    }
}

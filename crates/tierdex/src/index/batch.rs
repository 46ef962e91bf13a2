//! A batch: documents that one thread has analysed.
//!
//! *Input*: documents. *Output*: a [`SealedBatch`] of ids, stored text and sorted runs of postings, from
//! which a segment is built.

use crate::limits::{
    BATCH_BYTES, COLUMN_VALUES_MAX, DOCUMENT_COST, FIELD_TOKENS_MAX, ID_BYTES_MAX, MEMBERS_MAX, VALUE_COST,
};
use crate::memtable::{FieldTable, Interner, SortedRun};
use crate::schema::{ColumnValue, Schema, Stored};
use crate::segment::{layout::id_too_long, write::ColumnBuffer, write::StoredBlocks};
use crate::{Error, Result, text::Analyzer};
use std::sync::Arc;

/// A document to add, as it is in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct DocumentRef<'d> {
    /// External id, up to 4,096 bytes. Ids may repeat.
    pub id: &'d str,
    /// Values of members: the number of a member in the schema ([`Schema::member`]), and a text. A member
    /// may have several values, whose order counts, or none.
    pub values: &'d [(usize, &'d str)],
    /// Values of columns: the number of a column in the schema ([`Schema::column`]), and a value of its type.
    pub columns: &'d [(usize, ColumnValue)],
    /// What the document has beside its members, as one text: kept with
    /// [`Stored::All`](crate::schema::Stored::All), else dropped.
    pub others: &'d str,
}

impl DocumentRef<'_> {
    /// The values of a member that are not empty.
    pub(crate) fn values_of(&self, member: usize) -> impl Iterator<Item = &str> + Clone {
        let is_value = move |(number, text): &&(usize, &str)| *number == member && !text.is_empty();
        self.values.iter().filter(is_value).map(|(_, text)| *text)
    }

    /// Bytes of the values, and of what each value of a member but the first takes in memory, each multiplied
    /// by a factor of its member. The members exist.
    fn bytes(&self, factor: impl Fn(usize) -> usize) -> usize {
        let mut has_value = [false; MEMBERS_MAX];
        let texts = self.values.iter().filter(|(_, text)| !text.is_empty());
        texts.fold(0, |sum: usize, (member, text)| {
            let cost = if std::mem::replace(&mut has_value[*member], true) { VALUE_COST } else { 0 };
            sum.saturating_add((text.len() + cost).saturating_mul(factor(*member)))
        })
    }
}

/// Collects analysed documents in memory, on one thread.
pub struct BatchBuilder {
    schema: Arc<Schema>,
    analyzers: Vec<Analyzer>,
    /// The members that each field indexes.
    members: Vec<Vec<usize>>,
    /// How often the bytes of each member count: once for each field that indexes it, and at least once.
    shares: Vec<usize>,
    /// The terms of all fields, most of which occur in several.
    interner: Interner,
    tables: Vec<FieldTable>,
    columns: Vec<ColumnBuffer>,
    ids: ExternalIds,
    stored: Option<StoredBlocks>,
    /// Bytes of the largest document that is accepted, each value counted for each field that indexes it.
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
    /// The values of each column.
    pub(super) columns: Vec<ColumnBuffer>,
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
    /// An empty batch, which rejects documents with more than `document_bytes_max` bytes of values, each
    /// counted for each field that indexes it.
    pub fn new(schema: Arc<Schema>, document_bytes_max: usize) -> BatchBuilder {
        let members: Vec<_> = schema.fields.iter().map(|field| schema.members_of(field)).collect();
        let fields_of = |member: usize| members.iter().filter(|of| of.contains(&member)).count();
        BatchBuilder {
            analyzers: schema.fields.iter().map(|field| Analyzer::new(&field.analysis)).collect(),
            shares: (0..schema.members.len()).map(|member| fields_of(member).max(1)).collect(),
            members,
            interner: Interner::new(),
            tables: schema
                .fields
                .iter()
                .map(|field| FieldTable::new(FIELD_TOKENS_MAX, field.positions))
                .collect(),
            columns: schema.columns.iter().map(|_| ColumnBuffer::default()).collect(),
            ids: ExternalIds::default(),
            stored: (schema.stored != Stored::Nothing).then(StoredBlocks::default),
            document_bytes_max,
            bytes: 0,
            skipped_tokens: SkippedTokens::default(),
            schema,
        }
    }

    /// Adds a document. After [`Error::TooLarge`] and [`Error::Usage`] the batch is unchanged; after another
    /// error it cannot be used.
    pub fn add(&mut self, document: DocumentRef<'_>) -> Result<()> {
        let DocumentRef { id, values, columns, others } = document;
        if id.len() > ID_BYTES_MAX {
            return Err(id_too_long(id.len()));
        }
        if let Some((member, _)) = values.iter().find(|(member, _)| *member >= self.schema.members.len()) {
            return Err(Error::Usage(format!("the schema has no member of number {member}")));
        }
        check_columns(&self.schema, columns)?;
        let kept = if self.schema.stored == Stored::All { others } else { "" };
        let bytes = kept.len().saturating_add(document.bytes(|member| self.shares[member]));
        if bytes > self.document_bytes_max {
            let (plain, max) = (kept.len().saturating_add(document.bytes(|_| 1)), self.document_bytes_max);
            let in_fields = if plain == bytes { "" } else { " in all fields that index them" };
            return Err(Error::TooLarge(format!(
                "document of {bytes} bytes{in_fields}; the writer's memory is enough for {max}: split it or raise \
                 the memory"
            )));
        }
        if let Some(stored) = &mut self.stored {
            for member in 0..self.schema.members.len() {
                stored.add_values(document.values_of(member));
            }
            if self.schema.stored == Stored::All {
                stored.add_values([others].into_iter());
            }
            stored.finish_document()?;
        }
        for (number, (buffer, column)) in self.columns.iter_mut().zip(&self.schema.columns).enumerate() {
            let values = columns.iter().filter(|(of, _)| *of == number);
            buffer.add(values.filter_map(|(_, value)| column.values.to_bits(*value)));
        }
        self.ids.bytes.push_str(id);
        self.ids.ends.push(self.ids.bytes.len());
        let mut long_words = 0;
        for ((members, table), analyzer) in self.members.iter().zip(&mut self.tables).zip(&mut self.analyzers)
        {
            let values = members.iter().flat_map(|member| document.values_of(*member));
            self.skipped_tokens.tokens_beyond += table.add(&mut self.interner, analyzer, values);
            long_words += analyzer.take_too_long();
        }
        self.skipped_tokens.long_words += long_words;
        self.skipped_tokens.long_word_documents += u64::from(long_words > 0);
        self.bytes += bytes + id.len() + DOCUMENT_COST + size_of::<u64>() * columns.len();
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
        let terms = self.interner.sorted_terms();
        let runs = self.tables.iter_mut().map(|table| table.take_run(&terms)).collect();
        self.interner.clear();
        self.bytes = 0;
        let skipped_tokens = std::mem::take(&mut self.skipped_tokens);
        let columns = self.columns.iter_mut().map(std::mem::take).collect();
        Ok(SealedBatch { runs, columns, ids: std::mem::take(&mut self.ids), stored, skipped_tokens })
    }
}

/// Checks the values of the columns of a document.
fn check_columns(schema: &Schema, columns: &[(usize, ColumnValue)]) -> Result<()> {
    for (at, (number, value)) in columns.iter().enumerate() {
        let Some(column) = schema.columns.get(*number) else {
            return Err(Error::Usage(format!("the schema has no column of number {number}")));
        };
        if column.values.to_bits(*value).is_none() {
            let (name, what) = (&column.name, column.values.description());
            return Err(Error::Usage(format!("column `{name}`: {value:?} is not {what}")));
        }
        let before = columns[..at].iter().filter(|(other, _)| other == number).count();
        let max = if column.multi { COLUMN_VALUES_MAX } else { 1 };
        if before >= max {
            let (name, s) = (&column.name, if max == 1 { "" } else { "s" });
            return Err(Error::Usage(format!("column `{name}` has more than {max} value{s} in a document")));
        }
    }
    Ok(())
}

impl SealedBatch {
    /// Number of documents in the batch.
    pub fn documents(&self) -> usize {
        self.ids.ends.len()
    }

    /// Bytes of memory that the runs and the values of columns take.
    pub fn memory(&self) -> usize {
        let columns = self.columns.iter().map(ColumnBuffer::memory).sum::<usize>();
        self.runs.iter().map(SortedRun::memory).sum::<usize>() + columns
    }
}

impl ExternalIds {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end])
    }
}

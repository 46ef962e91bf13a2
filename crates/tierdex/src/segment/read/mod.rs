//! Readers of the files of a segment. The writer of each is the module of the same name in `write/`.
//!
//! Checksums are verified when bytes are read into memory ([`tierdex_io::SealedFile`]), and decoded numbers
//! are checked before use. So a forged file with valid checksums also leads to an error, never to a panic or
//! to unbounded memory use.

mod block_list;
mod column;
mod column_block;
mod counted;
mod deletes;
mod ids;
mod keys;
mod lists;
mod norms;
mod open_segment;
mod pages;
mod read_ahead;
mod source;
mod stored;
mod tail;
mod terms;
mod unpack;
mod walk;

pub use block_list::{BlockList, BlockLocation, ListPart};
pub use column::{ColumnDirectory, ColumnReader};
pub use column_block::BlockBits;
pub use counted::CountedSource;
pub use deletes::open_deletes;
pub(crate) use deletes::{open_deleted_documents, open_deletes_sharing};
pub use ids::IdsReader;
pub use keys::{KeysInput, KeysReader, KeysWalk, MergedKeys};
pub use lists::{InlineList, RecordPart, SkipRecord};
pub use norms::Norms;
pub use open_segment::OpenSegment;
pub use read_ahead::{READ_AHEAD_BYTES, ReadAheadBuffer};
pub use source::{BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, BlockSource, FILES, Files, PagesBody};
pub use stored::{CHARACTER_BYTES_MAX, StoredReader, StoredValues};
pub use terms::{TermInfo, TermStream, TermsReader};
pub use unpack::UNPACK_BYTES;
pub use walk::{Automaton, TermWalk};

use super::layout::{FileKind, SegmentMeta, file_name, identity};
use crate::schema::{Field, Schema, Stored};
use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{borrow::Cow, ops::Range};
use tierdex_io::{Arena, Disk, SealedFile};

/// An open segment. Threads read it concurrently.
pub struct Segment {
    meta: SegmentMeta,
    /// Those with which the segment was written: the first of the schema.
    fields: Vec<FieldReader>,
    ids: IdsReader,
    keys: Option<KeysReader>,
    stored: Option<StoredReader>,
    /// Those of which a document has a value, in the order of their numbers.
    columns: Vec<ColumnReader>,
}

/// The files of one field of an open segment.
pub struct FieldReader {
    field: Field,
    number: usize,
    documents: u32,
    terms: TermsReader,
    skips: Arc<SealedFile>,
    postings: Arc<SealedFile>,
    positions: Option<Arc<SealedFile>>,
    norms_file: SealedFile,
    norms: OnceLock<Norms>,
    /// Upper bound of the document lengths in tokens.
    longest_document: OnceLock<u32>,
    /// Whether all blocks in memory were compared with the skip records.
    is_verified: AtomicBool,
}

/// Bytes of a skip record, and of its first block, that are prefetched into the CPU cache.
const RECORD_PREFETCH_BYTES: usize = 512;
const BLOCK_PREFETCH_BYTES: usize = 320;

impl Segment {
    /// Opens all files of `meta`, and checks that they have the lengths and checksums of the manifest.
    pub fn open(disk: &dyn Disk, schema: &Schema, meta: SegmentMeta) -> Result<Segment> {
        let fields = schema.fields.iter().take(meta.fields.len()).enumerate();
        let fields = fields.map(|(number, field)| FieldReader::open(disk, &meta, number, field));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let ids = IdsReader::open(open_file(disk, &meta, 0, FileKind::Ids)?, meta.documents)?;
        let keys = match meta.file(0, FileKind::Keys) {
            Some(_) => Some(KeysReader::open(open_file(disk, &meta, 0, FileKind::Keys)?, meta.documents)?),
            None => None,
        };
        let stored = match schema.stored {
            Stored::Nothing => None,
            _ => {
                let file = open_file(disk, &meta, 0, FileKind::Stored)?;
                Some(StoredReader::open(file, meta.documents, schema.stored_members())?)
            }
        };
        let has_values = |(number, _): &(usize, _)| meta.file(*number, FileKind::Column).is_some();
        let columns = schema.columns.iter().enumerate().filter(has_values).map(|(number, column)| {
            let file = open_file(disk, &meta, number, FileKind::Column)?;
            ColumnReader::open(file, number, column, meta.documents)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Segment { fields, ids, keys, stored, columns, meta })
    }

    /// Manifest entry of the segment.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Number of documents in the segment.
    pub fn documents(&self) -> u32 {
        self.meta.documents
    }

    /// The field with this number in the schema; `None` if the segment was written without it, so that
    /// none of its documents has a token in it.
    pub fn field(&self, number: usize) -> Option<&FieldReader> {
        self.fields.get(number)
    }

    /// The field of a term that the segment contains.
    pub fn field_of_term(&self, number: usize) -> &FieldReader {
        &self.fields[number]
    }

    /// Average length in tokens of the documents that have a field, with which the max shares in its skip
    /// records were computed.
    pub fn average_length(&self, field: usize) -> f64 {
        self.meta.stats(field).average_length()
    }

    /// Makes all files but `ids` and `stored` resident, in `arena`.
    pub fn load_all(&self, arena: &mut Arena) -> Result<()> {
        for field in &self.fields {
            field.files().try_for_each(|file| file.load_into(Some(&mut *arena)))?;
            field.terms.load_page_index(Some(arena))?;
            field.terms.load_pages(Some(arena))?;
        }
        self.columns.iter().try_for_each(|column| Ok(column.file().load_into(Some(&mut *arena))?))
    }

    /// Makes the term dictionaries resident, in `arena` if given.
    pub fn load_terms(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        self.fields.iter().try_for_each(|field| field.terms.load_pages(arena.as_deref_mut()))
    }

    /// Makes the skip data resident, in `arena` if given.
    pub fn load_skips(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        self.fields.iter().try_for_each(|field| Ok(field.skips.load_into(arena.as_deref_mut())?))
    }

    /// Makes page checksums, page indexes of dictionaries, norms and directories of columns resident, in
    /// `arena` if given, so that verifying a read needs no further read.
    pub fn load_checksums_and_norms(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        // Checksums first: the reads that follow verify pages with them.
        self.files().try_for_each(|file| file.load_tables(arena.as_deref_mut()))?;
        for field in &self.fields {
            field.terms.load_page_index(arena.as_deref_mut())?;
            field.load_norms(arena.as_deref_mut())?;
        }
        self.columns.iter().try_for_each(|column| column.load_directory(arena.as_deref_mut()).map(|_| ()))
    }

    /// The fields with which the segment was written, in schema order.
    pub fn fields(&self) -> &[FieldReader] {
        &self.fields
    }

    /// External ids.
    pub fn ids(&self) -> &IdsReader {
        &self.ids
    }

    /// Documents by the hashes of their external ids, if the index is updatable.
    pub fn keys(&self) -> Option<&KeysReader> {
        self.keys.as_ref()
    }

    /// Values of documents, if the index stores them.
    pub fn stored(&self) -> Option<&StoredReader> {
        self.stored.as_ref()
    }

    /// The column with this number in the schema; `None` if no document of the segment has a value.
    pub fn column(&self, number: usize) -> Option<&ColumnReader> {
        self.columns.iter().find(|column| column.number() == number)
    }

    /// The columns of which a document has a value, in the order of their numbers.
    pub fn columns(&self) -> &[ColumnReader] {
        &self.columns
    }

    /// Bytes read from the files of the segment so far, in whole pages.
    pub fn bytes_read(&self) -> u64 {
        self.files().map(SealedFile::bytes_read).sum()
    }

    /// The open files that are read by a [`BlockSource`], unless they are resident.
    pub fn paged_files(&self) -> impl Iterator<Item = &Arc<SealedFile>> {
        let of_fields = self.fields.iter().flat_map(|field| {
            [field.terms.file(), &field.skips, &field.postings].into_iter().chain(&field.positions)
        });
        let columns = self.columns.iter().map(ColumnReader::file);
        of_fields.chain(columns).chain([self.ids.file()]).chain(self.keys.as_ref().map(KeysReader::file))
    }

    /// All open files.
    pub fn files(&self) -> impl Iterator<Item = &SealedFile> {
        let fields = self.fields.iter().flat_map(FieldReader::files);
        let keys = self.keys.as_ref().map(|keys| &**keys.file());
        let stored = self.stored.as_ref().map(|stored| &**stored.file());
        let columns = self.columns.iter().map(|column| &**column.file());
        fields.chain(columns).chain([&**self.ids.file()]).chain(keys).chain(stored)
    }
}

impl FieldReader {
    fn open(disk: &dyn Disk, meta: &SegmentMeta, number: usize, field: &Field) -> Result<FieldReader> {
        let file = |kind| open_file(disk, meta, number, kind);
        let stats = meta.fields[number];
        Ok(FieldReader {
            field: field.clone(),
            number,
            documents: meta.documents,
            terms: TermsReader::open(file(FileKind::Terms)?, stats.documents, stats.terms)?,
            skips: Arc::new(file(FileKind::Skips)?),
            postings: Arc::new(file(FileKind::Postings)?),
            positions: field.positions.then(|| file(FileKind::Positions).map(Arc::new)).transpose()?,
            norms_file: file(FileKind::Norms)?,
            norms: OnceLock::new(),
            longest_document: OnceLock::new(),
            is_verified: AtomicBool::new(false),
        })
    }

    /// Schema of the field.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Number of the field in the schema.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Number of documents in the segment.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The term dictionary.
    pub fn terms(&self) -> &TermsReader {
        &self.terms
    }

    /// The skip record of a term: the whole record if it is resident, or else `part` of it, read from
    /// `source`.
    pub fn record(
        &self,
        term: &TermInfo,
        source: &dyn BlockSource,
        part: RecordPart,
    ) -> Result<SkipRecord<'_>> {
        let len = usize::try_from(term.skips.end - term.skips.start).unwrap_or(usize::MAX);
        let bytes = match self.skips.resident_range(term.skips.start, len) {
            Some(bytes) => Cow::Borrowed(bytes),
            None if part == RecordPart::Head && term.blocks.is_some() => {
                return self.record_head(term, source);
            }
            None => {
                let mut bytes = Vec::new();
                source.read(&self.skips, self.record_range(term, part), &mut bytes)?;
                // The buffer may be as large as a page, the record much smaller.
                bytes.shrink_to_fit();
                Cow::Owned(bytes)
            }
        };
        SkipRecord::parse(self.skips.name(), term, bytes, self.positions.is_some())
    }

    /// The record of a list of which only the head is read.
    fn record_head(&self, term: &TermInfo, source: &dyn BlockSource) -> Result<SkipRecord<'_>> {
        let (postings, positions) = (term.document_frequency, self.positions.is_some());
        let range = self.record_range(term, RecordPart::WithoutImpacts);
        let is_whole = range.end - range.start == BlockList::bytes_without_impacts(postings, positions);
        if !is_whole || range.end > self.skips.payload().end {
            return Err(Error::corrupt(self.skips.name(), range.start, "a skip record ends early"));
        }
        let mut head = Vec::new();
        source.read(&self.skips, self.record_range(term, RecordPart::Head), &mut head)?;
        head.shrink_to_fit();
        let list = BlockList::parse_head(self.skips.name(), term, head, positions)?;
        Ok(SkipRecord::Blocks(Box::new(list)))
    }

    /// Reads the entries of these superblocks, at least one, of a list of which the head was read. Returns a
    /// list of only these superblocks.
    pub fn read_superblocks<'a>(
        &self,
        list: &BlockList<'a>,
        superblocks: &[u32],
        source: &dyn BlockSource,
    ) -> Result<BlockList<'a>> {
        let mut read = list.head_of_superblocks(superblocks);
        let (mut prefetched, mut entry) = (0, Vec::new());
        for (at, superblock) in superblocks.iter().enumerate() {
            if prefetched <= at {
                let fits = |at: &&u32| source.prefetch(&self.skips, list.entry_range(**at as usize));
                prefetched = at + superblocks[at..].iter().take_while(fits).count().max(1);
            }
            source.read(&self.skips, list.entry_range(*superblock as usize), &mut entry)?;
            read.add_entry(&entry);
        }
        Ok(read)
    }

    /// Byte range of a part of the skip record of a term.
    pub fn record_range(&self, term: &TermInfo, part: RecordPart) -> Range<u64> {
        let mut range = term.skips.clone();
        if term.blocks.is_some() && part != RecordPart::Whole {
            let len = match part {
                RecordPart::Head => BlockList::head_bytes,
                _ => BlockList::bytes_without_impacts,
            };
            let len = len(term.document_frequency, self.positions.is_some());
            range.end = range.end.min(range.start + len);
        }
        range
    }

    /// Prefetches the skip record of a term and its first block into the CPU cache, if they are resident.
    pub fn prefetch_to_cpu(&self, term: &TermInfo) {
        let len = usize::try_from(term.skips.end - term.skips.start).unwrap_or(usize::MAX);
        self.skips.load_lines(term.skips.start, len.min(RECORD_PREFETCH_BYTES));
        if let Some(blocks) = &term.blocks {
            self.postings.load_lines(blocks.start, BLOCK_PREFETCH_BYTES);
        }
    }

    /// The skip record of a term, for callers that visit all terms in order: `records` reads those of
    /// many terms at a time.
    pub fn record_in_term_order(
        &self,
        term: &TermInfo,
        source: &dyn BlockSource,
        records: &mut ReadAheadBuffer,
    ) -> Result<SkipRecord<'_>> {
        if self.skips.resident().is_some() {
            return self.record(term, source, RecordPart::Whole);
        }
        let bytes = records.range(source, &self.skips, &term.skips)?.to_vec();
        SkipRecord::parse(self.skips.name(), term, Cow::Owned(bytes), self.positions.is_some())
    }

    /// As [`FieldReader::record_in_term_order`], without a copy: the record is valid until the next one.
    pub fn borrow_record_in_term_order<'a>(
        &'a self,
        term: &TermInfo,
        source: &dyn BlockSource,
        records: &'a mut ReadAheadBuffer,
    ) -> Result<SkipRecord<'a>> {
        if self.skips.resident().is_some() {
            return self.record(term, source, RecordPart::Whole);
        }
        let bytes = records.range(source, &self.skips, &term.skips)?;
        SkipRecord::parse(self.skips.name(), term, Cow::Borrowed(bytes), self.positions.is_some())
    }

    /// The skip record in `bytes`, of which the caller has kept [`RecordPart::WithoutImpacts`]; the resident
    /// record if `bytes` is empty.
    pub fn kept_record<'b>(&'b self, term: &TermInfo, bytes: &'b [u8]) -> Result<SkipRecord<'b>> {
        let len = usize::try_from(term.skips.end - term.skips.start).unwrap_or(usize::MAX);
        let bytes = self.skips.resident_range(term.skips.start, len).unwrap_or(bytes);
        SkipRecord::parse(self.skips.name(), term, Cow::Borrowed(bytes), self.positions.is_some())
    }

    /// The file of blocks of documents and frequencies.
    pub fn postings_file(&self) -> &Arc<SealedFile> {
        &self.postings
    }

    /// Whether all blocks were compared with the skip records, in the memory of the source that lends them
    /// ([`BlockSource::lend`]).
    pub fn is_verified(&self) -> bool {
        self.is_verified.load(Ordering::Relaxed)
    }

    /// Records that all blocks were compared with the skip records.
    pub fn set_verified(&self) {
        self.is_verified.store(true, Ordering::Relaxed);
    }

    /// The file of skip records.
    pub fn skips_file(&self) -> &Arc<SealedFile> {
        &self.skips
    }

    /// The file of document lengths.
    pub fn norms_file(&self) -> &SealedFile {
        &self.norms_file
    }

    /// The file of blocks of positions, if the field has positions.
    pub fn positions_file(&self) -> Option<&Arc<SealedFile>> {
        self.positions.as_ref()
    }

    /// Document lengths, read on first use.
    pub fn norms(&self) -> Result<&Norms> {
        self.load_norms(None)
    }

    /// Upper bound of the document lengths in tokens.
    pub fn longest_document(&self) -> Result<u32> {
        let norms = self.norms()?;
        Ok(*self.longest_document.get_or_init(|| norms.longest()))
    }

    /// Makes the document lengths resident, in `arena` if given.
    fn load_norms(&self, arena: Option<&mut Arena>) -> Result<&Norms> {
        if let Some(norms) = self.norms.get() {
            return Ok(norms);
        }
        let norms = Norms::read(&self.norms_file, self.field.norms, self.documents, arena)?;
        Ok(self.norms.get_or_init(|| norms))
    }

    fn files(&self) -> impl Iterator<Item = &SealedFile> {
        let files = [&**self.terms.file(), &self.skips, &self.postings].into_iter();
        files.chain(self.positions.as_deref()).chain([&self.norms_file])
    }
}

fn open_file(disk: &dyn Disk, meta: &SegmentMeta, field: usize, kind: FileKind) -> Result<SealedFile> {
    let name = file_name(meta.id, field, kind);
    let file = meta
        .file(field, kind)
        .ok_or_else(|| Error::corrupt(&name, 0, "the manifest does not name this file of the segment"))?;
    Ok(SealedFile::open(disk, &name, identity(meta.id, field, kind), file.seal)?)
}

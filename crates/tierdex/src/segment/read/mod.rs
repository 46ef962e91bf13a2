//! Reading the files of a segment. Writers of each stand under the same name in `write/`.
//!
//! Every range is verified when it enters memory ([`tierdex_io::SealedFile`]), and every number in it is
//! checked before it is used, so that a file that was forged with right checksums leads to an error too, and
//! never to a panic or to memory without bound.

mod ids;
mod lists;
mod norms;
mod pages;
mod source;
mod stored;
mod terms;
mod unpack;
mod walk;

pub use ids::IdsReader;
pub use lists::{BlockList, InlineList, Part, Record};
pub use norms::Norms;
pub use source::{BUFFER_MAX, BUFFER_MIN, BlockSource, FILES, Files};
pub use stored::{StoredDocument, StoredReader};
pub use terms::{TermInfo, TermStream, TermsReader};
pub use unpack::UNPACK_BYTES;
pub use walk::{Automaton, Walk};

use super::layout::{FileKind, SegmentMeta, file_name, identity};
use crate::error::{Error, Result};
use crate::schema::{Field, Schema};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{Arena, Disk, SealedFile};

/// An open segment. Many threads may read it at once.
pub struct Segment {
    meta: SegmentMeta,
    fields: Vec<FieldReader>,
    ids: IdsReader,
    stored: Option<StoredReader>,
}

/// The files of one field of an open segment.
pub struct FieldReader {
    field: Field,
    number: usize,
    documents: u32,
    terms: TermsReader,
    skips: Arc<SealedFile>,
    docs: Arc<SealedFile>,
    freqs: Arc<SealedFile>,
    positions: Option<Arc<SealedFile>>,
    norms_file: SealedFile,
    norms: OnceLock<Norms>,
    longest: OnceLock<u32>,
}

/// Bytes of a record and of a block that are loaded into the caches of the processor before they are used.
const RECORD_LOADED: usize = 512;
const BLOCK_LOADED: usize = 320;

/// Bytes of a file that were read together, for callers that go through it in order.
#[derive(Default)]
pub struct ReadAhead {
    start: u64,
    bytes: Vec<u8>,
}

/// Bytes that are read together.
pub const READ_AHEAD: u64 = 256 << 10;

impl ReadAhead {
    /// The bytes of a range of the file; what follows it is read with it, if that pays for the source.
    pub fn range(
        &mut self,
        source: &dyn BlockSource,
        file: &Arc<SealedFile>,
        range: &Range<u64>,
    ) -> Result<&[u8]> {
        let len = range.end.saturating_sub(range.start);
        let read_to = self.start + self.bytes.len() as u64;
        if range.start < self.start || range.end > read_to {
            let ahead = if source.read_ahead() > 0 { READ_AHEAD } else { 0 };
            let len = len.max(ahead.min(file.payload().end.saturating_sub(range.start)));
            self.start = range.start;
            source.read(file, range.start..range.start.saturating_add(len), &mut self.bytes)?;
        }
        let from = (range.start - self.start) as usize;
        Ok(&self.bytes[from..from + len as usize])
    }
}

impl Segment {
    /// Opens all files that `meta` names and checks their seals.
    pub fn open(disk: &dyn Disk, schema: &Schema, meta: SegmentMeta) -> Result<Segment> {
        let fields = schema.fields.iter().enumerate();
        let fields = fields.map(|(number, field)| FieldReader::open(disk, &meta, number, field));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let ids = IdsReader::open(open(disk, &meta, 0, FileKind::Ids)?, meta.documents)?;
        let stored = schema
            .stored
            .then(|| StoredReader::open(open(disk, &meta, 0, FileKind::Stored)?, meta.documents));
        Ok(Segment { fields, ids, stored: stored.transpose()?, meta })
    }

    /// What the manifest says of the segment.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Documents in the segment.
    pub fn documents(&self) -> u32 {
        self.meta.documents
    }

    /// The field of that number in the schema.
    pub fn field(&self, number: usize) -> &FieldReader {
        &self.fields[number]
    }

    /// Average length in tokens of the documents that have a field, as the bounds in its skip data take it.
    pub fn average_length(&self, field: usize) -> f64 {
        self.meta.fields[field].average_length()
    }

    /// Keeps all that queries need in memory, in `arena`: everything but ids and stored texts.
    pub fn keep_in_memory(&self, arena: &mut Arena) -> Result<()> {
        for field in &self.fields {
            field.files().try_for_each(|file| file.load_into(Some(&mut *arena)))?;
            field.terms.keep(None)?;
        }
        Ok(())
    }

    /// How many bytes of an arena that takes, beside what is there already.
    pub fn bytes_in_memory(&self) -> u64 {
        let files = self.fields.iter().flat_map(FieldReader::files).filter(|file| file.resident().is_none());
        files
            .map(SealedFile::payload)
            .map(|payload| Arena::allocation_bytes(payload.end - payload.start))
            .sum()
    }

    /// Keeps terms in memory, in `arena` if there is one.
    pub fn keep_terms(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        self.fields.iter().try_for_each(|field| field.terms.keep(arena.as_deref_mut()))
    }

    /// Keeps skip data in memory, in `arena` if there is one.
    pub fn keep_skips(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        self.fields.iter().try_for_each(|field| Ok(field.skips.load_into(arena.as_deref_mut())?))
    }

    /// Reads lengths, in `arena` if there is one, and what it takes to check what is read of lists, so that
    /// no check makes a read of its own.
    pub fn prepare(&self, mut arena: Option<&mut Arena>) -> Result<()> {
        for field in &self.fields {
            field.norms_in(arena.as_deref_mut())?;
            [&field.skips, &field.docs, &field.freqs].into_iter().try_for_each(|file| file.load_tables())?;
        }
        Ok(())
    }

    /// All fields in the order of the schema.
    pub fn fields(&self) -> &[FieldReader] {
        &self.fields
    }

    /// External ids.
    pub fn ids(&self) -> &IdsReader {
        &self.ids
    }

    /// Titles and texts, when the index keeps them.
    pub fn stored(&self) -> Option<&StoredReader> {
        self.stored.as_ref()
    }

    /// Bytes read from the segment's files so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        self.files().map(SealedFile::bytes_read).sum()
    }

    /// All open files.
    pub fn files(&self) -> impl Iterator<Item = &SealedFile> {
        let fields = self.fields.iter().flat_map(FieldReader::files);
        fields.chain([self.ids.file()]).chain(self.stored.as_ref().map(StoredReader::file))
    }
}

impl FieldReader {
    fn open(disk: &dyn Disk, meta: &SegmentMeta, number: usize, field: &Field) -> Result<FieldReader> {
        let file = |kind| open(disk, meta, number, kind);
        let stats = meta.fields[number];
        Ok(FieldReader {
            field: field.clone(),
            number,
            documents: meta.documents,
            terms: TermsReader::open(file(FileKind::Terms)?, stats.documents, stats.terms)?,
            skips: Arc::new(file(FileKind::Skips)?),
            docs: Arc::new(file(FileKind::Docs)?),
            freqs: Arc::new(file(FileKind::Freqs)?),
            positions: field.positions.then(|| file(FileKind::Positions).map(Arc::new)).transpose()?,
            norms_file: file(FileKind::Norms)?,
            norms: OnceLock::new(),
            longest: OnceLock::new(),
        })
    }

    /// The field as the schema has it.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Number of the field in the schema.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Documents in the segment.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The term dictionary.
    pub fn terms(&self) -> &TermsReader {
        &self.terms
    }

    /// The skip record of a term, from memory or from `source`.
    pub fn record(&self, term: &TermInfo, source: &dyn BlockSource) -> Result<Record<'_>> {
        let len = usize::try_from(term.skips.end - term.skips.start).unwrap_or(usize::MAX);
        let bytes = match self.skips.resident_range(term.skips.start, len) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => {
                let mut bytes = Vec::new();
                source.read(&self.skips, term.skips.clone(), &mut bytes)?;
                // Of a short one a page was read.
                bytes.shrink_to_fit();
                Cow::Owned(bytes)
            }
        };
        Record::parse(self.skips.name(), term, bytes, self.positions.is_some())
    }

    /// Begins to load the skip record of a term and its first block into the caches of the processor, as far
    /// as they are kept in memory.
    pub fn load_lines(&self, term: &TermInfo) {
        let len = usize::try_from(term.skips.end - term.skips.start).unwrap_or(usize::MAX);
        self.skips.load_lines(term.skips.start, len.min(RECORD_LOADED));
        if let Some([docs, _]) = &term.blocks {
            self.docs.load_lines(docs.start, BLOCK_LOADED);
        }
    }

    /// The skip record of a term, for callers that go through all terms in order: records are read many at a
    /// time.
    pub fn next_record(
        &self,
        term: &TermInfo,
        (source, ahead): (&dyn BlockSource, &mut ReadAhead),
    ) -> Result<Record<'_>> {
        let bytes = ahead.range(source, &self.skips, &term.skips)?.to_vec();
        Record::parse(self.skips.name(), term, Cow::Owned(bytes), self.positions.is_some())
    }

    /// Blocks of documents.
    pub fn docs(&self) -> &Arc<SealedFile> {
        &self.docs
    }

    /// Blocks of frequencies.
    pub fn freqs(&self) -> &Arc<SealedFile> {
        &self.freqs
    }

    /// The files of skip records, of documents and of frequencies, for others who read them.
    pub fn shared(&self) -> [&Arc<SealedFile>; 3] {
        [&self.skips, &self.docs, &self.freqs]
    }

    /// Skip records.
    pub fn skips(&self) -> &Arc<SealedFile> {
        &self.skips
    }

    /// Document lengths.
    pub fn norms_file(&self) -> &SealedFile {
        &self.norms_file
    }

    /// Name of the file of lengths, for messages.
    pub fn norms_name(&self) -> &str {
        self.norms_file.name()
    }

    /// Blocks of positions, when the field keeps them.
    pub fn positions(&self) -> Option<&Arc<SealedFile>> {
        self.positions.as_ref()
    }

    /// Document lengths, read on first use.
    pub fn norms(&self) -> Result<&Norms> {
        self.norms_in(None)
    }

    /// As many tokens as the longest document has, or more.
    pub fn longest_document(&self) -> Result<u32> {
        let norms = self.norms()?;
        Ok(*self.longest.get_or_init(|| norms.longest()))
    }

    fn norms_in(&self, arena: Option<&mut Arena>) -> Result<&Norms> {
        if let Some(norms) = self.norms.get() {
            return Ok(norms);
        }
        let norms = Norms::read(&self.norms_file, (self.field.norms, self.documents), arena)?;
        Ok(self.norms.get_or_init(|| norms))
    }

    fn files(&self) -> impl Iterator<Item = &SealedFile> {
        [self.terms.file(), &*self.skips, &self.docs, &self.freqs, &self.norms_file]
            .into_iter()
            .chain(self.positions.as_deref())
    }
}

fn open(disk: &dyn Disk, meta: &SegmentMeta, field: usize, kind: FileKind) -> Result<SealedFile> {
    let name = file_name(meta.id, field, kind);
    let file = meta
        .file(field, kind)
        .ok_or_else(|| Error::corrupt(&name, 0, "the manifest does not name this file of the segment"))?;
    Ok(SealedFile::open(disk, &name, identity(meta.id, field, kind), file.seal)?)
}

/// Reads the last `N` numbers of eight bytes of a file.
fn read_tail<const N: usize>(file: &SealedFile) -> Result<[u64; N]> {
    let end = file.payload().end;
    let at = end.checked_sub(8 * N as u64).filter(|&at| at >= file.payload().start);
    let at = at.ok_or_else(|| Error::corrupt(file.name(), end, "too short for its tail"))?;
    let bytes = file.read(at, 8 * N)?;
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"));
    }
    Ok(numbers)
}

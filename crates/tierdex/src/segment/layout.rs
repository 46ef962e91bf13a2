//! Definitions shared by the writers and readers of a segment: kinds and names of files, and the manifest
//! entries of segments and files.

mod column;

use crate::bytes::{ByteReader, push_varint};
use crate::schema::{Field, Schema};
use crate::{Error, Result, limits};
pub use column::{
    CHUNK_HEADER_BYTES, COLUMN_ENTRY_BYTES, COLUMN_TAIL_LEN, ColumnEntry, ColumnTail, Presence,
};
use siphasher::sip::SipHasher13;
use tierdex_codec::Codec;
use tierdex_io::{Identity, PAGE, Seal};

/// Kinds of files. The values are stored in the envelope of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// The commit: the list of segments.
    Manifest = 1,
    /// Term dictionary of a field.
    Terms = 2,
    /// Skip data, impacts and short lists of a field.
    Skips = 3,
    /// Blocks of documents and frequencies of a field.
    Postings = 4,
    /// Blocks of positions of a field.
    Positions = 5,
    /// Document lengths of a field.
    Norms = 6,
    /// External ids.
    Ids = 7,
    /// Values of the members of documents.
    Stored = 8,
    /// The hot pages of an engine, in a file that is not a part of the index.
    HotPages = 9,
    /// Hashes of external ids, of an index that is updatable.
    Keys = 10,
    /// The deleted documents of a segment, in a file with a number of its own.
    Deletes = 11,
    /// Statistics of deleted documents of a segment, in a file with a number of its own.
    DeletedStatistics = 12,
    /// A list of the files from which documents were read, in a file with a number of its own.
    InputFiles = 13,
    /// Values of a column.
    Column = 14,
}

impl FileKind {
    /// Kinds of which a segment has one file for each field, in manifest order.
    pub const OF_FIELD: [FileKind; 5] =
        [FileKind::Terms, FileKind::Skips, FileKind::Postings, FileKind::Positions, FileKind::Norms];

    /// The last part of the name of a file of this kind.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Manifest => "manifest",
            FileKind::Terms => "terms",
            FileKind::Skips => "skips",
            FileKind::Postings => "postings",
            FileKind::Positions => "positions",
            FileKind::Norms => "norms",
            FileKind::Ids => "ids",
            FileKind::Stored => "stored",
            FileKind::HotPages => "hot-pages",
            FileKind::Keys => "keys",
            FileKind::Deletes => "deletes",
            FileKind::DeletedStatistics => "deleted-statistics",
            FileKind::InputFiles => "input-files",
            FileKind::Column => "column",
        }
    }

    /// All kinds of files that are written with a segment and share its number.
    pub fn of_segment() -> impl Iterator<Item = FileKind> {
        let others = [FileKind::Column, FileKind::Ids, FileKind::Stored, FileKind::Keys];
        FileKind::OF_FIELD.into_iter().chain(others)
    }

    /// Kinds of files that have numbers of their own.
    fn numbered() -> [FileKind; 3] {
        [FileKind::Deletes, FileKind::DeletedStatistics, FileKind::InputFiles]
    }

    /// Largest number of files of this kind of a segment: one for each field, one for each column, or one.
    fn count_max(self) -> usize {
        match self {
            FileKind::Column => limits::COLUMNS_MAX,
            kind if FileKind::OF_FIELD.contains(&kind) => limits::FIELDS_MAX,
            _ => 1,
        }
    }

    /// Whether a segment may have several files of this kind, which have the number of a field or of a column
    /// in their names.
    pub fn has_field_number(self) -> bool {
        self.count_max() > 1
    }
}

/// Name of a file of a segment: `NUMBER.FIELD.KIND`, `NUMBER.COLUMN.column`, or `NUMBER.KIND` if there is one
/// only. The number is that of the segment, or of the file if it has one of its own.
pub fn file_name(segment: u64, field: usize, kind: FileKind) -> String {
    if kind.has_field_number() {
        format!("{segment:016x}.{field}.{}", kind.name())
    } else {
        format!("{segment:016x}.{}", kind.name())
    }
}

/// Number, field and kind of a file name: the inverse of [`file_name`].
pub fn parse_file_name(name: &str) -> Option<(u64, usize, FileKind)> {
    let (segment, rest) = name.split_once('.')?;
    let segment = u64::from_str_radix(segment, 16).ok()?;
    let (field, kind) = rest.split_once('.').unwrap_or(("0", rest));
    let kind = FileKind::of_segment().chain(FileKind::numbered()).find(|of| of.name() == kind)?;
    let field = field.parse().ok().filter(|field| *field < kind.count_max())?;
    (file_name(segment, field, kind) == name).then_some((segment, field, kind))
}

/// The identity that a file of a segment has in its header, which is checked when the file is opened.
pub fn identity(segment: u64, field: usize, kind: FileKind) -> Identity {
    Identity { kind: kind as u8, field: if kind.has_field_number() { field as u8 } else { 0 }, segment }
}

/// What the manifest says about a file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Kind of the file.
    pub kind: FileKind,
    /// Number of the field or of the column, 0 for files of the whole segment.
    pub field: usize,
    /// Length and checksum of the file.
    pub seal: Seal,
}

/// Statistics of one field of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldStats {
    /// Number of documents with at least one token in the field.
    pub documents: u32,
    /// Number of distinct terms.
    pub terms: u64,
    /// Number of postings: pairs of a term and a document that contains it.
    pub postings: u64,
    /// Number of indexed tokens: the sum of the document lengths.
    pub tokens: u64,
    /// Sizes of the posting lists.
    pub lists: ListSizes,
}

/// Sizes of the posting lists of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSizes {
    /// Number of postings in lists that are stored in blocks, not inline in their skip records.
    pub block_postings: u64,
    /// Bytes of the encoded documents of all blocks.
    pub docs_bytes: u64,
    /// Bytes of the encoded frequencies of all blocks.
    pub freqs_bytes: u64,
    /// Bytes of the skip records of inline lists.
    pub inline_bytes: u64,
}

impl ListSizes {
    /// All members, in the order in which the manifest stores them.
    fn members_mut(&mut self) -> [&mut u64; 4] {
        [&mut self.block_postings, &mut self.docs_bytes, &mut self.freqs_bytes, &mut self.inline_bytes]
    }

    /// Adds the sizes of other lists.
    pub fn add(&mut self, mut other: ListSizes) {
        for (sum, other) in self.members_mut().into_iter().zip(other.members_mut()) {
            *sum = sum.saturating_add(*other);
        }
    }
}

impl FieldStats {
    /// Average length in tokens of the documents that have the field; 1 if there are none, to avoid a
    /// division by zero.
    pub fn average_length(&self) -> f64 {
        if self.documents == 0 { 1.0 } else { self.tokens as f64 / f64::from(self.documents) }
    }

    /// Whether a segment with this number of documents can have these statistics: a document that has the
    /// field has 1 to [`limits::FIELD_TOKENS_MAX`] tokens in it.
    pub fn fits(&self, documents: u32) -> bool {
        let with_field = u64::from(self.documents);
        let tokens = with_field..=with_field * u64::from(limits::FIELD_TOKENS_MAX);
        self.documents <= documents && tokens.contains(&self.tokens)
    }
}

/// What the manifest says about a segment. It does not change as long as the segment exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Segment id, unique within the commit.
    pub id: u64,
    /// Number of documents.
    pub documents: u32,
    /// The [version of the analysis](crate::analysis::ANALYSIS_VERSION) by which its tokens were made; 0 if
    /// it is not known, or not one.
    pub analysis: u32,
    /// Statistics of each field with which the segment was written: the first fields of the schema. No
    /// document of the segment has a token in a field that was added later.
    pub fields: Vec<FieldStats>,
    /// All files: those of the fields in order of fields and kinds, those of columns of which a document has
    /// a value, the others.
    pub files: Vec<FileMeta>,
}

impl SegmentMeta {
    /// Statistics of a field of the schema; zeros if the segment was written without it.
    pub fn stats(&self, field: usize) -> FieldStats {
        self.fields.get(field).copied().unwrap_or_default()
    }

    /// The file of this kind, if the segment has one, of this field or column; `field` is ignored for files
    /// of the whole segment.
    pub fn file(&self, field: usize, kind: FileKind) -> Option<FileMeta> {
        self.files
            .iter()
            .copied()
            .find(|file| file.kind == kind && (!kind.has_field_number() || file.field == field))
    }

    /// Appends the encoded manifest entry.
    pub fn write(&self, out: &mut Vec<u8>) {
        push_varint(out, self.id);
        push_varint(out, u64::from(self.documents));
        push_varint(out, u64::from(self.analysis));
        push_varint(out, self.fields.len() as u64);
        for field in &self.fields {
            let mut lists = field.lists;
            let numbers = [u64::from(field.documents), field.terms, field.postings, field.tokens];
            for number in numbers.into_iter().chain(lists.members_mut().map(|number| *number)) {
                push_varint(out, number);
            }
        }
        push_varint(out, self.files.len() as u64);
        for file in &self.files {
            out.push(file.kind as u8);
            out.push(file.field as u8);
            push_varint(out, file.seal.len);
            out.extend_from_slice(&file.seal.crc.to_le_bytes());
        }
    }

    /// Decodes an entry written by [`SegmentMeta::write`], for this schema, in the format of this version.
    pub fn read(view: &mut ByteReader<'_>, schema: &Schema, version: u16) -> Result<SegmentMeta> {
        let (fields_max, columns) = (schema.fields.len(), schema.columns.len());
        let id = view.varint()?;
        let documents = view.varint32()?;
        let analysis = if version < ANALYSIS_VERSIONS { 0 } else { view.varint32()? };
        let fields = if version <= ALL_FIELDS_VERSION { fields_max as u64 } else { view.varint()? };
        if !(1..=fields_max as u64).contains(&fields) {
            return Err(view.corrupt("a segment with impossible fields"));
        }
        let fields = (0..fields).map(|_| read_field_stats(view)).collect::<Result<Vec<_>>>()?;
        let count = view.varint()?;
        let files_max = FileKind::OF_FIELD.len() * fields.len() + columns + FILES_OF_SEGMENT_MAX;
        if count > files_max as u64 {
            return Err(view.corrupt("too many files in a segment"));
        }
        let files =
            (0..count).map(|_| read_file_meta(view, fields.len(), columns)).collect::<Result<Vec<_>>>()?;
        Ok(SegmentMeta { id, documents, analysis, fields, files })
    }
}

/// Largest number of files of a whole segment: `ids`, `stored` and `keys`.
const FILES_OF_SEGMENT_MAX: usize = 3;

/// The last version in which every segment has all fields of the schema.
const ALL_FIELDS_VERSION: u16 = 6;

/// The first version in which the analysis of a segment is known.
const ANALYSIS_VERSIONS: u16 = 8;

fn read_field_stats(view: &mut ByteReader<'_>) -> Result<FieldStats> {
    let mut stats = FieldStats {
        documents: view.varint32()?,
        terms: view.varint()?,
        postings: view.varint()?,
        tokens: view.varint()?,
        lists: ListSizes::default(),
    };
    for number in stats.lists.members_mut() {
        *number = view.varint()?;
    }
    Ok(stats)
}

fn read_file_meta(view: &mut ByteReader<'_>, fields: usize, columns: usize) -> Result<FileMeta> {
    let number = view.u8()?;
    let kind = FileKind::of_segment().find(|&kind| kind as u8 == number);
    let kind = kind.ok_or_else(|| view.corrupt("unknown kind of file"))?;
    let field = usize::from(view.u8()?);
    if field >= if kind == FileKind::Column { columns } else { fields } {
        return Err(view.corrupt("file of a field or column that the segment does not have"));
    }
    let seal = Seal { len: view.varint()?, crc: view.u32()? };
    Ok(FileMeta { kind, field, seal })
}

/// Upper bound of file offsets. Decoded offsets are checked against it, so that an offset plus a length
/// cannot overflow.
pub(super) const OFFSET_MAX: u64 = 1 << 62;

/// Bytes of the header of a dictionary page: number of terms u16, number of restart points u16, offset in
/// `skips` of the record of the first term u64.
pub(super) const TERM_PAGE_HEADER_BYTES: usize = 12;

/// Bytes of a restart point of a dictionary page: offset of its term in the page u16; offset of the record
/// of that term in `skips`, relative to that of the first term of the page, u32.
pub(super) const TERM_RESTART_BYTES: usize = 6;

/// Number of blocks of a list with this number of postings.
pub fn block_count(postings: u32) -> usize {
    (postings as usize).div_ceil(limits::BLOCK)
}

/// Whether a list with this number of postings is stored inline in its skip record: it is shorter than one
/// block.
pub fn is_inline(postings: u32) -> bool {
    (postings as usize) < limits::BLOCK
}

/// Number of superblocks of a list that are written together, as a chunk; the last chunk of a list may have
/// fewer.
pub(crate) const CHUNK_SUPERBLOCKS_MAX: usize = 8;

/// Every chunk in `postings` starts at a multiple of this number of bytes, so that uncompressed documents
/// are aligned.
pub(crate) fn chunk_alignment(field: &Field) -> usize {
    if field.doc_codec == Codec::Raw { CHUNK_ALIGNMENT_BYTES_MAX } else { 1 }
}

/// Bytes before the first entry of a page of `ids`: the number of ids in the page, u16.
pub(super) const ID_PAGE_HEADER_BYTES: usize = 2;

/// An entry of `keys`: entries are in order of hashes, then of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyEntry {
    /// [`KeySeed::hash`] of the external id of the document.
    pub hash: u32,
    /// The document.
    pub document: u32,
}

/// Bytes of an entry of `keys` in the file, and number of entries of a page.
pub(crate) const KEY_BYTES: usize = 8;
pub(super) const KEY_PAGE_ENTRIES: usize = PAGE as usize / KEY_BYTES;

/// Number of the first page of entries of `keys`.
pub(super) const KEY_FIRST_PAGE: u32 = 1;

/// The key of the hashes of external ids, the same in all segments of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySeed(pub [u8; 16]);

impl KeySeed {
    /// The high half of SipHash-1-3 of an external id.
    pub fn hash(&self, id: &[u8]) -> u32 {
        (SipHasher13::new_with_key(&self.0).hash(id) >> 32) as u32
    }
}

/// The codec of the blocks of deleted documents.
pub(super) const DELETES_CODEC: Codec = Codec::Auto;

/// Largest [`chunk_alignment`]: a cache line of the CPU.
pub(super) const CHUNK_ALIGNMENT_BYTES_MAX: usize = 64;

/// Encodes a max share in units of 1/65535, rounded up. The *share* of a posting is its BM25 score with the
/// default parameters, divided by the weight (idf) of the term: `f / (f + k)`, between 0 and 1, where `f` is
/// the frequency and `k` depends on the document length.
pub fn encode_max_share(share: f64) -> u16 {
    (share * 65535.0).ceil().clamp(0.0, 65535.0) as u16
}

/// Appends the last part of a file, its tail, from which reading starts: little-endian 64-bit integers.
pub fn push_tail(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// The error when an index would have more documents than the limit.
pub(crate) fn too_many_documents() -> Error {
    Error::TooLarge(format!("an index holds at most {} documents", limits::DOCUMENTS_MAX))
}

/// The error for an external id of more bytes than the limit.
pub(crate) fn id_too_long(bytes: usize) -> Error {
    Error::TooLarge(format!("id of {bytes} bytes; at most {} are kept", limits::ID_BYTES_MAX))
}

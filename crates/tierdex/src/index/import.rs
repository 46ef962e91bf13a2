//! Writes a segment from postings instead of text.
//!
//! *Input*: document lengths, ids, and terms in order, each with its posting list. *Output*: the files of a
//! segment. Lengths come first, because the max shares of the lists depend on them.

use super::stop::StopSignal;
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, ID_BYTES_MAX, SUPERBLOCK, TERM_BYTES_MAX};
use crate::schema::{Schema, Stored};
use crate::segment::layout::{FileMeta, id_too_long};
use crate::segment::write::{
    FieldTarget, FieldWriter, IdsWriter, KeysWriter, ListCounts, PostingsWriter, Superblock,
    SuperblockEncoder, write_lengths,
};
use crate::text::ANALYSIS_VERSION;
use crate::{Error, Result, segment::KeySeed, segment::SegmentMeta, transform::block::Block};
use tierdex_io::Disk;

/// Appends terms, each greater than the one before (compared as bytes), with their posting lists.
pub struct ListsBuilder<'w, 'a> {
    field: &'w mut FieldWriter<'a>,
    /// Number of documents of the segment.
    documents: usize,
    /// The previous term.
    last: Vec<u8>,
    /// Sum of the frequencies of all lists so far.
    tokens: u64,
    stop: &'w StopSignal,
}

/// Appends the postings of one term, in any number of pieces.
pub struct ListBuilder<'l, 'w, 'a> {
    term: &'l str,
    postings: &'l mut PostingsWriter<'w, 'a>,
    /// Number of documents of the segment.
    documents: usize,
    /// Smallest document that may follow.
    next: u64,
    tokens: u64,
    stop: &'l StopSignal,
}

/// Encodes posting lists, or pieces of them, without the writer, so that several threads can encode.
#[derive(Clone)]
pub struct ListEncoder<'a> {
    encoder: SuperblockEncoder<'a>,
    documents: usize,
}

/// Encoded postings of one list: a whole list, or a piece of [`PIECE_POSTINGS`] postings, the last piece of
/// a list possibly of fewer. The memory can be reused.
#[derive(Default)]
pub struct EncodedPostings {
    superblock: Superblock,
    /// Instead of the superblock, an encoded whole list that is shorter than a block.
    inline_list: Vec<u8>,
    /// The document after the last one of the piece before: the first document is not less.
    from: u64,
    /// Smallest document that may follow.
    next: u64,
    postings: u32,
    tokens: u64,
}

/// Number of postings of each encoded piece of a list; the last piece may have fewer.
pub const PIECE_POSTINGS: usize = SUPERBLOCK * BLOCK;

/// Number of frequencies that are summed in 32 bits without overflow.
const FREQUENCIES_SUMMED: usize = 32;

const _: () = assert!(
    FIELD_TOKENS_MAX.is_power_of_two() && (FREQUENCIES_SUMMED as u64 * FIELD_TOKENS_MAX as u64) < 1 << 32
);

/// Where an import writes its segment.
pub(super) struct ImportTarget<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) schema: &'a Schema,
    pub(super) segment: u64,
    /// The seed of the index, if it is updatable.
    pub(super) key_seed: Option<KeySeed>,
    pub(super) stop: &'a StopSignal,
}

impl<'a> ListsBuilder<'_, 'a> {
    /// An encoder of postings that [`ListBuilder::append`] takes.
    pub fn encoder(&self) -> ListEncoder<'a> {
        ListEncoder { encoder: self.field.superblock_encoder(), documents: self.documents }
    }

    /// Appends a term of 1 to 255 bytes; `body` appends its postings, at least one.
    ///
    /// # Errors
    /// [`Error::Usage`] for a term that is too long, empty or not greater than the one before, and for a
    /// list that is empty or has more documents than have a length; [`Error::Interrupted`] when the writer's
    /// stop signal is raised; [`Error::Storage`] when writing fails.
    pub fn term(
        &mut self,
        term: &str,
        body: impl FnOnce(&mut ListBuilder<'_, '_, 'a>) -> Result<()>,
    ) -> Result<()> {
        self.stop.check()?;
        if term.len() > TERM_BYTES_MAX || term.as_bytes() <= self.last.as_slice() {
            return Err(Error::Usage(format!(
                "term `{term}` is longer than {TERM_BYTES_MAX} bytes, or not greater than the one before"
            )));
        }
        self.last.clear();
        self.last.extend_from_slice(term.as_bytes());
        let with_tokens = self.field.documents();
        self.field.terms().term(term.as_bytes(), |postings| {
            let (documents, stop) = (self.documents, self.stop);
            let mut list = ListBuilder { term, postings, documents, next: 0, tokens: 0, stop };
            body(&mut list)?;
            if list.next == 0 {
                return Err(Error::Usage(format!("term `{term}` has no postings")));
            }
            let postings = list.postings.postings();
            if postings > with_tokens {
                return Err(Error::Usage(format!(
                    "term `{term}` is in {postings} documents; {with_tokens} have a length above 0"
                )));
            }
            self.tokens += list.tokens;
            Ok(())
        })
    }
}

impl ListBuilder<'_, '_, '_> {
    /// Appends postings: document numbers of the segment, increasing over all calls, and the frequency of
    /// the term in each document, at least 1.
    ///
    /// # Errors
    /// [`Error::Usage`] for other postings; [`Error::TooLarge`] for a frequency above
    /// [`FIELD_TOKENS_MAX`], the maximum number of tokens of a document; [`Error::Interrupted`] when the
    /// writer's stop signal is raised; [`Error::Storage`] when writing fails.
    pub fn extend(&mut self, documents: &[u32], frequencies: &[u32]) -> Result<()> {
        self.stop.check()?;
        if documents.is_empty() && frequencies.is_empty() {
            return Ok(());
        }
        let term = || format!("term `{}`", self.term);
        let checked = check_postings(documents, frequencies, self.next, self.documents, term)?;
        self.next = checked.next;
        self.tokens += checked.tokens;
        self.postings.extend(documents, frequencies)
    }

    /// Appends postings encoded by an encoder of the same import; each piece but the last one has
    /// [`PIECE_POSTINGS`] postings.
    ///
    /// # Errors
    /// [`Error::Usage`] for pieces that do not follow one another, or that follow one that is not full;
    /// [`Error::Interrupted`] when the writer's stop signal is raised; [`Error::Storage`] when writing
    /// fails.
    pub fn append(&mut self, encoded: &EncodedPostings) -> Result<()> {
        self.stop.check()?;
        let whole = self.postings.postings().is_multiple_of(PIECE_POSTINGS as u32);
        if encoded.postings == 0 || encoded.from != self.next || !whole {
            return Err(Error::Usage(format!("pieces of term `{}` do not follow one another", self.term)));
        }
        let full = encoded.postings as usize == PIECE_POSTINGS;
        // A piece that is not full must be the last.
        self.next = if full { encoded.next } else { u64::MAX };
        self.tokens += encoded.tokens;
        let counts = ListCounts { postings: encoded.postings, occurrences: encoded.tokens };
        match encoded.inline_list.as_slice() {
            [] => self.postings.add_superblock(&encoded.superblock, counts),
            inline_list => self.postings.add_inline_list(inline_list, counts),
        }
    }
}

impl ListEncoder<'_> {
    /// Encodes 1 to [`PIECE_POSTINGS`] postings of a list. `before` is the last document of the piece
    /// before; `None` for the first piece. Documents and frequencies are as for [`ListBuilder::extend`].
    ///
    /// # Errors
    /// [`Error::Usage`] and [`Error::TooLarge`] as of [`ListBuilder::extend`].
    pub fn encode(
        &mut self,
        before: Option<u32>,
        documents: &[u32],
        frequencies: &[u32],
        encoded: &mut EncodedPostings,
    ) -> Result<()> {
        let from = before.map_or(0, |before| u64::from(before) + 1);
        let checked = check_postings(documents, frequencies, from, self.documents, || "a term".to_string())?;
        if documents.len() > PIECE_POSTINGS {
            return Err(wrong_postings());
        }
        encoded.superblock.clear();
        encoded.inline_list.clear();
        let mut before = before.unwrap_or(u32::MAX);
        if from == 0 && documents.len() < BLOCK {
            let block = Block { before, documents, frequencies, positions: &[] };
            self.encoder.encode_inline_list(block, &mut encoded.inline_list);
        } else {
            for (documents, frequencies) in documents.chunks(BLOCK).zip(frequencies.chunks(BLOCK)) {
                let block = Block { before, documents, frequencies, positions: &[] };
                self.encoder.add(block, &mut encoded.superblock);
                before = documents[documents.len() - 1];
            }
            self.encoder.close(&mut encoded.superblock);
        }
        (encoded.from, encoded.next) = (from, checked.next);
        (encoded.postings, encoded.tokens) = (documents.len() as u32, checked.tokens);
        Ok(())
    }
}

impl EncodedPostings {
    /// Number of postings.
    pub fn postings(&self) -> u32 {
        self.postings
    }
}

/// What follows from postings that [`check_postings`] accepted.
struct CheckedPostings {
    /// Smallest document that may follow.
    next: u64,
    /// Sum of the frequencies.
    tokens: u64,
}

/// Checks postings of a segment of `all_documents` documents: documents increase, the first is at least
/// `from`, and frequencies are within the limits. `term` names the term in an error.
fn check_postings(
    documents: &[u32],
    frequencies: &[u32],
    from: u64,
    all_documents: usize,
    term: impl Fn() -> String,
) -> Result<CheckedPostings> {
    let (Some(&first), Some(&last)) = (documents.first(), documents.last()) else {
        return Err(wrong_postings());
    };
    let is_valid = documents.len() == frequencies.len()
        && u64::from(first) >= from
        && (last as usize) < all_documents
        && tierdex_codec::is_increasing(documents);
    if !is_valid {
        return Err(wrong_postings());
    }
    // The limit is a power of two. A frequency of 0 wraps around and exceeds it too.
    if frequencies.iter().fold(0, |bits, frequency| bits | frequency.wrapping_sub(1)) >= FIELD_TOKENS_MAX {
        return Err(wrong_frequency(&term(), documents, frequencies));
    }
    let tokens =
        frequencies.chunks(FREQUENCIES_SUMMED).map(|chunk| u64::from(chunk.iter().sum::<u32>())).sum();
    Ok(CheckedPostings { next: u64::from(last) + 1, tokens })
}

/// The error for frequencies of which one is 0 or too large.
#[cold]
fn wrong_frequency(term: &str, documents: &[u32], frequencies: &[u32]) -> Error {
    let mut postings = documents.iter().zip(frequencies);
    match postings.find(|(_, frequency)| **frequency > FIELD_TOKENS_MAX) {
        Some((document, frequency)) if !frequencies.contains(&0) => Error::TooLarge(format!(
            "{term} occurs {frequency} times in document {document}; a document has at most {FIELD_TOKENS_MAX} tokens"
        )),
        _ => wrong_postings(),
    }
}

fn wrong_postings() -> Error {
    Error::Usage(
        "postings must be increasing documents of the segment, each with a frequency of at least 1"
            .to_string(),
    )
}

/// Writes a segment from postings: see [`super::IndexWriter::import`].
pub(super) fn import_segment(
    target: &ImportTarget<'_>,
    lengths: Vec<u32>,
    id: impl FnMut(u32, &mut String),
    body: impl FnOnce(&mut ListsBuilder<'_, '_>) -> Result<()>,
) -> Result<SegmentMeta> {
    let ImportTarget { disk, schema, segment, stop, .. } = *target;
    let [field] = schema.fields.as_slice() else {
        let names: Vec<&str> = schema.fields.iter().map(|field| field.name.as_str()).collect();
        return Err(Error::Usage(format!(
            "posting lists are imported into an index of one field; this one has {}",
            names.join(", ")
        )));
    };
    if schema.stored != Stored::Nothing || field.positions {
        return Err(Error::Usage("lists are imported without positions and stored text".to_string()));
    }
    if lengths.is_empty() {
        return Err(Error::Usage("a segment has at least one document".to_string()));
    }
    if lengths.iter().any(|&length| length > FIELD_TOKENS_MAX) {
        return Err(Error::TooLarge(format!("a document has at most {FIELD_TOKENS_MAX} tokens")));
    }
    let documents = lengths.len() as u32;
    let field = FieldTarget { disk, segment, number: 0, field };
    let norms = write_lengths(field, || lengths.iter().copied())?;
    drop(lengths);
    let ids = write_ids(target, documents, id)?;
    let (stats, mut files) = FieldWriter::write(field, &norms.codes, norms.tokens, |writer| {
        let mut lists =
            ListsBuilder { field: writer, documents: documents as usize, last: Vec::new(), tokens: 0, stop };
        body(&mut lists)?;
        match lists.tokens {
            tokens if tokens == norms.tokens => Ok(()),
            tokens => Err(Error::Usage(format!(
                "the lists have {tokens} tokens; the lengths of the documents sum up to {}",
                norms.tokens
            ))),
        }
    })?;
    files.push(norms.file);
    files.extend(ids);
    // There are no stored values that could be analysed again.
    let analysis = ANALYSIS_VERSION;
    Ok(SegmentMeta { id: segment, documents, analysis, fields: vec![stats], files })
}

/// Writes the external ids, and the keys if the index is updatable.
fn write_ids(
    target: &ImportTarget<'_>,
    documents: u32,
    mut id: impl FnMut(u32, &mut String),
) -> Result<Vec<FileMeta>> {
    let mut keys = target.key_seed.map(KeysWriter::new);
    let mut ids = IdsWriter::create(target.disk, target.segment)?;
    let mut text = String::new();
    for document in 0..documents {
        if document.is_multiple_of(1 << 16) {
            target.stop.check()?;
        }
        text.clear();
        id(document, &mut text);
        if text.len() > ID_BYTES_MAX {
            return Err(id_too_long(text.len()));
        }
        ids.add(text.as_bytes())?;
        if let Some(keys) = &mut keys {
            keys.add(text.as_bytes());
        }
    }
    let keys = keys.map(|keys| keys.finish(target.disk, target.segment)).transpose()?;
    Ok([ids.finish()?].into_iter().chain(keys).collect())
}

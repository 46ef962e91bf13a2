//! Postings that somebody has already, instead of text, to a segment: lengths first, because blocks say what
//! they can score at most, then ids, then terms in order, each with its list.

use super::stop::Stop;
use crate::error::{Error, Result};
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, ID_BYTES_MAX, SUPERBLOCK, TERM_BYTES_MAX};
use crate::schema::Schema;
use crate::segment::SegmentMeta;
use crate::segment::layout::{FileMeta, id_too_long};
use crate::segment::write::{
    FieldWriter, IdsWriter, PostingsWriter, Superblock, SuperblockEncoder, write_lengths,
};
use crate::transform::block::Block;
use tierdex_io::Disk;

/// Takes terms, each greater than the one before (as bytes), with their lists.
pub struct ListsBuilder<'w, 'a> {
    field: &'w mut FieldWriter<'a>,
    documents: usize,
    last: Vec<u8>,
    tokens: u64,
    stop: &'w Stop,
}

/// Takes the postings of one term, in as many pieces as one likes.
pub struct ListBuilder<'l, 'w, 'a> {
    term: &'l str,
    postings: &'l mut PostingsWriter<'w, 'a>,
    documents: usize,
    /// Smallest document that may follow.
    next: u64,
    tokens: u64,
    stop: &'l Stop,
}

/// Encodes postings apart from the lists that they belong to: several may work at once, in threads of their
/// own.
#[derive(Clone)]
pub struct ListEncoder<'a> {
    encoder: SuperblockEncoder<'a>,
    documents: usize,
}

/// Postings of one list, encoded: a whole list, or a piece of [`PIECE_POSTINGS`], of which the last one may
/// have less. The memory is used again by the next ones.
#[derive(Default)]
pub struct EncodedPostings {
    superblock: Superblock,
    /// A whole list of less than a block, in place of a superblock.
    short: Vec<u8>,
    /// Smallest document that may stand first, and that may follow.
    from: u64,
    next: u64,
    postings: u32,
    tokens: u64,
}

/// Postings of each piece of a list that is encoded apart, but the last one.
pub const PIECE_POSTINGS: usize = SUPERBLOCK * BLOCK;

/// Frequencies whose sum has 32 bits.
const SUMMED: usize = 32;

const _: () =
    assert!(FIELD_TOKENS_MAX.is_power_of_two() && (SUMMED as u64 * FIELD_TOKENS_MAX as u64) < 1 << 32);

/// Where a segment goes.
pub(super) struct ImportTarget<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) schema: &'a Schema,
    pub(super) segment: u64,
    pub(super) stop: &'a Stop,
}

impl<'a> ListsBuilder<'_, 'a> {
    /// An encoder of postings for [`ListBuilder::append`].
    pub fn encoder(&self) -> ListEncoder<'a> {
        ListEncoder { encoder: self.field.encoder(), documents: self.documents }
    }

    /// Appends a term of 1 to 255 bytes of UTF-8; `body` gives its list, which has at least one posting.
    ///
    /// # Errors
    /// [`Error::Usage`] for a term that is too long, empty or not greater than the one before, and for a
    /// list that is empty or has more documents than there are with a length; [`Error::Interrupted`] when
    /// the writer's stop signal is raised; what writing gives.
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
        self.field.term(term.as_bytes(), |postings| {
            let (documents, stop) = (self.documents, self.stop);
            let mut list = ListBuilder { term, postings, documents, next: 0, tokens: 0, stop };
            body(&mut list)?;
            if list.next == 0 {
                return Err(Error::Usage(format!("term `{term}` has no postings")));
            }
            let postings = list.postings.documents();
            if postings > with_tokens {
                return Err(Error::Usage(format!(
                    "term `{term}` stands in {postings} documents; {with_tokens} have a length that is not 0"
                )));
            }
            self.tokens += list.tokens;
            Ok(())
        })
    }
}

impl ListBuilder<'_, '_, '_> {
    /// Appends postings: document numbers of the segment, which increase over all calls, and the frequency
    /// of the term in each, at least 1.
    ///
    /// # Errors
    /// [`Error::Usage`] for other postings; [`Error::Limit`] for a frequency above the number of tokens that
    /// a document may have, [`FIELD_TOKENS_MAX`]; [`Error::Interrupted`] when the writer's stop signal is
    /// raised; what writing gives.
    pub fn extend(&mut self, documents: &[u32], frequencies: &[u32]) -> Result<()> {
        self.stop.check()?;
        if documents.is_empty() && frequencies.is_empty() {
            return Ok(());
        }
        let term = || format!("term `{}`", self.term);
        let sums = check(documents, frequencies, (self.next, self.documents), term)?;
        self.next = sums.next;
        self.tokens += sums.tokens;
        self.postings.extend(documents, frequencies)
    }

    /// Appends postings that an encoder of the same import has encoded, each piece but the last one of
    /// [`PIECE_POSTINGS`].
    ///
    /// # Errors
    /// [`Error::Usage`] for pieces that do not follow one another, or follow others that are not full;
    /// [`Error::Interrupted`] when the writer's stop signal is raised; what writing gives.
    pub fn append(&mut self, encoded: &EncodedPostings) -> Result<()> {
        self.stop.check()?;
        let whole = self.postings.documents().is_multiple_of(PIECE_POSTINGS as u32);
        if encoded.postings == 0 || encoded.from != self.next || !whole {
            return Err(Error::Usage(format!("pieces of term `{}` do not follow one another", self.term)));
        }
        let full = encoded.postings as usize == PIECE_POSTINGS;
        // Nothing follows what is not full.
        self.next = if full { encoded.next } else { u64::MAX };
        self.tokens += encoded.tokens;
        let sums = (encoded.postings, encoded.tokens);
        match encoded.short.as_slice() {
            [] => self.postings.superblock(&encoded.superblock, sums),
            short => self.postings.short(short, sums),
        }
    }
}

impl ListEncoder<'_> {
    /// Encodes the 1 to [`PIECE_POSTINGS`] postings of a list that follow its document `before`, if they are
    /// not the first: documents and frequencies as for [`ListBuilder::extend`].
    ///
    /// # Errors
    /// As there, [`Error::Usage`] and [`Error::Limit`].
    pub fn encode(
        &mut self,
        before: Option<u32>,
        documents: &[u32],
        frequencies: &[u32],
        encoded: &mut EncodedPostings,
    ) -> Result<()> {
        let from = before.map_or(0, |before| u64::from(before) + 1);
        let sums = check(documents, frequencies, (from, self.documents), || "a term".to_string())?;
        if documents.len() > PIECE_POSTINGS {
            return Err(wrong_postings());
        }
        encoded.superblock.clear();
        encoded.short.clear();
        let mut before = before.unwrap_or(u32::MAX);
        if from == 0 && documents.len() < BLOCK {
            self.encoder.short(Block { before, documents, frequencies, positions: &[] }, &mut encoded.short);
        } else {
            for (documents, frequencies) in documents.chunks(BLOCK).zip(frequencies.chunks(BLOCK)) {
                let block = Block { before, documents, frequencies, positions: &[] };
                self.encoder.add(block, &mut encoded.superblock);
                before = documents[documents.len() - 1];
            }
            self.encoder.close(&mut encoded.superblock);
        }
        (encoded.from, encoded.next) = (from, sums.next);
        (encoded.postings, encoded.tokens) = (documents.len() as u32, sums.tokens);
        Ok(())
    }
}

impl EncodedPostings {
    /// How many they are.
    pub fn postings(&self) -> u32 {
        self.postings
    }
}

/// What is known of postings that were checked.
struct CheckedPostings {
    /// Smallest document that may follow.
    next: u64,
    tokens: u64,
}

/// Checks postings of a segment of so many `documents`, of which the first is `from` at least.
fn check(
    documents: &[u32],
    frequencies: &[u32],
    (from, all_documents): (u64, usize),
    term: impl Fn() -> String,
) -> Result<CheckedPostings> {
    let (Some(&first), Some(&last)) = (documents.first(), documents.last()) else {
        return Err(wrong_postings());
    };
    let sound = documents.len() == frequencies.len()
        && u64::from(first) >= from
        && (last as usize) < all_documents
        && tierdex_codec::is_increasing(documents);
    if !sound {
        return Err(wrong_postings());
    }
    // Zero wraps around and is too large as well.
    if frequencies.iter().fold(0, |bits, frequency| bits | frequency.wrapping_sub(1)) >= FIELD_TOKENS_MAX {
        return Err(wrong_frequency(&term(), documents, frequencies));
    }
    let tokens = frequencies.chunks(SUMMED).map(|some| u64::from(some.iter().sum::<u32>())).sum();
    Ok(CheckedPostings { next: u64::from(last) + 1, tokens })
}

/// Names the first of the postings that are too frequent, unless one has no frequency.
#[cold]
fn wrong_frequency(term: &str, documents: &[u32], frequencies: &[u32]) -> Error {
    let mut postings = documents.iter().zip(frequencies);
    match postings.find(|(_, frequency)| **frequency > FIELD_TOKENS_MAX) {
        Some((document, frequency)) if !frequencies.contains(&0) => Error::Limit(format!(
            "{term} stands {frequency} times in document {document}; a document has at most {FIELD_TOKENS_MAX} tokens"
        )),
        _ => wrong_postings(),
    }
}

fn wrong_postings() -> Error {
    Error::Usage(
        "postings are rising documents of the segment, each with a frequency of at least 1".to_string(),
    )
}

/// Writes the segment; see [`super::IndexWriter::import`].
pub(super) fn import(
    target: &ImportTarget<'_>,
    lengths: Vec<u32>,
    id: impl FnMut(u32, &mut String),
    body: impl FnOnce(&mut ListsBuilder<'_, '_>) -> Result<()>,
) -> Result<SegmentMeta> {
    let ImportTarget { disk, schema, segment, stop } = *target;
    let [field] = schema.fields.as_slice() else {
        return Err(Error::Usage("lists are imported into an index of one field".to_string()));
    };
    if schema.stored || field.positions {
        return Err(Error::Usage("lists are imported without positions and stored text".to_string()));
    }
    if lengths.is_empty() {
        return Err(Error::Usage("a segment has at least one document".to_string()));
    }
    if lengths.iter().any(|&length| length > FIELD_TOKENS_MAX) {
        return Err(Error::Limit(format!("a document has at most {FIELD_TOKENS_MAX} tokens")));
    }
    let documents = lengths.len() as u32;
    let norms = write_lengths(disk, segment, (0, field), || lengths.iter().copied())?;
    drop(lengths);
    let ids = write_ids(target, documents, id)?;
    let (stats, mut files) =
        FieldWriter::write(disk, segment, (0, field), (&norms.codes, norms.tokens), |writer| {
            let mut lists = ListsBuilder {
                field: writer,
                documents: documents as usize,
                last: Vec::new(),
                tokens: 0,
                stop,
            };
            body(&mut lists)?;
            match lists.tokens {
                tokens if tokens == norms.tokens => Ok(()),
                tokens => Err(Error::Usage(format!(
                    "the lists have {tokens} tokens; the lengths of the documents sum up to {}",
                    norms.tokens
                ))),
            }
        })?;
    files.extend([norms.file, ids]);
    Ok(SegmentMeta { id: segment, documents, fields: vec![stats], files })
}

fn write_ids(
    target: &ImportTarget<'_>,
    documents: u32,
    mut id: impl FnMut(u32, &mut String),
) -> Result<FileMeta> {
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
    }
    ids.finish()
}

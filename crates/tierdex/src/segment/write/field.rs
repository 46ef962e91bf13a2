//! Writes the files of one field of a segment: `terms`, `skips`, `postings`, `positions` and `norms`. Input:
//! terms in order, each with its postings, and document lengths.

use super::super::layout::{FieldStats, FileKind, FileMeta, ListSizes};
use super::encoded::{EncodedLists, ListSink};
use super::file::{create, seal};
use super::lists::ListsWriter;
use super::postings::{PostingsEncoder, TermsEncoder};
use super::superblock::{Superblock, SuperblockEncoder};
use super::terms::{ListCounts, TermsWriter};
use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::schema::{Field, NormKind};
use crate::{Result, transform::impact::Impact, transform::norm};
use tierdex_io::Disk;

/// Identifies the field, and the segment, whose files are written.
#[derive(Clone, Copy)]
pub struct FieldTarget<'a> {
    /// Disk on which the files are created.
    pub disk: &'a dyn Disk,
    /// Number of the segment.
    pub segment: u64,
    /// Number of the field in the schema.
    pub number: usize,
    /// The field.
    pub field: &'a Field,
}

/// Writes the terms and postings of one field.
pub struct FieldWriter<'a> {
    encoder: PostingsEncoder<'a>,
    files: FieldFiles,
}

/// The files of a field but `norms`, while they are written.
struct FieldFiles {
    number: usize,
    terms: TermsWriter,
    lists: ListsWriter,
    stats: FieldStats,
    /// Sum of the frequencies of all lists so far.
    occurrences: u64,
}

impl<'a> FieldWriter<'a> {
    /// Creates the files of a field but `norms`, calls `body` to add its terms, and seals the files. `norms`
    /// contains the norm code of each document; `tokens` is the sum of the document lengths.
    pub fn write(
        target: FieldTarget<'_>,
        norms: &[u8],
        tokens: u64,
        body: impl FnOnce(&mut FieldWriter<'_>) -> Result<()>,
    ) -> Result<(FieldStats, Vec<FileMeta>)> {
        let FieldTarget { disk, segment, number, field } = target;
        // Codes of short lengths are exact: code 0 means no tokens.
        let documents = norms.iter().filter(|&&code| code != 0).count() as u32;
        let stats = FieldStats { documents, tokens, ..FieldStats::default() };
        let average = stats.average_length();
        let share = |impact| default_share(field.norms, impact, average);
        let lists = ListsWriter::new(disk, segment, number, field)?;
        let terms = TermsWriter::new(create(disk, segment, number, FileKind::Terms)?, lists.skips_end())?;
        let files = FieldFiles { number, terms, lists, stats, occurrences: 0 };
        let mut writer = FieldWriter { encoder: PostingsEncoder::new(field, norms, &share), files };
        body(&mut writer)?;
        writer.files.finish()
    }

    /// Number of documents that have the field.
    pub fn documents(&self) -> u32 {
        self.files.stats.documents
    }

    /// Sum of the frequencies of all lists so far.
    pub fn occurrences(&self) -> u64 {
        self.files.occurrences
    }

    /// An encoder of superblocks of this field, for use in another thread.
    pub fn superblock_encoder(&self) -> SuperblockEncoder<'a> {
        self.encoder.superblock_encoder()
    }

    /// An encoder of postings of this field, for use in another thread.
    pub fn postings_encoder(&self) -> PostingsEncoder<'a> {
        self.encoder.for_thread()
    }

    /// Appends terms, each greater than the one before.
    pub fn terms(&mut self) -> TermsEncoder<'_, 'a> {
        TermsEncoder::new(&mut self.encoder, &mut self.files)
    }

    /// Appends lists that were encoded by [`FieldWriter::postings_encoder`].
    pub fn append(&mut self, lists: &EncodedLists) -> Result<()> {
        lists.send_to(&mut self.files)
    }
}

impl ListSink for FieldFiles {
    fn add_positions(&mut self, bytes: &[u8]) -> Result<()> {
        self.lists.add_positions(bytes)
    }

    fn add_superblock(&mut self, superblock: &Superblock) -> Result<()> {
        self.lists.add_superblock(superblock)
    }

    fn add_inline_list(&mut self, positions: &[u8], list: &[u8]) -> Result<()> {
        self.lists.add_inline_list(positions, list)
    }

    fn end_list(&mut self, term: &[u8], counts: ListCounts) -> Result<()> {
        let blocks = self.lists.finish_list()?;
        self.stats.postings += u64::from(counts.postings);
        self.occurrences += counts.occurrences;
        if blocks.is_some() {
            self.stats.lists.block_postings += u64::from(counts.postings);
        }
        self.terms.add(term, counts, self.lists.skips_end(), blocks)
    }
}

impl FieldFiles {
    fn finish(self) -> Result<(FieldStats, Vec<FileMeta>)> {
        let (file, terms) = self.terms.finish()?;
        let lists = ListSizes { block_postings: self.stats.lists.block_postings, ..self.lists.sizes() };
        let mut files = vec![seal(file, self.number, FileKind::Terms)?];
        files.extend(self.lists.finish(self.number)?);
        Ok((FieldStats { terms, lists, ..self.stats }, files))
    }
}

/// Document lengths of a field in a segment, which were written to `norms`.
pub struct FieldLengths {
    /// Norm code of each document ([`crate::transform::norm`]).
    pub codes: Vec<u8>,
    /// Sum of the lengths.
    pub tokens: u64,
    /// Manifest entry of the file `norms`.
    pub file: FileMeta,
}

/// Writes `norms`: the lengths of all documents, given in tokens, in the format of the field.
pub fn write_lengths<I: Iterator<Item = u32>>(
    target: FieldTarget<'_>,
    lengths: impl Fn() -> I,
) -> Result<FieldLengths> {
    let FieldTarget { disk, segment, number, field } = target;
    let codes: Vec<u8> = lengths().map(norm::encode).collect();
    let tokens = lengths().map(u64::from).sum();
    let file = match field.norms {
        NormKind::Byte => write_norms(disk, segment, number, &codes)?,
        NormKind::Exact => {
            let bytes: Vec<u8> = lengths().flat_map(u32::to_le_bytes).collect();
            write_norms(disk, segment, number, &bytes)?
        }
    };
    Ok(FieldLengths { codes, tokens, file })
}

/// Writes `norms`, given the contents of the file: codes, or little-endian `u32`.
pub fn write_norms(disk: &dyn Disk, segment: u64, number: usize, norms: &[u8]) -> Result<FileMeta> {
    let mut file = create(disk, segment, number, FileKind::Norms)?;
    file.write(norms)?;
    seal(file, number, FileKind::Norms)
}

/// Share of a posting: its BM25 score with the default parameters, divided by the weight of the term.
/// `average` is the average document length.
pub(crate) fn default_share(kind: NormKind, impact: Impact, average: f64) -> f64 {
    let length = match kind {
        NormKind::Byte => f64::from(norm::length(impact.norm)),
        NormKind::Exact => f64::from(norm::floor(impact.norm)),
    };
    let frequency = f64::from(impact.frequency);
    frequency / (frequency + DEFAULT_K1 * (1.0 - DEFAULT_B + DEFAULT_B * length / average))
}

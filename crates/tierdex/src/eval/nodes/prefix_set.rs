//! The documents that contain a term with a prefix, as a bitset that is filled when its documents are needed.
//!
//! 1. When the set is opened, the documents of inline lists are added. Of lists with blocks only the skip
//!    record is read.
//! 2. Before documents of a range are used, the blocks of all lists in its chunks are added, and those of
//!    chunks that follow: each pass over the lists fills [`CHUNKS_AHEAD_FACTOR`] times as many chunks as the
//!    one before. A set all of whose documents will be used is filled at once.
//! 3. A set of which all chunks are filled stays in the [`PrefixClause`], if that is kept for later queries.

use crate::Result;
use crate::cursor::{DocumentsReader, ListsInTermOrder, RangePrefetcher};
use crate::eval::{state::DocRange, tuning::CHUNK_DOCS, tuning::CHUNKS_AHEAD_FACTOR};
use crate::query::{for_each_term_with_prefix, plan_node::PrefixClause};
use crate::segment::read::{BlockSource, FieldReader, RecordPart, Segment, SkipRecord, TermInfo};
use std::{mem::take, ops::Range, sync::Arc};

/// The documents of a segment that contain a term with a prefix.
pub struct PrefixSet<'a> {
    prefix: Arc<PrefixClause>,
    /// Number of the segment in the commit.
    number: usize,
    field: &'a FieldReader,
    source: &'a dyn BlockSource,
    /// Skip records of the lists with blocks, one after the other; empty if they are resident.
    records: Vec<u8>,
    /// Document `i` is bit `i mod 8` of byte `i div 8`. Not used once the clause has the whole set.
    bits: Vec<u8>,
    /// For each chunk of [`CHUNK_DOCS`] documents, whether the documents of all lists were added.
    filled: Vec<bool>,
    /// Number of chunks that are filled at a time, at least.
    chunks_ahead: usize,
}

impl<'a> PrefixSet<'a> {
    /// Opens the set of the segment with this number. `whole`: all its documents will be used.
    pub(crate) fn open(
        prefix: &Arc<PrefixClause>,
        segment: &'a Segment,
        number: usize,
        source: &'a dyn BlockSource,
        whole: bool,
    ) -> Result<PrefixSet<'a>> {
        let (prefix, field) = (prefix.clone(), segment.field_of_term(prefix.field));
        let chunks = field.documents().div_ceil(CHUNK_DOCS) as usize;
        let (records, bits, filled) = (Vec::new(), Vec::new(), vec![true; chunks]);
        let mut set = PrefixSet { prefix, number, field, source, records, bits, filled, chunks_ahead: 1 };
        if set.prefix.kept_set(number).is_none() {
            set.bits = vec![0; PrefixClause::set_bytes(field.documents())];
            set.add_terms()?;
            if whole {
                set.fill(DocRange { first: 0, last: field.documents() - 1 })?;
            }
        }
        Ok(set)
    }

    /// Adds the documents of inline lists; those of all lists if the clause does not have the dictionary
    /// entries of lists with blocks.
    fn add_terms(&mut self) -> Result<()> {
        let PrefixSet { prefix, number, field, source, records, bits, filled, .. } = self;
        let has_long_lists = prefix.long_lists(*number).is_some_and(|lists| !lists.is_empty());
        filled.fill(!has_long_lists);
        let records_len = record_bytes(prefix, *number, field).sum();
        records.reserve_exact(records_len);
        let mut reader = DocumentsReader::new(field, *source);
        let skips_long = has_long_lists && records_len == 0;
        for_each_record(prefix, *number, field, *source, skips_long, |record| match record {
            SkipRecord::Blocks(list) if has_long_lists => {
                records.extend(list.without_impacts());
                Ok(())
            }
            record => reader.add_documents(record, bits),
        })
    }

    /// Adds the documents of a range, unless they were added.
    pub(super) fn fill(&mut self, range: DocRange) -> Result<()> {
        let chunk = |document: u32| (document / CHUNK_DOCS) as usize;
        let end = (chunk(range.last) + 1).min(self.filled.len());
        let mut from = chunk(range.first);
        while let Some(found) = self.filled[from.min(end)..end].iter().position(|filled| !filled) {
            let first = from + found;
            let unfilled = self.filled[first..].iter().take_while(|filled| !**filled).count();
            from = first + unfilled.min(self.chunks_ahead.max(end - first));
            self.chunks_ahead = self.chunks_ahead.saturating_mul(CHUNKS_AHEAD_FACTOR);
            self.fill_chunks(first..from)?;
        }
        Ok(())
    }

    /// As [`PrefixSet::fill`], if most chunks have some of this number of candidates, which are in the range.
    pub(super) fn fill_for(&mut self, range: DocRange, candidates: usize) -> Result<()> {
        let chunks = (range.last - range.first) / CHUNK_DOCS;
        if candidates > chunks as usize { self.fill(range) } else { Ok(()) }
    }

    fn fill_chunks(&mut self, chunks: Range<usize>) -> Result<()> {
        let first = |chunk: usize| chunk as u32 * CHUNK_DOCS;
        let range = first(chunks.start)..=first(chunks.end - 1) + (CHUNK_DOCS - 1);
        let (mut bits, mut reader) = (take(&mut self.bits), DocumentsReader::new(self.field, self.source));
        reader.add_lists(|| self.long_records(), range, &mut bits)?;
        self.bits = bits;
        self.filled[chunks].fill(true);
        Ok(())
    }

    /// The skip records of the lists with blocks.
    fn long_records(&self) -> impl Iterator<Item = Result<SkipRecord<'_>>> {
        let mut records = &self.records[..];
        self.prefix.long_lists(self.number).unwrap_or_default().iter().map(move |info| {
            let mut record = records;
            if !records.is_empty() {
                let range = self.field.record_range(info, RecordPart::WithoutImpacts);
                (record, records) = records.split_at((range.end - range.start) as usize);
            }
            self.field.kept_record(info, record)
        })
    }

    /// The bits. Those of chunks that are not filled are incomplete.
    pub(super) fn bits(&self) -> &[u8] {
        self.prefix.kept_set(self.number).unwrap_or(&self.bits)
    }

    /// Lower bound of the first document from `from` on, without filling; `None` if there is none.
    pub(super) fn next_lower_bound(&self, mut from: u32) -> Option<u32> {
        let bits = self.bits();
        loop {
            let chunk = (from / CHUNK_DOCS) as usize;
            if !*self.filled.get(chunk)? {
                return Some(from);
            }
            let end = bits.len().min((chunk + 1) * (CHUNK_DOCS / 8) as usize);
            let bytes = bits.get((from / 64 * 8) as usize..end)?;
            let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            let first = words.next()? & u64::MAX << (from % 64);
            let mut words = (from / 64 * 64..).step_by(64).zip(std::iter::once(first).chain(words));
            if let Some((start, word)) = words.find(|(_, word)| *word != 0) {
                return Some(start + word.trailing_zeros());
            }
            from = (chunk as u32 + 1).checked_mul(CHUNK_DOCS)?;
        }
    }

    /// Whether a document, which is in the segment, is in the set.
    pub(super) fn contains(&mut self, document: u32) -> Result<bool> {
        self.fill(DocRange { first: document, last: document })?;
        Ok(self.bits()[(document / 8) as usize] >> (document % 8) & 1 == 1)
    }

    /// Leaves a filled set to later queries.
    pub(super) fn close(self) {
        if !self.bits.is_empty() && self.filled.iter().all(|filled| *filled) {
            self.prefix.keep_set(self.number, self.bits);
        }
    }
}

/// Bytes of the set of a prefix in the segment with this number.
pub(crate) fn prefix_set_bytes(prefix: &PrefixClause, number: usize, segment: &Segment) -> usize {
    let field = segment.field_of_term(prefix.field);
    let chunks = field.documents().div_ceil(CHUNK_DOCS) as usize;
    if prefix.kept_set(number).is_some() {
        return chunks;
    }
    let records: usize = record_bytes(prefix, number, field).sum();
    chunks + PrefixClause::set_bytes(field.documents()) + records
}

/// Bytes of each of the [`PrefixSet::records`].
pub(crate) fn record_bytes(
    prefix: &PrefixClause,
    number: usize,
    field: &FieldReader,
) -> impl Iterator<Item = usize> {
    let is_resident = field.skips_file().resident().is_some();
    let long = if is_resident { None } else { prefix.long_lists(number) };
    let ranges = long.unwrap_or_default().iter();
    let ranges = ranges.map(|info| field.record_range(info, RecordPart::WithoutImpacts));
    ranges.map(|range| (range.end - range.start) as usize)
}

/// The documents of a segment that contain a term with a prefix, ascending, if they are so few that sorting
/// them takes less time than clearing a bitset.
pub(crate) fn few_documents(
    prefix: &PrefixClause,
    segment: &Segment,
    number: usize,
    source: &dyn BlockSource,
) -> Result<Option<Vec<u32>>> {
    let field = segment.field_of_term(prefix.field);
    if !prefix.has_few_documents(number, field.documents()) {
        return Ok(None);
    }
    let mut documents = Vec::with_capacity(prefix.postings[number] as usize);
    let mut reader = DocumentsReader::new(field, source);
    for_each_record(prefix, number, field, source, false, |record| {
        reader.append_documents(record, &mut documents)
    })?;
    documents.sort_unstable();
    documents.dedup();
    Ok(Some(documents))
}

/// Calls `body` with the skip record of each list, or of each list without blocks if it `skips_long` ones.
fn for_each_record<'a>(
    prefix: &PrefixClause,
    number: usize,
    field: &'a FieldReader,
    source: &dyn BlockSource,
    skips_long: bool,
    mut body: impl FnMut(SkipRecord<'a>) -> Result<()>,
) -> Result<()> {
    let mut lists = ListsInTermOrder::new(source);
    let range = |info: &TermInfo| field.record_range(info, RecordPart::WithoutImpacts);
    let mut each = |info: TermInfo| {
        source.checkpoint(0..0)?;
        let skips = range(&info);
        body(lists.record(field, &TermInfo { skips, ..info })?)
    };
    let Some(long) = prefix.long_lists(number).filter(|_| prefix.short_lists(number).is_some()) else {
        let is_read = |info: &TermInfo| !(skips_long && info.blocks.is_some());
        return for_each_term_with_prefix(field, prefix.prefix(), source, |info| {
            if is_read(&info) { each(info) } else { Ok(()) }
        });
    };
    let long = if skips_long { &[] } else { long };
    let all = || prefix.short_lists(number).into_iter().flatten().chain(long.iter().cloned());
    let mut ahead = RangePrefetcher::new(source, field.skips_file(), all().map(|info| range(&info)));
    for info in all() {
        ahead.before_read();
        each(info)?;
    }
    Ok(())
}

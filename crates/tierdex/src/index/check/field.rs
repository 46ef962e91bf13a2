//! Checks a field of a segment: terms, posting lists, impacts, max shares, norms and statistics.

use crate::cursor::{ListsInTermOrder, NO_DOCUMENT, PostingsCursor};
use crate::segment::layout::{CHUNK_SUPERBLOCKS_MAX, chunk_alignment, encode_max_share};
use crate::segment::read::{BlockList, FieldReader, ListPart, Norms, SkipRecord, TermInfo};
use crate::segment::{FieldStats, ListSizes};
use crate::transform::impact::{
    self, BLOCK_IMPACT_BYTES_MAX, Impact, ImpactBuilder, SUPERBLOCK_IMPACT_BYTES_MAX,
};
use crate::{Error, Result, limits::SUPERBLOCK, segment::write::default_share, transform::norm};
use std::{ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// Checks one field of a segment against its statistics in the manifest.
pub(super) fn check_field(field: &FieldReader, stats: &FieldStats) -> Result<()> {
    // First, because max shares depend on the average length.
    check_documents_with_field(field, stats)?;
    let mut checker = FieldChecker::new(field, stats)?;
    let mut stream = field.terms().stream();
    let mut previous = Vec::new();
    let mut terms = 0;
    while let Some((term, info)) = stream.next()? {
        let in_order = terms == 0 || previous.as_slice() < term;
        previous.clear();
        previous.extend_from_slice(term);
        let page = stream.page();
        if !in_order || field.terms().page_of(&previous)? != Some(page) {
            let what =
                format!("term `{}` is out of order", String::from_utf8_lossy(&previous).escape_debug());
            return Err(Error::corrupt(field.terms().file().name(), field.terms().page_offset(page), what));
        }
        checker.check_term(&info)?;
        terms += 1;
    }
    if terms != stats.terms {
        let what = format!("{terms} terms; the manifest says {}", stats.terms);
        return Err(Error::corrupt(field.terms().file().name(), 0, what));
    }
    checker.check_sums()
}

/// Compares the number of documents that have the field with the norms.
fn check_documents_with_field(field: &FieldReader, stats: &FieldStats) -> Result<()> {
    let norms = field.norms()?;
    let found = (0..field.documents()).filter(|&document| norms.length(document) > 0.0).count();
    if found != stats.documents as usize {
        let what = format!("{found} documents have tokens; the manifest says {}", stats.documents);
        return Err(Error::corrupt(field.norms_file().name(), 0, what));
    }
    Ok(())
}

/// Checks the posting lists of a field, term by term.
struct FieldChecker<'a> {
    field: &'a FieldReader,
    stats: &'a FieldStats,
    norms: &'a Norms,
    posting_lists: ListsInTermOrder<'static>,
    /// Average document length.
    average: f64,
    /// Offset at which the next skip record must start.
    skips: u64,
    /// Offset at which the next list must start in `postings`, up to alignment, and in `positions`.
    postings_end: u64,
    positions_end: u64,
    /// Postings of all lists checked so far; the next fields are sums over these lists too.
    postings: u64,
    tokens: u64,
    lists: ListSizes,
    /// For each document, the sum of its frequencies in the lists so far.
    lengths: Vec<u32>,
    /// Impacts of a block or superblock: computed from its postings (`impacts` builds `expected`), and read.
    impacts: ImpactBuilder,
    expected: Vec<Impact>,
    found: Vec<Impact>,
}

impl<'a> FieldChecker<'a> {
    fn new(field: &'a FieldReader, stats: &'a FieldStats) -> Result<FieldChecker<'a>> {
        let start = |file: &Arc<SealedFile>| file.payload().start;
        Ok(FieldChecker {
            field,
            stats,
            norms: field.norms()?,
            posting_lists: ListsInTermOrder::default(),
            average: stats.average_length(),
            skips: start(field.skips_file()),
            postings_end: start(field.postings_file()),
            positions_end: field.positions_file().map_or(0, start),
            postings: 0,
            tokens: 0,
            lists: ListSizes::default(),
            lengths: vec![0; field.documents() as usize],
            impacts: ImpactBuilder::default(),
            expected: Vec::new(),
            found: Vec::new(),
        })
    }

    fn check_term(&mut self, info: &TermInfo) -> Result<()> {
        if info.skips.start != self.skips {
            return Err(Error::corrupt(
                self.field.skips_file().name(),
                info.skips.start,
                "skip records are not contiguous",
            ));
        }
        self.skips = info.skips.end;
        match self.posting_lists.record(self.field, info)? {
            SkipRecord::Inline(list) => {
                if let Some(range) = &list.positions {
                    self.check_positions_start(range)?;
                }
                self.lists.inline_bytes += info.skips.end - info.skips.start;
                self.check_list(info, None)
            }
            SkipRecord::Blocks(list) => {
                self.check_block_offsets(&list)?;
                self.check_list(info, Some(&list))
            }
        }
    }

    /// Checks that blocks are contiguous, except before aligned chunks.
    fn check_block_offsets(&mut self, list: &BlockList) -> Result<()> {
        let alignment = chunk_alignment(self.field.field()) as u64;
        let mut ranges = Vec::with_capacity(2 * list.blocks());
        for block in 0..list.blocks() {
            for part in [ListPart::Docs, ListPart::Freqs] {
                let starts_chunk =
                    part == ListPart::Docs && block % (CHUNK_SUPERBLOCKS_MAX * SUPERBLOCK) == 0;
                ranges.push((list.range(part, block)?, starts_chunk));
            }
            self.lists.docs_bytes += list.len(ListPart::Docs, block);
            self.lists.freqs_bytes += list.len(ListPart::Freqs, block);
            if self.field.positions_file().is_some() {
                self.check_positions_start(&list.range(ListPart::Positions, block)?)?;
            }
        }
        self.lists.block_postings += u64::from(list.postings());
        ranges.sort_unstable_by_key(|(range, _)| range.start);
        for (range, starts_chunk) in &ranges {
            if *starts_chunk {
                self.postings_end = self.postings_end.next_multiple_of(alignment);
            }
            check_start(self.field.postings_file(), range, &mut self.postings_end)?;
        }
        if list.postings_range().end != self.postings_end {
            return Err(list.corrupt("the blocks of the list are not as long as its term says"));
        }
        if !list.last_documents_agree() {
            return Err(list.corrupt("the last documents of superblocks are not those of their blocks"));
        }
        let (bytes, sum_of_lengths) = list.impact_bytes()?;
        if bytes != sum_of_lengths {
            return Err(list.corrupt("bytes follow the impacts"));
        }
        Ok(())
    }

    fn check_positions_start(&mut self, range: &Range<u64>) -> Result<()> {
        let file = self.field.positions_file().expect("the field has positions");
        check_start(file, range, &mut self.positions_end)
    }

    /// Decodes a list, and compares counts, impacts and max shares with its term and its skip record.
    fn check_list(&mut self, info: &TermInfo, list: Option<&BlockList>) -> Result<()> {
        // Taken for the time of the call, which borrows the rest of the checker.
        let mut lists = std::mem::take(&mut self.posting_lists);
        let counts = lists.with_cursor(self.field, info.clone(), |cursor| self.check_postings(cursor, list));
        self.posting_lists = lists;
        let (postings, occurrences) = counts?;
        if postings != info.document_frequency || occurrences != info.occurrences {
            let what = format!(
                "list has {postings} documents and {occurrences} occurrences; its term says {} and {}",
                info.document_frequency, info.occurrences
            );
            return Err(Error::corrupt(self.field.skips_file().name(), info.skips.start, what));
        }
        self.postings += u64::from(postings);
        self.tokens += occurrences;
        Ok(())
    }

    /// Compares impacts and max shares of a list with those of its postings. Returns the numbers of postings
    /// and of occurrences.
    fn check_postings(
        &mut self,
        cursor: &mut PostingsCursor<'_>,
        list: Option<&BlockList>,
    ) -> Result<(u32, u64)> {
        let (mut postings, mut occurrences, mut block) = (0, 0, 0);
        let mut pairs = Vec::new();
        let mut superblock_max = 0;
        while cursor.advance(0)? != NO_DOCUMENT {
            let (documents, frequencies) = cursor.rest_of_block()?;
            let count = documents.len();
            postings += count as u32;
            for (&document, &frequency) in documents.iter().zip(frequencies) {
                occurrences += u64::from(frequency);
                let length = &mut self.lengths[document as usize];
                *length = length.saturating_add(frequency);
                self.impacts.add(frequency, self.norms.code(document));
            }
            self.impacts.take(&mut self.expected);
            if self.field.positions_file().is_some() {
                for _ in 0..count {
                    cursor.positions()?;
                    cursor.skip(1)?;
                }
            } else {
                cursor.skip(count)?;
            }
            if let Some(list) = list {
                pairs.extend_from_slice(&self.expected);
                superblock_max = superblock_max.max(self.check_block(list, block)?);
                block += 1;
                if block.is_multiple_of(SUPERBLOCK) || block == list.blocks() {
                    self.check_superblock(list, (block - 1) / SUPERBLOCK, &pairs, superblock_max)?;
                    pairs.clear();
                    superblock_max = 0;
                }
            }
        }
        Ok((postings, occurrences))
    }

    /// Compares the impacts in `expected` and their max share with those of a block; returns the max share.
    fn check_block(&mut self, list: &BlockList, block: usize) -> Result<u16> {
        let shares =
            self.expected.iter().map(|&impact| default_share(self.field.field().norms, impact, self.average));
        let max_share = encode_max_share(shares.fold(0.0, f64::max));
        impact::coarsen(&mut self.expected, BLOCK_IMPACT_BYTES_MAX);
        list.decode_impacts(block, &mut self.found)?;
        if self.found != self.expected || list.block_max_share(block) != max_share {
            return Err(list.corrupt(format!("impacts of block {block} are not those of its postings")));
        }
        Ok(max_share)
    }

    /// Compares the impacts of all blocks of a superblock, and their max share, with those of the superblock.
    fn check_superblock(
        &mut self,
        list: &BlockList,
        superblock: usize,
        pairs: &[Impact],
        max_share: u16,
    ) -> Result<()> {
        for impact in pairs {
            self.impacts.add(impact.frequency, impact.norm);
        }
        self.impacts.take(&mut self.expected);
        impact::coarsen(&mut self.expected, SUPERBLOCK_IMPACT_BYTES_MAX);
        impact::read(list.superblock_impacts(superblock)?, &mut self.found)?;
        if self.found != self.expected || list.superblock_max_share(superblock) != max_share {
            return Err(
                list.corrupt(format!("impacts of superblock {superblock} are not those of its blocks"))
            );
        }
        Ok(())
    }

    /// Compares the sums over all lists with the files, the manifest and the norms.
    fn check_sums(self) -> Result<()> {
        let field = self.field;
        let ends = [(field.skips_file(), self.skips), (field.postings_file(), self.postings_end)];
        let positions = field.positions_file().map(|file| (file, self.positions_end));
        for (file, end) in ends.into_iter().chain(positions) {
            if end != file.payload().end {
                return Err(Error::corrupt(file.name(), end, "bytes that belong to no list"));
            }
        }
        let stats = self.stats;
        if (self.postings, self.tokens) != (stats.postings, stats.tokens) {
            let what = format!(
                "{} postings and {} tokens; the manifest says {} and {}",
                self.postings, self.tokens, stats.postings, stats.tokens
            );
            return Err(Error::corrupt(field.skips_file().name(), 0, what));
        }
        if self.lists != stats.lists {
            let what = format!("sizes of lists are {:?}; the manifest says {:?}", self.lists, stats.lists);
            return Err(Error::corrupt(field.skips_file().name(), 0, what));
        }
        for (document, &length) in (0u32..).zip(&self.lengths) {
            let same = match self.norms {
                Norms::Exact(lengths) => lengths.get(document) == length,
                Norms::Byte(codes) => codes[document as usize] == norm::encode(length),
            };
            if !same {
                let what = format!("document {document} has {length} tokens; its norm says otherwise");
                return Err(Error::corrupt(field.norms_file().name(), u64::from(document), what));
            }
        }
        Ok(())
    }
}

/// Checks that a block starts at offset `next`, and moves `next` to its end.
fn check_start(file: &SealedFile, range: &Range<u64>, next: &mut u64) -> Result<()> {
    if range.start != *next {
        return Err(Error::corrupt(file.name(), range.start, format!("block does not start at {next}")));
    }
    *next = range.end;
    Ok(())
}

//! Checks a field of a segment: terms, posting lists, impacts, block max scores, norms and totals.

use crate::cursor::{ListsAhead, NO_DOCUMENT};
use crate::segment::layout::{CHUNK_SUPERBLOCKS, chunk_alignment, share_units};
use crate::segment::read::{BlockList, FieldReader, ListPart, Norms, SkipRecord, TermInfo};
use crate::segment::{FieldStats, ListSizes};
use crate::transform::impact::{
    self, BLOCK_IMPACT_BYTES_MAX, Impact, ImpactBuilder, SUPERBLOCK_IMPACT_BYTES_MAX,
};
use crate::{Error, Result, limits::SUPERBLOCK, segment::write::default_share, transform::norm};
use std::{ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// Checks one field of a segment against its statistics in the manifest.
pub(super) fn check(field: &FieldReader, stats: &FieldStats) -> Result<()> {
    // First, because block max scores depend on the average length.
    documents(field, stats)?;
    let mut checker = Checker::new(field, stats)?;
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
            return Err(Error::corrupt(field.terms().name(), field.terms().page_offset(page), what));
        }
        checker.term(&info)?;
        terms += 1;
    }
    if terms != stats.terms {
        let what = format!("{terms} terms; the manifest says {}", stats.terms);
        return Err(Error::corrupt(field.terms().name(), 0, what));
    }
    checker.finish()
}

/// Compares the number of documents that have the field with the norms.
fn documents(field: &FieldReader, stats: &FieldStats) -> Result<()> {
    let norms = field.norms()?;
    let found = (0..field.documents()).filter(|&document| norms.length(document) > 0.0).count();
    if found != stats.documents as usize {
        let what = format!("{found} documents have tokens; the manifest says {}", stats.documents);
        return Err(Error::corrupt(field.norms_name(), 0, what));
    }
    Ok(())
}

struct Checker<'a> {
    field: &'a FieldReader,
    stats: &'a FieldStats,
    norms: &'a Norms,
    ahead: ListsAhead<'static>,
    average: f64,
    /// Offset at which the next skip record must start.
    skips: u64,
    /// Offset at which the next list must start in `postings`, up to alignment, and in `positions`.
    postings_end: u64,
    positions_end: u64,
    postings: u64,
    tokens: u64,
    lists: ListSizes,
    /// Tokens found in each document.
    lengths: Vec<u32>,
    impacts: ImpactBuilder,
    expected: Vec<Impact>,
    found: Vec<Impact>,
}

impl<'a> Checker<'a> {
    fn new(field: &'a FieldReader, stats: &'a FieldStats) -> Result<Checker<'a>> {
        let start = |file: &Arc<SealedFile>| file.payload().start;
        Ok(Checker {
            field,
            stats,
            norms: field.norms()?,
            ahead: ListsAhead::default(),
            average: stats.average_length(),
            skips: start(field.skips()),
            postings_end: start(field.postings()),
            positions_end: field.positions().map_or(0, start),
            postings: 0,
            tokens: 0,
            lists: ListSizes::default(),
            lengths: vec![0; field.documents() as usize],
            impacts: ImpactBuilder::default(),
            expected: Vec::new(),
            found: Vec::new(),
        })
    }

    fn term(&mut self, info: &TermInfo) -> Result<()> {
        if info.skips.start != self.skips {
            return Err(Error::corrupt(
                self.field.skips().name(),
                info.skips.start,
                "skip records are not contiguous",
            ));
        }
        self.skips = info.skips.end;
        match self.ahead.record(self.field, info)? {
            SkipRecord::Inline(list) => {
                if let Some(range) = &list.positions {
                    self.follow_positions(range)?;
                }
                self.lists.inline_bytes += info.skips.end - info.skips.start;
                self.list(info, None)
            }
            SkipRecord::Blocks(list) => {
                self.block_offsets(&list)?;
                self.list(info, Some(&list))
            }
        }
    }

    /// Checks that blocks are contiguous, except before aligned chunks.
    fn block_offsets(&mut self, list: &BlockList) -> Result<()> {
        let alignment = chunk_alignment(self.field.field()) as u64;
        let mut ranges = Vec::with_capacity(2 * list.blocks());
        for block in 0..list.blocks() {
            for part in [ListPart::Docs, ListPart::Freqs] {
                let starts_chunk = part == ListPart::Docs && block % (CHUNK_SUPERBLOCKS * SUPERBLOCK) == 0;
                ranges.push((list.range(part, block)?, starts_chunk));
            }
            self.lists.docs_bytes += list.len(ListPart::Docs, block);
            self.lists.freqs_bytes += list.len(ListPart::Freqs, block);
            if self.field.positions().is_some() {
                self.follow_positions(&list.range(ListPart::Positions, block)?)?;
            }
        }
        self.lists.block_postings += u64::from(list.documents());
        ranges.sort_unstable_by_key(|(range, _)| range.start);
        for (range, starts_chunk) in &ranges {
            if *starts_chunk {
                self.postings_end = self.postings_end.next_multiple_of(alignment);
            }
            follow(self.field.postings(), range, &mut self.postings_end)?;
        }
        if list.whole().end != self.postings_end {
            return Err(list.corrupt("the blocks of the list are not as long as its term says"));
        }
        if !list.last_documents_agree() {
            return Err(list.corrupt("the last documents of superblocks are not those of their blocks"));
        }
        let (all, accounted) = list.impact_bytes()?;
        if all != accounted {
            return Err(list.corrupt("bytes follow the impacts"));
        }
        Ok(())
    }

    fn follow_positions(&mut self, range: &Range<u64>) -> Result<()> {
        let file = self.field.positions().expect("the field has positions");
        follow(file, range, &mut self.positions_end)
    }

    /// Decodes the list; compares counts, impacts and block max scores with its skip record.
    fn list(&mut self, info: &TermInfo, list: Option<&BlockList>) -> Result<()> {
        let mut cursor = self.ahead.cursor(self.field, info.clone())?;
        let (mut documents, mut occurrences, mut block) = (0, 0, 0);
        let mut pairs = Vec::new();
        let mut superblock_max = 0;
        while cursor.advance(0)? != NO_DOCUMENT {
            let (ids, frequencies) = cursor.rest_of_block()?;
            let count = ids.len();
            documents += count as u32;
            for (&document, &frequency) in ids.iter().zip(frequencies) {
                occurrences += u64::from(frequency);
                let length = &mut self.lengths[document as usize];
                *length = length.saturating_add(frequency);
                self.impacts.add(frequency, self.norms.code(document));
            }
            self.impacts.take(&mut self.expected);
            if self.field.positions().is_some() {
                for _ in 0..count {
                    cursor.positions()?;
                    cursor.skip(1)?;
                }
            } else {
                cursor.skip(count)?;
            }
            if let Some(list) = list {
                pairs.extend_from_slice(&self.expected);
                superblock_max = superblock_max.max(self.block(list, block)?);
                block += 1;
                if block.is_multiple_of(SUPERBLOCK) || block == list.blocks() {
                    self.superblock(list, (block - 1) / SUPERBLOCK, &pairs, superblock_max)?;
                    pairs.clear();
                    superblock_max = 0;
                }
            }
        }
        if documents != info.documents || occurrences != info.occurrences {
            let what = format!(
                "list has {documents} documents and {occurrences} occurrences; its term says {} and {}",
                info.documents, info.occurrences
            );
            return Err(Error::corrupt(self.field.skips().name(), info.skips.start, what));
        }
        self.postings += u64::from(documents);
        self.tokens += occurrences;
        Ok(())
    }

    /// Compares the impacts in `expected` and their maximum score with those of a block; returns that score.
    fn block(&mut self, list: &BlockList, block: usize) -> Result<u16> {
        let best =
            self.expected.iter().map(|&impact| default_share(self.field.field().norms, impact, self.average));
        let bound = share_units(best.fold(0.0, f64::max));
        impact::coarsen(&mut self.expected, BLOCK_IMPACT_BYTES_MAX);
        list.impacts(block, &mut self.found)?;
        if self.found != self.expected || list.block_max_share(block) != bound {
            return Err(list.corrupt(format!("impacts of block {block} are not those of its postings")));
        }
        Ok(bound)
    }

    fn superblock(
        &mut self,
        list: &BlockList,
        superblock: usize,
        pairs: &[Impact],
        bound: u16,
    ) -> Result<()> {
        for impact in pairs {
            self.impacts.add(impact.frequency, impact.norm);
        }
        self.impacts.take(&mut self.expected);
        impact::coarsen(&mut self.expected, SUPERBLOCK_IMPACT_BYTES_MAX);
        impact::read(list.superblock_impacts(superblock)?, &mut self.found)?;
        if self.found != self.expected || list.superblock_max_share(superblock) != bound {
            return Err(
                list.corrupt(format!("impacts of superblock {superblock} are not those of its blocks"))
            );
        }
        Ok(())
    }

    /// Compares totals and norms.
    fn finish(self) -> Result<()> {
        let field = self.field;
        let ends = [(field.skips(), self.skips), (field.postings(), self.postings_end)];
        let positions = field.positions().map(|file| (file, self.positions_end));
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
            return Err(Error::corrupt(field.skips().name(), 0, what));
        }
        if self.lists != stats.lists {
            let what = format!("sizes of lists are {:?}; the manifest says {:?}", self.lists, stats.lists);
            return Err(Error::corrupt(field.skips().name(), 0, what));
        }
        for (document, &length) in (0u32..).zip(&self.lengths) {
            let same = match self.norms {
                Norms::Exact(lengths) => lengths.get(document) == length,
                Norms::Byte(codes) => codes[document as usize] == norm::encode(length),
            };
            if !same {
                let what = format!("document {document} has {length} tokens; its norm says otherwise");
                return Err(Error::corrupt(field.norms_name(), u64::from(document), what));
            }
        }
        Ok(())
    }
}

/// Checks that a block starts at `next`, and moves `next` to its end.
fn follow(file: &SealedFile, range: &Range<u64>, next: &mut u64) -> Result<()> {
    if range.start != *next {
        return Err(Error::corrupt(file.name(), range.start, format!("block does not start at {next}")));
    }
    *next = range.end;
    Ok(())
}

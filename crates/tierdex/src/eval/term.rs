//! The list of one term: bounds of its blocks, windows, and look-up of candidates.

use super::batch::Batch;
use super::bounds::{Bounds, ImpactShares};
use super::node::{Refine, Refinement};
use super::scratch::Scratch;
use super::tuning::TESTED_ONE_BY_ONE;
use super::window::{Bits, Window, within};
use crate::cursor::{AtHand, Blockwise, LIST_BYTES, NO_DOCUMENT, Reading, ScatteredBlocks};
use crate::error::{Error, Result};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::rank::TermScorer;
use crate::segment::read::{BlockList, FieldReader, Norms, TermInfo};
use crate::transform::impact::{BLOCK_FRONT_BYTES_MAX, Impact};
use std::ops::Range;
use tierdex_codec::{BitmapView, Places, Shared, intersect, ones, values_at_least};

/// Bytes of the longest bitmap of a block.
const BITMAP_BYTES_MAX: usize = 4 * BLOCK;

/// Bytes that a list takes at most beside its record, its buffers and its bounds.
pub const TERM_BYTES: usize = size_of::<Term<'_>>()
    + size_of::<Buffers>()
    + size_of::<AtHand>()
    + LIST_BYTES
    + BLOCK_FRONT_BYTES_MAX.div_ceil(2) * size_of::<Impact>();

/// The list of a term in a segment.
pub struct Term<'a> {
    /// Position in the leaves of the plan.
    leaf: usize,
    pub(super) blocks: ScatteredBlocks<'a>,
    norms: &'a Norms,
    pub(super) scorer: &'a TermScorer,
    bounds: Bounds,
    /// Documents that hold the term.
    pub(super) documents: u32,
    /// Where the last document was looked up.
    pub(super) block: usize,
    /// Candidates that were looked up, and of these those that were kept.
    looked_up: (u64, u64),
    pub(super) buffers: Box<Buffers>,
}

/// Arrays for the block that was decoded last, and for candidates; queries use them one after the other.
pub struct Buffers {
    /// The block of which `scores` are.
    scored: usize,
    scores: [u32; BLOCK],
    shares: ImpactShares,
    impacts: Vec<Impact>,
    /// Postings of a block that were selected by frequency.
    selected: Places,
    documents: [u32; BLOCK],
    frequencies: [u32; BLOCK],
    some_scores: [u32; BLOCK],
    shared: Shared,
    pub(super) found: Found,
}

/// The candidates that the list has, as [`Term::find_all`] found them.
pub(super) struct Found {
    pub(super) documents: [u32; BLOCK],
    pub(super) blocks: [u32; BLOCK],
    pub(super) offsets: [u8; BLOCK],
    pub(super) len: usize,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers {
            scored: usize::MAX,
            scores: [0; BLOCK],
            shares: ImpactShares::default(),
            impacts: Vec::new(),
            selected: Places::new(),
            documents: [0; BLOCK],
            frequencies: [0; BLOCK],
            some_scores: [0; BLOCK],
            shared: Shared::new(),
            found: Found { documents: [0; BLOCK], blocks: [0; BLOCK], offsets: [0; BLOCK], len: 0 },
        }
    }
}

impl<'a> Term<'a> {
    /// Reads the record of `term`, that of the plan's leaf of this position. The list is read as `reading`
    /// says.
    pub fn open(
        field: &'a FieldReader,
        (leaf, term): (usize, &TermInfo),
        (scorer, reading): (&'a TermScorer, Reading<'a>),
        bounds: Bounds,
        scratch: &mut Scratch,
    ) -> Result<Term<'a>> {
        let blocks = ScatteredBlocks::open(field, term, reading, scratch.at_hand.pop().unwrap_or_default())?;
        let mut buffers = scratch.buffers.pop().unwrap_or_default();
        buffers.scored = usize::MAX;
        if bounds == Bounds::Impacts {
            buffers.shares.restart(blocks.skips());
        }
        let (norms, documents) = (field.norms()?, term.documents);
        Ok(Term { leaf, blocks, norms, scorer, bounds, documents, block: 0, looked_up: (0, 0), buffers })
    }

    /// Gives the buffers back.
    pub fn close(self, scratch: &mut Scratch) {
        scratch.give(self.blocks.close(), self.buffers);
    }

    /// Records from now on what becomes of each block.
    pub fn trace(&mut self) {
        self.blocks.trace();
    }

    /// Its position in the leaves of the plan.
    pub fn leaf(&self) -> usize {
        self.leaf
    }

    /// What became of the blocks since [`Term::trace`].
    pub fn traced(&self) -> Blockwise {
        self.blocks.traced()
    }

    /// Candidates of other lists that were looked up, and of these those that were kept.
    pub fn looked_up(&self) -> (u64, u64) {
        self.looked_up
    }

    /// The skip data; `None` of a list so short that it has none.
    pub fn skips(&self) -> Option<&BlockList<'a>> {
        self.blocks.skips()
    }

    /// Documents that hold the term.
    pub fn postings(&self) -> u64 {
        u64::from(self.documents)
    }

    /// Moves to the first block that can hold `document` or a later one, forward or backward.
    #[inline]
    pub(super) fn seek(&mut self, document: u32) {
        let from = if self.block > 0 && self.blocks.first(self.block) > document { 0 } else { self.block };
        self.block = self.blocks.find(from, document);
    }

    /// A document that is at least `from` and not greater than the first of the list that is.
    pub(super) fn next(&mut self, from: u32) -> u32 {
        self.seek(from);
        if self.block < self.blocks.len() { from.max(self.blocks.first(self.block)) } else { NO_DOCUMENT }
    }

    fn share(&mut self, block: usize) -> Result<f32> {
        let Some(list) = self.blocks.skips() else { return Ok(1.0) };
        match self.bounds {
            Bounds::Stored(factor) => Ok(stored_share(list.bound(block), factor)),
            Bounds::Impacts => self.buffers.shares.block(list, self.scorer, block),
        }
    }

    /// The largest share of some blocks.
    fn share_of(&mut self, blocks: std::ops::RangeInclusive<usize>) -> Result<f32> {
        let Some(list) = self.blocks.skips() else { return Ok(1.0) };
        match self.bounds {
            Bounds::Stored(factor) => Ok(stored_share(list.largest_bound(blocks), factor)),
            Bounds::Impacts => self.buffers.shares.range(list, self.scorer, blocks),
        }
    }

    /// Upper bound of the scores in a block.
    #[inline]
    pub(super) fn block_max(&mut self, block: usize) -> Result<u32> {
        Ok(self.scorer.max_score(self.share(block)?))
    }

    /// Upper bound of the scores in a superblock.
    pub(super) fn superblock_max(&mut self, superblock: usize) -> Result<u32> {
        let Some(list) = self.blocks.skips() else { return Ok(self.scorer.max_score(1.0)) };
        let share = match self.bounds {
            Bounds::Stored(factor) => stored_share(list.super_bound(superblock), factor),
            Bounds::Impacts => self.buffers.shares.superblock(list, self.scorer, superblock)?,
        };
        Ok(self.scorer.max_score(share))
    }

    /// Upper bound of all scores.
    pub fn list_max(&mut self) -> Result<u32> {
        let superblocks = self.blocks.len().div_ceil(SUPERBLOCK);
        (0..superblocks).try_fold(0, |max, superblock| Ok(self.superblock_max(superblock)?.max(max)))
    }

    /// Upper bound of the shares from `first` to `last`; `None` if no document of the list is there. A list
    /// without skip data is decoded for it.
    pub(super) fn max_share(&mut self, (first, last): (u32, u32)) -> Result<Option<f32>> {
        self.seek(first);
        let from = self.block;
        if from >= self.blocks.len() {
            return Ok(None);
        }
        if self.blocks.skips().is_none() {
            let documents = self.blocks.documents(0)?;
            let next = documents.get(documents.partition_point(|document| *document < first));
            return Ok(next.is_some_and(|document| *document <= last).then_some(1.0));
        }
        if self.blocks.first(from) > last {
            return Ok(None);
        }
        let to = self.blocks.find(from, last).min(self.blocks.len() - 1);
        self.share_of(from..=to).map(Some)
    }

    /// Upper bound of the scores from `first` to `last`; `None` if no document of the list is there.
    pub(super) fn max_score(&mut self, range: (u32, u32)) -> Result<Option<u32>> {
        Ok(self.max_share(range)?.map(|share| self.scorer.max_score(share)))
    }

    /// Records that the blocks which overlap a range were skipped because of their bounds.
    pub(super) fn skip_range(&mut self, first: u32, last: u32) {
        if self.blocks.is_traced() {
            let (from, len) = (self.blocks.find(0, first), self.blocks.len());
            let overlap = (from..len).take_while(|block| self.blocks.first(*block) <= last).count();
            (from..from + overlap).for_each(|block| self.blocks.refuse(block));
        }
    }

    /// Documents of a block, and their scores.
    pub(super) fn read(&mut self, block: usize) -> Result<(&[u32], &[u32])> {
        let (documents, frequencies) = self.blocks.read(block)?;
        let scores = &mut self.buffers.scores[..documents.len()];
        if self.buffers.scored != block {
            self.buffers.scored = usize::MAX;
            self.scorer.score_all(self.norms, documents, frequencies, scores);
            self.buffers.scored = block;
        }
        Ok((documents, scores))
    }

    /// Documents of a block that may score `need`, and their scores: none is left out that does. The others
    /// are not scored, and if there is none the documents are not decoded.
    pub(super) fn read_at_least(&mut self, block: usize, need: u32) -> Result<(&[u32], &[u32])> {
        let selected = self.select(block, need)?;
        self.read_selected(block, selected)
    }

    /// The same, of postings that [`Term::select`] has selected.
    pub(super) fn read_selected(&mut self, block: usize, selected: usize) -> Result<(&[u32], &[u32])> {
        let n = match selected {
            BLOCK => return self.read(block),
            0 => return Ok((&[], &[])),
            n => n,
        };
        let (documents, frequencies) = self.blocks.read(block)?;
        let buffers = &mut *self.buffers;
        let offsets = buffers.selected.get().iter().map(|offset| usize::from(*offset));
        for ((offset, document), frequency) in
            offsets.zip(&mut buffers.documents).zip(&mut buffers.frequencies)
        {
            (*document, *frequency) = (documents[offset], frequencies[offset]);
        }
        let scores = &mut buffers.some_scores[..n];
        self.scorer.score_all(self.norms, &buffers.documents[..n], &buffers.frequencies[..n], scores);
        Ok((&buffers.documents[..n], scores))
    }

    /// Selects the postings of a block that are frequent enough to score `need`, and returns their number;
    /// [`BLOCK`] if most are, or if it is not known.
    pub(super) fn select(&mut self, block: usize, need: u32) -> Result<usize> {
        let buffers = &mut *self.buffers;
        match self.blocks.skips() {
            Some(list) if need > 1 && buffers.scored != block => list.impacts(block, &mut buffers.impacts)?,
            _ => return Ok(BLOCK),
        }
        let Some(frequency) = self.scorer.min_frequency(&buffers.impacts, need) else {
            self.blocks.refuse(block);
            return Ok(0);
        };
        if frequency <= 1 {
            return Ok(BLOCK);
        }
        values_at_least(self.blocks.frequencies(block)?, frequency, &mut buffers.selected);
        let n = buffers.selected.get().len();
        Ok(if n > BLOCK / 4 { BLOCK } else { n })
    }

    /// Adds the documents of a range.
    pub(super) fn mark(&mut self, bits: &mut Bits) -> Result<()> {
        let (first, last) = bits.range();
        self.seek(first);
        for block in self.block..self.blocks.len() {
            if self.blocks.first(block) > last {
                break;
            }
            if let Some(bitmap) = self.blocks.bitmap(block)? {
                bits.add_bitmap(&bitmap);
                continue;
            }
            let documents = self.blocks.documents(block)?;
            bits.add(&documents[within(documents, (first, last))]);
        }
        Ok(())
    }

    /// Adds the scores of the documents of a window.
    pub(super) fn add(&mut self, window: &mut Window) -> Result<()> {
        let (first, last) = window.range();
        self.seek(first);
        for block in self.block..self.blocks.len() {
            if self.blocks.first(block) > last {
                break;
            }
            if !self.add_bitmap(block, last, window)? {
                let (documents, scores) = self.read(block)?;
                let within = within(documents, (first, last));
                window.add(&documents[within.clone()], &scores[within]);
            }
        }
        Ok(())
    }

    /// Adds the scores of a block that is a bitmap, without decoding it; returns whether it is one.
    fn add_bitmap(&mut self, block: usize, last: u32, window: &mut Window) -> Result<bool> {
        let Norms::Byte(codes) = self.norms else { return Ok(false) };
        let Some((bitmap, frequencies)) = self.blocks.bitmap_and_frequencies(block)? else {
            return Ok(false);
        };
        // Both are multiples of eight.
        let (start, end) = (bitmap.first().max(window.origin()), bitmap.last().min(last));
        if start > end {
            return Ok(true);
        }
        let (before, bits) = bitmap.bits().split_at(((start - bitmap.first()) / 8) as usize);
        let bits = &bits[..((end - start) / 8 + 1) as usize];
        let from = (start - window.origin()) as usize;
        let sums = &mut window.sums()[from..from + (end - start + 1) as usize];
        self.scorer.saturation(codes).add_bits(bits, start, &frequencies[ones(before)..], sums);
        Ok(true)
    }

    /// Looks the candidates up and does with those that are found, or not, what `refinement` says.
    pub(super) fn refine(&mut self, batch: &mut Batch, refinement: Refinement) -> Result<()> {
        let Refinement { how, assumed, need } = refinement;
        let (mut at, mut kept) = (0, 0);
        self.looked_up.0 += batch.len() as u64;
        while at < batch.len() {
            self.seek(batch.documents[at]);
            let block = self.block;
            if block >= self.blocks.len() {
                if matches!(how, Refine::Optional | Refine::Exclude) {
                    batch.lower(at..batch.len(), assumed);
                    kept = batch.keep(at..batch.len(), kept, need);
                }
                break;
            }
            let last = self.blocks.last(block);
            let some = &batch.documents[at..batch.len().min(at + BLOCK)];
            let end = at + up_to(some, last);
            let bound = if how.is_scored() { self.block_max(block)?.min(assumed) } else { 0 };
            batch.lower(at..end, assumed - bound);
            let start = kept;
            kept = batch.keep(at..end, start, need);
            at = end;
            if kept == start {
                self.blocks.refuse(block);
                continue;
            }
            kept = if how.is_scored() {
                self.score_block(block, batch, start..kept, (how, bound))?
            } else {
                self.filter_block(block, batch, start..kept, how)?
            };
        }
        batch.truncate(kept);
        batch.retain(need);
        self.looked_up.1 += batch.len() as u64;
        Ok(())
    }

    /// Keeps the candidates at some positions that the block has, or has not; returns the end of those that
    /// are kept.
    fn filter_block(
        &mut self,
        block: usize,
        batch: &mut Batch,
        positions: Range<usize>,
        how: Refine,
    ) -> Result<usize> {
        let documents = &batch.documents[positions.clone()];
        let buffers = &mut *self.buffers;
        let found = match self.blocks.bitmap(block)? {
            Some(bitmap) if documents.len() > TESTED_ONE_BY_ONE => {
                bitmap.find(documents, &mut buffers.shared);
                buffers.shared.first()
            }
            Some(bitmap) => {
                let n = test_bits(&bitmap, documents, &mut buffers.found.offsets);
                &buffers.found.offsets[..n]
            }
            None => {
                intersect(documents, self.blocks.documents(block)?, &mut buffers.shared);
                buffers.shared.first()
            }
        };
        if how == Refine::Exclude {
            return Ok(batch.exclude(positions, found));
        }
        batch.select(positions.start, found);
        Ok(positions.start + found.len())
    }

    /// Scores the candidates at some positions that the block has: `bound` is replaced by the score. Returns
    /// the end of those that are kept.
    fn score_block(
        &mut self,
        block: usize,
        batch: &mut Batch,
        positions: Range<usize>,
        (how, bound): (Refine, u32),
    ) -> Result<usize> {
        let documents = &batch.documents[positions.clone()];
        self.blocks.find_in(block, documents, &mut self.buffers.shared)?;
        let n = self.buffers.shared.first().len();
        if n > 0 {
            let frequencies = self.blocks.frequencies(block)?;
            let buffers = &mut *self.buffers;
            for (k, (first, second)) in buffers.shared.first().iter().zip(buffers.shared.second()).enumerate()
            {
                buffers.documents[k] = documents[usize::from(*first)];
                buffers.frequencies[k] = frequencies[usize::from(*second)];
            }
            let scores = &mut buffers.some_scores[..n];
            self.scorer.score_all(self.norms, &buffers.documents[..n], &buffers.frequencies[..n], scores);
        }
        batch.lower(positions.clone(), bound);
        let found = self.buffers.shared.first();
        let scores = &self.buffers.some_scores[..n];
        if how == Refine::Require {
            batch.select(positions.start, found);
            for (score, added) in batch.scores[positions.start..].iter_mut().zip(scores) {
                *score += added;
            }
            return Ok(positions.start + n);
        }
        for (offset, added) in found.iter().zip(scores) {
            batch.scores[positions.start + usize::from(*offset)] += added;
        }
        Ok(positions.end)
    }

    /// Keeps the candidates, at most [`BLOCK`], that the list has, and records in which block and at which
    /// offset each is. The bound of the range, `assumed`, is replaced by that of the block, and candidates
    /// below `need` are dropped before they are looked up.
    pub(super) fn find_all(&mut self, batch: &mut Batch, assumed: u32, need: u32) -> Result<()> {
        let (mut at, mut kept) = (0, 0);
        self.buffers.found.len = 0;
        self.looked_up.0 += batch.len() as u64;
        while at < batch.len() {
            self.seek(batch.documents[at]);
            let block = self.block;
            if block >= self.blocks.len() {
                break;
            }
            let last = self.blocks.last(block);
            let end = at + up_to(&batch.documents[at..], last);
            let start = kept;
            if assumed > 0 {
                let bound = self.block_max(block)?.min(assumed);
                batch.lower(at..end, assumed - bound);
            }
            kept = batch.keep(at..end, start, need);
            at = end;
            if kept == start {
                self.blocks.refuse(block);
                continue;
            }
            let buffers = &mut *self.buffers;
            self.blocks.find_in(block, &batch.documents[start..kept], &mut buffers.shared)?;
            let (found, shared) = (&mut buffers.found, &buffers.shared);
            batch.select(start, shared.first());
            kept = start + shared.first().len();
            let to = found.len..found.len + shared.first().len();
            found.documents[to.clone()].copy_from_slice(&batch.documents[start..kept]);
            found.blocks[to.clone()].fill(block as u32);
            found.offsets[to.clone()].copy_from_slice(shared.second());
            found.len = to.end;
        }
        batch.truncate(kept);
        self.looked_up.1 += kept as u64;
        Ok(())
    }

    /// Records that the candidates are at ascending offsets of a block: all of its documents, or the selected
    /// ones.
    pub(super) fn found_in_block(&mut self, block: usize, documents: &[u32]) {
        let found = &mut self.buffers.found;
        found.len = documents.len();
        found.documents[..found.len].copy_from_slice(documents);
        found.blocks[..found.len].fill(block as u32);
        (0..).zip(&mut found.offsets[..documents.len()]).for_each(|(at, offset)| *offset = at as u8);
    }

    /// The blocks and offsets of `documents`, which [`Term::find_all`] has found, among others.
    ///
    /// # Errors
    /// If blocks of the list overlap, so that the documents do not rise.
    pub(super) fn locate(&mut self, documents: &[u32]) -> Result<()> {
        let Buffers { found, shared, .. } = &mut *self.buffers;
        if found.len == documents.len() {
            return Ok(());
        }
        intersect(documents, &found.documents[..found.len], shared);
        if shared.first().len() != documents.len() {
            let file = self.blocks.field().skips().name();
            return Err(Error::corrupt(file, 0, "the last documents of the blocks of a list do not rise"));
        }
        for (to, from) in shared.second().iter().map(|from| usize::from(*from)).enumerate() {
            found.documents[to] = found.documents[from];
            found.blocks[to] = found.blocks[from];
            found.offsets[to] = found.offsets[from];
        }
        found.len = documents.len();
        Ok(())
    }

    /// Frequencies of `documents`, which [`Term::locate`] has found.
    pub(super) fn frequencies_found(&mut self) -> Result<&[u32]> {
        let Buffers { found, frequencies: to, .. } = &mut *self.buffers;
        let mut at = 0;
        while at < found.len {
            let block = found.blocks[at];
            let frequencies = self.blocks.frequencies(block as usize)?;
            while at < found.len && found.blocks[at] == block {
                to[at] = frequencies[usize::from(found.offsets[at])];
                at += 1;
            }
        }
        Ok(&to[..at])
    }

    /// Scores the candidates, all of which [`Term::find_all`] has found: the maximum score of each block, or
    /// `assumed` where it is given, is replaced by the score.
    pub(super) fn score_found(&mut self, batch: &mut Batch, assumed: u32, need: u32) -> Result<()> {
        self.locate(&batch.documents)?;
        let n = self.frequencies_found()?.len();
        let mut last = (u32::MAX, 0);
        for at in 0..n {
            let block = self.buffers.found.blocks[at];
            if last.0 != block {
                last = (block, self.block_max(block as usize)?.min(assumed));
            }
            batch.scores[at] -= last.1;
        }
        let buffers = &mut *self.buffers;
        let scores = &mut buffers.some_scores[..n];
        self.scorer.score_all(self.norms, &batch.documents, &buffers.frequencies[..n], scores);
        batch.scores.iter_mut().zip(scores).for_each(|(score, added)| *score += *added);
        batch.retain(need);
        Ok(())
    }
}

/// How many of the ascending documents are not after `last`.
fn up_to(documents: &[u32], last: u32) -> usize {
    match documents.last() {
        Some(end) if *end > last => documents.partition_point(|document| *document <= last),
        _ => documents.len(),
    }
}

/// The offsets of the documents whose bits are set; returns how many there are.
fn test_bits(bitmap: &BitmapView<'_>, documents: &[u32], offsets: &mut [u8; BLOCK]) -> usize {
    let (first, bits, mut found) = (bitmap.first(), bitmap.bits(), 0);
    for (offset, document) in documents.iter().enumerate() {
        let place = document.wrapping_sub(first) as usize;
        let byte = bits.get(place / 8).copied().unwrap_or(0);
        offsets[found % BLOCK] = offset as u8;
        found += usize::from(byte >> (place % 8) & 1);
    }
    found
}

/// The share that is stored as `units` of 65535, rounded up, times a factor.
fn stored_share(units: u16, factor: f32) -> f32 {
    (f32::from(units) * (factor / 65535.0)).min(1.0)
}

const _: () = assert!(BITMAP_BYTES_MAX < 1 << 16);

//! The posting list of one term: max scores of blocks and ranges, and the matches of a range. `look_up` looks
//! up candidates of other clauses in it. The methods without a comment are those of
//! [`Node`](crate::eval::nodes::Node) with the same name.
//!
//! The *share* of a posting is its score divided by the weight of the term: `f / (f + k)` with BM25
//! ([`ShareBounds`]), and the frequency `f` with an inner product. A *max share* is the largest share of the
//! postings of a block or superblock.

mod look_up;

pub(crate) use look_up::{BlockPostings, LookUpBounds};

use crate::cursor::{DecodedBlock, LIST_BYTES, NO_DOCUMENT, ScatteredBlocks};
use crate::eval::state::{Bits, CandidateBatch, DocRange, ScoreWindow, Scratch, positions_within};
use crate::eval::{nodes::ShareBounds, state::buffers::TermBuffers};
use crate::limits::BLOCK;
use crate::segment::read::{BlockList, BlockSource, Norms, OpenSegment, RecordPart, TermInfo};
use crate::transform::impact::{self, BLOCK_IMPACT_BYTES_MAX, Impact};
use crate::{Result, bytes::ByteReader, query::plan_node::Leaf, rank::TermScorer};
use std::ops::Range;
use tierdex_codec::{count_ones, values_at_least};

/// Maximum bytes of a block that is stored as a bitmap.
const BITMAP_BYTES_MAX: usize = 4 * BLOCK;

/// Bytes of an open list without its skip record, read buffers, look-up buffers and impacts of a block.
pub const TERM_BYTES: usize =
    size_of::<Term<'_>>() + size_of::<TermBuffers>() + size_of::<DecodedBlock>() + LIST_BYTES;

/// Maximum bytes of the decoded impacts of a block.
pub const BLOCK_IMPACTS_BYTES: usize = BLOCK_IMPACT_BYTES_MAX.div_ceil(2) * size_of::<Impact>();

/// The opened posting list of a term in a segment.
pub struct Term<'a> {
    /// Index in the leaves of the plan.
    pub(crate) leaf: usize,
    pub(crate) blocks: ScatteredBlocks<'a>,
    norms: &'a Norms,
    pub(crate) scorer: &'a TermScorer,
    /// Upper bounds of shares from stored max shares; `None` if shares are frequencies, whose bounds are the
    /// largest frequencies of impacts.
    bounds: Option<ShareBounds>,
    /// Document frequency in the segment.
    pub(crate) documents: u32,
    /// Upper bound of the number of its postings that belong to deleted documents.
    deleted: u32,
    /// Number of the block to which [`Term::seek`] moved last.
    pub(crate) block: usize,
    /// The documents whose blocks have been prefetched for look-ups, and whether with their frequencies.
    prefetched: DocRange,
    prefetched_frequencies: bool,
    /// For `explain`: number of candidates looked up, and number of these that passed.
    pub(crate) looked_up: (u64, u64),
    pub(crate) buffers: Box<TermBuffers>,
}

impl<'a> Term<'a> {
    /// Opens the list of a term, of whose skip record `part` is read. Bytes that are not resident are read
    /// from `source`. `scorer` scores its postings: that of the term, or of a phrase.
    pub fn open(
        leaf: &Leaf,
        scorer: &'a TermScorer,
        info: &TermInfo,
        part: RecordPart,
        segment: &'a OpenSegment,
        source: &'a dyn BlockSource,
        scratch: &mut Scratch,
    ) -> Result<Term<'a>> {
        let (field, bounds) = (segment.field_of_term(leaf.field), leaf.share_bounds(segment));
        let decoded = scratch.decoded.pop().unwrap_or_default();
        let blocks = ScatteredBlocks::open(field, info, part, source, decoded)?;
        let mut buffers = scratch.take_list();
        buffers.scored = usize::MAX;
        let (norms, documents) = (field.norms()?, info.document_frequency);
        Ok(Term {
            leaf: leaf.number,
            blocks,
            norms,
            scorer,
            bounds,
            documents,
            deleted: segment.deleted_postings_max(info),
            block: 0,
            prefetched: DocRange::default(),
            prefetched_frequencies: true,
            looked_up: (0, 0),
            buffers,
        })
    }

    /// Returns the buffers to `scratch`.
    pub fn close(self, scratch: &mut Scratch) {
        scratch.give_list(self.blocks.close(), self.buffers);
    }

    /// Number of postings, and upper bound of the number of those that belong to deleted documents.
    pub(crate) fn postings_and_deleted(&self) -> (u64, u64) {
        (u64::from(self.documents), u64::from(self.deleted))
    }

    /// [`Term::documents`] as an upper bound of the number of matches.
    pub fn postings(&self) -> u64 {
        u64::from(self.documents)
    }

    /// Moves, forward or backward, to the first block that can contain `document` or a later one.
    #[inline]
    pub(crate) fn seek(&mut self, document: u32) {
        self.block = self.blocks.seek(self.block, document);
    }

    pub(crate) fn next_lower_bound(&mut self, from: u32) -> u32 {
        self.seek(from);
        if self.block < self.blocks.len() { from.max(self.blocks.first(self.block)) } else { NO_DOCUMENT }
    }

    pub(crate) fn block_end(&mut self, from: u32) -> u32 {
        self.seek(from);
        if self.block < self.blocks.len() { self.blocks.last(self.block) } else { NO_DOCUMENT }
    }

    /// Upper bound of the scores of a block.
    #[inline]
    pub(crate) fn block_max_score(&self, block: usize) -> u32 {
        let share =
            self.blocks.skips().map_or(self.scorer.share_max(), |list| self.block_max_share(list, block));
        self.scorer.max_score(share)
    }

    /// Upper bound of the shares of a block.
    #[inline]
    fn block_max_share(&self, list: &BlockList<'a>, block: usize) -> f32 {
        match &self.bounds {
            Some(bounds) => bounds.share(list.block_max_share(block)),
            None => self.largest_frequency(list.encoded_impacts(block)),
        }
    }

    /// Upper bound of the shares of a superblock.
    fn superblock_max_share(&self, list: &BlockList<'a>, superblock: usize) -> f32 {
        match &self.bounds {
            Some(bounds) => bounds.share(list.superblock_max_share(superblock)),
            None => self.largest_frequency(list.superblock_impacts(superblock)),
        }
    }

    /// The largest frequency among impacts; that of the whole list if the impacts are damaged.
    fn largest_frequency(&self, impacts: Result<ByteReader<'_>>) -> f32 {
        let max = self.scorer.share_max();
        impacts.and_then(impact::max_frequency).map_or(max, |frequency| (frequency as f32).min(max))
    }

    /// Whether there are impacts, and max scores from them are mostly lower than those from max shares.
    pub(crate) fn has_loose_bounds(&self) -> bool {
        self.bounds.is_some_and(|bounds| !bounds.is_tight)
            && self.blocks.skips().is_some_and(BlockList::has_impacts)
    }

    /// Upper bound of the scores of a block from its impacts.
    pub(crate) fn block_max_by_impacts(&self, block: usize) -> Result<u32> {
        let Some(list) = self.blocks.skips() else { return Ok(self.block_max_score(block)) };
        self.impacts_max(list.encoded_impacts(block)?)
    }

    fn impacts_max(&self, impacts: ByteReader<'_>) -> Result<u32> {
        let mut best: Option<Impact> = None;
        impact::for_each(impacts, |impact| {
            best = Some(best.map_or(impact, |best| self.scorer.better(best, impact)));
        })?;
        Ok(best.map_or(0, |best| self.scorer.max_score_of(best)))
    }

    /// Upper bound of the scores of a superblock, from its impacts if `by_impacts`, else from its max share.
    pub(crate) fn superblock_max_score(&self, superblock: usize, by_impacts: bool) -> Result<u32> {
        match self.blocks.skips() {
            Some(list) if by_impacts => self.impacts_max(list.superblock_impacts(superblock)?),
            Some(list) => Ok(self.scorer.max_score(self.superblock_max_share(list, superblock))),
            None => Ok(self.scorer.max_score(self.scorer.share_max())),
        }
    }

    /// The superblocks that overlap a range of documents.
    pub(crate) fn superblocks(&self, range: DocRange) -> Range<usize> {
        let DocRange { first, last } = range;
        let Some(list) = self.blocks.skips() else { return 0..1 };
        let end = list.find_superblock(0, last).saturating_add(1).min(list.superblocks());
        list.find_superblock(0, first).min(end)..end
    }

    /// Lower bound of the highest score in a block or superblock with this stored max share, which one of its
    /// postings has; 0 if the stored share says nothing about this ranking.
    pub(crate) fn guaranteed_score(&self, max_share: u16) -> u32 {
        match (&self.bounds, self.norms) {
            (Some(bounds), Norms::Byte(_)) if bounds.is_tight => {
                self.scorer.min_score(bounds.guaranteed_share(max_share))
            }
            _ => 0,
        }
    }

    /// Calls `body` with each block of these superblocks whose max score is at least `min_score`, and that
    /// max score, in document order. Max scores are computed from impacts if `by_impacts`.
    pub(crate) fn each_block_at_least(
        &self,
        superblocks: &Range<usize>,
        min_score: u32,
        by_impacts: bool,
        mut body: impl FnMut(&ScatteredBlocks<'_>, usize, u32),
    ) -> Result<()> {
        if self.blocks.skips().is_none() {
            body(&self.blocks, 0, self.block_max_score(0));
            return Ok(());
        }
        let units = self.min_units(min_score);
        let Some(list) = self.blocks.skips() else { return Ok(()) };
        for superblock in superblocks.clone() {
            if list.superblock_max_share(superblock) < units {
                continue;
            }
            // May be lower than the bound of one of its blocks, whose impacts are stored less exactly.
            let superblock_bound = match self.bounds {
                Some(_) if !by_impacts => u32::MAX,
                _ => self.superblock_max_score(superblock, by_impacts)?,
            };
            if superblock_bound < min_score {
                continue;
            }
            for (block, stored) in list.block_max_shares(superblock).filter(|(_, stored)| *stored >= units) {
                let mut bound = match self.bounds {
                    Some(bounds) => self.scorer.max_score(bounds.share(stored)),
                    None => self.block_max_score(block),
                };
                if by_impacts && bound >= min_score {
                    bound = bound.min(self.impacts_max(list.encoded_impacts(block)?)?).min(superblock_bound);
                }
                if bound >= min_score {
                    body(&self.blocks, block, bound);
                }
            }
        }
        Ok(())
    }

    /// The least stored max share of a block or superblock whose max score is at least `min_score`.
    fn min_units(&self, min_score: u32) -> u16 {
        let min_units = |bounds: ShareBounds| bounds.min_units(self.scorer.min_share(min_score));
        self.bounds.map_or(0, min_units)
    }

    /// The superblocks whose max score, by their stored max share, is at least `min_score`.
    pub(crate) fn superblocks_at_least(&self, superblocks: Range<usize>, min_score: u32, out: &mut Vec<u32>) {
        let (list, units) = (self.blocks.skips(), self.min_units(min_score));
        let reaches =
            |superblock: &usize| list.is_none_or(|list| list.superblock_max_share(*superblock) >= units);
        out.clear();
        // Exactly, since the memory of an evaluation is counted.
        out.reserve_exact(superblocks.len());
        out.extend(superblocks.filter(reaches).map(|superblock| superblock as u32));
    }

    /// Upper bound of the scores of the list.
    pub fn list_max_score(&self) -> u32 {
        let Some(list) = self.blocks.skips() else { return self.scorer.max_score(self.scorer.share_max()) };
        let shares = (0..list.superblocks()).map(|superblock| self.superblock_max_share(list, superblock));
        self.scorer.max_score(shares.fold(0.0, f32::max))
    }

    /// Upper bound of the shares in a range; `None` without documents there. An inline list is decoded.
    pub(crate) fn max_share(&mut self, range: DocRange) -> Result<Option<f32>> {
        let blocks = self.blocks_of(range);
        if blocks.is_empty() {
            return Ok(None);
        }
        let Some(list) = self.blocks.skips() else {
            let within = positions_within(self.blocks.documents(0)?, range);
            return Ok((!within.is_empty()).then(|| self.scorer.share_max()));
        };
        Ok(Some(match &self.bounds {
            Some(bounds) => bounds.share(list.max_share(blocks.start..=blocks.end - 1)),
            None => blocks.map(|block| self.block_max_share(list, block)).fold(0.0, f32::max),
        }))
    }

    /// Upper bound of the scores in a range; `None` if the list has no document there.
    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        Ok(self.max_share(range)?.map(|share| self.scorer.max_score(share)))
    }

    /// Records for `explain` that the blocks that overlap a range were pruned by their max scores.
    pub(crate) fn skip_range(&mut self, range: DocRange) {
        if self.blocks.is_traced() {
            let (from, len) = (self.blocks.find(0, range.first), self.blocks.len());
            let overlap = (from..len).take_while(|block| self.blocks.first(*block) <= range.last).count();
            (from..from + overlap).for_each(|block| self.blocks.mark_pruned(block));
        }
    }

    /// Documents and scores of a block.
    pub(crate) fn read_block(&mut self, block: usize) -> Result<(&[u32], &[u32])> {
        let (documents, frequencies) = self.blocks.read(block)?;
        let scores = &mut self.buffers.scores[..documents.len()];
        if self.buffers.scored != block {
            self.buffers.scored = usize::MAX;
            self.scorer.score_all(self.norms, documents, frequencies, scores);
            self.buffers.scored = block;
        }
        Ok((documents, scores))
    }

    /// Documents of a block with their scores: all that score at least `min_score`, and possibly others. If
    /// no frequency of the block allows the score, nothing is decoded.
    pub(crate) fn read_block_at_least(&mut self, block: usize, min_score: u32) -> Result<(&[u32], &[u32])> {
        let selected = self.select_postings(block, min_score)?;
        self.read_selected(block, selected)
    }

    /// Documents and scores of the postings selected by [`Term::select_postings`].
    pub(crate) fn read_selected(&mut self, block: usize, count: usize) -> Result<(&[u32], &[u32])> {
        match count {
            BLOCK => return self.read_block(block),
            0 => return Ok((&[], &[])),
            _ => {}
        }
        let (documents, frequencies) = self.blocks.read(block)?;
        let buffers = self.buffers.look_up();
        let offsets = buffers.selected.positions().iter().map(|offset| usize::from(*offset));
        for ((offset, document), frequency) in
            offsets.zip(&mut buffers.documents).zip(&mut buffers.frequencies)
        {
            (*document, *frequency) = (documents[offset], frequencies[offset]);
        }
        let (documents, scores) = (&buffers.documents[..count], &mut buffers.selected_scores[..count]);
        self.scorer.score_all(self.norms, documents, &buffers.frequencies[..count], scores);
        Ok((documents, scores))
    }

    /// Selects the postings of a block whose frequencies allow a score of `min_score`, and returns their
    /// number; [`BLOCK`] if the whole block is to be evaluated, since many qualify or it has no impacts.
    pub(crate) fn select_postings(&mut self, block: usize, min_score: u32) -> Result<usize> {
        let buffers = &mut *self.buffers;
        match self.blocks.skips() {
            Some(list) if min_score > 1 && list.has_impacts() && buffers.scored != block => {
                list.decode_impacts(block, &mut buffers.impacts)?
            }
            _ => return Ok(BLOCK),
        }
        let Some(frequency) = self.scorer.min_frequency(&buffers.impacts, min_score) else {
            self.blocks.mark_pruned(block);
            return Ok(0);
        };
        if frequency <= 1 {
            return Ok(BLOCK);
        }
        self.blocks.load(block)?;
        let selected = &mut buffers.look_up().selected;
        values_at_least(self.blocks.frequencies(block)?, frequency, selected);
        let n = selected.positions().len();
        Ok(if n > BLOCK / 4 { BLOCK } else { n })
    }

    /// Prefetches the blocks that overlap a range. False if the prefetch limit of the source is reached.
    pub(crate) fn prefetch(&mut self, range: DocRange, frequencies: bool) -> Result<bool> {
        let blocks = if self.blocks.prefetches() { self.blocks_of(range) } else { 0..0 };
        self.blocks.prefetch_run(blocks, frequencies)
    }

    /// The blocks that overlap a range.
    #[inline]
    pub(crate) fn blocks_of(&mut self, range: DocRange) -> Range<usize> {
        self.seek(range.first);
        self.block..(self.blocks.find(self.block, range.last) + 1).min(self.blocks.len())
    }

    /// Upper bound of the number of postings in a range.
    pub(crate) fn postings_max(&mut self, range: DocRange) -> usize {
        (BLOCK * self.blocks_in(range)).min(self.documents as usize)
    }

    /// Number of blocks that overlap a range.
    pub(crate) fn blocks_in(&mut self, range: DocRange) -> usize {
        self.blocks_of(range).len()
    }

    /// As [`Term::prefetch`], only the blocks whose max scores are at least `min_score`.
    pub(crate) fn prefetch_at_least(&mut self, range: DocRange, min_score: u32) -> Result<bool> {
        let blocks = if self.blocks.prefetches() { self.blocks_of(range) } else { 0..0 };
        let mut run = blocks.start..blocks.start;
        for block in blocks {
            if self.block_max_score(block) >= min_score {
                run.end = block + 1;
                continue;
            }
            if !self.blocks.prefetch_run(run, true)? {
                return Ok(false);
            }
            run = block + 1..block + 1;
        }
        self.blocks.prefetch_run(run, true)
    }

    /// Adds the documents in the range of `bits` to it.
    pub(crate) fn mark_matches(&mut self, bits: &mut Bits) -> Result<()> {
        let range = bits.range();
        for block in self.blocks_of(range) {
            if let Some(bitmap) = self.blocks.bitmap(block)? {
                bits.add_bytes(bitmap.first(), bitmap.bits());
                continue;
            }
            let documents = self.blocks.documents(block)?;
            bits.add(&documents[positions_within(documents, range)]);
        }
        Ok(())
    }

    pub(crate) fn collect(
        &mut self,
        range: DocRange,
        min_score: u32,
        batch: &mut CandidateBatch,
    ) -> Result<()> {
        for block in self.blocks_of(range) {
            if min_score > 1 && self.block_max_score(block) < min_score {
                continue;
            }
            let (documents, scores) = self.read_block_at_least(block, min_score)?;
            let within = positions_within(documents, range);
            batch.push_all(&documents[within.clone()], &scores[within]);
        }
        batch.retain_at_least(min_score);
        Ok(())
    }

    pub(crate) fn collect_unscored(&mut self, range: DocRange, batch: &mut CandidateBatch) -> Result<()> {
        for block in self.blocks_of(range) {
            let documents = self.blocks.documents(block)?;
            batch.push_equal(&documents[positions_within(documents, range)], 0);
        }
        Ok(())
    }

    /// Adds the scores of the documents in the range of `window` to its sums.
    pub(crate) fn add_scores(&mut self, window: &mut ScoreWindow) -> Result<()> {
        let range = window.range();
        for block in self.blocks_of(range) {
            if !self.add_bitmap(block, range.last, window)? {
                let (documents, scores) = self.read_block(block)?;
                let within = positions_within(documents, range);
                window.add(&documents[within.clone()], &scores[within]);
            }
        }
        Ok(())
    }

    /// Adds the scores of a bitmap block without decoding its documents. False if the block is not a bitmap.
    fn add_bitmap(&mut self, block: usize, last: u32, window: &mut ScoreWindow) -> Result<bool> {
        let Norms::Byte(codes) = self.norms else { return Ok(false) };
        let Some((bitmap, frequencies)) = self.blocks.bitmap_and_frequencies(block)? else {
            return Ok(false);
        };
        let Some(saturation) = self.scorer.saturation(codes) else { return Ok(false) };
        // The first documents of bitmaps and windows are multiples of eight, so bytes are aligned.
        let (start, end) = (bitmap.first().max(window.origin()), bitmap.last().min(last));
        if start > end {
            return Ok(true);
        }
        let (before, bits) = bitmap.bits().split_at(((start - bitmap.first()) / 8) as usize);
        let bits = &bits[..((end - start) / 8 + 1) as usize];
        let from = (start - window.origin()) as usize;
        let sums = &mut window.sums()[from..from + (end - start + 1) as usize];
        saturation.add_bits(bits, start, &frequencies[count_ones(before)..], sums);
        Ok(true)
    }
}

const _: () = assert!(BITMAP_BYTES_MAX < 1 << 16);

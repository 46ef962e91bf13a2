//! Looks up candidates of other clauses in a list.
//!
//! Input: a batch of documents in ascending order, with upper bounds of their scores. Output: the batch
//! without the candidates that cannot be hits: those that the list lacks (or, for an exclusion, contains),
//! and those whose upper bounds fall below the threshold. If scores are added later, the block and the offset
//! in it at which each candidate was found are recorded ([`FoundPostings`]).

use super::Term;
use crate::cursor::{PositionsReader, ScatteredBlocks};
use crate::eval::state::buffers::{FoundPostings, LookUpBuffers};
use crate::eval::state::{CandidateBatch, CandidateRange, DocRange, Refine, Refinement};
use crate::{Error, Result, eval::tuning::LOOK_UP_BLOCKS_MAX, limits::BLOCK};
use std::ops::Range;
use tierdex_codec::{BitmapView, intersect};

/// A block of another list whose documents are the candidates.
#[derive(Clone, Copy)]
pub(crate) struct BlockPostings<'d> {
    pub(crate) block: usize,
    pub(crate) documents: &'d [u32],
}

/// Upper bounds of the scores of all candidates of a block, before they are looked up.
#[derive(Clone, Copy)]
pub(crate) struct LookUpBounds {
    /// Upper bound of the score of each candidate.
    pub(crate) bound: u32,
    /// Upper bound of the scores of the list in which they are looked up; `bound` includes it.
    pub(crate) included_bound: u32,
    /// Candidates below this are not looked up.
    pub(crate) min_score: u32,
}

impl Term<'_> {
    /// Prefetches the blocks in which candidates of a range will be looked up, unless there are more than
    /// [`LOOK_UP_BLOCKS_MAX`] for each of the `lead_blocks` that the candidates are from: then most of their
    /// pages contain no candidate. False if the prefetch limit of the source is reached.
    pub(crate) fn prefetch_range(&mut self, of: CandidateRange, frequencies: bool) -> Result<bool> {
        let CandidateRange { range, lead_blocks } = of;
        if self.blocks_in(range) > LOOK_UP_BLOCKS_MAX * lead_blocks {
            // An empty range: blocks that were prefetched before may be requested again.
            self.prefetched = DocRange { first: range.last.saturating_add(1), last: range.last };
            return Ok(true);
        }
        let all = self.prefetch(range, frequencies)?;
        if all {
            // Candidates are looked up in prefetched ranges only, so the gaps between these do not matter.
            let continues = range.first > self.prefetched.last;
            let first = if continues { self.prefetched.first } else { range.first };
            self.prefetched = DocRange { first, last: range.last };
            self.prefetched_frequencies = frequencies && (self.prefetched_frequencies || !continues);
        }
        Ok(all)
    }

    /// Prefetches the blocks in which `documents` are looked up, except those whose max score, in place of
    /// `included_bound`, leaves all of their candidates below `min_score`. `bound` returns the highest score
    /// in a range of candidates.
    fn prefetch_candidates(
        &mut self,
        documents: &[u32],
        included_bound: u32,
        min_score: u32,
        bound: impl Fn(Range<usize>) -> u32,
    ) -> Result<()> {
        let DocRange { first, last } = &self.prefetched;
        if !self.blocks.prefetches() || documents.first() >= Some(first) && documents.last() <= Some(last) {
            return Ok(());
        }
        let (own, mut at) = (self.block, 0);
        while let Some(count) = self.seek_candidates(&documents[at..]) {
            let less = included_bound - self.block_max_score(self.block).min(included_bound);
            if bound(at..at + count) - less >= min_score {
                self.blocks.prefetch(self.block, false)?;
            }
            at += count;
        }
        self.block = own;
        Ok(())
    }

    /// Moves to the first block that can contain the first of `documents` or a later one. Returns how many of
    /// `documents`, at least 1, do not come after the block; `None` if there is no such block or document.
    #[inline]
    fn seek_candidates(&mut self, documents: &[u32]) -> Option<usize> {
        self.seek(*documents.first()?);
        (self.block < self.blocks.len()).then(|| count_up_to(documents, self.blocks.last(self.block)))
    }

    /// Prefetches the frequencies of the blocks in which candidates were found.
    fn prefetch_found(&mut self) -> Result<()> {
        let is_prefetched = |blocks: &ScatteredBlocks<'_>, block| {
            let DocRange { first, last } = self.prefetched;
            self.prefetched_frequencies && blocks.last(block) >= first && blocks.first(block) <= last
        };
        if self.blocks.prefetches() {
            for block in self.buffers.found.distinct_blocks() {
                if !is_prefetched(&self.blocks, block) {
                    self.blocks.prefetch_frequencies(block)?;
                }
            }
        }
        Ok(())
    }

    /// Prefetches the frequencies and positions of the blocks in which candidates were found.
    pub(crate) fn prefetch_positions(&mut self, positions: &PositionsReader<'_>) -> Result<()> {
        self.prefetch_found()?;
        if self.blocks.prefetches() {
            for block in self.buffers.found.distinct_blocks() {
                self.blocks.prefetch_positions(block, positions)?;
            }
        }
        Ok(())
    }

    /// See [`Node::refine_batch`](crate::eval::nodes::Node::refine_batch).
    pub(crate) fn refine_batch(&mut self, batch: &mut CandidateBatch, refinement: Refinement) -> Result<()> {
        let Refinement { how, included_bound, min_score } = refinement;
        self.looked_up.0 += batch.len() as u64;
        if !how.is_scored() {
            batch.retain_at_least(min_score);
            self.filter_batch(batch, how)?;
            self.buffers.release_look_up();
            self.looked_up.1 += batch.len() as u64;
            return Ok(());
        }
        self.prefetch_candidates(&batch.documents, included_bound, min_score, |of| batch.max_score_in(of))?;
        let (mut at, mut kept) = (0, 0);
        while let Some(count) = self.seek_candidates(&batch.documents[at..batch.len().min(at + BLOCK)]) {
            let (block, end) = (self.block, at + count);
            let bound = self.block_max_score(block).min(included_bound);
            batch.lower_scores(at..end, included_bound - bound);
            let start = kept;
            kept = batch.keep_at_least(at..end, start, min_score);
            at = end;
            if kept == start {
                self.blocks.mark_pruned(block);
                continue;
            }
            kept = self.score_block(block, batch, start..kept, how, bound)?;
        }
        if how == Refine::Optional && at < batch.len() {
            batch.lower_scores(at..batch.len(), included_bound);
            kept = batch.keep_at_least(at..batch.len(), kept, min_score);
        }
        self.buffers.release_look_up();
        batch.truncate(kept);
        batch.retain_at_least(min_score);
        self.looked_up.1 += batch.len() as u64;
        Ok(())
    }

    /// Keeps the candidates that the list contains, or, for an exclusion, does not contain.
    fn filter_batch(&mut self, batch: &mut CandidateBatch, how: Refine) -> Result<()> {
        self.prefetch_candidates(&batch.documents, 0, 0, |_| 0)?;
        let (mut at, mut kept) = (0, 0);
        while let Some(count) = self.seek_candidates(&batch.documents[at..batch.len().min(at + BLOCK)]) {
            let end = at + count;
            let found = self.offsets_in_block(self.block, &batch.documents[at..end])?;
            kept = match how {
                Refine::Exclude => batch.drop_offsets(at..end, kept, found),
                _ => batch.keep_offsets(at, kept, found),
            };
            at = end;
        }
        if how == Refine::Exclude {
            kept = batch.drop_offsets(at..batch.len(), kept, &[]);
        }
        batch.truncate(kept);
        Ok(())
    }

    /// The number of `documents`, at most [`BLOCK`], that the list contains.
    pub(crate) fn count_shared(&mut self, documents: &[u32]) -> Result<u64> {
        self.prefetch_candidates(documents, 0, 0, |_| 0)?;
        let (mut at, mut shared) = (0, 0);
        while let Some(count) = self.seek_candidates(&documents[at..]) {
            shared += self.offsets_in_block(self.block, &documents[at..at + count])?.len() as u64;
            at += count;
        }
        self.looked_up.0 += documents.len() as u64;
        self.looked_up.1 += shared;
        Ok(shared)
    }

    /// Offsets, among at most [`BLOCK`] candidates, of the candidates that a block contains.
    fn offsets_in_block(&mut self, block: usize, documents: &[u32]) -> Result<&[u8]> {
        let (found, LookUpBuffers { shared, .. }) = self.buffers.found_and_look_up();
        match self.blocks.bitmap(block)? {
            Some(bitmap) => {
                let n = find_set_bits(&bitmap, documents, &mut found.offsets);
                Ok(&found.offsets[..n])
            }
            None => {
                intersect(documents, self.blocks.documents(block)?, shared);
                Ok(shared.first())
            }
        }
    }

    /// Scores the candidates at `positions` of the batch that a block contains: the exact score replaces
    /// `bound`. A required clause drops the others. Returns the end position of the candidates that are kept.
    fn score_block(
        &mut self,
        block: usize,
        batch: &mut CandidateBatch,
        positions: Range<usize>,
        how: Refine,
        bound: u32,
    ) -> Result<usize> {
        let documents = &batch.documents[positions.clone()];
        let buffers = self.buffers.look_up();
        self.blocks.intersect_block(block, documents, &mut buffers.shared)?;
        let n = buffers.shared.first().len();
        if n > 0 {
            let frequencies = self.blocks.frequencies(block)?;
            for (k, (first, second)) in buffers.shared.first().iter().zip(buffers.shared.second()).enumerate()
            {
                buffers.documents[k] = documents[usize::from(*first)];
                buffers.frequencies[k] = frequencies[usize::from(*second)];
            }
            let scores = &mut buffers.selected_scores[..n];
            self.scorer.score_all(self.norms, &buffers.documents[..n], &buffers.frequencies[..n], scores);
        }
        batch.lower_scores(positions.clone(), bound);
        let found = buffers.shared.first();
        let scores = &buffers.selected_scores[..n];
        if how == Refine::Require {
            batch.keep_offsets(positions.start, positions.start, found);
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

    /// Intersects a block of another list, the lead of the conjunction, with this list; the result becomes
    /// the batch. Records block and offset of each common document in both lists: for the lead in `lead`. The
    /// score of each is `bound`, in which `included_bound` is replaced by the max score of the block of this
    /// list; documents whose score is then below `min_score` are not looked up.
    pub(in crate::eval) fn intersect_block(
        &mut self,
        postings: BlockPostings<'_>,
        bounds: LookUpBounds,
        lead: &mut FoundPostings,
        batch: &mut CandidateBatch,
    ) -> Result<()> {
        let BlockPostings { block, documents } = postings;
        let LookUpBounds { bound, included_bound, min_score } = bounds;
        self.prefetch_candidates(documents, included_bound, min_score, |_| bound)?;
        let mut at = 0;
        (self.buffers.found.len, lead.len) = (0, 0);
        batch.clear();
        self.looked_up.0 += documents.len() as u64;
        while let Some(count) = self.seek_candidates(&documents[at..]) {
            let (own, start) = (self.block, at);
            at += count;
            let score = match included_bound {
                0 => bound,
                _ => bound - (included_bound - self.block_max_score(own).min(included_bound)),
            };
            if score < min_score {
                self.blocks.mark_pruned(own);
                continue;
            }
            let before = lead.len;
            if included_bound == 0 {
                lead.add(block, start, self.offsets_in_block(own, &documents[start..at])?);
            } else {
                let (found, LookUpBuffers { shared, .. }) = self.buffers.found_and_look_up();
                self.blocks.intersect_block(own, &documents[start..at], shared)?;
                lead.add(block, start, shared.first());
                found.add(own, 0, shared.second());
            }
            lead.take_documents(before, documents);
            batch.scores.resize(lead.len, score);
        }
        self.buffers.release_look_up();
        batch.documents.extend_from_slice(&lead.documents[..lead.len]);
        self.buffers.found.documents[..lead.len].copy_from_slice(&batch.documents);
        self.looked_up.1 += batch.len() as u64;
        Ok(())
    }

    /// Keeps the candidates, at most [`BLOCK`], that the list contains, and records block and offset of each.
    /// Their scores include `included_bound`, an upper bound of this list: it is replaced by the block max
    /// score, and candidates that are then below `min_score` are dropped without a look-up.
    pub(crate) fn find_candidates(
        &mut self,
        batch: &mut CandidateBatch,
        included_bound: u32,
        min_score: u32,
    ) -> Result<()> {
        self.prefetch_candidates(&batch.documents, included_bound, min_score, |of| batch.max_score_in(of))?;
        let (mut at, mut kept) = (0, 0);
        self.buffers.found.len = 0;
        self.looked_up.0 += batch.len() as u64;
        while let Some(count) = self.seek_candidates(&batch.documents[at..]) {
            let (block, end, start) = (self.block, at + count, kept);
            if included_bound > 0 {
                let bound = self.block_max_score(block).min(included_bound);
                batch.lower_scores(at..end, included_bound - bound);
            }
            kept = batch.keep_at_least(at..end, start, min_score);
            at = end;
            if kept == start {
                self.blocks.mark_pruned(block);
                continue;
            }
            let (found, LookUpBuffers { shared, .. }) = self.buffers.found_and_look_up();
            self.blocks.intersect_block(block, &batch.documents[start..kept], shared)?;
            kept = batch.keep_offsets(start, start, shared.first());
            found.documents[start..kept].copy_from_slice(&batch.documents[start..kept]);
            found.add(block, 0, shared.second());
        }
        self.buffers.release_look_up();
        batch.truncate(kept);
        self.looked_up.1 += kept as u64;
        Ok(())
    }

    /// Records the documents of a block whose frequencies allow a score of `min_score` as found.
    pub(crate) fn find_in_block(&mut self, block: usize, min_score: u32) -> Result<&[u32]> {
        let n = self.select_postings(block, min_score)?;
        self.buffers.found.len = 0;
        if n > 0 {
            let documents = self.blocks.documents(block)?;
            let (found, LookUpBuffers { selected, .. }) = self.buffers.found_and_look_up();
            if n == BLOCK {
                found.len = documents.len();
                found.documents[..found.len].copy_from_slice(documents);
                (0..).zip(&mut found.offsets[..found.len]).for_each(|(at, offset)| *offset = at as u8);
            } else {
                found.len = n;
                found.offsets[..n].copy_from_slice(selected.positions());
                for (found, offset) in found.documents.iter_mut().zip(selected.positions()) {
                    *found = documents[usize::from(*offset)];
                }
            }
            found.blocks[..found.len].fill(block as u32);
        }
        let found = &self.buffers.found;
        Ok(&found.documents[..found.len])
    }

    /// Keeps, of the candidates recorded as found, only `documents`, which are a subset of them.
    ///
    /// # Errors
    /// If blocks of the list overlap, so that documents do not increase.
    pub(crate) fn keep_found(&mut self, documents: &[u32]) -> Result<()> {
        if self.buffers.found.len == documents.len() {
            return Ok(());
        }
        let (found, LookUpBuffers { shared, .. }) = self.buffers.found_and_look_up();
        intersect(documents, &found.documents[..found.len], shared);
        if shared.first().len() != documents.len() {
            let file = self.blocks.field().skips_file().name();
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

    /// Frequencies in this list of the candidates recorded as found.
    pub(crate) fn found_frequencies(&mut self) -> Result<&[u32]> {
        self.prefetch_found()?;
        let (found, LookUpBuffers { frequencies: to, .. }) = self.buffers.found_and_look_up();
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

    /// Scores the candidates of a batch, all of which [`Term::find_candidates`] has found. Their scores
    /// include the smaller of `included_bound` and the block max score: it is replaced by the exact score.
    pub(crate) fn score_found(
        &mut self,
        batch: &mut CandidateBatch,
        included_bound: u32,
        min_score: u32,
    ) -> Result<()> {
        self.keep_found(&batch.documents)?;
        let n = self.found_frequencies()?.len();
        let mut last = (u32::MAX, 0);
        for at in 0..n {
            let block = self.buffers.found.blocks[at];
            if last.0 != block {
                last = (block, self.block_max_score(block as usize).min(included_bound));
            }
            batch.scores[at] -= last.1;
        }
        let buffers = self.buffers.look_up();
        let scores = &mut buffers.selected_scores[..n];
        self.scorer.score_all(self.norms, &batch.documents, &buffers.frequencies[..n], scores);
        batch.scores.iter_mut().zip(scores).for_each(|(score, added)| *score += *added);
        self.buffers.release_look_up();
        batch.retain_at_least(min_score);
        Ok(())
    }
}

/// Number of ascending documents that are at most `last`.
fn count_up_to(documents: &[u32], last: u32) -> usize {
    // Few candidates are in one block: count in a short chunk first, without branches.
    let first = documents.first_chunk::<16>().map_or(documents, |chunk| chunk);
    let n = first.iter().filter(|document| **document <= last).count();
    match documents.last() {
        _ if n < first.len() => n,
        Some(end) if *end > last => documents.partition_point(|document| *document <= last),
        _ => documents.len(),
    }
}

/// Writes the offsets of the documents whose bits are set, and returns their number.
fn find_set_bits(bitmap: &BitmapView<'_>, documents: &[u32], offsets: &mut [u8; BLOCK]) -> usize {
    let (first, bits, mut found) = (bitmap.first(), bitmap.bits(), 0);
    for (offset, document) in documents.iter().enumerate() {
        let bit = document.wrapping_sub(first) as usize;
        let byte = bits.get(bit / 8).copied().unwrap_or(0);
        offsets[found % BLOCK] = offset as u8;
        found += usize::from(byte >> (bit % 8) & 1);
    }
    found
}

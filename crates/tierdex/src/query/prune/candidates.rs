//! Documents that may be hits by the lists of some terms, while those of others are still to come; and, when all have come, the
//! best of them.

use super::any::{best_of_any, enough, noted};
use super::batch::Batch;
use super::scored::Scored;
use super::scratch::Scratch;
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;

/// More candidates than these leave hardly a block of the lists to come out.
pub const CANDIDATES_MAX: usize = 1 << 11;

/// Bytes that it takes to find them, 8 for each: hits with room for as many more, which a vector may double, sorted, as candidates, and their
/// scores once more.
pub const CANDIDATES_BYTES: usize = 64 * CANDIDATES_MAX;

/// The documents of a segment that may be among its best `k`, and what the lists so far add to them.
pub struct Candidates {
    batch: Batch,
    k: usize,
    /// How many terms there are together.
    terms: usize,
    /// What the `k`-th of them scores by the lists so far.
    least: f32,
}

impl Candidates {
    /// Finds them by the lists that are `near`, where `others` may add to them. None if they are too many to be told, or if others
    /// that hold none of these terms may be among the best.
    pub fn find(
        near: &mut [Scored<'_>],
        others: &[Scored<'_>],
        k: usize,
        documents: u32,
        scratch: &mut Scratch,
    ) -> Result<Option<Candidates>> {
        let most: f32 = others.iter().map(|list| list.highest_bound().unwrap_or(f32::INFINITY)).sum();
        let mut top = TopK::default();
        top.restart(k, documents.into());
        // What is summed in another order is a little more or less.
        let terms = near.len() + others.len();
        top.keep_more(enough(terms, 0.0, 1.0), most, CANDIDATES_MAX);
        best_of_any(near, documents, false, 0, scratch, &mut top)?;
        let mut hits = top.take();
        let lost = top.has_overflown();
        let last = k.checked_sub(1).and_then(|last| hits.get(last));
        let Some(last) = last.filter(|_| !lost) else { return Ok(None) };
        let least = last.score;
        if most >= enough(terms, 0.0, least) {
            // So may be some that hold none of these terms.
            return Ok(None);
        }
        hits.sort_unstable_by_key(|hit| hit.document);
        let mut batch = Batch::default();
        batch.documents.extend(hits.iter().map(|hit| hit.document));
        batch.scores.extend(hits.iter().map(|hit| hit.score));
        let mut candidates = Candidates { batch, k, terms, least };
        candidates.narrow(others);
        Ok(Some(candidates))
    }

    /// Adds what these lists add, which are near now, where `others` may add more.
    pub fn add(&mut self, near: &mut [Scored<'_>], others: &[Scored<'_>]) -> Result<()> {
        for list in near {
            list.add_to(&mut self.batch, 0, f32::NEG_INFINITY)?;
        }
        let mut scores = self.batch.scores.clone();
        if scores.len() >= self.k {
            let (_, least, _) = scores.select_nth_unstable_by(self.k - 1, |a, b| b.total_cmp(a));
            self.least = self.least.max(*least);
        }
        self.narrow(others);
        Ok(())
    }

    /// Drops those that cannot be hits whatever `others` add: at most the bounds of the blocks in which they may be.
    fn narrow(&mut self, others: &[Scored<'_>]) {
        let Batch { documents, scores, .. } = &mut self.batch;
        let least = enough(self.terms, 0.0, self.least);
        let (mut blocks, mut kept) = (vec![0; others.len()], 0);
        for at in 0..documents.len() {
            let mut most = scores[at];
            for (list, block) in others.iter().zip(&mut blocks) {
                *block = list.blocks.find(*block, documents[at]);
                most += if *block < list.blocks.len() { list.bound_of(*block) } else { 0.0 };
            }
            if most >= least {
                (documents[kept], scores[kept]) = (documents[at], scores[at]);
                kept += 1;
            }
        }
        self.batch.truncate(kept);
        // They wait with their query.
        self.batch.documents.shrink_to_fit();
        self.batch.scores.shrink_to_fit();
    }

    /// How many of the best are among them.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The documents, which rise.
    pub fn documents(&self) -> &[u32] {
        &self.batch.documents
    }

    /// Offers the best of them to `top`, numbered from `base` on. All `lists` are near; scores are summed in their order. Returns
    /// how many they are.
    pub fn offer(
        &self,
        lists: &mut [Scored<'_>],
        base: u32,
        scratch: &mut Scratch,
        top: &mut TopK,
    ) -> Result<u64> {
        let batch = &mut scratch.batches[0];
        for (documents, scores) in self.batch.chunks(noted(lists.len())) {
            batch.clear();
            batch.push_all(documents, scores);
            batch.note(lists.len());
            for (number, list) in lists.iter_mut().enumerate() {
                list.advance(documents[0]);
                list.add_to(batch, number, f32::NEG_INFINITY)?;
            }
            batch.sum_parts();
            for (documents, scores) in batch.chunks(BLOCK) {
                top.offer_all(base, documents, scores);
            }
        }
        Ok(self.batch.len() as u64)
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        self.batch.documents.capacity() * size_of::<(u32, f32)>()
    }
}

//! Documents that may be hits by the lists of some terms, while those of others are still being read; and,
//! when all are there, the best of them.

use super::batch::Batch;
use super::maxscore::maxscore;
use super::node::{Node, Refine, Refinement};
use super::refine::Refiners;
use super::scratch::Scratch;
use super::search::Search;
use crate::error::Result;
use crate::rank::TopK;

/// More candidates than these leave hardly a block of the lists to be skipped.
pub const CANDIDATES_MAX: usize = 1 << 11;

/// Bytes that it takes to find them, 8 for each: hits with capacity for as many more, which a vector may
/// double, sorted, as candidates, and their scores once more.
pub const CANDIDATES_BYTES: usize = 64 * CANDIDATES_MAX;

/// The documents of a segment that may be among its best `k`, and what the lists so far add to them.
pub struct Candidates {
    batch: Batch,
    k: usize,
    /// What the `k`-th of them scores by the lists so far.
    least: u32,
}

impl Candidates {
    /// Finds them by the lists `here`, where `others` may add to them. None if they are too many to be told,
    /// or if others that hold none of these terms may be among the best.
    pub fn find(
        here: &mut [Node<'_>],
        others: &mut [Node<'_>],
        k: usize,
        documents: u32,
        scratch: &mut Scratch,
    ) -> Result<Option<Candidates>> {
        let mut most = 0;
        for_each_list(others, |term| {
            most += term.list_max();
            Ok(())
        })?;
        let mut top = TopK::default();
        top.restart(k, documents.into());
        top.keep_more(most, CANDIDATES_MAX);
        let mut search = Search::new(0, documents, (scratch, &mut top));
        maxscore(here, &mut Refiners::none(), &mut search)?;
        let mut hits = top.take();
        let lost = top.has_overflown();
        let last = k.checked_sub(1).and_then(|last| hits.get(last));
        let Some(last) = last.filter(|last| !lost && most < last.score) else { return Ok(None) };
        let least = last.score;
        hits.sort_unstable_by_key(|hit| hit.document);
        let mut batch = Batch::default();
        batch.documents.extend(hits.iter().map(|hit| hit.document));
        batch.scores.extend(hits.iter().map(|hit| hit.score));
        let mut candidates = Candidates { batch, k, least };
        candidates.narrow(others)?;
        Ok(Some(candidates))
    }

    /// Adds what the lists `here` add, where `others` may add more.
    pub fn add(
        &mut self,
        here: &mut [Node<'_>],
        others: &mut [Node<'_>],
        scratch: &mut Scratch,
    ) -> Result<()> {
        for node in here {
            node.refine(&mut self.batch, Refinement::all(Refine::Optional), scratch)?;
        }
        let mut scores = self.batch.scores.clone();
        if scores.len() >= self.k {
            let (_, least, _) = scores.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
            self.least = self.least.max(*least);
        }
        self.narrow(others)
    }

    /// Drops those that cannot be hits whatever `others` add: at most the bounds of the blocks in which they
    /// may be.
    fn narrow(&mut self, others: &mut [Node<'_>]) -> Result<()> {
        let Batch { documents, scores } = &mut self.batch;
        let mut kept = 0;
        for at in 0..documents.len() {
            let mut most = scores[at];
            for_each_list(others, |term| {
                term.seek(documents[at]);
                most += if term.block < term.blocks.len() { term.block_max(term.block) } else { 0 };
                Ok(())
            })?;
            (documents[kept], scores[kept]) = (documents[at], scores[at]);
            kept += usize::from(most >= self.least);
        }
        self.batch.truncate(kept);
        // They wait with their query.
        self.batch.documents.shrink_to_fit();
        self.batch.scores.shrink_to_fit();
        Ok(())
    }

    /// How many of the best are among them.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The documents, ascending.
    pub fn documents(&self) -> &[u32] {
        &self.batch.documents
    }

    /// Offers the best of them by the lists of all terms. Returns how many they are.
    pub fn offer(&self, lists: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
        let mut batch = search.scratch.batch();
        batch.copy_documents(&self.batch.documents);
        lists.refine(&mut batch, Refinement::all(Refine::Optional), search.scratch)?;
        search.offer(&batch);
        search.scratch.give_batch(batch);
        Ok(self.batch.len() as u64)
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        self.batch.documents.capacity() * size_of::<(u32, u32)>()
    }
}

fn for_each_list(
    nodes: &mut [Node<'_>],
    mut body: impl FnMut(&mut super::term::Term<'_>) -> Result<()>,
) -> Result<()> {
    nodes.iter_mut().try_for_each(|node| match node {
        Node::Term(term) => body(term),
        _ => Ok(()),
    })
}

//! Boolean groups as nodes: the methods of [`Node`] for clauses that are required, filters, alternatives or
//! optional, and exclusions. The methods without a comment are those of [`Node`] with the same name.

use crate::eval::nodes::{Node, Term};
use crate::eval::state::{
    BitCounters, Bits, CandidateBatch, DocRange, Refine, Refinement, ScoreWindow, Scratch, aligned_origin,
};
use crate::{Result, cursor::NO_DOCUMENT, query::Clauses};

impl<'a> Clauses<Node<'a>> {
    /// Required clauses and filters, with the way in which each refines candidates.
    fn required_nodes(&mut self) -> impl Iterator<Item = (&mut Node<'a>, Refine)> {
        let must = self.must.iter_mut().map(|node| (node, Refine::Require));
        must.chain(self.filter.iter_mut().map(|node| (node, Refine::Filter)))
    }

    /// Lower bound, at least `from`, of the first document from `from` on that passes the filters.
    pub(crate) fn next_passing_filters(&mut self, from: u32) -> u32 {
        self.filter.iter_mut().fold(from, |from, node| match from {
            NO_DOCUMENT => NO_DOCUMENT,
            from => node.next_lower_bound(from),
        })
    }

    pub(crate) fn next_lower_bound(&mut self, from: u32) -> u32 {
        let from = self.required_nodes().fold(from, |from, (node, _)| match from {
            NO_DOCUMENT => NO_DOCUMENT,
            from => node.next_lower_bound(from),
        });
        if self.minimum == 0 || from == NO_DOCUMENT {
            return from;
        }
        if self.minimum == 1 {
            return self
                .should
                .iter_mut()
                .map(|node| node.next_lower_bound(from))
                .min()
                .unwrap_or(NO_DOCUMENT);
        }
        let mut next: Vec<u32> = self.should.iter_mut().map(|node| node.next_lower_bound(from)).collect();
        // A match is in `minimum` alternatives, so not before the `minimum`-th smallest of their lower
        // bounds.
        *next.select_nth_unstable(self.minimum - 1).1
    }

    /// See [`Node::max_score`]. The sum saturates: weights inside a filter are not scaled, because nobody
    /// uses the scores.
    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        let mut sum = 0_u32;
        for (node, how) in self.required_nodes() {
            match node.max_score(range)? {
                None => return Ok(None),
                Some(score) if how == Refine::Require => sum = sum.saturating_add(score),
                Some(_) => {}
            }
        }
        let mut matching = 0;
        for node in &mut self.should {
            if let Some(score) = node.max_score(range)? {
                matching += 1;
                sum = sum.saturating_add(score);
            }
        }
        Ok((matching >= self.minimum).then_some(sum))
    }

    /// Whether blocks of a list are read from a source that prefetches.
    pub(crate) fn prefetches(&mut self) -> bool {
        self.all_mut().any(Node::prefetches)
    }

    /// See [`Node::prefetch`].
    pub(crate) fn prefetch(&mut self, range: DocRange, scored: bool) -> Result<bool> {
        self.all_mut().try_fold(true, |all, node| Ok(all && node.prefetch(range, scored)?))
    }

    pub(crate) fn mark_matches(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        if self.are_alternatives() {
            return self.should.iter_mut().try_for_each(|node| node.mark_matches(bits, scratch));
        }
        let [mut mine, mut other] = [scratch.take_bits(), scratch.take_bits()];
        mine.restart(bits.range());
        let marked = self.mark_group(&mut mine, &mut other, scratch);
        bits.union(&mut mine);
        scratch.give_bits(mine);
        scratch.give_bits(other);
        marked
    }

    /// Adds the matches of the group to `mine`, an empty bitset; `other` is a bitset for reuse.
    pub(crate) fn mark_group(
        &mut self,
        mine: &mut Bits,
        other: &mut Bits,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let range = mine.range();
        let mut is_first = true;
        for (node, _) in self.required_nodes() {
            if is_first {
                node.mark_matches(mine, scratch)?;
                is_first = false;
            } else if !mine.is_empty() {
                other.restart(range);
                node.mark_matches(other, scratch)?;
                mine.intersect(other);
            }
        }
        if self.minimum > 0 {
            let to = if is_first { &mut *mine } else { &mut *other };
            to.restart(range);
            if self.minimum == 1 {
                self.should.iter_mut().try_for_each(|node| node.mark_matches(to, scratch))?;
            } else {
                let mut counters = BitCounters::default();
                for node in &mut self.should {
                    to.restart(range);
                    node.mark_matches(to, scratch)?;
                    counters.add(to.bytes());
                }
                let len = to.bytes().len();
                let matches = counters.at_least(self.minimum, len);
                to.restart(range);
                to.add_bytes(aligned_origin(range.first), &matches);
            }
            if !is_first {
                mine.intersect(other);
            }
        }
        for node in &mut self.must_not {
            if !mine.is_empty() {
                other.restart(range);
                node.mark_matches(other, scratch)?;
                mine.subtract(other);
            }
        }
        Ok(())
    }

    /// Adds the documents that pass filters and exclusions and match no scored clause to `mine`, an empty
    /// bitset; `other` is a bitset for reuse.
    pub(crate) fn mark_zero_scored(
        &mut self,
        mine: &mut Bits,
        other: &mut Bits,
        scratch: &mut Scratch,
    ) -> Result<()> {
        mine.add_all();
        for node in &mut self.filter {
            other.restart(mine.range());
            node.mark_matches(other, scratch)?;
            mine.intersect(other);
        }
        let scored = self.must.iter_mut().chain(&mut self.should);
        for node in scored.chain(&mut self.must_not) {
            if !mine.is_empty() {
                other.restart(mine.range());
                node.mark_matches(other, scratch)?;
                mine.subtract(other);
            }
        }
        Ok(())
    }

    pub(crate) fn add_scores(&mut self, window: &mut ScoreWindow, scratch: &mut Scratch) -> Result<()> {
        if self.are_alternatives() {
            return self.should.iter_mut().try_for_each(|node| node.add_scores(window, scratch));
        }
        let range = window.range();
        let [mut mine, mut other] = [scratch.take_bits(), scratch.take_bits()];
        mine.restart(range);
        self.mark_group(&mut mine, &mut other, scratch)?;
        if !mine.is_empty() {
            let mut sums = scratch.take_window();
            sums.restart(range);
            for node in self.must.iter_mut().chain(&mut self.should) {
                node.add_scores(&mut sums, scratch)?;
            }
            sums.intersect(&mut mine);
            sums.unscored.union(&mut mine);
            window.add_window(&mut sums);
            scratch.give_window(sums);
        }
        scratch.give_bits(mine);
        scratch.give_bits(other);
        Ok(())
    }

    pub(crate) fn refine_batch(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut own = scratch.take_batch(batch.len());
        own.copy_documents(&batch.documents);
        self.keep_matches(&mut own, refinement.how.is_scored(), scratch)?;
        batch.apply_refinement(&own, refinement, |rest, own| rest + own);
        scratch.give_batch(own);
        Ok(())
    }

    /// Keeps the documents of a batch that match the group; adds their scores if `scored`.
    fn keep_matches(
        &mut self,
        batch: &mut CandidateBatch,
        scored: bool,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for (node, how) in self.required_nodes() {
            let how = if scored { how } else { Refine::Filter };
            node.refine_batch(batch, Refinement::all(how), scratch)?;
        }
        for node in &mut self.must_not {
            node.refine_batch(batch, Refinement::all(Refine::Exclude), scratch)?;
        }
        if self.minimum > 0 {
            return self.keep_minimum_matches(batch, scored, scratch);
        }
        if scored {
            for node in &mut self.should {
                node.refine_batch(batch, Refinement::all(Refine::Optional), scratch)?;
            }
        }
        Ok(())
    }

    /// Keeps the documents of a batch that match at least `minimum` alternatives; adds their scores if
    /// `scored`.
    fn keep_minimum_matches(
        &mut self,
        batch: &mut CandidateBatch,
        scored: bool,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut counts = vec![0u16; batch.len()];
        let mut one = scratch.take_batch(batch.len());
        for node in &mut self.should {
            one.copy_documents(&batch.documents);
            let how = if scored { Refine::Require } else { Refine::Filter };
            node.refine_batch(&mut one, Refinement::all(how), scratch)?;
            let scores = &mut batch.scores;
            let documents = &batch.documents;
            let mut at = 0;
            for (document, score) in one.documents.iter().zip(&one.scores) {
                while documents[at] < *document {
                    at += 1;
                }
                counts[at] += 1;
                scores[at] += score;
            }
        }
        let mut kept = 0;
        for (at, count) in counts.iter().enumerate() {
            (batch.documents[kept], batch.scores[kept]) = (batch.documents[at], batch.scores[at]);
            kept += usize::from(usize::from(*count) >= self.minimum);
        }
        batch.truncate(kept);
        scratch.give_batch(one);
        Ok(())
    }

    /// Calls `body` with each list, in the order of the clauses.
    pub(crate) fn each_term(&mut self, body: &mut dyn FnMut(&mut Term<'a>)) {
        self.all_mut().for_each(|node| node.each_term(body));
    }

    /// Returns the buffers to `scratch`.
    pub(crate) fn close(self, scratch: &mut Scratch) {
        for nodes in [self.must, self.filter, self.should, self.must_not] {
            // Most of the four lists are empty, and a query of one term notices the calls.
            if !nodes.is_empty() {
                nodes.into_iter().for_each(|node| node.close(scratch));
            }
        }
    }
}

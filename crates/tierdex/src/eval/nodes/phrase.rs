//! A phrase as a node: terms at given distances.
//!
//! 1. Documents that contain the rarest term are looked up in the list of the second rarest.
//! 2. The frequency of the phrase is at most that of each term, which bounds the score.
//! 3. Positions are compared in the candidates that may still be hits, in a batch ([`Occurrences`]).
//!    Candidates in which two terms have the right distance are looked up in the list of the next term, and
//!    so on.
//!
//! If there is slop, all terms are looked up first, and step 3 keeps the candidates in which an occurrence of
//! the rarest term has one of each other term within the slop. Their number is an upper bound of the sloppy
//! frequency, which is computed last ([`Alignments`]), one candidate at a time. It is not computed for two
//! different terms without a score: they match in all of these candidates.

use crate::cursor::{POSITIONS_BYTES, PositionsReader};
use crate::eval::nodes::occurrences::{OCCURRENCES_BYTES, Occurrences, PhraseTerm, ReadPosition};
use crate::eval::nodes::{Alignments, Term};
use crate::eval::state::{Bits, CandidateBatch, DocRange, Refine, Refinement, Scratch, positions_within};
use crate::segment::read::{BlockSource, FieldReader, Norms};
use crate::{Result, eval::tuning::PHRASE_TERMS_LOOKED_UP_FIRST, limits::BLOCK, rank::TermScorer};
use tierdex_codec::MARGIN_MAX;

/// Maximum bytes of a phrase without its terms.
pub(crate) const PHRASE_BYTES: usize =
    size_of::<Phrase<'_>>() + OCCURRENCES_BYTES + 4 * BLOCK * size_of::<u32>();

/// Maximum bytes of a term of a phrase without its list, without the read buffer that it has if positions are
/// not resident, and without the positions of a document that it has if there is slop.
pub(crate) const PHRASE_TERM_BYTES: usize = size_of::<PhraseTerm<'_>>() + POSITIONS_BYTES;

/// A phrase in a segment that contains all of its terms.
pub struct Phrase<'a> {
    /// In ascending order of document frequency.
    terms: Vec<PhraseTerm<'a>>,
    /// Number of terms, the rarest ones, in which candidates are looked up before positions are read.
    looked_up_first: usize,
    norms: &'a Norms,
    scorer: &'a TermScorer,
    /// Counts sloppy matches of a document; not used if the slop is 0.
    alignments: Alignments,
    occurrences: Box<Occurrences>,
    frequencies: Vec<u32>,
    scores: Vec<u32>,
}

impl<'a> Phrase<'a> {
    /// Creates a phrase of terms with their distances from the first.
    pub(crate) fn new(
        terms: Vec<(u32, Box<Term<'a>>)>,
        field: &'a FieldReader,
        source: &'a dyn BlockSource,
        scorer: &'a TermScorer,
        alignments: Alignments,
    ) -> Result<Phrase<'a>> {
        let last = terms.iter().map(|(distance, _)| *distance).max().unwrap_or(0);
        let terms = terms.into_iter().enumerate().map(|(number, (distance, term))| PhraseTerm {
            number,
            distance: last - distance,
            term,
            positions: PositionsReader::new(field, source),
            read_position: ReadPosition::default(),
        });
        let mut terms: Vec<PhraseTerm<'a>> = terms.collect();
        terms.sort_by_key(|term| term.term.documents);
        let looked_up_first =
            if alignments.slop == 0 { terms.len().min(PHRASE_TERMS_LOOKED_UP_FIRST) } else { terms.len() };
        Ok(Phrase {
            terms,
            looked_up_first,
            norms: field.norms()?,
            scorer,
            alignments,
            occurrences: Box::default(),
            frequencies: Vec::new(),
            scores: Vec::new(),
        })
    }

    pub(crate) fn cost(&self) -> u64 {
        self.terms[0].term.postings()
    }

    /// The rarest term, whose documents are the candidates.
    pub(crate) fn rarest(&mut self) -> &mut Term<'a> {
        &mut self.terms[0].term
    }

    pub(crate) fn next_lower_bound(&mut self, from: u32) -> u32 {
        self.terms.iter_mut().fold(from, |from, term| term.term.next_lower_bound(from))
    }

    /// A phrase is at most as frequent as each of its terms, so its share is at most the smallest of theirs.
    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        let mut min = self.scorer.share_max();
        for term in &mut self.terms {
            let Some(share) = term.term.max_share(range)? else { return Ok(None) };
            min = min.min(share);
        }
        Ok(Some(self.scorer.max_score(min)))
    }

    pub(crate) fn mark_matches(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        let (range, filter) = (bits.range(), Refinement::all(Refine::Filter));
        self.for_each_match_batch(range, filter, scratch, |batch| bits.add(&batch.documents))
    }

    pub(crate) fn collect(
        &mut self,
        range: DocRange,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let refinement = Refinement { min_score, ..Refinement::all(Refine::Require) };
        let push = |found: &CandidateBatch| batch.push_all(&found.documents, &found.scores);
        self.for_each_match_batch(range, refinement, scratch, push)?;
        batch.retain_at_least(min_score);
        Ok(())
    }

    pub(crate) fn collect_unscored(
        &mut self,
        range: DocRange,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let push = |found: &CandidateBatch| batch.push_equal(&found.documents, 0);
        self.for_each_match_batch(range, Refinement::all(Refine::Filter), scratch, push)
    }

    /// Calls `body` with the matches of a range, one block of the rarest term at a time. If they are scored,
    /// matches with less than the `min_score` of the refinement may be left out.
    fn for_each_match_batch(
        &mut self,
        range: DocRange,
        mut refinement: Refinement,
        scratch: &mut Scratch,
        mut body: impl FnMut(&CandidateBatch),
    ) -> Result<()> {
        let mut batch = scratch.take_batch(BLOCK);
        for block in self.rarest().blocks_of(range) {
            if refinement.min_score > 0 {
                let DocRange { first, last } = DocRange::of_block(&self.rarest().blocks, block);
                let of_block = DocRange { first: first.max(range.first), last: last.min(range.last) };
                let bound = self.max_score(of_block)?.filter(|bound| *bound >= refinement.min_score);
                let Some(bound) = bound else {
                    self.rarest().blocks.mark_pruned(block);
                    continue;
                };
                refinement.included_bound = bound;
            }
            // A phrase is at most as frequent as its rarest term, so the term must reach the threshold too.
            let documents = self.terms[0].term.find_in_block(block, refinement.min_score)?;
            batch.clear();
            batch.push_equal(&documents[positions_within(documents, range)], refinement.included_bound);
            self.refine_found(&mut batch, refinement)?;
            body(&batch);
        }
        scratch.give_batch(batch);
        Ok(())
    }

    pub(crate) fn refine_batch(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (mut chunk, mut found) = (scratch.take_batch(BLOCK), scratch.take_batch(batch.len()));
        for (documents, scores) in batch.chunks(BLOCK) {
            chunk.clear();
            chunk.push_all(documents, scores);
            self.terms[0].term.find_candidates(&mut chunk, 0, 0)?;
            self.refine_found(&mut chunk, refinement)?;
            found.push_all(&chunk.documents, &chunk.scores);
        }
        batch.apply_refinement(&found, refinement, |_, score| score);
        scratch.give_batch(found);
        scratch.give_batch(chunk);
        Ok(())
    }

    /// Keeps the candidates that contain the phrase; if it is scored, only those whose upper bound reaches
    /// the `min_score` of the refinement. The batch has at most [`BLOCK`] candidates, which were found in the
    /// list of the rarest term.
    pub(crate) fn refine_found(&mut self, batch: &mut CandidateBatch, refinement: Refinement) -> Result<()> {
        let Refinement { how, included_bound, min_score } = refinement;
        for term in &mut self.terms[1..self.looked_up_first] {
            term.term.find_candidates(batch, 0, 0)?;
        }
        if batch.len() == 0 {
            return Ok(());
        }
        if min_score > 0 && how.is_scored() {
            self.bound_by_frequency(batch, included_bound, min_score)?;
        } else {
            self.scores.clear();
            self.scores.resize(batch.len(), if how.is_scored() { included_bound } else { 0 });
        }
        for PhraseTerm { term, positions, .. } in &mut self.terms[..self.looked_up_first] {
            term.keep_found(&batch.documents)?;
            term.prefetch_positions(positions)?;
        }
        self.frequencies.clear();
        self.frequencies.resize(batch.len(), 0);
        let (terms, first) = (&mut self.terms, self.looked_up_first);
        let slop = self.alignments.slop.min(MARGIN_MAX);
        self.occurrences.count_in(terms, first, slop, &batch.documents, &mut self.frequencies)?;
        self.keep_occurring(batch, how);
        if slop > 0 && (how.is_scored() || !self.alignments.is_pair()) {
            self.keep_aligned(batch, how, min_score)?;
        }
        Ok(())
    }

    /// Keeps the candidates in which the phrase matches with its slop; if it is scored, only those whose
    /// upper bound reaches `min_score`, and their scores are those of the sloppy frequency.
    fn keep_aligned(&mut self, batch: &mut CandidateBatch, how: Refine, min_score: u32) -> Result<()> {
        for term in &mut self.terms {
            term.term.keep_found(&batch.documents)?;
        }
        let mut kept = 0;
        for at in 0..batch.len() {
            let (document, mut score) = (batch.documents[at], batch.scores[at]);
            if how.is_scored() && score < min_score {
                continue;
            }
            for of in &mut self.terms {
                let found = &of.term.buffers.found;
                let (block, offset) = (found.blocks[at], found.offsets[at]);
                of.term.blocks.move_positions(block as usize, &mut of.positions, || None)?;
                of.positions.read(offset, self.alignments.positions(of.number))?;
            }
            let frequency = self.alignments.frequency(how.is_scored());
            if how.is_scored() {
                score = score - self.scores[at] + self.scorer.score_of(self.norms, document, frequency);
            }
            (batch.documents[kept], batch.scores[kept]) = (document, score);
            kept += usize::from(frequency > 0.0);
        }
        batch.truncate(kept);
        Ok(())
    }

    /// Keeps the candidates in which [`Occurrences`] counted the phrase, and scores them by its counts.
    fn keep_occurring(&mut self, batch: &mut CandidateBatch, how: Refine) {
        let mut kept = 0;
        for at in 0..batch.len() {
            (batch.documents[kept], batch.scores[kept]) = (batch.documents[at], batch.scores[at]);
            let frequency = self.frequencies[at];
            self.frequencies[kept] = frequency;
            batch.scores[kept] -= self.scores[at];
            kept += usize::from(frequency > 0);
        }
        batch.truncate(kept);
        if how.is_scored() {
            let scores = &mut self.scores[..kept];
            self.scorer.score_all(self.norms, &batch.documents, &self.frequencies[..kept], scores);
            batch.scores.iter_mut().zip(scores).for_each(|(score, added)| *score += *added);
        }
    }

    /// In the score of each candidate, replaces the upper bound `included_bound` by the score of the smallest
    /// frequency of the terms that were looked up, and drops candidates that fall below `min_score`.
    fn bound_by_frequency(
        &mut self,
        batch: &mut CandidateBatch,
        included_bound: u32,
        min_score: u32,
    ) -> Result<()> {
        self.frequencies.clear();
        self.frequencies.resize(batch.len(), u32::MAX);
        for term in &mut self.terms[..self.looked_up_first] {
            term.term.keep_found(&batch.documents)?;
            for (min, frequency) in self.frequencies.iter_mut().zip(term.term.found_frequencies()?) {
                *min = (*min).min(*frequency);
            }
        }
        self.scores.clear();
        self.scores.resize(batch.len(), 0);
        self.scorer.score_all(self.norms, &batch.documents, &self.frequencies, &mut self.scores);
        let mut kept = 0;
        for at in 0..batch.len() {
            let (bound, document) = (self.scores[at], batch.documents[at]);
            let score = batch.scores[at] - included_bound + bound;
            (batch.documents[kept], batch.scores[kept], self.scores[kept]) = (document, score, bound);
            kept += usize::from(score >= min_score);
        }
        batch.truncate(kept);
        Ok(())
    }

    pub(crate) fn each_term(&mut self, body: &mut dyn FnMut(&mut Term<'a>)) {
        self.terms.iter_mut().for_each(|term| body(&mut term.term));
    }

    pub(crate) fn close(self, scratch: &mut Scratch) {
        self.terms.into_iter().for_each(|term| term.term.close(scratch));
    }
}

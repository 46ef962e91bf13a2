//! A phrase: terms at given distances.
//!
//! 1. Documents that hold all terms are found, the rarest term first.
//! 2. A document cannot hold the phrase more often than its rarest term: the score of that frequency is an
//!    upper bound.
//! 3. Positions are decoded of those documents only that may still be hits.

use super::batch::Batch;
use super::node::{Refine, Refinement};
use super::scratch::Scratch;
use super::slop::Alignments;
use super::term::Term;
use super::window::{Bits, Window};
use crate::cursor::{NO_DOCUMENT, PositionsReader};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TermScorer;
use crate::segment::read::{FieldReader, Norms};

/// A phrase in a segment that has all of its terms.
pub struct Phrase<'a> {
    /// By ascending number of documents.
    terms: Vec<PhraseTerm<'a>>,
    norms: &'a Norms,
    scorer: &'a TermScorer,
    /// If the terms may be out of place: counts how often the phrase occurs.
    sloppy: Option<Alignments>,
    /// Positions less the term's distance: where a phrase would begin.
    starts: Vec<u32>,
    frequencies: Vec<u32>,
    scores: Vec<u32>,
}

struct PhraseTerm<'a> {
    /// Its number in the phrase.
    number: usize,
    /// Distance from the first term.
    distance: u32,
    term: Box<Term<'a>>,
    positions: PositionsReader<'a>,
    of_document: Vec<u32>,
}

impl<'a> Phrase<'a> {
    /// Of terms with their distances from the first.
    pub(super) fn new(
        terms: Vec<(u32, Box<Term<'a>>)>,
        field: &'a FieldReader,
        scorer: &'a TermScorer,
        sloppy: Option<Alignments>,
    ) -> Result<Phrase<'a>> {
        let terms = terms.into_iter().enumerate().map(|(number, (distance, term))| PhraseTerm {
            number,
            distance,
            term,
            positions: PositionsReader::new(field),
            of_document: Vec::new(),
        });
        let mut terms: Vec<PhraseTerm<'a>> = terms.collect();
        terms.sort_by_key(|term| term.term.documents);
        Ok(Phrase {
            terms,
            norms: field.norms()?,
            scorer,
            sloppy,
            starts: Vec::new(),
            frequencies: Vec::new(),
            scores: Vec::new(),
        })
    }

    pub(super) fn cost(&self) -> u64 {
        self.terms[0].term.postings()
    }

    /// The rarest term: its blocks propose candidates.
    pub(super) fn rarest(&mut self) -> &mut Term<'a> {
        &mut self.terms[0].term
    }

    pub(super) fn next(&mut self, from: u32) -> u32 {
        self.terms.iter_mut().fold(from, |from, term| match from {
            NO_DOCUMENT => NO_DOCUMENT,
            from => term.term.next(from),
        })
    }

    /// A phrase occurs no more often than each of its terms, so that its share is no larger.
    pub(super) fn max_score(&mut self, range: (u32, u32)) -> Result<Option<u32>> {
        let mut min = 1.0f32;
        for term in &mut self.terms {
            match term.term.max_share(range)? {
                Some(share) => min = min.min(share),
                None => return Ok(None),
            }
        }
        Ok(Some(self.scorer.max_score(min)))
    }

    pub(super) fn mark(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        self.matches_of(bits.range(), Refine::Filter, scratch, |batch| bits.add(&batch.documents))
    }

    pub(super) fn add(&mut self, window: &mut Window, scratch: &mut Scratch) -> Result<()> {
        let range = window.range();
        let add = |batch: &Batch| window.add(&batch.documents, &batch.scores);
        self.matches_of(range, Refine::Require, scratch, add)
    }

    /// Calls `body` with the matches of a range, those of a block of the rarest term at a time.
    fn matches_of(
        &mut self,
        range: (u32, u32),
        how: Refine,
        scratch: &mut Scratch,
        mut body: impl FnMut(&Batch),
    ) -> Result<()> {
        let mut batch = scratch.batch();
        self.rarest().seek(range.0);
        for block in self.rarest().block..self.rarest().blocks.len() {
            let rarest = self.rarest();
            if rarest.blocks.first(block) > range.1 {
                break;
            }
            let documents = rarest.blocks.documents(block)?;
            batch.clear();
            batch.push_equal(&documents[super::window::within(documents, range)], 0);
            self.refine(&mut batch, Refinement::all(how), scratch)?;
            body(&batch);
        }
        scratch.give_batch(batch);
        Ok(())
    }

    pub(super) fn refine(
        &mut self,
        batch: &mut Batch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (mut some, mut found) = (scratch.batch(), scratch.batch());
        for (documents, scores) in batch.chunks(BLOCK) {
            some.clear();
            some.push_all(documents, scores);
            self.find(&mut some, refinement)?;
            found.push_all(&some.documents, &some.scores);
        }
        batch.join(&found, refinement, |_, score| score);
        scratch.give_batch(some);
        scratch.give_batch(found);
        Ok(())
    }

    /// Keeps the candidates that hold the phrase, and may reach what is needed.
    fn find(&mut self, batch: &mut Batch, refinement: Refinement) -> Result<()> {
        let Refinement { how, assumed, need } = refinement;
        for term in &mut self.terms {
            term.term.find_all(batch, 0, 0)?;
        }
        if batch.len() == 0 {
            return Ok(());
        }
        if how.is_scored() {
            self.bound_by_frequency(batch, assumed, need)?;
        }
        let mut kept = 0;
        for term in &mut self.terms {
            term.term.locate(&batch.documents)?;
        }
        for at in 0..batch.len() {
            let frequency = self.frequency(at)?;
            if frequency == 0.0 {
                continue;
            }
            let (document, mut score) = (batch.documents[at], batch.scores[at]);
            if how.is_scored() {
                score = score - self.scores[at] + self.scorer.score_of(self.norms, document, frequency);
            }
            (batch.documents[kept], batch.scores[kept]) = (document, score);
            kept += 1;
        }
        batch.truncate(kept);
        Ok(())
    }

    /// Replaces the upper bound `assumed` of each candidate by the score of its rarest term's frequency, and
    /// drops those that fall below `need`.
    fn bound_by_frequency(&mut self, batch: &mut Batch, assumed: u32, need: u32) -> Result<()> {
        self.frequencies.clear();
        self.frequencies.resize(batch.len(), u32::MAX);
        for term in &mut self.terms {
            term.term.locate(&batch.documents)?;
            for (min, frequency) in self.frequencies.iter_mut().zip(term.term.frequencies_found()?) {
                *min = (*min).min(*frequency);
            }
        }
        self.scores.clear();
        self.scores.resize(batch.len(), 0);
        self.scorer.score_all(self.norms, &batch.documents, &self.frequencies, &mut self.scores);
        let mut kept = 0;
        for at in 0..batch.len() {
            let (bound, document) = (self.scores[at], batch.documents[at]);
            let score = batch.scores[at] - assumed + bound;
            (batch.documents[kept], batch.scores[kept], self.scores[kept]) = (document, score, bound);
            kept += usize::from(score >= need);
        }
        batch.truncate(kept);
        Ok(())
    }

    /// How often the phrase occurs in the candidate of that number.
    fn frequency(&mut self, candidate: usize) -> Result<f32> {
        for (number, of) in self.terms.iter_mut().enumerate() {
            let PhraseTerm { term, positions, of_document, .. } = of;
            let found = &term.buffers.found;
            let (block, offset) = (found.blocks[candidate], found.offsets[candidate]);
            term.blocks.positions(block as usize, usize::from(offset), positions, of_document)?;
            if self.sloppy.is_some() {
                continue;
            }
            if number == 0 {
                self.starts.clear();
                let starts = of_document.iter().filter_map(|position| position.checked_sub(of.distance));
                self.starts.extend(starts);
            } else {
                keep_common(&mut self.starts, of_document, of.distance);
            }
            if self.starts.is_empty() {
                return Ok(0.0);
            }
        }
        match &mut self.sloppy {
            None => Ok(self.starts.len() as f32),
            Some(alignments) => {
                for of in &self.terms {
                    alignments.set(of.number, &of.of_document);
                }
                Ok(alignments.frequency())
            }
        }
    }

    pub(super) fn each_term(&mut self, body: &mut dyn FnMut(&mut Term<'a>)) {
        self.terms.iter_mut().for_each(|term| body(&mut term.term));
    }

    pub(super) fn close(self, scratch: &mut Scratch) {
        self.terms.into_iter().for_each(|term| term.term.close(scratch));
    }
}

/// Keeps the starts at which a term follows in that distance.
fn keep_common(starts: &mut Vec<u32>, positions: &[u32], distance: u32) {
    let (mut kept, mut at) = (0, 0);
    for number in 0..starts.len() {
        let start = starts[number];
        let wanted = u64::from(start) + u64::from(distance);
        while at < positions.len() && u64::from(positions[at]) < wanted {
            at += 1;
        }
        if at == positions.len() {
            break;
        }
        starts[kept] = start;
        kept += usize::from(u64::from(positions[at]) == wanted);
    }
    starts.truncate(kept);
}

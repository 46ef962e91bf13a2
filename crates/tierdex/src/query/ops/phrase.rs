//! Terms at given distances from one another.

use super::slop::Alignments;
use super::window::Window;
use crate::cursor::{NO_DOCUMENT, PostingsCursor};
use crate::error::Result;
use crate::rank::TermScorer;
use crate::segment::read::Norms;
use std::sync::Arc;

/// Finds the documents that hold all terms of a phrase, rarest term first, and counts where they stand in line, or
/// nearly so.
pub struct PhraseOp<'a> {
    /// Distance from the first term, and cursor; by rising document frequency.
    terms: Vec<(u32, PostingsCursor<'a>)>,
    norms: &'a Norms,
    scorer: Arc<TermScorer>,
    starts: Vec<u64>,
    /// If they need not stand in line: the number of each of `terms` in the phrase, and what counts them.
    sloppy: Option<(Vec<usize>, Alignments)>,
}

impl<'a> PhraseOp<'a> {
    pub(crate) fn new(
        terms: Vec<(u32, PostingsCursor<'a>)>,
        sloppy: Option<Alignments>,
        norms: &'a Norms,
        scorer: Arc<TermScorer>,
    ) -> PhraseOp<'a> {
        let mut numbered: Vec<_> = terms.into_iter().enumerate().collect();
        numbered.sort_by_key(|(_, (_, cursor))| cursor.term().documents);
        let (numbers, terms) = numbered.into_iter().unzip();
        let sloppy = sloppy.map(|alignments| (numbers, alignments));
        PhraseOp { terms, norms, scorer, starts: Vec::new(), sloppy }
    }

    pub(super) fn cursors(&mut self) -> impl Iterator<Item = &mut PostingsCursor<'a>> {
        self.terms.iter_mut().map(|(_, cursor)| cursor)
    }

    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let bound = self.terms.iter().fold(from, |from, (_, cursor)| from.max(cursor.lower_bound(from)));
        Some(bound).filter(|&document| document != NO_DOCUMENT)
    }

    pub(super) fn accumulate(&mut self, window: &mut Window) -> Result<()> {
        let mut document = window.base();
        loop {
            document = self.next_common(document, window.end())?;
            if document >= window.end() {
                return Ok(());
            }
            let frequency = self.frequency()?;
            if frequency > 0.0 {
                window.add(document, self.scorer.score_of(self.norms, document, frequency));
            }
            document += 1;
        }
    }

    /// The first document from `target` on that holds all terms, or some document from `end` on.
    fn next_common(&mut self, mut target: u32, end: u32) -> Result<u32> {
        'next: while target < end {
            for (_, cursor) in &mut self.terms {
                let found = cursor.advance(target)?;
                if found != target {
                    target = found;
                    continue 'next;
                }
            }
            return Ok(target);
        }
        Ok(target)
    }

    /// What the phrase counts in the present document of all cursors.
    fn frequency(&mut self) -> Result<f32> {
        let Some((numbers, alignments)) = &mut self.sloppy else { return Ok(self.occurrences()? as f32) };
        for (number, (_, cursor)) in numbers.iter().zip(&mut self.terms) {
            alignments.set(*number, cursor.positions()?);
        }
        Ok(alignments.frequency())
    }

    /// How often the phrase stands in the present document of all cursors.
    fn occurrences(&mut self) -> Result<u32> {
        self.starts.clear();
        for (i, (distance, cursor)) in self.terms.iter_mut().enumerate() {
            // One more than any distance, so that starts do not become negative.
            let start = |position: u32| u64::from(position) + (1 << 32) - u64::from(*distance);
            let positions = cursor.positions()?;
            if i == 0 {
                self.starts.extend(positions.iter().map(|&position| start(position)));
                continue;
            }
            let mut rest = positions.iter().map(|&position| start(position)).peekable();
            self.starts.retain(|&wanted| {
                while rest.next_if(|&found| found < wanted).is_some() {}
                rest.peek() == Some(&wanted)
            });
        }
        Ok(self.starts.len() as u32)
    }
}

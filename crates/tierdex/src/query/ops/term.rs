//! One term.

use super::window::Window;
use crate::cursor::{NO_DOCUMENT, PostingsCursor};
use crate::error::Result;
use crate::rank::TermScorer;
use crate::segment::read::Norms;
use std::sync::Arc;

/// Scores the documents of a term.
pub struct TermOp<'a> {
    cursor: PostingsCursor<'a>,
    norms: &'a Norms,
    scorer: Arc<TermScorer>,
}

impl<'a> TermOp<'a> {
    pub(crate) fn new(cursor: PostingsCursor<'a>, norms: &'a Norms, scorer: Arc<TermScorer>) -> TermOp<'a> {
        TermOp { cursor, norms, scorer }
    }

    pub(super) fn cursor(&mut self) -> &mut PostingsCursor<'a> {
        &mut self.cursor
    }

    pub(super) fn next(&self, from: u32) -> Option<u32> {
        Some(self.cursor.lower_bound(from)).filter(|&document| document != NO_DOCUMENT)
    }

    pub(super) fn accumulate(&mut self, window: &mut Window) -> Result<()> {
        let end = window.end();
        if self.cursor.lower_bound(window.base()) >= end {
            return Ok(());
        }
        let mut document = self.cursor.advance(window.base())?;
        while document < end {
            let (documents, frequencies) = self.cursor.rest_of_block()?;
            let count = documents.partition_point(|&document| document < end);
            for (&document, &frequency) in documents[..count].iter().zip(frequencies) {
                window.add(document, self.scorer.score(self.norms, document, frequency));
            }
            self.cursor.skip(count)?;
            document = self.cursor.document();
        }
        Ok(())
    }
}

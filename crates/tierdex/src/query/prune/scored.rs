//! A term's list with what its blocks score at most.

use super::{Bounds, block_bounds};
use crate::cursor::ScatteredBlocks;
use crate::error::Result;
use crate::rank::TermScorer;
use crate::segment::read::{FieldReader, Norms, TermInfo};
use std::ops::RangeInclusive;

/// A list, and how its postings score. It moves forward over its blocks.
pub struct Scored<'a> {
    pub(super) blocks: ScatteredBlocks<'a>,
    pub(super) norms: &'a Norms,
    pub(super) scorer: &'a TermScorer,
    /// Documents that hold the term.
    pub(super) documents: u32,
    /// What each block scores at most; empty if nobody asks.
    pub(super) bounds: Vec<f32>,
    /// No block before this one is asked for any more.
    pub(super) block: usize,
}

impl<'a> Scored<'a> {
    /// Reads the record of `term`; bounds too, if they are given.
    pub fn open(
        field: &'a FieldReader,
        term: &TermInfo,
        scorer: &'a TermScorer,
        bounds: Option<Bounds>,
    ) -> Result<Scored<'a>> {
        let blocks = ScatteredBlocks::open(field, term)?;
        let mut of_blocks = Vec::new();
        match (blocks.skips(), bounds) {
            (Some(list), Some(bounds)) => block_bounds(list, scorer, bounds, &mut of_blocks)?,
            (None, Some(_)) => of_blocks.push(scorer.bound(u16::MAX)),
            (_, None) => {}
        }
        let (norms, documents) = (field.norms()?, term.documents);
        Ok(Scored { blocks, norms, scorer, documents, bounds: of_blocks, block: 0 })
    }

    /// Passes over the blocks whose documents are all before `document`.
    pub(super) fn advance(&mut self, document: u32) {
        self.block = self.blocks.find(self.block, document);
    }

    /// What the documents from `first` to `last` score at most; 0 if there are none.
    pub(super) fn bound(&self, first: u32, last: u32) -> f32 {
        let from = self.blocks.find(self.block, first);
        if from >= self.bounds.len() || self.blocks.first(from) > last {
            return 0.0;
        }
        let to = self.blocks.find(from, last).min(self.bounds.len() - 1);
        self.bounds[from..=to].iter().copied().fold(0.0, f32::max)
    }

    /// Calls `body` with the documents of a block that are in `range`, and their scores.
    pub(super) fn for_each(
        &mut self,
        block: usize,
        range: RangeInclusive<u32>,
        mut body: impl FnMut(u32, f32),
    ) -> Result<()> {
        let (documents, frequencies) = self.blocks.read(block)?;
        let from = documents.partition_point(|document| document < range.start());
        let to = documents.partition_point(|document| document <= range.end());
        for (&document, &frequency) in documents[from..to].iter().zip(&frequencies[from..to]) {
            body(document, self.scorer.score(self.norms, document, frequency));
        }
        Ok(())
    }

    /// Score of a document, if it holds the term.
    pub(super) fn score(&mut self, document: u32) -> Result<Option<f32>> {
        let block = self.blocks.find(self.block, document);
        if block >= self.blocks.len() {
            return Ok(None);
        }
        let Ok(place) = self.blocks.documents(block)?.binary_search(&document) else { return Ok(None) };
        let frequency = self.blocks.frequencies(block)?[place];
        Ok(Some(self.scorer.score(self.norms, document, frequency)))
    }
}

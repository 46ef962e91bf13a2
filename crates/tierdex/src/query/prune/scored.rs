//! A term's list with scores, and with bounds of its blocks.

use super::scratch::Scratch;
use crate::cursor::{ScatteredBlocks, Tally};
use crate::error::Result;
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::rank::TermScorer;
use crate::segment::read::{BlockList, FieldReader, Norms, TermInfo};

/// Where the bounds of blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// The numbers stored beside the blocks: ranking has the default parameters, and the average length is that
    /// of the segment.
    Stored,
    /// The impacts of each block.
    Impacts,
}

/// A list whose blocks are scored.
pub struct Scored<'a> {
    pub(super) blocks: ScatteredBlocks<'a>,
    norms: &'a Norms,
    pub(super) scorer: &'a TermScorer,
    /// Documents that hold the term.
    pub(super) documents: u32,
    /// What each block scores at most; empty if skip data has it, or if nobody asks.
    bounds: Vec<f32>,
    /// No block before this one is asked for any more.
    pub(super) block: usize,
    pub(super) room: Box<Room>,
    /// Blocks that were not decoded because of their bounds.
    pub(super) passed: u64,
}

/// Room for what belongs to the block at hand.
pub struct Room {
    /// Which block the scores are of.
    scores_of: usize,
    scores: [f32; BLOCK],
    /// Block, and place in it, of each document that a way of evaluation looks at.
    pub(super) places: [(u32, u8); BLOCK],
}

impl Default for Room {
    fn default() -> Room {
        Room { scores_of: usize::MAX, scores: [0.0; BLOCK], places: [(0, 0); BLOCK] }
    }
}

impl<'a> Scored<'a> {
    /// Reads the record of `term`; bounds too, if they are given.
    pub fn open(
        field: &'a FieldReader,
        term: &TermInfo,
        scorer: &'a TermScorer,
        bounds: Option<Bounds>,
        scratch: &mut Scratch,
    ) -> Result<Scored<'a>> {
        let blocks = ScatteredBlocks::open(field, term, scratch.at_hand.pop().unwrap_or_default())?;
        let mut computed = Vec::new();
        if let (Some(list), Some(Bounds::Impacts)) = (blocks.skips(), bounds) {
            from_impacts(list, scorer, &mut computed)?;
        }
        let mut room = scratch.rooms.pop().unwrap_or_default();
        room.scores_of = usize::MAX;
        let (norms, documents) = (field.norms()?, term.documents);
        Ok(Scored { blocks, norms, scorer, documents, bounds: computed, block: 0, room, passed: 0 })
    }

    /// Gives the rooms back. Says how many blocks were decoded, and how many were not because of their bounds.
    pub fn close(self, scratch: &mut Scratch) -> (Tally, u64) {
        let (tally, at_hand) = self.blocks.close();
        scratch.at_hand.push(at_hand);
        scratch.rooms.push(self.room);
        (tally, self.passed)
    }

    /// Documents that hold the term.
    pub fn postings(&self) -> u64 {
        u64::from(self.documents)
    }

    /// Passes over the blocks whose documents are all before `document`.
    pub(super) fn advance(&mut self, document: u32) {
        self.block = self.blocks.find(self.block, document);
    }

    /// What the documents of a block score at most.
    #[inline]
    pub(super) fn bound_of(&self, block: usize) -> f32 {
        match self.blocks.skips() {
            None => self.scorer.bound(u16::MAX),
            Some(list) if self.bounds.is_empty() => self.scorer.bound(list.bound(block)),
            Some(_) => self.bounds[block],
        }
    }

    /// What the documents of a superblock score at most.
    pub(super) fn super_bound_of(&self, superblock: usize) -> f32 {
        match self.blocks.skips() {
            Some(list) if self.bounds.is_empty() => self.scorer.bound(list.super_bound(superblock)),
            _ => {
                let first = superblock * SUPERBLOCK;
                self.largest_bound(first, (first + SUPERBLOCK).min(self.blocks.len()) - 1)
            }
        }
    }

    fn largest_bound(&self, from: usize, to: usize) -> f32 {
        match self.blocks.skips() {
            None => self.scorer.bound(u16::MAX),
            Some(list) if self.bounds.is_empty() => self.scorer.bound(list.largest_bound(from..=to)),
            Some(_) => self.bounds[from..=to].iter().copied().fold(0.0, f32::max),
        }
    }

    /// What the documents from `first` to `last` score at most; 0 if there are none.
    pub(super) fn bound(&mut self, first: u32, last: u32) -> Result<f32> {
        if self.blocks.skips().is_none() {
            let documents = self.blocks.documents(0)?;
            let next = documents.get(documents.partition_point(|document| *document < first));
            let some = next.is_some_and(|document| *document <= last);
            return Ok(if some { self.scorer.bound(u16::MAX) } else { 0.0 });
        }
        Ok(self.bound_of_range(first, last))
    }

    /// The same, by nothing but the skip data.
    pub(super) fn bound_of_range(&self, first: u32, last: u32) -> f32 {
        let from = self.blocks.find(self.block, first);
        if from >= self.blocks.len() || self.blocks.first(from) > last {
            return 0.0;
        }
        let to = self.blocks.find(from, last).min(self.blocks.len() - 1);
        self.largest_bound(from, to)
    }

    /// Documents of a block, and their scores.
    pub(super) fn read(&mut self, block: usize) -> Result<(&[u32], &[f32])> {
        let (documents, frequencies) = self.blocks.read(block)?;
        let scores = &mut self.room.scores[..documents.len()];
        if self.room.scores_of != block {
            self.room.scores_of = usize::MAX;
            self.scorer.score_all(self.norms, documents, frequencies, scores);
            self.room.scores_of = block;
        }
        Ok((documents, scores))
    }

    /// Scores of documents whose places [`Room::places`] names, into `scores`.
    pub(super) fn score_places(&mut self, documents: &[u32], scores: &mut [f32]) -> Result<()> {
        let mut found = [0; BLOCK];
        let places = &self.room.places[..documents.len()];
        let mut at = 0;
        while let Some(&(block, _)) = places.get(at) {
            let end = at + places[at..].iter().take_while(|place| place.0 == block).count();
            let frequencies = self.blocks.frequencies(block as usize)?;
            for (found, place) in found[at..end].iter_mut().zip(&places[at..end]) {
                *found = frequencies[usize::from(place.1)];
            }
            at = end;
        }
        self.scorer.score_all(self.norms, documents, &found[..documents.len()], scores);
        Ok(())
    }

    /// What a document scores at most; `None` if the list ends before it.
    pub(super) fn bound_at(&self, document: u32) -> Option<f32> {
        let block = self.blocks.find(self.block, document);
        (block < self.blocks.len()).then(|| self.bound_of(block))
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

fn from_impacts(list: &BlockList<'_>, scorer: &TermScorer, bounds: &mut Vec<f32>) -> Result<()> {
    let mut front = Vec::new();
    for block in 0..list.blocks() {
        list.impacts(block, &mut front)?;
        bounds.push(scorer.bound_of(&front));
    }
    Ok(())
}

//! A term's list with scores, and with bounds of its blocks.

use super::batch::Batch;
use super::scratch::Scratch;
use crate::cursor::{AtHand, Blockwise, LIST_BYTES, Reading, ScatteredBlocks};
use crate::error::Result;
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::rank::TermScorer;
use crate::segment::read::{BlockList, FieldReader, Norms, TermInfo};
use crate::transform::impact::{BLOCK_FRONT_BYTES_MAX, Impact};
use std::ops::Range;
use tierdex_codec::{Places, Shared, ones, values_at_least};

/// Where the bounds of blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// The numbers stored beside the blocks: ranking has the default parameters, and the average length is that
    /// of the segment.
    Stored,
    /// The impacts of each block.
    Impacts,
    /// There are none: all is scored.
    None,
}

/// Bytes of the longest bitmap of a block.
const BITMAP_BYTES_MAX: usize = 4 * BLOCK;

/// Bytes that a list takes at most beside its record, its buffers and its bounds. A pair of a front has two bytes or more.
pub const SCORED_BYTES: usize = size_of::<Scored<'_>>()
    + size_of::<Room>()
    + size_of::<AtHand>()
    + LIST_BYTES
    + BLOCK_FRONT_BYTES_MAX.div_ceil(2) * size_of::<Impact>();

/// Rooms that are kept for the next query.
const ROOMS_KEPT: usize = 32;

/// A list whose blocks are scored.
pub struct Scored<'a> {
    pub(super) blocks: ScatteredBlocks<'a>,
    norms: &'a Norms,
    pub(super) scorer: &'a TermScorer,
    /// Documents that hold the term.
    pub(super) documents: u32,
    /// What each block scores at most; empty if skip data has it, or if nobody asks.
    bounds: Vec<f32>,
    /// There are no bounds: whatever is asked for one is told that the block may score anything.
    exhaustive: bool,
    /// No block before this one is asked for any more.
    pub(super) block: usize,
    pub(super) room: Box<Room>,
}

/// Room for what belongs to the block at hand.
pub struct Room {
    /// Which block the scores are of.
    scores_of: usize,
    scores: [f32; BLOCK],
    /// Block, and place in it, of each document that a way of evaluation looks at.
    pub(super) places: [(u32, u8); BLOCK],
    front: Vec<Impact>,
    /// Documents of the block that are frequent enough: their places, and what is known of them.
    chosen: Places,
    documents: [u32; BLOCK],
    frequencies: [u32; BLOCK],
    pub(super) some_scores: [f32; BLOCK],
    shared: Shared,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            scores_of: usize::MAX,
            scores: [0.0; BLOCK],
            places: [(0, 0); BLOCK],
            front: Vec::new(),
            chosen: Places::new(),
            documents: [0; BLOCK],
            frequencies: [0; BLOCK],
            some_scores: [0.0; BLOCK],
            shared: Shared::new(),
        }
    }
}

impl Room {
    /// Keeps some of the documents that a way of evaluation looks at.
    pub(super) fn keep(&mut self, kept: &[u8]) {
        for (k, place) in kept.iter().map(|place| usize::from(*place)).enumerate() {
            self.places[k] = self.places[place];
            self.some_scores[k] = self.some_scores[place];
        }
    }
}

/// The blocks of some places, which rise, and which of the places are in each.
fn runs(places: &[(u32, u8)]) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let block = places.get(at)?.0;
        let start = at;
        at += places[at..].iter().take_while(|place| place.0 == block).count();
        Some((block as usize, start..at))
    })
}

impl<'a> Scored<'a> {
    /// Reads the record of `term`; bounds too, if they are given. The list is read as `reading` says.
    pub fn open(
        field: &'a FieldReader,
        term: &TermInfo,
        (scorer, reading): (&'a TermScorer, Reading<'a>),
        bounds: Option<Bounds>,
        scratch: &mut Scratch,
    ) -> Result<Scored<'a>> {
        let blocks = ScatteredBlocks::open(field, term, reading, scratch.at_hand.pop().unwrap_or_default())?;
        let mut computed = Vec::new();
        if let (Some(list), Some(Bounds::Impacts)) = (blocks.skips(), bounds) {
            from_impacts(list, scorer, &mut computed)?;
        }
        let mut room = scratch.rooms.pop().unwrap_or_default();
        room.scores_of = usize::MAX;
        let (norms, documents) = (field.norms()?, term.documents);
        let exhaustive = bounds == Some(Bounds::None);
        Ok(Scored { blocks, norms, scorer, documents, bounds: computed, exhaustive, block: 0, room })
    }

    /// Gives the rooms back.
    pub fn close(self, scratch: &mut Scratch) {
        if scratch.rooms.len() < ROOMS_KEPT {
            scratch.at_hand.push(self.blocks.close());
            scratch.rooms.push(self.room);
        }
    }

    /// Notes that the blocks which overlap these documents cannot matter because of their bounds, if that is noted.
    pub(super) fn refuse_range(&mut self, first: u32, last: u32) {
        if self.blocks.is_traced() {
            let (from, len) = (self.blocks.find(self.block, first), self.blocks.len());
            let overlap = (from..len).take_while(|block| self.blocks.first(*block) <= last).count();
            (from..from + overlap).for_each(|block| self.blocks.refuse(block));
        }
    }

    /// Notes from now on what becomes of each block.
    pub fn trace(&mut self) {
        self.blocks.trace();
    }

    /// Number of the term's field.
    pub fn field(&self) -> usize {
        self.blocks.field().number()
    }

    /// What became of the blocks since [`Scored::trace`].
    pub fn traced(&self) -> Blockwise {
        self.blocks.traced()
    }

    /// What the skip data says of the blocks; `None` of a list so short that it has none.
    pub fn skips(&self) -> Option<&BlockList<'a>> {
        self.blocks.skips()
    }

    /// What the documents of the list score at most; none if that is not asked.
    pub fn highest_bound(&self) -> Option<f32> {
        (!self.exhaustive).then(|| self.largest_bound(0, self.blocks.len() - 1))
    }

    /// Whether all is to be scored, and nothing has a bound.
    pub(super) fn is_exhaustive(&self) -> bool {
        self.exhaustive
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
        if self.exhaustive {
            return f32::INFINITY;
        }
        match self.blocks.skips() {
            None => self.scorer.bound(u16::MAX),
            Some(list) if self.bounds.is_empty() => self.scorer.bound(list.bound(block)),
            Some(_) => self.bounds[block],
        }
    }

    /// What the documents of a superblock score at most.
    pub(super) fn super_bound_of(&self, superblock: usize) -> f32 {
        match self.blocks.skips() {
            Some(list) if self.bounds.is_empty() && !self.exhaustive => {
                self.scorer.bound(list.super_bound(superblock))
            }
            _ => {
                let first = superblock * SUPERBLOCK;
                self.largest_bound(first, (first + SUPERBLOCK).min(self.blocks.len()) - 1)
            }
        }
    }

    fn largest_bound(&self, from: usize, to: usize) -> f32 {
        if self.exhaustive {
            return f32::INFINITY;
        }
        match self.blocks.skips() {
            None => self.scorer.bound(u16::MAX),
            Some(list) if self.bounds.is_empty() => self.scorer.bound(list.largest_bound(from..=to)),
            Some(_) => self.bounds[from..=to].iter().copied().fold(0.0, f32::max),
        }
    }

    /// What the documents from `first` to `last` score at most; 0 if there are none.
    pub(super) fn bound(&mut self, first: u32, last: u32) -> Result<f32> {
        if self.blocks.skips().is_none() && !self.exhaustive {
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

    /// Adds the scores of the documents of a block from `first` to `last` to `sums`, the first of which is that of `origin`,
    /// a multiple of eight, if the block is a bitmap and so need not be decoded; says whether it is.
    pub(super) fn add_bits(
        &mut self,
        block: usize,
        (first, last): (u32, u32),
        origin: u32,
        sums: &mut [f32],
    ) -> Result<bool> {
        let Norms::Byte(codes) = self.norms else { return Ok(false) };
        let Some((bitmap, frequencies)) = self.blocks.bitmap_and_frequencies(block)? else {
            return Ok(false);
        };
        let start = bitmap.first().max(first & !7);
        let end = bitmap.last().min(last);
        if start > end {
            return Ok(true);
        }
        // Bytes before the first, and bits of its byte that are before it.
        let (before, bits) = bitmap.bits().split_at(((start - bitmap.first()) / 8) as usize);
        let mut frequencies = &frequencies[ones(before)..];
        let mut copy = [0; BITMAP_BYTES_MAX];
        let mut bits = &bits[..((end - start) / 8 + 1) as usize];
        if start < first && bits.len() <= copy.len() {
            copy[..bits.len()].copy_from_slice(bits);
            let passed = !(u8::MAX << (first - start));
            frequencies = &frequencies[(copy[0] & passed).count_ones() as usize..];
            copy[0] &= !passed;
            bits = &copy[..bits.len()];
        }
        let from = (start - origin) as usize;
        let sums = &mut sums[from..from + (end - start + 1) as usize];
        self.scorer.saturation(codes).add_bits(bits, start, frequencies, sums);
        Ok(true)
    }

    /// Documents of a block that may score `least`, and their scores: none is left out that does. The others are not
    /// scored, and if there is none the documents are not decoded.
    pub(super) fn read_at_least(&mut self, block: usize, least: f32) -> Result<(&[u32], &[f32])> {
        let n = match self.choose(block, least)? {
            BLOCK => return self.read(block),
            0 => return Ok((&[], &[])),
            n => n,
        };
        let (documents, frequencies) = self.blocks.read(block)?;
        let room = &mut *self.room;
        let places = room.chosen.get().iter().map(|place| usize::from(*place));
        for ((place, document), frequency) in places.zip(&mut room.documents).zip(&mut room.frequencies) {
            (*document, *frequency) = (documents[place], frequencies[place]);
        }
        let scores = &mut room.some_scores[..n];
        self.scorer.score_all(self.norms, &room.documents[..n], &room.frequencies[..n], scores);
        Ok((&room.documents[..n], scores))
    }

    /// Finds the postings of a block that are frequent enough to score `least`, and says how many they are; [`BLOCK`] if
    /// they are so many, or so hard to tell, that all had better be scored.
    fn choose(&mut self, block: usize, least: f32) -> Result<usize> {
        let room = &mut *self.room;
        match self.blocks.skips() {
            Some(list) if least > 0.0 && room.scores_of != block && !self.exhaustive => {
                list.impacts(block, &mut room.front)?
            }
            _ => return Ok(BLOCK),
        }
        let Some(frequency) = self.scorer.least_frequency(&room.front, least) else {
            self.blocks.refuse(block);
            return Ok(0);
        };
        if frequency <= 1 {
            return Ok(BLOCK);
        }
        values_at_least(self.blocks.frequencies(block)?, frequency, &mut room.chosen);
        let n = room.chosen.get().len();
        Ok(if n > BLOCK / 4 { BLOCK } else { n })
    }

    /// Scores the documents whose places [`Room::places`] names, into [`Room::some_scores`].
    pub(super) fn score_places(&mut self, documents: &[u32]) -> Result<()> {
        let n = documents.len();
        let room = &mut *self.room;
        for (block, places) in runs(&room.places[..n]) {
            let frequencies = self.blocks.frequencies(block)?;
            for place in places {
                room.frequencies[place] = frequencies[usize::from(room.places[place].1)];
            }
        }
        let scores = &mut room.some_scores[..n];
        self.scorer.score_all(self.norms, documents, &room.frequencies[..n], scores);
        Ok(())
    }

    /// Adds the bounds of the blocks that [`Room::places`] names.
    pub(super) fn add_bounds(&self, potentials: &mut [f32]) {
        for (block, places) in runs(&self.room.places[..potentials.len()]) {
            let bound = self.bound_of(block);
            potentials[places].iter_mut().for_each(|potential| *potential += bound);
        }
    }

    /// Adds the scores of the term, which has that number, to those of the documents of `batch`, which rise. Documents
    /// that score less than `least` together with what their block adds at most are dropped.
    pub(super) fn add_to(&mut self, batch: &mut Batch, number: usize, least: f32) -> Result<()> {
        self.look_up(batch, number, least, false)
    }

    /// The same, where nothing is noted of each term; documents that do not hold this one are dropped too.
    pub(super) fn require(&mut self, batch: &mut Batch, least: f32) -> Result<()> {
        self.look_up(batch, 0, least, true)
    }

    fn look_up(&mut self, batch: &mut Batch, number: usize, least: f32, required: bool) -> Result<()> {
        let (mut at, mut kept, mut block) = (0, 0, self.block);
        while at < batch.len() {
            block = self.blocks.find(block, batch.documents[at]);
            let is_in = block < self.blocks.len();
            if !is_in && required {
                break;
            }
            let last = if is_in { self.blocks.last(block) } else { u32::MAX };
            let bound = if is_in { self.bound_of(block) } else { 0.0 };
            // Documents that the block may hold, up to a block of them, and then those for which that matters.
            let some = &batch.documents[at..batch.len().min(at + BLOCK)];
            let end = at + some.iter().take_while(|document| **document <= last).count();
            let start = kept;
            kept = batch.keep(at..end, start, least - bound);
            at = end;
            if kept > start && is_in {
                let found = self.add_block(block, batch, start..kept, (number, required))?;
                kept = if required { start + found } else { kept };
            } else {
                self.blocks.refuse(block);
            }
        }
        batch.truncate(kept);
        Ok(())
    }

    /// Adds the scores of up to 256 documents that stand in a block, if they stand anywhere, and says how many do. If they are
    /// required, these move to the front of the places.
    fn add_block(
        &mut self,
        block: usize,
        batch: &mut Batch,
        places: Range<usize>,
        (number, required): (usize, bool),
    ) -> Result<usize> {
        let documents = &batch.documents[places.clone()];
        self.blocks.find_in(block, documents, &mut self.room.shared)?;
        let n = self.room.shared.first().len();
        if n == 0 {
            return Ok(0);
        }
        let frequencies = self.blocks.frequencies(block)?;
        let room = &mut *self.room;
        for (k, (first, second)) in room.shared.first().iter().zip(room.shared.second()).enumerate() {
            room.documents[k] = documents[usize::from(*first)];
            room.frequencies[k] = frequencies[usize::from(*second)];
        }
        let scores = &mut room.some_scores[..n];
        self.scorer.score_all(self.norms, &room.documents[..n], &room.frequencies[..n], scores);
        let found = room.shared.first();
        if required {
            batch.pick(places.start, found);
            (places.start..).zip(scores).for_each(|(place, score)| batch.add(place, number, *score));
        } else {
            let found = found.iter().map(|place| places.start + usize::from(*place));
            found.zip(scores).for_each(|(place, score)| batch.add(place, number, *score));
        }
        Ok(n)
    }
}

fn from_impacts(list: &BlockList<'_>, scorer: &TermScorer, bounds: &mut Vec<f32>) -> Result<()> {
    let mut front = Vec::new();
    bounds.reserve_exact(list.blocks());
    for block in 0..list.blocks() {
        list.impacts(block, &mut front)?;
        bounds.push(scorer.bound_of(&front));
    }
    Ok(())
}

//! The posting list of a term, stretch after stretch.
//!
//! The documents are cut into stretches of the same width, so many that one holds 64 postings on average. A process
//! of two states walks over them: a quarter of the stretches is dense, the others sparse, and a state lasts for 5 or
//! for 16 stretches on average, as a topic does that a collection speaks of here and not there. The postings are
//! shared out by state, to the last one; within a stretch each set of documents is as likely as any other. So a list
//! has exactly the length that was asked for, does not end early, and every document stands in as many lists as any
//! other. Lists of frequent terms are less uneven: a dense stretch has no more postings than documents.
//!
//! Any stretch can be made by itself: its random numbers depend on the seed, the term and its own number. They are not
//! drawn one by one, but say where in two fixed rows of random numbers its own ones begin.

use super::tables::{EXCERPT_MAX, Tables, excerpt};
use crate::Random;
use std::ops::Range;

/// Postings of a stretch on average, at most.
const POSTINGS: u32 = 64;

/// What a sparse stretch weighs.
const SPARSE: u32 = 16;

/// What a dense one weighs, if its documents are enough.
const DENSE: u32 = 8 * SPARSE;

// All others are sparse; one posting may come from rounding, and the rows are read to the second one behind.
const _: () = assert!((POSTINGS * DENSE / SPARSE + 3) as usize <= EXCERPT_MAX);

/// The list of one term.
#[derive(Clone)]
pub(super) struct List<'a> {
    tables: &'a Tables,
    frequencies: &'a [u8],
    documents: u32,
    postings: u32,
    seed: u64,
    stretches: u32,
    dense: u32,
}

/// Neighbouring documents, and how many of them are in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    number: u32,
    pub(super) documents: Range<u32>,
    pub(super) postings: u32,
}

/// Postings, one behind another.
#[derive(Default)]
pub(super) struct Postings {
    pub(super) documents: Vec<u32>,
    pub(super) frequencies: Vec<u32>,
}

impl<'a> List<'a> {
    /// A list of `postings` of `documents` documents, at most three quarters of them or one.
    pub(super) fn new(tables: &'a Tables, documents: u32, postings: u32, seed: u64) -> List<'a> {
        // A tenth is left for rounding.
        let dense_max = u64::from(documents) * u64::from(SPARSE) * 9 / 10 / u64::from(postings);
        List {
            tables,
            frequencies: tables.frequencies(postings, documents),
            documents,
            postings,
            seed,
            stretches: postings.div_ceil(POSTINGS),
            dense: dense_max.clamp(u64::from(SPARSE), u64::from(DENSE)) as u32,
        }
    }

    /// Postings of all stretches.
    pub(super) fn postings(&self) -> u32 {
        self.postings
    }

    /// All stretches in order.
    pub(super) fn stretches(&self) -> Stretches {
        let weights = Weights::new(self);
        let total: u64 = weights.clone().map(u64::from).sum();
        Stretches {
            documents: Shares::new(self.documents, self.stretches),
            postings: self.postings,
            postings_by_weight: f64::from(self.postings) / total as f64,
            stretches: self.stretches,
            weights,
            number: 0,
            weight_before: 0,
            postings_before: 0,
        }
    }

    /// Appends the postings of a stretch.
    pub(super) fn fill(&self, stretch: &Stretch, out: &mut Postings) {
        let (documents, frequencies) = self.drawn(stretch);
        out.documents.extend(documents);
        out.frequencies.extend(frequencies.iter().map(|&frequency| u32::from(frequency)));
    }

    /// The documents and the frequencies of a stretch.
    ///
    /// The places of k points that fall anywhere are the sums of the first k of k + 1 numbers of the exponential law,
    /// divided by the sum of all.
    #[inline]
    pub(super) fn drawn(&self, stretch: &Stretch) -> (impl ExactSizeIterator<Item = u32>, &'a [u8]) {
        let count = stretch.postings;
        let bits = Random::new(self.seed ^ (u64::from(stretch.number) + 1).wrapping_mul(STEP)).bits();
        let (before, sums) = self.tables.sums(bits as u32, count as usize + 1);
        let frequencies = excerpt(self.frequencies, (bits >> 32) as u32, count as usize);
        let (sums, all) = (&sums[..count as usize], sums[count as usize].wrapping_sub(before));
        let places = stretch.documents.len() as u32 - count + 1;
        // As many bits behind the point as leave the scale, and what is scaled, with 32 bits.
        let bits = (31 + places.leading_zeros() - all.leading_zeros()).min(32);
        let scale = (u64::from(places) << bits) / u64::from(all);
        let first = stretch.documents.start;
        let documents = sums.iter().enumerate().map(move |(before_it, sum)| {
            first
                + before_it as u32
                + ((u64::from(sum.wrapping_sub(before)) * u64::from(scale as u32)) >> bits) as u32
        });
        (documents, frequencies)
    }
}

/// The stretches of a list, one behind another.
#[derive(Clone)]
pub(super) struct Stretches {
    documents: Shares,
    postings: u32,
    postings_by_weight: f64,
    stretches: u32,
    weights: Weights,
    number: u32,
    weight_before: u64,
    postings_before: u32,
}

impl Iterator for Stretches {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        let number = self.number;
        self.weight_before += u64::from(self.weights.next()?);
        self.number += 1;
        let documents = self.documents.next();
        let share = (self.weight_before as f64 * self.postings_by_weight) as u32;
        let up_to = if self.number == self.stretches { self.postings } else { share };
        let postings = up_to - self.postings_before;
        self.postings_before = up_to;
        Some(Stretch { number, documents, postings })
    }
}

/// Documents in as many ranges as one likes, which differ by one at most.
#[derive(Clone)]
struct Shares {
    shares: u32,
    each: u32,
    rest: u32,
    at: u32,
    /// What is left over from the ranges before, in parts of a document.
    over: u32,
}

impl Shares {
    fn new(documents: u32, shares: u32) -> Shares {
        Shares { shares, each: documents / shares, rest: documents % shares, at: 0, over: 0 }
    }

    fn next(&mut self) -> Range<u32> {
        let from = self.at;
        self.over += self.rest;
        let more = self.over >= self.shares;
        self.over -= if more { self.shares } else { 0 };
        self.at += self.each + u32::from(more);
        from..self.at
    }
}

/// What each stretch weighs. A dense one is followed by a sparse one three times in 16, a sparse one by a dense
/// one once in 16.
#[derive(Clone)]
struct Weights {
    random: Random,
    /// Random bits, of which each stretch takes four.
    bits: u64,
    dense: bool,
    weight_dense: u32,
    number: u32,
    stretches: u32,
}

impl Weights {
    fn new(list: &List<'_>) -> Weights {
        let mut random = Random::new(list.seed);
        let dense = random.below(4) == 0;
        Weights { random, bits: 0, dense, weight_dense: list.dense, number: 0, stretches: list.stretches }
    }
}

impl Iterator for Weights {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.number == self.stretches {
            return None;
        }
        if self.number.is_multiple_of(16) {
            self.bits = self.random.bits();
        }
        self.number += 1;
        let change = if self.dense { 3 } else { 1 };
        self.dense ^= self.bits % 16 < change;
        self.bits >>= 4;
        Some(if self.dense { self.weight_dense } else { SPARSE })
    }
}

/// Keeps the random numbers of stretches apart.
const STEP: u64 = 0xD1B5_4A32_D192_ED03;

impl Postings {
    /// Takes the first `count` away.
    pub(super) fn remove(&mut self, count: usize) {
        self.documents.drain(..count);
        self.frequencies.drain(..count);
    }

    /// Takes all of them away.
    pub(super) fn clear(&mut self) {
        self.documents.clear();
        self.frequencies.clear();
    }
}

//! The posting list of a term, stretch after stretch.
//!
//! The documents are cut into stretches of the same width, so many that one holds 64 postings on average. A process
//! of two states walks over them: a quarter of the stretches is dense, the others sparse, and a state lasts for 5 or
//! for 16 stretches on average, as a topic does that a collection speaks of here and not there. The postings are
//! shared out by state, to the last one; within a stretch each set of documents is as likely as any other. So a list
//! has exactly the length that was asked for, does not end early, and every document stands in as many lists as any
//! other. Lists of frequent terms are less uneven: a dense stretch has no more postings than documents.
//!
//! Any stretch can be made by itself: its random numbers depend on the seed, the term and its own number.

use super::tables::{Frequencies, Tables, frequency, gap};
use crate::Random;
use std::ops::Range;

/// Postings of a stretch on average, at most.
const POSTINGS: u32 = 64;

/// What a sparse stretch weighs.
const SPARSE: u32 = 16;

/// What a dense one weighs, if its documents are enough.
const DENSE: u32 = 8 * SPARSE;

/// The list of one term.
#[derive(Clone)]
pub(super) struct List<'a> {
    tables: &'a Tables,
    frequencies: &'a Frequencies,
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
            documents: self.documents,
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
    ///
    /// The places of k points that fall anywhere are the sums of the first k of k + 1 numbers of the exponential law,
    /// divided by the sum of all.
    pub(super) fn fill(&self, stretch: &Stretch, out: &mut Postings) {
        let count = stretch.postings as usize;
        let mut random = Random::new(self.seed ^ (u64::from(stretch.number) + 1).wrapping_mul(STEP));
        let from = out.documents.len();
        // Numbers are drawn by twos, one or two more than there are postings.
        let drawn = 2 * (count / 2 + 1);
        out.documents.resize(from + drawn, 0);
        out.frequencies.resize(from + drawn, 0);
        let (sums, frequencies) = (&mut out.documents[from..], &mut out.frequencies[from..]);
        let (gaps, law) = (self.tables.exponential(), self.frequencies);
        let mut sum = 0;
        for (sums, frequencies) in sums.chunks_exact_mut(2).zip(frequencies.chunks_exact_mut(2)) {
            let bits = random.bits();
            for (place, bits) in [bits as u32, (bits >> 32) as u32].into_iter().enumerate() {
                sum += gap(gaps, bits >> 12);
                sums[place] = sum;
                frequencies[place] = frequency(law, bits);
            }
        }
        let free = stretch.documents.len() as u64 - count as u64;
        let scale = ((free + 1) << 32) / u64::from(sums[count]);
        for (place, document) in (stretch.documents.start..).zip(&mut sums[..count]) {
            *document = place + ((u64::from(*document) * scale) >> 32) as u32;
        }
        out.documents.truncate(from + count);
        out.frequencies.truncate(from + count);
    }
}

/// The stretches of a list, one behind another.
#[derive(Clone)]
pub(super) struct Stretches {
    documents: u32,
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
        let start = |number: u32| u64::from(number) * u64::from(self.documents) / u64::from(self.stretches);
        let documents = start(number) as u32..start(self.number) as u32;
        let share = (self.weight_before as f64 * self.postings_by_weight) as u32;
        let up_to = if self.number == self.stretches { self.postings } else { share };
        let postings = up_to - self.postings_before;
        self.postings_before = up_to;
        Some(Stretch { number, documents, postings })
    }
}

/// What each stretch weighs. A dense one is followed by a sparse one three times in 16, a sparse one by a dense
/// one once in 16.
#[derive(Clone)]
struct Weights {
    random: Random,
    dense: bool,
    weight_dense: u32,
    left: u32,
}

impl Weights {
    fn new(list: &List<'_>) -> Weights {
        let mut random = Random::new(list.seed);
        let dense = random.below(4) == 0;
        Weights { random, dense, weight_dense: list.dense, left: list.stretches }
    }
}

impl Iterator for Weights {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let change = if self.dense { 3 } else { 1 };
        self.dense ^= self.random.below(16) < change;
        Some(if self.dense { self.weight_dense } else { SPARSE })
    }
}

/// Keeps the random numbers of stretches apart.
const STEP: u64 = 0xD1B5_4A32_D192_ED03;

impl Postings {
    /// Pairs of document and frequency.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.documents.iter().copied().zip(self.frequencies.iter().copied())
    }

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

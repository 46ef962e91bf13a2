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

use super::tables::{Frequencies, Tables, frequency};
use crate::Random;
use std::ops::Range;

/// Postings of a stretch on average, at most.
const POSTINGS: u32 = 64;

/// What a sparse stretch weighs.
const SPARSE: u32 = 16;

/// What a dense one weighs, if its documents are enough.
const DENSE: u32 = 8 * SPARSE;

/// The list of one term.
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

    /// All stretches in order.
    pub(super) fn stretches(&self) -> impl Iterator<Item = Stretch> + use<> {
        let total: u64 = self.weights().map(u64::from).sum();
        let postings_by_weight = f64::from(self.postings) / total as f64;
        let (stretches, all, documents) = (self.stretches, self.postings, self.documents);
        let start =
            move |number: u32| (u64::from(number) * u64::from(documents) / u64::from(stretches)) as u32;
        let (mut weight_before, mut postings_before) = (0, 0);
        (0..stretches).zip(self.weights()).map(move |(number, weight)| {
            weight_before += u64::from(weight);
            let last = number + 1 == stretches;
            let share = (weight_before as f64 * postings_by_weight) as u32;
            let up_to = if last { all } else { share };
            let postings = up_to - postings_before;
            postings_before = up_to;
            Stretch { number, documents: start(number)..start(number + 1), postings }
        })
    }

    /// What each stretch weighs. A dense one is followed by a sparse one three times in 16, a sparse one by a dense
    /// one once in 16.
    fn weights(&self) -> impl Iterator<Item = u32> + use<> {
        let mut random = Random::new(self.seed);
        let mut dense = random.below(4) == 0;
        let weight_dense = self.dense;
        (0..self.stretches).map(move |_| {
            dense = if dense { random.below(16) >= 3 } else { random.below(16) == 0 };
            if dense { weight_dense } else { SPARSE }
        })
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
        let mut sum = 0;
        for (sums, frequencies) in sums.chunks_exact_mut(2).zip(frequencies.chunks_exact_mut(2)) {
            let bits = random.bits();
            for (place, bits) in [bits as u32, (bits >> 32) as u32].into_iter().enumerate() {
                sum += self.tables.exponential(bits >> 12);
                sums[place] = sum;
                frequencies[place] = frequency(self.frequencies, bits);
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

/// Keeps the random numbers of stretches apart.
const STEP: u64 = 0xD1B5_4A32_D192_ED03;

impl Postings {
    /// Pairs of document and frequency.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.documents.iter().copied().zip(self.frequencies.iter().copied())
    }

    /// Takes all of them away.
    pub(super) fn clear(&mut self) {
        self.documents.clear();
        self.frequencies.clear();
    }
}

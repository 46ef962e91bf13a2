//! Generates the posting list of a term, bucket by bucket.
//!
//! The documents are divided into buckets of equal width, such that a bucket has at most 64 postings on
//! average. A two-state Markov chain over the buckets models topics: a quarter of the buckets is dense, the
//! others are sparse, and a state lasts for 5 (dense) or 16 (sparse) buckets on average. The postings are
//! distributed over the buckets by the weight of their state, so that the list has exactly the requested
//! length. Within a bucket every set of documents has the same probability. So lists reach to the last
//! document, and every document has the same expected number of terms. Lists of frequent terms are less
//! uneven, because a dense bucket has no more postings than documents.
//!
//! A bucket can be generated on its own: its random numbers depend only on the seed, the term and the number
//! of the bucket. They are not drawn one by one: they select an offset in each of two fixed rows of random
//! numbers.

use crate::generate::tables::{EXCERPT_VALUES_MAX, Tables, frequency_excerpt};
use crate::{Random, postings::ListPostings};
use std::ops::Range;

/// A list has enough buckets that they have at most this many postings on average.
const BUCKET_POSTINGS_MEAN_MAX: u32 = 64;

/// Relative number of postings of a sparse bucket.
const SPARSE_WEIGHT: u32 = 16;

/// Relative number of postings of a dense bucket, if it has enough documents.
const DENSE_WEIGHT: u32 = 8 * SPARSE_WEIGHT;

// The largest bucket is a dense one among sparse ones, plus one posting by rounding. Two more numbers of a
// row of random numbers are read for it.
const _: () =
    assert!((BUCKET_POSTINGS_MEAN_MAX * DENSE_WEIGHT / SPARSE_WEIGHT + 3) as usize <= EXCERPT_VALUES_MAX);

/// The posting list of one term.
#[derive(Clone)]
pub(super) struct GeneratedList<'a> {
    tables: &'a Tables,
    frequencies: &'a [u8],
    documents: u32,
    postings: u32,
    seed: u64,
    buckets: u32,
    dense_weight: u32,
}

/// A range of documents, and the number of its postings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    number: u32,
    pub(super) documents: Range<u32>,
    pub(super) postings: u32,
}

impl<'a> GeneratedList<'a> {
    /// A list of `postings` postings in `documents` documents: at most three quarters of the documents, or
    /// one.
    pub(super) fn new(tables: &'a Tables, documents: u32, postings: u32, seed: u64) -> GeneratedList<'a> {
        // A tenth is reserved for rounding.
        let dense_max = u64::from(documents) * u64::from(SPARSE_WEIGHT) * 9 / 10 / u64::from(postings);
        GeneratedList {
            tables,
            frequencies: tables.frequencies(postings, documents),
            documents,
            postings,
            seed,
            buckets: postings.div_ceil(BUCKET_POSTINGS_MEAN_MAX),
            dense_weight: dense_max.clamp(u64::from(SPARSE_WEIGHT), u64::from(DENSE_WEIGHT)) as u32,
        }
    }

    /// Number of postings of all buckets.
    pub(super) fn postings(&self) -> u32 {
        self.postings
    }

    /// All buckets in order.
    pub(super) fn buckets(&self) -> Buckets {
        let weights = BucketWeights::new(self);
        let total: u64 = weights.clone().map(u64::from).sum();
        Buckets {
            documents: self.documents,
            postings: self.postings,
            postings_by_weight: f64::from(self.postings) / total as f64,
            buckets: self.buckets,
            weights,
            number: 0,
            weight_before: 0,
            documents_before: 0,
            postings_before: 0,
        }
    }

    /// Appends the postings of a bucket.
    pub(super) fn fill(&self, bucket: &Bucket, out: &mut ListPostings) {
        let (documents, frequencies) = self.draw(bucket);
        out.documents.extend(documents);
        out.frequencies.extend(frequencies.iter().map(|&frequency| u32::from(frequency)));
    }

    /// The documents and the frequencies of a bucket.
    ///
    /// The positions of k uniform points, in order, are the partial sums of k + 1 exponentially distributed
    /// numbers divided by their total.
    #[inline]
    pub(super) fn draw(&self, bucket: &Bucket) -> (impl ExactSizeIterator<Item = u32>, &'a [u8]) {
        let count = bucket.postings;
        let bits =
            Random::new(self.seed ^ (u64::from(bucket.number) + 1).wrapping_mul(BUCKET_SEED_FACTOR)).bits();
        let (before, sums) = self.tables.sums(bits as u32, count as usize + 1);
        let frequencies = frequency_excerpt(self.frequencies, (bits >> 32) as u32, count as usize);
        let (sums, all) = (&sums[..count as usize], sums[count as usize].wrapping_sub(before));
        let free = bucket.documents.len() as u32 - count + 1;
        // The most fraction bits for which the scale and the scaled numbers fit in 32 bits.
        let bits = (31 + free.leading_zeros() - all.leading_zeros()).min(32);
        let scale = (u64::from(free) << bits) / u64::from(all);
        let first = bucket.documents.start;
        let documents = sums.iter().enumerate().map(move |(before_it, sum)| {
            first
                + before_it as u32
                + ((u64::from(sum.wrapping_sub(before)) * u64::from(scale as u32)) >> bits) as u32
        });
        (documents, frequencies)
    }
}

/// The buckets of a list, in order.
#[derive(Clone)]
pub(super) struct Buckets {
    documents: u32,
    postings: u32,
    postings_by_weight: f64,
    buckets: u32,
    weights: BucketWeights,
    number: u32,
    weight_before: u64,
    documents_before: u32,
    postings_before: u32,
}

impl Iterator for Buckets {
    type Item = Bucket;

    fn next(&mut self) -> Option<Bucket> {
        let number = self.number;
        self.weight_before += u64::from(self.weights.next()?);
        self.number += 1;
        // The lengths of the buckets differ by at most one.
        let end = (u64::from(self.documents) * u64::from(self.number) / u64::from(self.buckets)) as u32;
        let documents = std::mem::replace(&mut self.documents_before, end)..end;
        let share = (self.weight_before as f64 * self.postings_by_weight) as u32;
        let up_to = if self.number == self.buckets { self.postings } else { share };
        let postings = up_to - std::mem::replace(&mut self.postings_before, up_to);
        Some(Bucket { number, documents, postings })
    }
}

/// The weight of each bucket. A dense bucket is followed by a sparse one with probability 3/16, a sparse
/// bucket by a dense one with probability 1/16.
#[derive(Clone)]
struct BucketWeights {
    random: Random,
    /// Random bits; each bucket uses four.
    bits: u64,
    dense: bool,
    dense_weight: u32,
    number: u32,
    buckets: u32,
}

impl BucketWeights {
    fn new(list: &GeneratedList<'_>) -> BucketWeights {
        let mut random = Random::new(list.seed);
        let dense = random.below(4) == 0;
        BucketWeights {
            random,
            bits: 0,
            dense,
            dense_weight: list.dense_weight,
            number: 0,
            buckets: list.buckets,
        }
    }
}

impl Iterator for BucketWeights {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.number == self.buckets {
            return None;
        }
        if self.number.is_multiple_of(16) {
            self.bits = self.random.bits();
        }
        self.number += 1;
        let change = if self.dense { 3 } else { 1 };
        self.dense ^= self.bits % 16 < change;
        self.bits >>= 4;
        Some(if self.dense { self.dense_weight } else { SPARSE_WEIGHT })
    }
}

/// Multiplier of the bucket number in the seed of a bucket, so that the random numbers of buckets differ.
const BUCKET_SEED_FACTOR: u64 = 0xD1B5_4A32_D192_ED03;

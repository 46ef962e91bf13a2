//! The document frequency of each term.
//!
//! The term of rank r = 1, 2, … of V terms has the document frequency
//!
//! ```text
//! df(r) = C / (r · (1 + 16 r / V))      rounded down, at least 1, at most three quarters of the documents
//! ```
//!
//! This is Zipf's law down to a sixteenth of the vocabulary, and about the inverse square of the rank after
//! it: the two regimes that Ferrer i Cancho and Solé found (J. Quantitative Linguistics 8(3), 2001). C is
//! the largest number for which the sum does not exceed the requested postings. The few missing postings are
//! added one each to the first terms below the maximum. So the sum is exact, and df never increases with the
//! rank.
//!
//! Frequencies are computed by addition, multiplication and division only, whose results are the same on
//! every machine.

/// Zipf's law holds for one term in this many, the most frequent ones; after them frequencies fall faster.
const ZIPF_BEND: f64 = 16.0;

/// The document frequency of every rank.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    vocabulary: u32,
    most: u32,
    scale: f64,
    bend: f64,
    /// Ranks that get one more document.
    more: std::ops::Range<u32>,
}

impl Zipf {
    /// Document frequencies of `vocabulary` terms with the sum `postings`, each in
    /// `1..=documents_max(documents)`. Panics if there are none.
    pub(super) fn new(documents: u32, postings: u64, vocabulary: u32) -> Zipf {
        let most = documents_max(documents);
        let (least, largest) = (u64::from(vocabulary), u64::from(vocabulary) * u64::from(most));
        assert!((least..=largest).contains(&postings), "no frequencies sum up to {postings}");
        let bend = ZIPF_BEND / f64::from(vocabulary);
        let mut zipf = Zipf { vocabulary, most, scale: 0.0, bend, more: 0..0 };
        // At scale 0 every term has one document, at the upper limit every term has the maximum.
        let (mut low, mut high) = (0.0, f64::from(most) * f64::from(vocabulary) * (1.0 + ZIPF_BEND));
        let (mut least, mut largest) = (least as f64, largest as f64);
        for halve in [false, true].into_iter().cycle() {
            // Alternates between interpolation, which converges fast, and bisection, which always converges.
            let share = if halve { 0.5 } else { (postings as f64 - least) / (largest - least + 1.0) };
            zipf.scale = low + (high - low) * share.clamp(0.001, 0.999);
            match zipf.scale <= low || zipf.scale >= high {
                true if halve => break,
                true => continue,
                false => (),
            }
            let sum = zipf.total_frequency();
            let (end, its) = if sum <= postings { (&mut low, &mut least) } else { (&mut high, &mut largest) };
            (*end, *its) = (zipf.scale, sum as f64);
            if sum == postings {
                break;
            }
        }
        zipf.scale = low;
        zipf.add_missing(postings - zipf.total_frequency());
        zipf
    }

    /// Document frequency of the term of `rank`, from 1 on.
    pub(super) fn documents(&self, rank: u32) -> u32 {
        self.rounded_frequency(rank) + u32::from(self.more.contains(&rank))
    }

    /// Number of terms.
    pub(super) fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    fn rounded_frequency(&self, rank: u32) -> u32 {
        let rank = f64::from(rank);
        ((self.scale / (rank * (1.0 + rank * self.bend))) as u32).clamp(1, self.most)
    }

    fn total_frequency(&self) -> u64 {
        (1..=self.vocabulary).map(|rank| u64::from(self.rounded_frequency(rank))).sum()
    }

    /// Adds one document each to the first `missing` terms below the maximum.
    fn add_missing(&mut self, missing: u64) {
        let first = (1..=self.vocabulary).find(|&rank| self.rounded_frequency(rank) < self.most);
        let first = first.unwrap_or(self.vocabulary + 1);
        self.more = first..first + missing as u32;
    }
}

/// Largest document frequency: three quarters of the documents, as that of `the` in English documents of 1
/// KB; at least one.
pub(super) fn documents_max(documents: u32) -> u32 {
    ((u64::from(documents) * 3 / 4) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_exact_and_frequencies_never_increase() {
        let cases = [
            (400_000, 43_000_000, 400_000),
            (40_000_000, 4_300_000_000, 1_000_000),
            (1, 7, 7),
            (2, 9, 9),
            (10, 35, 5),
            (10, 34, 5),
            (4_000_000_000, 2_999_999_999, 1),
            (4_000_000_000, 100_000, 100_000),
        ];
        for (documents, postings, vocabulary) in cases {
            let zipf = Zipf::new(documents, postings, vocabulary);
            let all: Vec<u32> = (1..=vocabulary).map(|rank| zipf.documents(rank)).collect();
            assert_eq!(all.iter().map(|&df| u64::from(df)).sum::<u64>(), postings);
            assert!(all.is_sorted_by(|one, next| one >= next));
            assert!(all[0] <= documents_max(documents) && all[all.len() - 1] >= 1);
            assert!(zipf.more.len() <= 16 || postings < 100, "{} are missing", zipf.more.len());
        }
    }

    #[test]
    fn frequencies_fall_inversely_with_the_rank_and_then_with_its_square() {
        let zipf = Zipf::new(400_000, 43_000_000, 400_000);
        let ratio = |rank: u32| f64::from(zipf.documents(rank)) / f64::from(zipf.documents(2 * rank));
        assert_eq!(zipf.documents(1), 300_000);
        assert!((1.9..2.1).contains(&ratio(500)), "{}", ratio(500));
        assert!((3.0..4.0).contains(&ratio(50_000)), "{}", ratio(50_000));
        assert_eq!(zipf.documents(400_000), 1);
    }
}

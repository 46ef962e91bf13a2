//! The terms of a fuzzy word over several shards.
//!
//! A fuzzy word stands for the best [`FUZZY_EXPANSIONS_MAX`] terms by distance, document frequency in all
//! shards, and bytes. A shard does not know which these are. It lists its terms by distance, up to the
//! distance at which it has enough of them: the best terms of all shards are not farther. Of that distance it
//! lists only the most frequent ones, and tells the largest document frequency that it withholds. So each
//! term has a lower and an upper bound of its document frequency (Cao and Wang, "Efficient top-k query
//! calculation in distributed networks", PODC 2004). If the bounds do not decide which terms are the best,
//! all shards are asked for the terms that were listed, and for more of their own.

use crate::{
    Error, Result, limits::FUZZY_DISTANCE_MAX, limits::FUZZY_EXPANSIONS_MAX, limits::STATISTICS_TERMS_MAX,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// Number of terms of the last distance that a shard lists unless it is asked for more.
const LISTED_MIN: usize = 256;

/// Factor by which that number grows with each question.
const LISTED_FACTOR: usize = 4;

/// A term that a fuzzy word may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Edits between the word and the term.
    pub(crate) distance: u8,
    /// Number of documents of the shards that list the term.
    pub(crate) documents: u64,
    /// At most this number of documents of other shards contain it.
    pub(crate) uncertain: u64,
}

/// The terms that a fuzzy word may stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordCandidates {
    pub(super) terms: BTreeMap<String, Candidate>,
    /// For each distance the largest document frequency of a term that is not listed, over all shards.
    pub(super) withheld: [u64; 1 + FUZZY_DISTANCE_MAX as usize],
    /// Number of terms of the last distance that each shard lists; 0 for [`LISTED_MIN`].
    pub(super) listed: u32,
}

/// The order of the terms of a fuzzy word.
type Rank<'t> = (u8, Reverse<u64>, &'t str);

impl WordCandidates {
    /// Collects the terms of a shard; `question` is what it is asked, if it is.
    pub(crate) fn collector(question: Option<&WordCandidates>) -> CandidateCollector<'_> {
        let listed = question.map_or(0, |question| question.listed);
        CandidateCollector {
            question,
            listed,
            listed_max: (listed as usize).max(LISTED_MIN),
            asked: BTreeMap::new(),
            best: Default::default(),
            withheld: Default::default(),
            counts: Default::default(),
        }
    }

    /// Bytes of memory that a shard needs to collect the terms of `word`, approximately, at most.
    pub(crate) fn collecting_bytes(word: &str, question: Option<&WordCandidates>) -> usize {
        let listed = question.map_or(0, |question| question.listed as usize).max(LISTED_MIN);
        let terms = (1 + usize::from(FUZZY_DISTANCE_MAX)) * listed + question.map_or(0, WordCandidates::len);
        // A term is longer than the word by the characters that are inserted. Maps are half empty at worst.
        let text = word.len() + 4 * usize::from(FUZZY_DISTANCE_MAX);
        terms * (2 * size_of::<(String, Candidate)>() + text)
    }

    /// The terms and their distances, the best first.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = (&str, u8)> {
        let mut ranked: Vec<Rank<'_>> = self.terms.iter().map(|(term, found)| found.rank(term)).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(distance, _, term)| (term, distance))
    }

    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(super) fn memory(&self) -> usize {
        let term = |term: &String| size_of::<(String, Candidate)>() + term.capacity();
        size_of::<WordCandidates>() + self.terms.keys().map(term).sum::<usize>()
    }

    /// Adds the terms of another shard.
    pub(super) fn add(&mut self, other: &WordCandidates) {
        for (term, candidate) in &mut self.terms {
            if !other.terms.contains_key(term) {
                candidate.miss(&other.withheld);
            }
        }
        for (term, found) in &other.terms {
            match self.terms.get_mut(term) {
                Some(candidate) => {
                    candidate.documents = candidate.documents.saturating_add(found.documents);
                    candidate.uncertain = candidate.uncertain.saturating_add(found.uncertain);
                }
                None => {
                    let mut candidate = *found;
                    candidate.miss(&self.withheld);
                    self.terms.insert(term.clone(), candidate);
                }
            }
        }
        for (sum, withheld) in self.withheld.iter_mut().zip(other.withheld) {
            *sum = sum.saturating_add(withheld);
        }
        self.listed = self.listed.max(other.listed);
    }

    /// The terms for which the word stands; `None` if the bounds do not decide that.
    pub(super) fn best(&self) -> Option<Vec<String>> {
        let mut ranked: Vec<(Rank<'_>, u64)> =
            self.terms.iter().map(|(term, found)| (found.rank(term), found.uncertain)).collect();
        ranked.sort_unstable();
        let others = ranked.split_off(ranked.len().min(FUZZY_EXPANSIONS_MAX));
        let last = ranked.last().filter(|_| ranked.len() == FUZZY_EXPANSIONS_MAX).map(|(rank, _)| *rank);
        let is_behind = |best: Rank<'_>| last.is_some_and(|last| best > last);
        let is_known = ranked.iter().all(|(_, uncertain)| *uncertain == 0)
            && others.iter().all(|((distance, Reverse(documents), term), uncertain)| {
                *uncertain == 0
                    || is_behind((*distance, Reverse(documents.saturating_add(*uncertain)), *term))
            })
            && (0..).zip(self.withheld).all(|(distance, withheld)| {
                // No term is less than the empty one.
                withheld == 0 || is_behind((distance, Reverse(withheld), ""))
            });
        is_known.then(|| ranked.iter().map(|((_, _, term), _)| term.to_string()).collect())
    }

    /// Keeps only these terms.
    pub(super) fn keep(&mut self, best: Vec<String>) {
        let mut kept = BTreeMap::new();
        for term in best {
            if let Some(candidate) = self.terms.remove(&term) {
                kept.insert(term, candidate);
            }
        }
        self.terms = kept;
        self.withheld = Default::default();
    }

    /// Turns the sum of the shards into a question.
    pub(super) fn ask(&mut self) -> Result<()> {
        let listed = LISTED_FACTOR * (self.listed as usize).max(LISTED_MIN);
        if listed > STATISTICS_TERMS_MAX {
            return Err(Error::TooLarge(format!(
                "a fuzzy word of the query has more than {STATISTICS_TERMS_MAX} terms of the same distance and \
                 frequency: give more letters or a smaller distance"
            )));
        }
        self.listed = listed as u32;
        self.withheld = Default::default();
        for candidate in self.terms.values_mut() {
            (candidate.documents, candidate.uncertain) = (0, 0);
        }
        Ok(())
    }
}

impl Candidate {
    fn rank<'t>(&self, term: &'t str) -> Rank<'t> {
        (self.distance, Reverse(self.documents), term)
    }

    /// Records that a shard with these withheld frequencies does not list the term.
    fn miss(&mut self, withheld: &[u64]) {
        let withheld = withheld.get(usize::from(self.distance)).copied().unwrap_or(0);
        self.uncertain = self.uncertain.saturating_add(withheld);
    }
}

/// Collects the terms of a fuzzy word on a shard.
pub(crate) struct CandidateCollector<'q> {
    question: Option<&'q WordCandidates>,
    listed: u32,
    listed_max: usize,
    /// Terms of the question that the shard has.
    asked: BTreeMap<String, Candidate>,
    /// The most frequent terms of each distance.
    best: [BTreeMap<(Reverse<u64>, String), ()>; 1 + FUZZY_DISTANCE_MAX as usize],
    withheld: [u64; 1 + FUZZY_DISTANCE_MAX as usize],
    /// Number of terms of each distance.
    counts: [usize; 1 + FUZZY_DISTANCE_MAX as usize],
}

impl CandidateCollector<'_> {
    /// Offers a term of the shard.
    pub(crate) fn offer(&mut self, term: &str, distance: u8, documents: u64) {
        let Some(best) = self.best.get_mut(usize::from(distance)) else { return };
        self.counts[usize::from(distance)] += 1;
        if self.question.is_some_and(|question| question.terms.contains_key(term)) {
            self.asked.insert(term.to_string(), Candidate { distance, documents, uncertain: 0 });
            return;
        }
        best.insert((Reverse(documents), term.to_string()), ());
        if best.len() > self.listed_max
            && let Some(((Reverse(documents), _), ())) = best.pop_last()
        {
            let withheld = &mut self.withheld[usize::from(distance)];
            *withheld = (*withheld).max(documents);
        }
    }

    /// What the shard answers.
    pub(crate) fn finish(self) -> WordCandidates {
        let CandidateCollector { question, listed, asked, best, mut withheld, counts, .. } = self;
        let mut found = WordCandidates { listed, ..WordCandidates::default() };
        let mut before = 0;
        for (distance, best) in best.into_iter().enumerate() {
            if before >= FUZZY_EXPANSIONS_MAX {
                // All better terms are closer.
                withheld[distance] = 0;
                continue;
            }
            before += counts[distance];
            found.terms.extend(best.into_keys().map(|(Reverse(documents), term)| {
                (term, Candidate { distance: distance as u8, documents, uncertain: 0 })
            }));
        }
        found.withheld = withheld;
        // The shard has none of the others.
        let unknown = question.into_iter().flat_map(|question| &question.terms);
        found.terms.extend(unknown.map(|(term, candidate)| (term.clone(), *candidate)));
        found.terms.extend(asked);
        found
    }
}

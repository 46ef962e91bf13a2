//! Draws queries from the dictionary of an index, as the thesis does (section 5.2.3).
//!
//! A workload of single terms has two queues: all terms of the class in random order, and the last hundred
//! terms taken from it. Each query takes the next term of the first queue; with the repetition probability,
//! a random term of the second queue is queried instead. A workload of two terms joins two such workloads,
//! each over one half of the terms, so that the two terms of a query differ. When the first queue is empty,
//! it is refilled and shuffled again; the answer gives the number of terms.

use crate::cell::{QueryShape, TermClass};
use crate::{Error, Random, Result, held_index::open_index, request::experiment::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, collections::HashSet, collections::VecDeque, path::PathBuf};
use tierdex::{Index, StopSignal};

/// Queries of a workload over an index.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrawRequest {
    /// Directory of the index.
    pub(crate) index: PathBuf,
    /// Class of the terms.
    class: TermClass,
    /// Form of the queries.
    pub(crate) shape: QueryShape,
    /// Probability that a term is repeated, in percent.
    repeats: u32,
    /// Number of queries.
    count: usize,
    /// Seed of the random numbers.
    seed: u64,
}

/// The queries drawn for a workload.
pub(super) struct DrawnQueries {
    /// The terms of each query.
    pub(super) terms: Vec<Vec<String>>,
    /// Number of terms of the class in the index.
    class_terms: usize,
    /// Bytes of each distinct list that is queried.
    lists: Vec<u64>,
    /// Bytes of all lists over all queries, repetitions included.
    bytes_asked: u64,
    /// Number of queries all of whose terms were queried before.
    repeated: usize,
}

/// Largest number of queries that are drawn or generated.
const QUERIES_MAX: usize = 1 << 20;

impl DrawRequest {
    /// Draws the queries. Returns the number of their field too, which is the one with the most postings.
    ///
    /// # Errors
    /// If a parameter is out of its range, the dictionary cannot be read, or the class has too few terms.
    pub(super) fn draw(&self, index: &Index) -> Result<(usize, DrawnQueries)> {
        if self.repeats > 99 {
            return Err(Error::Usage("`repeats` must be 0 to 99 percent".to_string()));
        }
        check_count(self.count)?;
        let postings = |field: usize| -> u64 {
            index.segments().iter().map(|segment| segment.meta().stats(field).postings).sum()
        };
        let fields = 0..index.schema().fields.len();
        let field = fields.rev().max_by_key(|field| postings(*field)).unwrap_or(0);
        Ok((field, self.draw_from(&terms_of_class(index, field, self.class)?)?))
    }

    /// Draws the queries from the terms of the class, each with the bytes of its list.
    fn draw_from(&self, terms: &[(String, u64)]) -> Result<DrawnQueries> {
        let parts = self.shape.terms();
        if terms.len() < parts {
            let (there, class) = (terms.len(), self.class);
            return Err(Error::Usage(format!(
                "the index has {there} terms of class {class:?}, and a query needs {parts}"
            )));
        }
        // The order of the terms depends neither on the repetition probability nor on AND or OR.
        let mut random = Random::new(self.seed ^ ((self.class as u64) << 32 | (parts as u64) << 40));
        let mut order: Vec<usize> = (0..terms.len()).collect();
        random.shuffle(&mut order);
        let halves: Vec<Vec<_>> = order.chunks(terms.len().div_ceil(parts)).map(<[usize]>::to_vec).collect();
        let drawn: Vec<Vec<usize>> = halves
            .into_iter()
            .map(|half| draw_sequence(half, self.count, self.repeats, &mut Random::new(random.bits())))
            .collect();
        Ok(build_queries(terms, &drawn, self.count))
    }
}

impl ExperimentRequest for DrawRequest {
    /// `queries` are those of a [`Cell`](crate::cell::Cell). `class-terms` is the number of terms of the
    /// class, `lists` and `list-bytes` are of the distinct lists, `bytes-asked` counts repetitions too, and
    /// `repeated` is the number of queries all of whose terms were queried before.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let (field, drawn) = self.draw(&open_index(&self.index)?)?;
        Ok(json!({
            "queries": { "terms": drawn.terms, "shape": self.shape, "field": field },
            "class-terms": drawn.class_terms,
            "lists": drawn.lists.len(),
            "list-bytes": drawn.lists.iter().sum::<u64>(),
            "bytes-asked": drawn.bytes_asked,
            "repeated": drawn.repeated,
        }))
    }
}

/// Checks a number of queries.
pub(super) fn check_count(count: usize) -> Result<()> {
    if (1..=QUERIES_MAX).contains(&count) {
        return Ok(());
    }
    Err(Error::Usage(format!("`count` must be 1 to {QUERIES_MAX}")))
}

/// The terms of a class in a field, in order, with the bytes of their lists.
fn terms_of_class(index: &Index, field: usize, class: TermClass) -> Result<Vec<(String, u64)>> {
    let is_of_class = |documents: u64| class.contains_frequency(documents, index.documents());
    // With several segments a term's class depends on the sum over all of them, so terms are only filtered
    // early in an index of one segment.
    let single = index.segments().len() == 1;
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for segment in index.segments() {
        let Some(field) = segment.field(field) else { continue };
        let mut stream = field.terms().stream();
        while let Some((term, info)) = stream.next()? {
            let documents = u64::from(info.document_frequency);
            let Ok(term) = str::from_utf8(term) else { continue };
            if single && !is_of_class(documents) {
                continue;
            }
            let sums = all.entry(term.to_string()).or_default();
            *sums = (sums.0 + documents, sums.1 + info.block_bytes());
        }
    }
    let found = all.into_iter().filter(|(_, (documents, _))| is_of_class(*documents));
    Ok(found.map(|(term, (_, bytes))| (term, bytes)).collect())
}

/// Builds queries: the n-th query has the n-th term of each sequence.
fn build_queries(terms: &[(String, u64)], drawn: &[Vec<usize>], count: usize) -> DrawnQueries {
    let mut seen = HashSet::new();
    let mut queries = DrawnQueries {
        terms: Vec::with_capacity(count),
        class_terms: terms.len(),
        lists: Vec::new(),
        bytes_asked: 0,
        repeated: 0,
    };
    for number in 0..count {
        let mut repeated = true;
        for part in drawn {
            let bytes = terms[part[number]].1;
            queries.bytes_asked += bytes;
            if seen.insert(part[number]) {
                repeated = false;
                queries.lists.push(bytes);
            }
        }
        queries.repeated += usize::from(repeated);
        queries.terms.push(drawn.iter().map(|part| terms[part[number]].0.clone()).collect());
    }
    queries
}

/// Capacity of the queue of terms that may be repeated.
const REPEATABLE_TERMS_MAX: usize = 100;

/// Draws a sequence of `count` terms from `terms`, which are in random order.
fn draw_sequence(mut terms: Vec<usize>, count: usize, repeats: u32, random: &mut Random) -> Vec<usize> {
    let (mut next, mut last) = (0, VecDeque::with_capacity(REPEATABLE_TERMS_MAX + 1));
    let mut sequence = Vec::with_capacity(count);
    while sequence.len() < count {
        if next == terms.len() {
            random.shuffle(&mut terms);
            next = 0;
        }
        let repeated = !last.is_empty() && random.below(100) < repeats;
        sequence.push(if repeated { last[random.below(last.len() as u32) as usize] } else { terms[next] });
        last.push_back(terms[next]);
        next += 1;
        if last.len() > REPEATABLE_TERMS_MAX {
            last.pop_front();
        }
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws `count` queries from `terms` terms whose lists have ten bytes.
    fn draw(terms: usize, shape: QueryShape, repeats: u32, count: usize, seed: u64) -> Result<DrawnQueries> {
        let terms: Vec<_> = (0..terms).map(|number| (format!("t{number}"), 10)).collect();
        let (index, class) = (PathBuf::new(), TermClass::High);
        DrawRequest { index, class, shape, repeats, count, seed }.draw_from(&terms)
    }

    #[test]
    fn the_same_seed_gives_the_same_queries() {
        let terms = |seed| draw(1000, QueryShape::And, 25, 200, seed).unwrap().terms;
        assert_eq!(terms(1), terms(1));
        assert_ne!(terms(1), terms(2));
    }

    #[test]
    fn without_repetition_every_term_is_drawn_before_any_repeats() {
        for shape in [QueryShape::Single, QueryShape::And, QueryShape::Or] {
            let drawn = draw(800, shape, 0, 400, 3).unwrap();
            assert_eq!((drawn.terms.len(), drawn.repeated), (400, 0));
            assert_eq!(drawn.lists, vec![10; 400 * shape.terms()]);
            assert_eq!(drawn.bytes_asked, 10 * drawn.lists.len() as u64);
        }
        let again = draw(3, QueryShape::Single, 0, 30, 3).unwrap();
        assert_eq!((again.lists.len(), again.repeated, again.bytes_asked), (3, 27, 300));
    }

    #[test]
    fn terms_repeat_with_the_given_probability_and_two_terms_differ() {
        for (repeats, least, most) in [(25, 0.15, 0.25), (50, 0.30, 0.50)] {
            let drawn = draw(20_000, QueryShape::Single, repeats, 10_000, 5).unwrap();
            let share = drawn.repeated as f64 / 10_000.0;
            // Some terms of the queue were skipped before, so they are queried for the first time.
            assert!((least..most).contains(&share), "{share}");
        }
        for few in [2, 3, 20] {
            let drawn = draw(few, QueryShape::And, 50, 500, 7).unwrap();
            assert!(drawn.terms.iter().all(|terms| terms.len() == 2 && terms[0] != terms[1]));
        }
        assert!(draw(1, QueryShape::And, 0, 1, 1).is_err());
    }
}

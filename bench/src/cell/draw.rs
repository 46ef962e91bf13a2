//! Draws queries from the dictionary of an index, as the thesis does (section 5.2.3).
//!
//! A workload of single terms has two queues: all terms of the class in random order, and the last hundred
//! terms taken from it. Each query takes the next term of the first queue; with the repetition probability,
//! a random term of the second queue is queried instead. A workload of two terms joins two such workloads,
//! each over one half of the terms, so that the two terms of a query differ. When the first queue is empty,
//! it is refilled and shuffled again; the report gives the number of terms.

use crate::cell::query_kind::{QueryShape, TermClass};
use crate::{Error, Random, Result};
use std::{collections::BTreeMap, collections::HashSet, collections::VecDeque, fmt};
use tierdex::Index;

/// A workload: the class and the form of its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryWorkload {
    /// Class of the terms.
    pub class: TermClass,
    /// Form of the queries.
    pub shape: QueryShape,
    /// The repetition probability in percent.
    pub repeats: u32,
}

impl fmt::Display for QueryWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} RP {}%", self.shape, self.class, self.repeats)
    }
}

/// The terms of an index by class.
pub(crate) struct TermPools {
    /// The field with the most postings.
    pub(crate) field: usize,
    /// For each selected class its terms in order, with the bytes of their lists.
    classes: BTreeMap<TermClass, Vec<(String, u64)>>,
}

/// The queries drawn for a workload.
pub(crate) struct DrawnQueries {
    /// The terms of each query.
    pub(crate) terms: Vec<Vec<String>>,
    /// Number of terms of the class in the index.
    pub(crate) class_terms: usize,
    /// Bytes of each distinct list that is queried: the working set.
    pub(crate) lists: Vec<u64>,
    /// Bytes of all lists over all queries, repetitions included.
    pub(crate) bytes_asked: u64,
    /// Number of queries all of whose terms were queried before.
    pub(crate) repeated: usize,
}

impl DrawnQueries {
    /// Bytes of the working set. With a segment size, each list is rounded up to whole segments.
    pub(crate) fn working_set(&self, segment: Option<u64>) -> u64 {
        self.lists.iter().map(|bytes| segment.map_or(*bytes, |segment| bytes.next_multiple_of(segment))).sum()
    }
}

impl TermPools {
    /// Reads the dictionary of the field with the most postings.
    ///
    /// # Errors
    /// If the dictionary cannot be read.
    pub(crate) fn read(index: &Index, classes: &[TermClass]) -> Result<TermPools> {
        let postings = |field: usize| -> u64 {
            index.segments().iter().map(|segment| segment.meta().fields[field].postings).sum()
        };
        let fields = 0..index.schema().fields.len();
        let field = fields.rev().max_by_key(|field| postings(*field)).unwrap_or(0);
        let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        // With several segments a term's class depends on the sum over all of them, so terms are only
        // filtered early in an index of one segment.
        let single = index.segments().len() == 1;
        let selected = |documents: u64| {
            classes.iter().any(|class| class.contains_frequency(documents, index.documents()))
        };
        for segment in index.segments() {
            let mut stream = segment.field(field).terms().stream();
            while let Some((term, info)) = stream.next()? {
                let documents = u64::from(info.document_frequency);
                let Ok(term) = str::from_utf8(term) else { continue };
                if single && !selected(documents) {
                    continue;
                }
                let bytes = info.block_bytes();
                let sums = all.entry(term.to_string()).or_default();
                *sums = (sums.0 + documents, sums.1 + bytes);
            }
        }
        let mut found: BTreeMap<TermClass, Vec<(String, u64)>> =
            classes.iter().map(|class| (*class, Vec::new())).collect();
        for (term, (documents, bytes)) in all {
            let class =
                found.iter_mut().find(|(class, _)| class.contains_frequency(documents, index.documents()));
            class.into_iter().for_each(|(_, terms)| terms.push((term.clone(), bytes)));
        }
        Ok(TermPools { field, classes: found })
    }

    /// Draws the queries of a workload.
    ///
    /// # Errors
    /// If the class has fewer terms than a query needs.
    pub(crate) fn draw(&self, workload: QueryWorkload, count: usize, seed: u64) -> Result<DrawnQueries> {
        let terms = self.classes.get(&workload.class).map_or(&[][..], Vec::as_slice);
        let parts = workload.shape.terms();
        if terms.len() < parts {
            let (there, class) = (terms.len(), workload.class);
            return Err(Error::Usage(format!(
                "the index has {there} terms of class {class}, too few for {workload}"
            )));
        }
        // The order of the terms depends neither on the repetition probability nor on AND or OR.
        let shape = workload.shape.terms() as u64;
        let mut random = Random::new(seed ^ ((workload.class as u64) << 32 | shape << 40));
        let mut order: Vec<usize> = (0..terms.len()).collect();
        random.shuffle(&mut order);
        let halves: Vec<Vec<_>> = order.chunks(terms.len().div_ceil(parts)).map(<[usize]>::to_vec).collect();
        let drawn: Vec<Vec<usize>> = halves
            .into_iter()
            .map(|half| draw_sequence(half, count, workload.repeats, &mut Random::new(random.bits())))
            .collect();
        Ok(build_queries(terms, &drawn, count))
    }
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

    fn terms(count: usize) -> TermPools {
        let terms = (0..count).map(|number| (format!("t{number}"), 10)).collect();
        TermPools { field: 0, classes: BTreeMap::from([(TermClass::High, terms)]) }
    }

    fn workload(shape: QueryShape, repeats: u32) -> QueryWorkload {
        QueryWorkload { class: TermClass::High, shape, repeats }
    }

    #[test]
    fn the_same_seed_gives_the_same_queries() {
        let draw = |seed| terms(1000).draw(workload(QueryShape::And, 25), 200, seed).unwrap().terms;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn without_repetition_every_term_is_drawn_before_any_repeats() {
        for shape in [QueryShape::Single, QueryShape::And, QueryShape::Or] {
            let drawn = terms(800).draw(workload(shape, 0), 400, 3).unwrap();
            assert_eq!((drawn.terms.len(), drawn.repeated), (400, 0));
            assert_eq!(drawn.lists, vec![10; 400 * shape.terms()]);
            assert_eq!(
                (drawn.working_set(None), drawn.working_set(Some(16))),
                (drawn.bytes_asked, 16 * drawn.lists.len() as u64)
            );
        }
        let again = terms(3).draw(workload(QueryShape::Single, 0), 30, 3).unwrap();
        assert_eq!((again.lists.len(), again.repeated, again.bytes_asked), (3, 27, 300));
    }

    #[test]
    fn terms_repeat_with_the_given_probability_and_two_terms_differ() {
        for (repeats, least, most) in [(25, 0.15, 0.25), (50, 0.30, 0.50)] {
            let drawn = terms(20_000).draw(workload(QueryShape::Single, repeats), 10_000, 5).unwrap();
            let share = drawn.repeated as f64 / 10_000.0;
            // Some terms of the queue were skipped before, so they are queried for the first time.
            assert!((least..most).contains(&share), "{share}");
        }
        for few in [2, 3, 20] {
            let drawn = terms(few).draw(workload(QueryShape::And, 50), 500, 7).unwrap();
            assert!(drawn.terms.iter().all(|terms| terms.len() == 2 && terms[0] != terms[1]));
        }
        assert!(terms(1).draw(workload(QueryShape::And, 0), 1, 1).is_err());
    }
}

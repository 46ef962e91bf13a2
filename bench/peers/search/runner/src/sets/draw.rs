//! Queries drawn by document frequency, with repeats.
//!
//! Repeats follow the two-queue scheme: the terms of a class are in a shuffled queue, from which the next
//! term is popped. With the probability of repeats a random member of the repeat queue, which has the last
//! [`REPEATS_MAX`] popped terms, is taken instead. An empty queue is refilled and shuffled again. A term
//! that is already in the query is skipped.

use super::recipe::{Class, Recipe};
use crate::tokens::Corpus;
use std::collections::VecDeque;
use tierdex_bench::Random;

/// Terms that may be repeated.
const REPEATS_MAX: usize = 100;
/// Draws after which a query has no further term to be found.
const DRAWS_MAX: usize = 1000;
/// Documents that hold a term of the class [`Class::M200`], at least.
const M200_MIN: u32 = 200;

/// Terms by class.
pub struct Classes<'a> {
    terms: [Vec<&'a str>; 4],
}

impl<'a> Classes<'a> {
    /// The terms of a corpus; those of one document have no class.
    pub fn of(corpus: &'a Corpus) -> Classes<'a> {
        let mut classes = Classes { terms: [const { Vec::new() }; 4] };
        for (term, count) in &corpus.terms {
            let class = class(u64::from(*count), corpus.documents);
            let common = (class == Some(Class::M) && *count >= M200_MIN).then_some(Class::M200);
            for class in [class, common].into_iter().flatten() {
                classes.terms[class as usize].push(term);
            }
        }
        classes
    }
}

/// H above 1%, M from 0.001% on, L below that and at least two.
fn class(count: u64, documents: u64) -> Option<Class> {
    match count {
        _ if count * 100 > documents => Some(Class::H),
        _ if count * 100_000 >= documents => Some(Class::M),
        2.. => Some(Class::L),
        _ => None,
    }
}

/// The queues from which queries are drawn.
pub struct Queues<'a> {
    classes: [Queue<'a>; 4],
    percent: u32,
    random: Random,
}

/// The two queues of a class.
struct Queue<'a> {
    terms: &'a [&'a str],
    waiting: Vec<&'a str>,
    repeats: VecDeque<&'a str>,
}

impl<'a> Queues<'a> {
    /// Full queues; `percent` is the probability of repeats.
    pub fn new(classes: &'a Classes<'a>, percent: u32, random: Random) -> Queues<'a> {
        let queue = |terms: &'a Vec<_>| Queue { terms, waiting: Vec::new(), repeats: VecDeque::new() };
        Queues { classes: classes.terms.each_ref().map(queue), percent, random }
    }

    /// The next query; none if there are not enough terms.
    pub fn query(&mut self, recipe: Recipe) -> Option<String> {
        let mut terms = Vec::new();
        match recipe {
            Recipe::Single(class) => {
                self.add(class, &mut terms)?;
                Some(terms[0].to_string())
            }
            Recipe::Pair(join, class) => {
                self.add(class, &mut terms)?;
                self.add(class, &mut terms)?;
                Some(join.query(&terms))
            }
            Recipe::Several(join, class) => {
                for _ in 0..3 + self.random.below(3) {
                    let mixed = if self.random.below(2) == 0 { Class::H } else { Class::M };
                    self.add(class.unwrap_or(mixed), &mut terms)?;
                }
                Some(join.query(&terms))
            }
            Recipe::Pattern { pattern, .. } => self.fill(pattern),
            Recipe::Phrase { .. } | Recipe::Real(..) => None,
        }
    }

    /// Adds a term that is not there yet.
    pub(super) fn add(&mut self, class: Class, terms: &mut Vec<&'a str>) -> Option<()> {
        self.add_part(class, Some, terms)
    }

    /// Adds what `part` takes of a term; `None` rejects the term.
    pub(super) fn add_part(
        &mut self,
        class: Class,
        part: impl Fn(&'a str) -> Option<&'a str>,
        words: &mut Vec<&'a str>,
    ) -> Option<()> {
        for _ in 0..DRAWS_MAX {
            let term = self.classes[class as usize].next(self.percent, &mut self.random)?;
            if let Some(word) = part(term).filter(|word| !words.contains(word)) {
                words.push(word);
                return Some(());
            }
        }
        None
    }

    /// A number below `bound`.
    pub(super) fn random(&mut self, bound: usize) -> usize {
        self.random.below(bound as u32) as usize
    }
}

impl<'a> Queue<'a> {
    fn next(&mut self, percent: u32, random: &mut Random) -> Option<&'a str> {
        if !self.repeats.is_empty() && random.below(100) < percent {
            return self.repeats.get(random.below(self.repeats.len() as u32) as usize).copied();
        }
        if self.waiting.is_empty() {
            self.waiting = self.terms.to_vec();
            shuffle(&mut self.waiting, random);
        }
        let term = self.waiting.pop()?;
        if self.repeats.len() == REPEATS_MAX {
            self.repeats.pop_front();
        }
        self.repeats.push_back(term);
        Some(term)
    }
}

/// Puts values into a random order (Fisher and Yates).
pub fn shuffle<T>(values: &mut [T], random: &mut Random) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::super::recipe::Join;
    use super::*;

    fn corpus() -> Corpus {
        let terms = (0..300).map(|i| (format!("h{i:03}"), 2000)).chain([("l".to_string(), 2)]);
        let terms = terms.chain((0..50).map(|i| (format!("m{i}"), 7)));
        Corpus { path: "x".into(), bytes: 0, documents: 100_000, terms: terms.collect() }
    }

    #[test]
    fn classes_have_their_bounds() {
        let letters = [1001, 1000, 1].map(|count| class(count, 100_000));
        assert_eq!(letters, [Some(Class::H), Some(Class::M), Some(Class::M)]);
        assert_eq!([2, 1].map(|count| class(count, 1_000_000)), [Some(Class::L), None]);
    }

    #[test]
    fn without_repeats_every_term_comes_once_before_one_comes_twice() {
        let corpus = corpus();
        let classes = Classes::of(&corpus);
        let mut queues = Queues::new(&classes, 0, Random::new(1));
        let mut queries: Vec<String> =
            (0..300).map_while(|_| queues.query(Recipe::Single(Class::H))).collect();
        queries.sort();
        queries.dedup();
        assert_eq!(queries.len(), 300);
    }

    #[test]
    fn half_of_the_terms_are_repeats_if_one_wants() {
        let corpus = corpus();
        let classes = Classes::of(&corpus);
        let mut queues = Queues::new(&classes, 50, Random::new(1));
        let mut queries: Vec<String> =
            (0..300).map_while(|_| queues.query(Recipe::Single(Class::H))).collect();
        queries.sort();
        queries.dedup();
        assert!((110..190).contains(&queries.len()), "{}", queries.len());
    }

    #[test]
    fn terms_of_a_query_differ_and_those_that_are_too_few_make_none() {
        let corpus = corpus();
        let classes = Classes::of(&corpus);
        let mut queues = Queues::new(&classes, 25, Random::new(1));
        for _ in 0..100 {
            let query = queues.query(Recipe::Several(Join::And, None)).unwrap();
            let mut terms: Vec<&str> = query.split(' ').collect();
            assert!((3..=5).contains(&terms.len()) && terms.iter().all(|term| term.starts_with('+')));
            let len = terms.len();
            terms.sort_unstable();
            terms.dedup();
            assert_eq!(terms.len(), len);
        }
        assert_eq!(queues.query(Recipe::Pair(Join::Or, Class::L)), None);
    }
}

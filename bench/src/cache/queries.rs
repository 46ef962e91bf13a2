//! Queries drawn from an index's own dictionary, as the thesis has it (section 5.2.3).
//!
//! Terms are in classes by the number of documents that they stand in: H from a million on, M from a thousand on, L the
//! rest. That is of the thesis' 160 GB of documents of 1 KB; here the bounds are the same parts of the documents, a 160th
//! and a 160,000th of them.
//!
//! A workload of single terms has two queues: all terms of the class in random order, and the last hundred taken from it.
//! For each query the next term is taken; with the repetition probability a random one of the last hundred is asked for in
//! its place. Queries of two terms join two such workloads, each from a half of the terms, so that the two differ. When
//! there are no more terms, all begin anew in another order; the report says how many there were.

use super::flags::Flags;
use super::named::named;
use crate::{Error, Random, Result};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use tierdex::index::Index;
use tierdex::query::Query;

/// Terms by the number of their documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Many.
    High,
    /// Some.
    Medium,
    /// Few.
    Low,
}

/// Documents of the thesis' collection, about.
const THESIS_DOCUMENTS: u64 = 160_000_000;
/// Documents of its terms of class H and M, at least.
const THESIS_HIGH: u64 = 1_000_000;
const THESIS_MEDIUM: u64 = 1_000;

impl Class {
    /// Documents of its terms among `documents`, at least and, but for H, less than.
    pub(super) fn bounds(self, documents: u64) -> (u64, Option<u64>) {
        let scaled = |bound: u64| {
            let scaled = u128::from(bound) * u128::from(documents) / u128::from(THESIS_DOCUMENTS);
            (scaled as u64).max(1)
        };
        // However small the index, the classes are one behind another.
        let medium = scaled(THESIS_MEDIUM).max(2);
        let high = scaled(THESIS_HIGH).max(medium + 1);
        match self {
            Class::High => (high, None),
            Class::Medium => (medium, Some(high)),
            Class::Low => (1, Some(medium)),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::High => "H",
            Class::Medium => "M",
            Class::Low => "L",
        })
    }
}

impl FromStr for Class {
    type Err = Error;

    fn from_str(text: &str) -> Result<Class> {
        named(&[Class::High, Class::Medium, Class::Low], text, "class of terms")
    }
}

/// What a query is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One term.
    Single,
    /// Two that must both be there.
    And,
    /// Two, of which one must be there.
    Or,
}

impl Shape {
    /// Terms of a query.
    pub(super) fn terms(self) -> usize {
        if self == Shape::Single { 1 } else { 2 }
    }

    /// The query of these terms of a field.
    pub(super) fn query(self, field: usize, terms: &[String]) -> Query {
        let term = |term: &String| Query::Term { field, term: term.clone(), boost: 1.0 };
        let mut terms: Vec<Query> = terms.iter().map(term).collect();
        match self {
            Shape::Single => terms.pop().unwrap_or(Query::Nothing),
            Shape::And => Query::clauses(terms, Vec::new(), Vec::new()),
            Shape::Or => Query::clauses(Vec::new(), terms, Vec::new()),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Single => "SINGLE",
            Shape::And => "AND",
            Shape::Or => "OR",
        })
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shape> {
        named(&[Shape::Single, Shape::And, Shape::Or], text, "shape of queries")
    }
}

/// Which queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Their terms.
    pub class: Class,
    /// Their shape.
    pub shape: Shape,
    /// The repetition probability in percent.
    pub repeats: u32,
}

impl Workload {
    /// All that the flags ask for.
    pub(super) fn all(flags: &Flags) -> Vec<Workload> {
        let mut all = Vec::new();
        for &class in &flags.classes {
            for &shape in &flags.shapes {
                all.extend(flags.repeats.iter().map(|&repeats| Workload { class, shape, repeats }));
            }
        }
        all
    }

    /// A name for files.
    pub(super) fn file_name(self) -> String {
        format!("{}-{}-rp{}", self.shape, self.class, self.repeats)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} RP {}%", self.shape, self.class, self.repeats)
    }
}

/// Terms of an index by class.
pub(super) struct Terms {
    /// The field with the most postings.
    pub(super) field: usize,
    /// Each class that is wanted: its terms in order, and the bytes of their lists.
    classes: BTreeMap<Class, Vec<(String, u64)>>,
}

/// The queries of a workload.
pub(super) struct Queries {
    /// The terms of each.
    pub(super) terms: Vec<Vec<String>>,
    /// How many terms there are to draw from.
    pub(super) class_terms: usize,
    /// Bytes of the list of each of these: the working set.
    pub(super) lists: Vec<u64>,
    /// Bytes of all lists that are asked for, again and again.
    pub(super) bytes_asked: u64,
    /// Queries that have no term which an earlier one has not.
    pub(super) repeated: usize,
}

impl Queries {
    /// Bytes of the working set; with a segment's bytes, of the segments that it fills when no list shares one.
    pub(super) fn working_set(&self, segment: Option<u64>) -> u64 {
        self.lists.iter().map(|bytes| segment.map_or(*bytes, |segment| bytes.next_multiple_of(segment))).sum()
    }
}

impl Terms {
    /// Reads the dictionary of the field with the most postings.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn read(index: &Index, classes: &[Class]) -> Result<Terms> {
        let postings = |field: usize| -> u64 {
            index.segments().iter().map(|segment| segment.meta().fields[field].postings).sum()
        };
        let fields = 0..index.schema().fields.len();
        let field = fields.rev().max_by_key(|field| postings(*field)).unwrap_or(0);
        let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        // A term that is of the class in all segments together may be rare in each; so only those of one segment are
        // thinned at once.
        let single = index.segments().len() == 1;
        let wanted = |documents: u64| classes.iter().any(|class| class.holds(documents, index.documents()));
        for segment in index.segments() {
            let mut stream = segment.field(field).terms().stream();
            while let Some((term, info)) = stream.next()? {
                let documents = u64::from(info.documents);
                let Ok(term) = str::from_utf8(term) else { continue };
                if single && !wanted(documents) {
                    continue;
                }
                let bytes: u64 = info.blocks.iter().flatten().map(|range| range.end - range.start).sum();
                let sums = all.entry(term.to_string()).or_default();
                *sums = (sums.0 + documents, sums.1 + bytes);
            }
        }
        let mut found: BTreeMap<Class, Vec<(String, u64)>> =
            classes.iter().map(|class| (*class, Vec::new())).collect();
        for (term, (documents, bytes)) in all {
            let class = found.iter_mut().find(|(class, _)| class.holds(documents, index.documents()));
            class.into_iter().for_each(|(_, terms)| terms.push((term.clone(), bytes)));
        }
        Ok(Terms { field, classes: found })
    }

    /// Draws the queries of a workload.
    ///
    /// # Errors
    /// If the class has not as many terms as a query.
    pub(super) fn draw(&self, workload: Workload, count: usize, seed: u64) -> Result<Queries> {
        let terms = self.classes.get(&workload.class).map_or(&[][..], Vec::as_slice);
        let parts = workload.shape.terms();
        if terms.len() < parts {
            let (there, class) = (terms.len(), workload.class);
            return Err(Error::Usage(format!(
                "the index has {there} terms of class {class}, too few for {workload}"
            )));
        }
        // Whatever is repeated, and whether it is AND or OR: the terms stand in the same order.
        let shape = workload.shape.terms() as u64;
        let mut random = Random::new(seed ^ ((workload.class as u64) << 32 | shape << 40));
        let mut order: Vec<usize> = (0..terms.len()).collect();
        shuffle(&mut order, &mut random);
        let halves: Vec<Vec<usize>> =
            order.chunks(terms.len().div_ceil(parts)).map(<[usize]>::to_vec).collect();
        let drawn: Vec<Vec<usize>> = halves
            .into_iter()
            .map(|half| sequence(half, count, workload.repeats, &mut Random::new(random.bits())))
            .collect();
        Ok(queries(terms, &drawn, count))
    }
}

impl Class {
    fn holds(self, terms: u64, documents: u64) -> bool {
        let (least, below) = self.bounds(documents);
        terms >= least && below.is_none_or(|below| terms < below)
    }
}

/// Joins sequences of terms by their positions.
fn queries(terms: &[(String, u64)], drawn: &[Vec<usize>], count: usize) -> Queries {
    let mut seen = HashSet::new();
    let mut queries = Queries {
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

/// Terms that may be asked for again, at most.
const REPEAT_QUEUE: usize = 100;

/// So many terms out of `terms`, which are in random order.
fn sequence(mut terms: Vec<usize>, count: usize, repeats: u32, random: &mut Random) -> Vec<usize> {
    let (mut next, mut last) = (0, VecDeque::with_capacity(REPEAT_QUEUE + 1));
    let mut sequence = Vec::with_capacity(count);
    while sequence.len() < count {
        if next == terms.len() {
            shuffle(&mut terms, random);
            next = 0;
        }
        let repeated = !last.is_empty() && random.below(100) < repeats;
        sequence.push(if repeated { last[random.below(last.len() as u32) as usize] } else { terms[next] });
        last.push_back(terms[next]);
        next += 1;
        if last.len() > REPEAT_QUEUE {
            last.pop_front();
        }
    }
    sequence
}

/// Fisher and Yates.
fn shuffle(order: &mut [usize], random: &mut Random) {
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(count: usize) -> Terms {
        let terms = (0..count).map(|number| (format!("t{number}"), 10)).collect();
        Terms { field: 0, classes: BTreeMap::from([(Class::High, terms)]) }
    }

    fn workload(shape: Shape, repeats: u32) -> Workload {
        Workload { class: Class::High, shape, repeats }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["H", "M", "L"] {
            assert_eq!(name.parse::<Class>().unwrap().to_string(), name);
        }
        for name in ["SINGLE", "AND", "OR"] {
            assert_eq!(name.parse::<Shape>().unwrap().to_string(), name);
        }
        assert!("h".parse::<Class>().is_err() && "XOR".parse::<Shape>().is_err());
    }

    #[test]
    fn classes_are_the_same_parts_of_the_documents_as_in_the_thesis() {
        let bounds =
            |documents| [Class::High, Class::Medium, Class::Low].map(|class| class.bounds(documents));
        assert_eq!(bounds(160_000_000), [(1_000_000, None), (1_000, Some(1_000_000)), (1, Some(1_000))]);
        assert_eq!(bounds(4_200_000), [(26_250, None), (26, Some(26_250)), (1, Some(26))]);
        assert_eq!(bounds(100), [(3, None), (2, Some(3)), (1, Some(2))]);
        for documents in [0, 1, 1000, 414_229] {
            for terms in 1..5000 {
                let held =
                    [Class::High, Class::Medium, Class::Low].map(|class| class.holds(terms, documents));
                assert_eq!(held.iter().filter(|held| **held).count(), 1, "{terms} of {documents}");
            }
        }
    }

    #[test]
    fn a_seed_comes_back_and_another_one_differs() {
        let draw = |seed| terms(1000).draw(workload(Shape::And, 25), 200, seed).unwrap().terms;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn without_repetition_no_term_comes_twice_while_there_are_others() {
        for shape in [Shape::Single, Shape::And, Shape::Or] {
            let drawn = terms(800).draw(workload(shape, 0), 400, 3).unwrap();
            assert_eq!((drawn.terms.len(), drawn.repeated), (400, 0));
            assert_eq!(drawn.lists, vec![10; 400 * shape.terms()]);
            assert_eq!(
                (drawn.working_set(None), drawn.working_set(Some(16))),
                (drawn.bytes_asked, 16 * drawn.lists.len() as u64)
            );
        }
        let again = terms(3).draw(workload(Shape::Single, 0), 30, 3).unwrap();
        assert_eq!((again.lists.len(), again.repeated, again.bytes_asked), (3, 27, 300));
    }

    #[test]
    fn terms_are_repeated_as_often_as_was_asked_for_and_two_differ() {
        for (repeats, least, most) in [(25, 0.15, 0.25), (50, 0.30, 0.50)] {
            let drawn = terms(20_000).draw(workload(Shape::Single, repeats), 10_000, 5).unwrap();
            let share = drawn.repeated as f64 / 10_000.0;
            // Some of the last hundred were passed over and are asked for the first time.
            assert!((least..most).contains(&share), "{share}");
        }
        for few in [2, 3, 20] {
            let drawn = terms(few).draw(workload(Shape::And, 50), 500, 7).unwrap();
            assert!(drawn.terms.iter().all(|terms| terms.len() == 2 && terms[0] != terms[1]));
        }
        assert!(terms(1).draw(workload(Shape::And, 0), 1, 1).is_err());
    }
}

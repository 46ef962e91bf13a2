//! The naive engine: has posting lists in a map, scores every document, and sorts them.

use super::clause::{ALL_DOCUMENTS_KEY, Clause, GroupClause, LeafClause, LeafMatches};
use super::{Answer, AnswerHit, AnswerOptions, ShownHit, corpus::TestDocument};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tierdex::limits::POSITION_GAP;
use tierdex::schema::{ColumnValue, Field, NormKind, Schema, Stored, Tokenizer};
use tierdex::{Bm25, Query, Scorer, internal::transform::norm};

/// A naive index of documents.
pub struct Model {
    docs: Vec<TestDocument>,
    schema: Schema,
    fields: Vec<FieldModel>,
}

/// Positions from the start of one value of a document to the start of the next: phrases do not cross them.
const VALUE_POSITIONS: usize = 1 << 20;

/// For each document its score, if it matches.
type DocumentScores = Vec<Option<u32>>;

#[derive(Default)]
struct FieldModel {
    /// Positions of each term in each document that contains it.
    postings: BTreeMap<String, BTreeMap<u32, Vec<u32>>>,
    /// Number of indexed tokens of each document.
    lengths: Vec<u32>,
    exact_norms: bool,
}

impl Model {
    pub fn new(schema: &Schema, docs: &[TestDocument]) -> Model {
        let fields = schema.fields.iter().map(|field| FieldModel::new(field, docs)).collect();
        Model { docs: docs.to_vec(), schema: schema.clone(), fields }
    }

    /// The best documents of a query.
    pub fn answer(&self, query: &Query, look: AnswerOptions) -> Answer {
        let clause = self.clause(query, look.scorer).rewritten(true);
        let rank = ModelRanking { scorer: look.scorer, factor: score_factor(clause.weight()) };
        let scores = (0u32..).zip(self.scores(&clause, rank));
        let mut matches: Vec<(u32, u32)> =
            scores.filter_map(|(document, score)| Some((document, score?))).collect();
        let total = matches.len() as u64;
        matches.sort_by_key(|(document, score)| (Reverse(*score), *document));
        matches.truncate(look.k);
        let shown = |(document, score)| (document, (f64::from(score) / rank.factor) as f32);
        let rows = matches.into_iter().map(shown).enumerate();
        Answer { total, hits: rows.map(|(place, hit)| self.row(place < look.shown, hit)).collect() }
    }

    /// Number of documents that contain `term` in a field.
    pub fn containing(&self, field: usize, term: &str) -> usize {
        self.fields[field].postings.get(term).map_or(0, BTreeMap::len)
    }

    /// Removes a posting of a term, to test that comparisons detect it.
    pub fn remove_posting(&mut self, field: usize, term: &str) -> bool {
        self.fields[field].postings.get_mut(term).is_some_and(|list| list.pop_last().is_some())
    }

    fn row(&self, shown: bool, (document, score): (u32, f32)) -> AnswerHit {
        let doc = &self.docs[document as usize];
        let shown = shown.then(|| self.shown(doc));
        AnswerHit { document, score_bits: score.to_bits(), shown }
    }

    fn shown(&self, doc: &TestDocument) -> ShownHit {
        let is_stored = self.schema.stored != Stored::Nothing;
        let mut columns = vec![Vec::new(); self.schema.columns.len()];
        let mut values = doc.columns(&self.schema);
        values.sort_by_key(|(_, value)| match value {
            ColumnValue::I64(value) => *value,
            _ => 0,
        });
        values.iter().for_each(|(column, value)| columns[*column].push(value.to_string()));
        let stored = is_stored.then(|| (doc.title.clone(), doc.text.clone()));
        ShownHit { id: doc.id.clone(), stored, columns }
    }

    /// A query with its terms looked up and its fuzzy words expanded.
    fn clause(&self, query: &Query, scorer: Scorer) -> Clause {
        match query {
            Query::Nothing => Clause::Nothing,
            Query::Term { field, term, boost } => {
                let of = &self.fields[*field];
                of.clause(*field, term, term_weight(scorer, of.idf(term), *boost), scorer)
            }
            Query::Phrase { field, terms, slop, boost, .. } => {
                let of = &self.fields[*field];
                if terms.iter().any(|(_, term)| self.containing(*field, term) == 0) {
                    return Clause::Nothing;
                }
                let largest = || terms.iter().map(|(_, term)| of.largest(term)).min().unwrap_or(0);
                Clause::Leaf(LeafClause {
                    key: format!("phrase {field} {terms:?} {slop}"),
                    weight: term_weight(scorer, terms.iter().map(|(_, term)| of.idf(term)).sum(), *boost),
                    largest_share: largest_share(scorer, largest),
                    matches: LeafMatches::Frequencies(*field, of.phrase(terms, *slop)),
                })
            }
            Query::Prefix { field, prefix, boost, .. } => {
                let lists = self.fields[*field].postings.iter();
                let mut begun = lists.filter(|(term, _)| term.starts_with(prefix.as_str())).peekable();
                if begun.peek().is_none() {
                    return Clause::Nothing;
                }
                let documents = begun.flat_map(|(_, list)| list.keys().copied()).collect();
                Clause::set(format!("prefix {field} {prefix}"), *boost, documents)
            }
            Query::All { boost } => self.all(*boost),
            Query::Fuzzy { field, word, distance, boost } => {
                let of = &self.fields[*field];
                let (close, idf) = of.close_terms(word, usize::from(*distance));
                let should = close.iter().map(|(term, similarity)| {
                    of.clause(*field, term, term_weight(scorer, idf, boost * similarity), scorer)
                });
                let should: Vec<Clause> = should.collect();
                if should.is_empty() {
                    return Clause::Nothing;
                }
                Clause::Group(GroupClause { should, minimum: 1, ..GroupClause::default() })
            }
            Query::Bool { must, filter, should, must_not, minimum } => {
                let all =
                    |queries: &[Query]| queries.iter().map(|query| self.clause(query, scorer)).collect();
                let (must, mut filter, should, must_not): (Vec<_>, Vec<_>, Vec<_>, Vec<_>) =
                    (all(must), all(filter), all(should), all(must_not));
                if must.is_empty() && filter.is_empty() && should.is_empty() {
                    filter.push(self.all(0.0));
                }
                Clause::Group(GroupClause { must, filter, should, must_not, minimum: *minimum as usize })
            }
            other => unreachable!("the oracle has no {other:?}"),
        }
    }

    fn all(&self, boost: f64) -> Clause {
        Clause::set(ALL_DOCUMENTS_KEY.to_string(), boost, (0..self.docs.len() as u32).collect())
    }

    fn scores(&self, clause: &Clause, rank: ModelRanking) -> DocumentScores {
        match clause {
            Clause::Nothing => vec![None; self.docs.len()],
            Clause::Leaf(LeafClause {
                weight,
                matches: LeafMatches::Frequencies(field, frequencies),
                ..
            }) => self.fields[*field].score(frequencies, *weight, rank),
            Clause::Leaf(LeafClause { weight, matches: LeafMatches::Documents(documents), .. }) => {
                let score = if *weight == 0.0 { 0 } else { (weight * rank.factor).round().max(1.0) as u32 };
                (0u32..).zip(&self.docs).map(|(of, _)| documents.contains(&of).then_some(score)).collect()
            }
            Clause::Group(group) => {
                let all = |clauses: &[Clause]| -> Vec<DocumentScores> {
                    clauses.iter().map(|clause| self.scores(clause, rank)).collect()
                };
                let GroupClause { must, filter, should, must_not, minimum } = group;
                self.boolean(&all(must), &all(filter), &all(should), &all(must_not), *minimum)
            }
        }
    }

    fn boolean(
        &self,
        must: &[DocumentScores],
        filter: &[DocumentScores],
        should: &[DocumentScores],
        must_not: &[DocumentScores],
        minimum: usize,
    ) -> DocumentScores {
        let score = |document: usize| {
            let of = |clauses: &[DocumentScores]| {
                clauses.iter().filter_map(|scores| scores[document]).collect::<Vec<_>>()
            };
            let (required, optional) = (of(must), of(should));
            let free = must.is_empty() && filter.is_empty() && !should.is_empty();
            let matches = required.len() == must.len()
                && of(filter).len() == filter.len()
                && optional.len() >= minimum.max(usize::from(free))
                && of(must_not).is_empty();
            matches.then(|| required.into_iter().chain(optional).fold(0, u32::wrapping_add))
        };
        (0..self.docs.len()).map(score).collect()
    }
}

impl FieldModel {
    fn new(field: &Field, docs: &[TestDocument]) -> FieldModel {
        assert!(
            !field.analysis.fold_accents && field.analysis.stemmer.is_none(),
            "the model has no such filter"
        );
        let stop_words: HashSet<&str> = field.analysis.stop_words.iter().map(String::as_str).collect();
        let mut model = FieldModel { exact_norms: field.norms == NormKind::Exact, ..FieldModel::default() };
        for (document, doc) in (0u32..).zip(docs) {
            let member = |name: &String| if name == "title" { &*doc.title } else { &*doc.text };
            let mut length = 0;
            for (first_position, text) in (0..)
                .step_by(VALUE_POSITIONS)
                .zip(field.members.iter().flat_map(|name| member(name).split('|')))
            {
                for (position, token) in (first_position..).zip(tokenize(text, field.analysis.tokenizer)) {
                    if token.len() <= 255 && !stop_words.contains(token.as_str()) {
                        length += 1;
                        let list = model.postings.entry(token).or_default();
                        list.entry(document).or_default().push(position);
                    }
                }
            }
            model.lengths.push(length);
        }
        model
    }

    /// The fifty terms that are most similar to a word, with the factors of their boosts, and their common
    /// inverse document frequency. Compares every term of the field with the word.
    fn close_terms(&self, word: &str, most: usize) -> (Vec<(&str, f64)>, f64) {
        let length = |term: &str| term.chars().count().min(word.chars().count());
        let terms = self.postings.iter().filter(|(_, list)| !list.is_empty());
        let mut close: Vec<(usize, Reverse<usize>, &str)> = terms
            .map(|(term, list)| (edit_distance(word, term), Reverse(list.len()), term.as_str()))
            .filter(|(edits, _, term)| *edits <= most && (*edits == 0 || *edits < length(term)))
            .collect();
        close.sort();
        close.truncate(50);
        let containing = close.iter().map(|(_, Reverse(containing), _)| *containing).max().unwrap_or(0);
        let similarity =
            |edits: usize, term| if edits == 0 { 1.0 } else { 1.0 - edits as f64 / length(term) as f64 };
        let close = close.iter().map(|(edits, _, term)| (*term, similarity(*edits, term)));
        (close.collect(), self.idf_of(containing))
    }

    /// The clause of a term with this weight.
    fn clause(&self, number: usize, term: &str, weight: f64, scorer: Scorer) -> Clause {
        if self.postings.get(term).is_none_or(BTreeMap::is_empty) {
            return Clause::Nothing;
        }
        Clause::Leaf(LeafClause {
            key: format!("term {number} {term}"),
            weight,
            largest_share: largest_share(scorer, || self.largest(term)),
            matches: LeafMatches::Frequencies(number, self.term(term)),
        })
    }

    /// The largest frequency of a term.
    fn largest(&self, term: &str) -> usize {
        self.postings.get(term).into_iter().flatten().map(|(_, positions)| positions.len()).max().unwrap_or(0)
    }

    /// Frequencies of a term, by document.
    fn term(&self, term: &str) -> Vec<(u32, f32)> {
        let list = self.postings.get(term).into_iter().flatten();
        list.map(|(&document, positions)| (document, positions.len() as f32)).collect()
    }

    /// The frequency of a phrase in each document: enumerates all choices of an occurrence of each term. Of
    /// the intervals that the choices take, those that contain no other interval are summed up, weighted by
    /// their width.
    fn phrase(&self, terms: &[(u32, String)], slop: u32) -> Vec<(u32, f32)> {
        let lists: Option<Vec<_>> = terms.iter().map(|(_, term)| self.postings.get(term)).collect();
        let Some(lists) = lists else { return Vec::new() };
        let slop = slop.min(POSITION_GAP - terms.last().map_or(0, |(distance, _)| *distance));
        let in_all = lists[0].keys().filter(|document| lists.iter().all(|list| list.contains_key(document)));
        let frequency = |document: &u32| {
            let mut ranges = BTreeSet::new();
            let positions: Vec<&[u32]> = lists.iter().map(|list| list[document].as_slice()).collect();
            add_intervals(terms, &positions, i64::from(slop), &mut Vec::new(), &mut ranges);
            let inside = |a: &(i64, i64), b: &(i64, i64)| a != b && a.0 >= b.0 && a.1 <= b.1;
            let smallest = ranges.iter().filter(|range| !ranges.iter().any(|other| inside(other, range)));
            smallest.fold(0.0f64, |sum, (low, high)| sum + 1.0 / (1 + high - low) as f64) as f32
        };
        let counts = in_all.map(|document| (*document, frequency(document)));
        counts.filter(|(_, frequency)| *frequency > 0.0).collect()
    }

    fn idf(&self, term: &str) -> f64 {
        self.idf_of(self.postings.get(term).map_or(0, BTreeMap::len))
    }

    fn idf_of(&self, containing: usize) -> f64 {
        let (all, with) = (self.documents() as f64, containing as f64);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    /// Number of documents that have the field.
    fn documents(&self) -> usize {
        self.lengths.iter().filter(|length| **length > 0).count()
    }

    fn average_length(&self) -> f64 {
        let tokens: u64 = self.lengths.iter().map(|&length| u64::from(length)).sum();
        if tokens == 0 { 1.0 } else { tokens as f64 / self.documents() as f64 }
    }

    /// The scores of documents with these frequencies: the scaled weight times `f / (f + k)`, with `k = k1 *
    /// (1 - b + b * length / average)`, or times `f` for the inner product; computed in `f32`, rounded.
    fn score(&self, frequencies: &[(u32, f32)], unscaled: f64, rank: ModelRanking) -> DocumentScores {
        let (weight, average) = ((unscaled * rank.factor) as f32, self.average_length());
        let mut scores = vec![None; self.lengths.len()];
        for &(document, f) in frequencies {
            let share = match rank.scorer {
                Scorer::Bm25(bm25) => f / (f + self.k(bm25, self.lengths[document as usize], average)),
                Scorer::Dot => f,
            };
            let score = (weight * share).round_ties_even().max(1.0);
            scores[document as usize] = Some(if unscaled == 0.0 { 0 } else { score as u32 });
        }
        scores
    }

    fn k(&self, bm25: Bm25, length: u32, average: f64) -> f32 {
        let (constant, factor) = (bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / average);
        if self.exact_norms {
            constant as f32 + factor as f32 * length as f32
        } else {
            (constant + factor * f64::from(norm::length(norm::encode(length)))) as f32
        }
    }
}

/// The weight of a term before it is scaled.
fn term_weight(scorer: Scorer, idf: f64, boost: f64) -> f64 {
    match scorer {
        Scorer::Bm25(bm25) => idf * (bm25.k1 + 1.0) * boost,
        Scorer::Dot => boost,
    }
}

/// Largest factor by which a score multiplies the weight, for frequencies up to `frequency`.
fn largest_share(scorer: Scorer, frequency: impl FnOnce() -> usize) -> f64 {
    match scorer {
        Scorer::Bm25(_) => 1.0,
        Scorer::Dot => frequency().max(1) as f64,
    }
}

/// The scorer, and the factor that scales weights.
#[derive(Clone, Copy)]
struct ModelRanking {
    scorer: Scorer,
    factor: f64,
}

/// The largest power of two whose product with the weight is at most 2^30.
fn score_factor(weight: f64) -> f64 {
    let mut factor = 1.0;
    if weight > 0.0 {
        while weight * factor > f64::from(1 << 30) {
            factor /= 2.0;
        }
        while weight * factor * 2.0 <= f64::from(1 << 30) {
            factor *= 2.0;
        }
    }
    factor
}

/// The tokens of a text, with those that analysis drops.
pub fn tokenize(text: &str, tokenizer: Tokenizer) -> Vec<String> {
    match tokenizer {
        Tokenizer::Whitespace => text.split_whitespace().map(str::to_string).collect(),
        Tokenizer::Alphanumeric => {
            let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
            runs.map(str::to_lowercase).collect()
        }
        other => unreachable!("the oracle has no {other:?}"),
    }
}

/// Adds to `ranges` the interval of each choice of occurrences that is at most `slop` wide; `chosen` has the
/// occurrences that are chosen so far.
fn add_intervals(
    terms: &[(u32, String)],
    positions: &[&[u32]],
    slop: i64,
    chosen: &mut Vec<u32>,
    ranges: &mut BTreeSet<(i64, i64)>,
) {
    let places = chosen.iter().zip(terms).map(|(position, (far, _))| i64::from(*position) - i64::from(*far));
    let (low, high) = (places.clone().min().unwrap_or(0), places.max().unwrap_or(0));
    if high - low > slop {
        return;
    }
    let at = chosen.len();
    if at == terms.len() {
        ranges.insert((low, high));
        return;
    }
    for position in positions[at] {
        let taken =
            chosen.iter().zip(terms).any(|(other, (_, term))| *term == terms[at].1 && other == position);
        if !taken {
            chosen.push(*position);
            add_intervals(terms, positions, slop, chosen, ranges);
            chosen.pop();
        }
    }
}

/// Restricted Damerau-Levenshtein distance of `a` and `b`.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let mut least = if i == 0 || j == 0 { i.max(j) } else { usize::MAX };
            if i > 0 && j > 0 {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
            }
            table[i][j] = least;
        }
    }
    table[a.len()][b.len()]
}

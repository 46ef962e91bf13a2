//! The naive engine: lists in a map, every document scored, everything sorted.

use super::corpus::Doc;
use super::{Answer, Look, Row};
use std::collections::{BTreeMap, HashSet};
use tierdex::query::Query;
use tierdex::rank::Bm25;
use tierdex::schema::{Field, NormKind, Schema, Source, Tokenizer};
use tierdex::transform::norm;

/// Documents, indexed the simplest way.
pub struct Model {
    docs: Vec<Doc>,
    stored: bool,
    fields: Vec<FieldModel>,
}

/// Score of each document that matches.
type Scores = Vec<Option<f32>>;

#[derive(Default)]
struct FieldModel {
    /// Positions of each term in each document that holds it.
    postings: BTreeMap<String, BTreeMap<u32, Vec<u32>>>,
    /// Indexed tokens of each document.
    lengths: Vec<u32>,
    exact_norms: bool,
}

impl Model {
    pub fn new(schema: &Schema, docs: &[Doc]) -> Model {
        let fields = schema.fields.iter().map(|field| FieldModel::new(field, docs)).collect();
        Model { docs: docs.to_vec(), stored: schema.stored, fields }
    }

    /// The best documents of a query in normal form.
    pub fn answer(&self, query: &Query, look: Look) -> Answer {
        let mut matches: Vec<(u32, f32)> = self.ranked(query, look.bm25);
        let total = matches.len() as u64;
        matches.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        matches.truncate(look.k);
        let rows = matches.into_iter().enumerate();
        Answer { total, hits: rows.map(|(place, hit)| self.row(place < look.shown, hit)).collect() }
    }

    /// Documents that hold `term` in a field.
    pub fn containing(&self, field: usize, term: &str) -> usize {
        self.fields[field].postings.get(term).map_or(0, BTreeMap::len)
    }

    /// Takes a posting away: what a broken engine would lose.
    pub fn forget(&mut self, field: usize, term: &str) -> bool {
        self.fields[field].postings.get_mut(term).is_some_and(|list| list.pop_last().is_some())
    }

    fn row(&self, shown: bool, (document, score): (u32, f32)) -> Row {
        let doc = &self.docs[document as usize];
        let stored = || self.stored.then(|| (doc.title.clone(), doc.text.clone()));
        Row { document, score_bits: score.to_bits(), shown: shown.then(|| (doc.id.clone(), stored())) }
    }

    fn ranked(&self, query: &Query, bm25: Bm25) -> Vec<(u32, f32)> {
        let scores = (0u32..).zip(self.scores(query, bm25));
        scores.filter_map(|(document, score)| Some((document, score?))).collect()
    }

    fn scores(&self, query: &Query, bm25: Bm25) -> Scores {
        match query {
            Query::Nothing => vec![None; self.docs.len()],
            Query::Term { field, term, boost } => {
                let of = &self.fields[*field];
                of.score(of.term(term), of.idf(term), *boost, bm25)
            }
            Query::Phrase { field, terms, boost } => {
                let of = &self.fields[*field];
                let idf = terms.iter().map(|(_, term)| of.idf(term)).sum();
                of.score(of.phrase(terms), idf, *boost, bm25)
            }
            Query::Bool { must, should, must_not } => self.boolean(must, should, must_not, bm25),
        }
    }

    fn boolean(&self, must: &[Query], should: &[Query], must_not: &[Query], bm25: Bm25) -> Scores {
        let all = |clauses: &[Query]| clauses.iter().map(|c| self.scores(c, bm25)).collect::<Vec<_>>();
        let (must, should, must_not) = (all(must), all(should), all(must_not));
        let documents = 0..self.docs.len();
        let score = |document: usize| {
            let of =
                |clauses: &[Scores]| clauses.iter().filter_map(|scores| scores[document]).collect::<Vec<_>>();
            let (required, optional) = (of(&must), of(&should));
            let asked = !must.is_empty() || !should.is_empty();
            let matches = required.len() == must.len()
                && (!must.is_empty() || !asked || !optional.is_empty())
                && of(&must_not).is_empty();
            matches.then(|| required.into_iter().chain(optional).fold(0.0f32, |sum, score| sum + score))
        };
        documents.map(score).collect()
    }
}

impl FieldModel {
    fn new(field: &Field, docs: &[Doc]) -> FieldModel {
        assert!(
            !field.analysis.fold_accents && field.analysis.stemmer.is_none(),
            "the model has no such filter"
        );
        let stop_words: HashSet<&str> = field.analysis.stop_words.iter().map(String::as_str).collect();
        let mut model = FieldModel { exact_norms: field.norms == NormKind::Exact, ..FieldModel::default() };
        for (document, doc) in (0u32..).zip(docs) {
            let text = match field.source {
                Source::Title => doc.title.clone(),
                Source::Text => doc.text.clone(),
                Source::TitleAndText => format!("{} {}", doc.title, doc.text),
            };
            let mut length = 0;
            for (position, token) in (0u32..).zip(tokens(&text, field.analysis.tokenizer)) {
                if token.len() <= 255 && !stop_words.contains(token.as_str()) {
                    length += 1;
                    let list = model.postings.entry(token).or_default();
                    list.entry(document).or_default().push(position);
                }
            }
            model.lengths.push(length);
        }
        model
    }

    /// Frequencies of a term, by document.
    fn term(&self, term: &str) -> Vec<(u32, usize)> {
        let list = self.postings.get(term).into_iter().flatten();
        list.map(|(&document, positions)| (document, positions.len())).collect()
    }

    /// Frequencies of a phrase: from how many places on all its terms stand at their distances.
    fn phrase(&self, terms: &[(u32, String)]) -> Vec<(u32, usize)> {
        let lists: Option<Vec<_>> = terms.iter().map(|(_, term)| self.postings.get(term)).collect();
        let Some(lists) = lists else { return Vec::new() };
        let stands = |list: &BTreeMap<u32, Vec<u32>>, document, position| {
            list.get(&document).is_some_and(|positions: &Vec<u32>| positions.contains(&position))
        };
        let count = |document, positions: &[u32]| {
            let begins = |start: &&u32| {
                terms.iter().zip(&lists).all(|((far, _), list)| stands(list, document, **start + far))
            };
            positions.iter().filter(begins).count()
        };
        let counts = lists[0].iter().map(|(&document, positions)| (document, count(document, positions)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    fn idf(&self, term: &str) -> f64 {
        let all = self.lengths.len() as f64;
        let with = self.postings.get(term).map_or(0, BTreeMap::len) as f64;
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    fn average_length(&self) -> f64 {
        let tokens: u64 = self.lengths.iter().map(|&length| u64::from(length)).sum();
        if tokens == 0 { 1.0 } else { tokens as f64 / self.lengths.len() as f64 }
    }

    /// `weight * (f / (f + k))` in `f32`, with `k = k1 * (1 - b + b * length / average)`.
    fn score(&self, frequencies: Vec<(u32, usize)>, idf: f64, boost: f64, bm25: Bm25) -> Scores {
        let weight = (idf * (bm25.k1 + 1.0) * boost) as f32;
        let (constant, factor) = (bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / self.average_length());
        let mut scores = vec![None; self.lengths.len()];
        for (document, frequency) in frequencies {
            let length = self.lengths[document as usize];
            let k = if self.exact_norms {
                constant as f32 + factor as f32 * length as f32
            } else {
                (constant + factor * f64::from(norm::length(norm::encode(length)))) as f32
            };
            let f = frequency as f32;
            scores[document as usize] = Some(weight * (f / (f + k)));
        }
        scores
    }
}

/// Tokens of a text, dropped ones included.
pub fn tokens(text: &str, tokenizer: Tokenizer) -> Vec<String> {
    match tokenizer {
        Tokenizer::Whitespace => text.split_whitespace().map(str::to_string).collect(),
        Tokenizer::Alphanumeric => {
            let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
            runs.map(str::to_lowercase).collect()
        }
    }
}

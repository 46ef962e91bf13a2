//! Query analysis. Input: a syntax tree. Output: a [`Query`] whose words are terms.
//!
//! Words and phrases go through the analysis chain of their field. Prefixes and fuzzy words are only
//! lower-cased and accent-folded, if the chain does so. A word that analysis splits into several tokens
//! becomes several alternatives; docs/query.md has the rules for text without blanks and for long words.

use super::check::{last_distance, phrase_too_long};
use super::synonyms::{Synonym, alternatives_of, phrase_variants, synonyms_of_words};
use super::syntax::{ColumnRange, NameKind, Occur, Problems, SyntaxClause, SyntaxTree, cut_to_length, parse};
use super::tree::Query;
use super::typed::{merge_ranges, range_of};
use crate::limits::{
    BOOST_MAX, FUZZY_BYTES_MAX, PHRASE_TERMS_MAX, PHRASE_VARIANTS_MAX, POSITION_GAP, QUERY_EXPANDED_MAX,
    QUERY_TERMS_MAX,
};
use crate::schema::{Analysis, Schema, list_names};
use crate::text::{Analyzer, RunPart, is_phrase_token, key_of_words};
use crate::{Error, Result};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{cell::RefCell, mem::take};

impl Query {
    /// Parses `text` in the query language (see [`Query`]). Words without a field search the first
    /// field.
    ///
    /// # Errors
    /// [`Error::Query`] for the first fault.
    pub fn parse(text: &str, schema: &Schema) -> Result<Query> {
        Ok(Query::parse_with_notes(text, schema)?.0)
    }

    /// [`Query::parse`], with notes on parts that look like operators and were read as text.
    pub fn parse_with_notes(text: &str, schema: &Schema) -> Result<(Query, Vec<Error>)> {
        Query::parse_at(text, schema, current_time())
    }

    /// As [`Query::parse_with_notes`], with another time, in microseconds UTC, for `now` in dates.
    pub fn parse_at(text: &str, schema: &Schema, now: i64) -> Result<(Query, Vec<Error>)> {
        let mut problems = Problems::strict();
        let query = parse_query(text, schema, now, &mut problems)?;
        Ok((query, problems.into_warnings()))
    }

    /// Parses any text: each fault is returned as a warning, like the notes of [`Query::parse_with_notes`],
    /// and its operator or clause is ignored. Without warnings the query is that of [`Query::parse`].
    pub fn parse_lenient(text: &str, schema: &Schema) -> (Query, Vec<Error>) {
        let mut problems = Problems::lenient();
        // Lenient problems are never returned as errors, so there is always a query.
        let query = parse_query(text, schema, current_time(), &mut problems).unwrap_or(Query::Nothing);
        (query, problems.into_warnings())
    }

    /// Documents that contain any term of `text`, which is plain text without operators. Of text without
    /// blanks the terms are all bigrams.
    pub fn any_term(text: &str, schema: &Schema) -> Result<Query> {
        let mut problems = Problems::strict();
        cut_to_length(text, &mut problems)?;
        let mut analyzer = QueryAnalyzer::new(schema, &mut problems);
        analyzer.bigrams_are_alternatives = true;
        let query = match alternatives_of(&schema.fields[0]) {
            None => analyzer.convert_words(0, text, 1.0)?,
            Some(_) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                any_of(analyzer.convert_word_run(0, &words, 1.0, false)?)
            }
        };
        Ok(query.unwrap_or(Query::Nothing))
    }
}

fn parse_query(text: &str, schema: &Schema, now: i64, problems: &mut Problems) -> Result<Query> {
    let syntax = parse(text, &|name| kind_of_name(schema, name), problems)?;
    let mut analyzer = QueryAnalyzer::new(schema, problems);
    analyzer.now = now;
    let query = analyzer.convert_tree(&syntax, 1.0)?;
    Ok(query.unwrap_or(Query::Nothing))
}

thread_local! {
    /// Analyzers of recent queries of the thread, with their settings: creating one takes longer than
    /// analysing a query.
    static KEPT_ANALYZERS: RefCell<Vec<(Analysis, Analyzer)>> = const { RefCell::new(Vec::new()) };
}

/// Maximum number of analyzers that are kept for a thread.
const KEPT_ANALYZERS_MAX: usize = 8;

/// Analyzers with more stop words than this are not kept.
const KEPT_ANALYZER_STOP_WORDS_MAX: usize = 1000;

/// Converts a syntax tree to a query, with the analyzers of its fields, which are taken from those kept for
/// the thread or created on first use. Counts terms and expansions against their limits.
pub(super) struct QueryAnalyzer<'a> {
    schema: &'a Schema,
    /// By field; `None` before the first use.
    chains: Vec<Option<(Analysis, Analyzer)>>,
    terms: usize,
    /// Number of prefixes and fuzzy words so far.
    expanded: usize,
    /// Whether the bigrams of a run of text without blanks are alternatives, not a phrase.
    bigrams_are_alternatives: bool,
    /// What `now` stands for in the bounds of columns, in microseconds UTC.
    now: i64,
    problems: &'a mut Problems,
}

impl Drop for QueryAnalyzer<'_> {
    fn drop(&mut self) {
        // At the end of the thread the list may have been dropped already.
        let _ = KEPT_ANALYZERS.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            for chain in self.chains.drain(..).flatten() {
                if kept.len() < KEPT_ANALYZERS_MAX && chain.0.stop_words.len() <= KEPT_ANALYZER_STOP_WORDS_MAX
                {
                    kept.push(chain);
                }
            }
        });
    }
}

impl<'a> QueryAnalyzer<'a> {
    pub(super) fn new(schema: &'a Schema, problems: &'a mut Problems) -> QueryAnalyzer<'a> {
        let chains = schema.fields.iter().map(|_| None).collect();
        let bigrams_are_alternatives = false;
        QueryAnalyzer { schema, chains, terms: 0, expanded: 0, bigrams_are_alternatives, now: 0, problems }
    }

    /// Converts a syntax tree; `None` if analysis drops all its terms.
    fn convert_tree(&mut self, syntax: &SyntaxTree, boost: f64) -> Result<Option<Query>> {
        let schema = self.schema;
        let number = |field: &Option<String>| field.as_ref().and_then(|name| schema.field(name)).unwrap_or(0);
        match syntax {
            SyntaxTree::Word(field, word) => {
                Ok(any_of(self.convert_word_run(number(field), &[word], boost, false)?))
            }
            SyntaxTree::Prefix(field, prefix) => self.convert_prefix(number(field), prefix, boost),
            SyntaxTree::Fuzzy(field, word, edits) => self.convert_fuzzy(number(field), word, *edits, boost),
            SyntaxTree::Phrase(field, words, slop) => {
                self.convert_variants(number(field), words, *slop, boost)
            }
            SyntaxTree::Column { column, at, ranges, boost: own } => {
                self.convert_column(column, *at, ranges, own * boost)
            }
            SyntaxTree::All => Ok(Some(Query::All { boost })),
            SyntaxTree::List(clauses, minimum) => self.convert_list(clauses, *minimum, boost),
            SyntaxTree::Boost(inner, factor) => {
                let product = boost * factor;
                if product > BOOST_MAX {
                    let message = format!("boosts inside one another are more than {BOOST_MAX} together");
                    self.problems.report(Error::query(message))?;
                }
                self.convert_tree(inner, product.min(BOOST_MAX))
            }
        }
    }

    /// Converts a clause on a column; `None` if it is faulty.
    fn convert_column(
        &mut self,
        name: &str,
        at: usize,
        written: &[ColumnRange],
        boost: f64,
    ) -> Result<Option<Query>> {
        let Some(column) = self.schema.column(name) else { return Ok(None) };
        self.terms += written.len();
        if self.terms > QUERY_TERMS_MAX {
            self.problems.report_at(at, format!("more than {QUERY_TERMS_MAX} terms and values"))?;
            return Ok(None);
        }
        if boost > BOOST_MAX {
            self.problems.report_at(at, format!("a boost of more than {BOOST_MAX}"))?;
        }
        let of = self.schema.columns[column].values;
        let mut ranges = Vec::with_capacity(written.len());
        for ColumnRange { low, high } in written {
            let [low, high] =
                [low, high].map(|bound| bound.as_ref().map(|(text, included)| (text.as_str(), *included)));
            match range_of(of, low, high, self.now) {
                Ok(range) => ranges.extend(range),
                Err(error) => {
                    self.problems.report_at(at, format!("column `{name}`: {error}"))?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(Query::Column { column, ranges: merge_ranges(ranges), boost: boost.min(BOOST_MAX) }))
    }

    fn convert_list(&mut self, clauses: &[SyntaxClause], minimum: u32, boost: f64) -> Result<Option<Query>> {
        let (mut must, mut filter, mut should, mut must_not) = (vec![], vec![], vec![], vec![]);
        let mut left = clauses;
        while let [(occur, syntax), after @ ..] = left {
            let list = match occur {
                Occur::Must => &mut must,
                Occur::Filter => &mut filter,
                Occur::Should => &mut should,
                Occur::MustNot => &mut must_not,
            };
            // Further alternatives must not count towards a minimum.
            let (field, words) = if minimum > 1 { (0, Vec::new()) } else { self.words_with_synonyms(left) };
            if words.len() > 1 {
                list.extend(self.convert_word_run(field, &words, boost, *occur == Occur::Must)?);
                left = &left[words.len()..];
            } else {
                list.extend(self.convert_tree(syntax, boost)?);
                left = after;
            }
        }
        let has_positive = clauses.iter().any(|(occur, _)| *occur != Occur::MustNot);
        let none_left = must.is_empty() && filter.is_empty() && should.is_empty();
        if none_left && (has_positive || must_not.is_empty()) {
            return Ok(None);
        }
        // Clauses of stop words were dropped: they neither match nor fail to match.
        let minimum = minimum.min(should.len() as u32);
        Ok(Some(Query::Bool { must, filter, should, must_not, minimum }))
    }

    /// The words at the start of a list that are looked up together in the synonyms of their field: all are
    /// alternatives, or all are required. None if the field has no synonyms of several words.
    fn words_with_synonyms<'c>(&self, clauses: &'c [SyntaxClause]) -> (usize, Vec<&'c str>) {
        let Some((occur @ (Occur::Should | Occur::Must), SyntaxTree::Word(name, _))) = clauses.first() else {
            return (0, Vec::new());
        };
        let field = name.as_ref().and_then(|name| self.schema.field(name)).unwrap_or(0);
        if alternatives_of(&self.schema.fields[field]).is_none_or(|found| found.terms_max < 2) {
            return (field, Vec::new());
        }
        let word = |clause: &'c SyntaxClause| match clause {
            (of, SyntaxTree::Word(other, word)) if (of, other) == (occur, name) => Some(word.as_str()),
            _ => None,
        };
        (field, clauses.iter().map_while(word).collect())
    }

    /// Converts words that follow one another, with their synonyms. Synonyms of several words are
    /// alternatives of all of these together if the words are required, else further alternatives.
    pub(super) fn convert_word_run(
        &mut self,
        field: usize,
        words: &[&str],
        boost: f64,
        are_required: bool,
    ) -> Result<Vec<Query>> {
        let schema = self.schema;
        let found = alternatives_of(&schema.fields[field])
            .map(|alternatives| synonyms_of_words(alternatives, self.field_analyzer(field), words));
        let (mut queries, mut at) = (Vec::new(), 0);
        for Synonym { words: range, alternatives } in found.unwrap_or_default() {
            queries.extend(self.convert_each(field, &words[at..range.start], boost)?);
            at = range.end;
            let mut kept = match alternatives.keeps_words {
                true => self.convert_each(field, &words[range.clone()], boost)?,
                false => Vec::new(),
            };
            if range.len() > 1 && !are_required {
                queries.append(&mut kept);
            } else if kept.len() > 1 {
                kept = vec![Query::clauses(kept, Vec::new(), Vec::new())];
            }
            for text in &alternatives.texts {
                kept.extend(self.convert_alternative(field, text, boost)?);
            }
            queries.extend(any_of(kept));
        }
        queries.extend(self.convert_each(field, &words[at..], boost)?);
        Ok(queries)
    }

    fn convert_each(&mut self, field: usize, words: &[&str], boost: f64) -> Result<Vec<Query>> {
        words.iter().filter_map(|word| self.convert_words(field, word, boost).transpose()).collect()
    }

    /// Converts a synonym. Several words are a phrase, or are all required if the field has no positions.
    fn convert_alternative(&mut self, field: usize, text: &str, boost: f64) -> Result<Option<Query>> {
        if self.schema.fields[field].positions {
            return self.convert_phrase(field, text, 0, boost);
        }
        let key = key_of_words(self.field_analyzer(field), text);
        let terms: Vec<&str> = key.split(' ').collect();
        if terms.len() < 2 {
            return self.convert_words(field, text, boost);
        }
        if !self.count_terms(terms.len())? {
            return Ok(None);
        }
        let must = terms.into_iter().map(|term| Query::Term { field, term: term.to_string(), boost });
        Ok(Some(Query::clauses(must.collect(), Vec::new(), Vec::new())))
    }

    /// Converts a phrase: it has a variant for each choice of synonyms of its words.
    pub(super) fn convert_variants(
        &mut self,
        field: usize,
        text: &str,
        slop: u32,
        boost: f64,
    ) -> Result<Option<Query>> {
        let schema = self.schema;
        let words: Vec<&str> = text.split_whitespace().take(POSITION_GAP as usize + 2).collect();
        let Some(alternatives) =
            alternatives_of(&schema.fields[field]).filter(|_| words.len() <= POSITION_GAP as usize + 1)
        else {
            return self.convert_phrase(field, text, slop, boost);
        };
        if words.len() == 1 && !schema.fields[field].positions {
            return Ok(any_of(self.convert_word_run(field, &words, boost, false)?));
        }
        let synonyms = synonyms_of_words(alternatives, self.field_analyzer(field), &words);
        let Some(variants) = phrase_variants(&words, &synonyms, PHRASE_VARIANTS_MAX) else {
            self.problems.report(Error::query(format!(
                "a phrase of more than {PHRASE_VARIANTS_MAX} variants by its synonyms; leave some words out"
            )))?;
            return self.convert_phrase(field, text, slop, boost);
        };
        let mut queries = Vec::with_capacity(variants.len());
        for variant in variants {
            queries.extend(self.convert_phrase(field, &variant, slop, boost)?);
        }
        Ok(any_of(queries))
    }

    fn convert_words(&mut self, field: usize, words: &str, boost: f64) -> Result<Option<Query>> {
        // Most words are one token, which needs no list.
        let (mut first, mut others, mut run) = (None, Vec::new(), UnsegmentedRun::default());
        let mut push = |clause| match first {
            None => first = Some(clause),
            Some(_) => others.push(clause),
        };
        let positions = self.schema.fields[field].positions;
        let (bigrams_are_alternatives, mut terms) = (self.bigrams_are_alternatives, 0);
        let analyzer = self.field_analyzer(field);
        analyzer.analyze(words, 0, |token| {
            terms += 1;
            let term = token.term.to_string();
            if token.run.is_none_or(|part| part.is_first) {
                take(&mut run).query(field, positions, boost).map(&mut push);
            }
            match token.run {
                Some(part) if part.is_last => {
                    run.cluster = part.is_first.then_some(term);
                    take(&mut run).query(field, positions, boost).map(&mut push);
                }
                Some(_) if !bigrams_are_alternatives => run.bigrams.push((token.position, term)),
                _ => push(Query::Term { field, term, boost }),
            }
        });
        let too_long = analyzer.take_too_long();
        run.query(field, positions, boost).map(push);
        if !self.count_terms(terms)? {
            return Ok(None);
        }
        if first.is_none() && too_long > 0 {
            return Ok(Some(Query::Nothing));
        }
        if others.is_empty() {
            return Ok(first);
        }
        others.splice(..0, first);
        Ok(any_of(others))
    }

    fn convert_prefix(&mut self, field: usize, text: &str, boost: f64) -> Result<Option<Query>> {
        let mut last = None;
        let analyzer = self.field_analyzer(field);
        analyzer.normalized(text, |token| last = Some((token.start, token.term.to_string(), token.run)));
        let too_long = analyzer.take_too_long();
        let Some((start, prefix, run)) = last else { return Ok((too_long > 0).then_some(Query::Nothing)) };
        if run.is_some_and(|part| !part.is_first) {
            // The last word is a run of several clusters without blanks. As a phrase of bigrams it matches
            // whatever follows it, as a prefix does.
            return self.convert_words(field, text, boost);
        }
        let mut should: Vec<_> = self.convert_words(field, &text[..start], boost)?.into_iter().collect();
        if self.count_expansion()? {
            let query = |prefix| Query::Prefix { field, prefix, whole_clusters: false, boost };
            should.push(match prefix.strip_suffix(['σ', 'ς']) {
                // The lower case of a sigma depends on whether the word ends there, so both are searched. As
                // filters, so that a document with both scores once.
                Some(stem) => {
                    let must = vec![Query::All { boost }];
                    let both = any_of([format!("{stem}σ"), format!("{stem}ς")].map(query).into());
                    let filter = both.into_iter().collect();
                    Query::Bool { must, filter, should: vec![], must_not: vec![], minimum: 0 }
                }
                None => query(prefix),
            });
        }
        Ok(any_of(should))
    }

    fn convert_fuzzy(&mut self, field: usize, text: &str, distance: u8, boost: f64) -> Result<Option<Query>> {
        let mut words = Vec::new();
        let analyzer = self.field_analyzer(field);
        analyzer.normalized(text, |token| words.push((token.term.to_string(), token.run)));
        if words.is_empty() && analyzer.take_too_long() > 0 {
            return Ok(Some(Query::Nothing));
        }
        if words.iter().any(|(_, run)| run.is_some()) {
            if distance > 0 {
                let message = format!("`{text}` has text without blanks, which is not fuzzy");
                self.problems.warn(Error::query(message));
            }
            return self.convert_words(field, text, boost);
        }
        let mut should = Vec::new();
        for (word, _) in words {
            if word.len() > FUZZY_BYTES_MAX {
                let message =
                    format!("a fuzzy word of {} bytes; at most {FUZZY_BYTES_MAX} can be one", word.len());
                self.problems.report(Error::query(message))?;
            } else if distance == 0 {
                if self.count_terms(1)? {
                    should.push(Query::Term { field, term: word, boost });
                }
            } else if self.count_expansion()? {
                should.push(Query::Fuzzy { field, word, distance, boost });
            }
        }
        Ok(any_of(should))
    }

    fn convert_phrase(&mut self, field: usize, words: &str, slop: u32, boost: f64) -> Result<Option<Query>> {
        let (mut terms, mut open_end) = (Vec::new(), false);
        let analyzer = self.field_analyzer(field);
        analyzer.analyze(words, 0, |token| {
            let is_whole_run = |part: RunPart| part.is_first && part.is_last;
            open_end = token.run.is_some_and(is_whole_run);
            if is_phrase_token(token.run) {
                terms.push((token.position, token.term.to_string()));
            }
        });
        // Beside other words, one that is too long leaves a gap, as in the documents.
        if analyzer.take_too_long() > 0 && terms.is_empty() {
            return Ok(Some(Query::Nothing));
        }
        if terms.len() > PHRASE_TERMS_MAX {
            let message = format!("a phrase of {} terms; at most {PHRASE_TERMS_MAX} can be one", terms.len());
            self.problems.report(Error::query(message))?;
            terms.truncate(PHRASE_TERMS_MAX);
            open_end = false;
        }
        positions_to_distances(&mut terms);
        if last_distance(&terms) > POSITION_GAP {
            self.problems.report(Error::query(phrase_too_long(last_distance(&terms))))?;
            terms.retain(|(distance, _)| *distance <= POSITION_GAP);
            open_end = false;
        }
        if !self.count_terms(terms.len())? {
            return Ok(None);
        }
        let one = |term: String, is_cluster: bool| match is_cluster {
            true => Query::Prefix { field, prefix: term, whole_clusters: true, boost },
            false => Query::Term { field, term, boost },
        };
        if terms.len() < 2 {
            return Ok(terms.pop().map(|(_, term)| one(term, open_end)));
        }
        if self.problems.is_lenient && !self.schema.fields[field].positions {
            self.problems.report(no_positions_error(self.schema, field))?;
            let last = terms.len() - 1;
            let terms = terms.into_iter().enumerate();
            let must = terms.map(|(number, (_, term))| one(term, open_end && number == last));
            return Ok(Some(Query::clauses(must.collect(), Vec::new(), Vec::new())));
        }
        Ok(Some(Query::Phrase { field, terms, slop, open_end, boost }))
    }

    /// Adds to the number of terms. False, with a problem reported, if that exceeds the limit.
    fn count_terms(&mut self, terms: usize) -> Result<bool> {
        let total = self.terms + terms;
        if total > QUERY_TERMS_MAX {
            let message = format!("{total} terms or more; at most {QUERY_TERMS_MAX} are answered");
            self.problems.report(Error::query(message))?;
            return Ok(false);
        }
        self.terms = total;
        Ok(true)
    }

    /// Adds one to the number of prefixes and fuzzy words. False, with a problem reported, if that exceeds
    /// the limit.
    fn count_expansion(&mut self) -> Result<bool> {
        if self.expanded == QUERY_EXPANDED_MAX {
            let message = format!("more than {QUERY_EXPANDED_MAX} prefixes and fuzzy words");
            self.problems.report(Error::query(message))?;
            return Ok(false);
        }
        self.expanded += 1;
        Ok(true)
    }

    pub(super) fn field_analyzer(&mut self, field: usize) -> &mut Analyzer {
        let analysis = &self.schema.fields[field].analysis;
        let (_, analyzer) = self.chains[field].get_or_insert_with(|| {
            let kept = KEPT_ANALYZERS.with_borrow_mut(|kept| {
                let at = kept.iter().position(|(of, _)| of == analysis);
                if at.is_none() && kept.len() == KEPT_ANALYZERS_MAX {
                    kept.remove(0);
                }
                at.map(|at| kept.swap_remove(at))
            });
            kept.unwrap_or_else(|| (analysis.clone(), Analyzer::new(analysis)))
        });
        analyzer
    }
}

/// A run of text without blanks, such as Chinese, in a query.
#[derive(Default)]
struct UnsegmentedRun {
    /// Pairs of adjacent grapheme clusters of the run, each with its position.
    bigrams: Vec<(u32, String)>,
    /// The grapheme cluster of the run, if it has only one.
    cluster: Option<String>,
}

impl UnsegmentedRun {
    /// The clause of the run; `None` if analysis dropped its terms. A run that is longer than a phrase may be
    /// becomes several phrases.
    fn query(self, field: usize, positions: bool, boost: f64) -> Option<Query> {
        if let Some(prefix) = self.cluster {
            return Some(Query::Prefix { field, prefix, whole_clusters: true, boost });
        }
        let per_clause = if positions { PHRASE_TERMS_MAX } else { 1 };
        let mut must = Vec::with_capacity(self.bigrams.len().div_ceil(per_clause));
        let mut bigrams = self.bigrams.into_iter().peekable();
        while bigrams.peek().is_some() {
            let mut terms: Vec<_> = bigrams.by_ref().take(per_clause).collect();
            if terms.len() == 1 {
                must.push(Query::Term { field, term: terms.remove(0).1, boost });
            } else {
                positions_to_distances(&mut terms);
                must.push(Query::Phrase { field, terms, slop: 0, open_end: false, boost });
            }
        }
        match must.len() {
            0 | 1 => must.pop(),
            _ => Some(Query::clauses(must, Vec::new(), Vec::new())),
        }
    }
}

/// Replaces the positions of terms by their distances from the first term.
fn positions_to_distances(terms: &mut [(u32, String)]) {
    let first = terms.first().map_or(0, |(position, _)| *position);
    for (position, _) in terms {
        *position -= first;
    }
}

fn any_of(mut should: Vec<Query>) -> Option<Query> {
    match should.len() {
        0 | 1 => should.pop(),
        _ => Some(Query::clauses(Vec::new(), should, Vec::new())),
    }
}

/// Microseconds UTC.
fn current_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Whether `name` is that of a field or of a column. The error is a text that lists the fields with their
/// members, and the columns with their types.
fn kind_of_name(schema: &Schema, name: &str) -> std::result::Result<NameKind, String> {
    if schema.field(name).is_some() {
        return Ok(NameKind::Field);
    }
    if schema.column(name).is_some() {
        return Ok(NameKind::Column);
    }
    let fields = schema.fields.iter();
    let fields = fields.map(|field| format!("`{}` ({})", field.name, list_names(&field.members, " and ")));
    let columns = schema.columns.iter().map(|column| format!("`{}` ({})", column.name, column.values.name()));
    Err(format!("which has {}", fields.chain(columns).collect::<Vec<_>>().join(", ")))
}

/// The error for a phrase in a field without positions.
pub(super) fn no_positions_error(schema: &Schema, field: usize) -> Error {
    Error::Usage(format!(
        "phrases need positions, which field `{}` does not keep; index again with --positions",
        schema.fields[field].name
    ))
}

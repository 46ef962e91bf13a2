//! Queries whose text is analysed as that of the field.

use super::fields::{BoostedField, QueryScope, check_text, sum_of};
use super::fuzziness::Fuzziness;
use super::minimum::MinimumMatch;
use crate::api_error::ApiError;
use crate::es::error::parsing_error;
use crate::es::members::{Members, names_of, text_of};
use serde_json::{Value, json};
use std::ops::Range;
use tierdex::Query;
use tierdex::analysis::Analyzer;
use tierdex::limits::QUERY_CLAUSES_MAX;

/// How the words of a text are combined.
#[derive(Clone, Debug, Default)]
pub(super) struct WordOptions {
    /// Whether all words are required.
    pub(super) are_required: bool,
    pub(super) minimum: Option<MinimumMatch>,
    pub(super) fuzziness: Option<Fuzziness>,
    /// Whether a text without words matches all documents, not none.
    pub(super) all_if_empty: bool,
}

/// A text in a field, with the other members of its object.
pub(super) struct FieldText<'v> {
    pub(super) field: &'v str,
    pub(super) text: String,
    pub(super) members: Option<Members<'v>>,
}

impl<'v> FieldText<'v> {
    /// The only member of `body`: a field with a text, or with an object that has the text as `key`.
    pub(super) fn of(body: &'v Value, what: &'v str, key: &str) -> Result<FieldText<'v>, ApiError> {
        let (field, value) = Members::of(body, what)?.one()?;
        if let Some(text) = text_of(value) {
            check_text(&text, what)?;
            return Ok(FieldText { field, text, members: None });
        }
        let mut members = Members::of(value, what)?;
        let text = members.text(key)?.ok_or_else(|| parsing_error(format!("[{what}] needs [{key}]")))?;
        check_text(&text, what)?;
        Ok(FieldText { field, text, members: Some(members) })
    }
}

impl WordOptions {
    pub(super) fn take(members: &mut Members<'_>) -> Result<WordOptions, ApiError> {
        let are_required = take_operator(members, "operator")?;
        let minimum = members.take("minimum_should_match").map(MinimumMatch::parse).transpose()?;
        let fuzziness = Fuzziness::take(members)?;
        members.only("fuzzy_transpositions", &json!(true))?;
        Ok(WordOptions { are_required, minimum, fuzziness, all_if_empty: take_zero_terms(members)? })
    }

    /// Rejects fuzzy words.
    fn without_fuzziness(&self, what: &str) -> Result<(), ApiError> {
        match self.fuzziness {
            Some(_) => Err(parsing_error(format!("[fuzziness] of [{what}] is not supported"))),
            None => Ok(()),
        }
    }

    /// Whether synonyms of several words are one clause with these: they must not count twice.
    fn joins_synonyms(&self) -> bool {
        self.are_required || self.minimum.is_some()
    }

    /// Combines the clauses of words.
    fn combine(&self, mut clauses: Vec<Query>, boost: f64) -> Query {
        match clauses.len() {
            0 if self.all_if_empty => Query::All { boost },
            0 => Query::Nothing,
            1 => clauses.remove(0),
            _ if self.are_required => Query::clauses(clauses, Vec::new(), Vec::new()),
            count => Query::Bool {
                must: Vec::new(),
                filter: Vec::new(),
                must_not: Vec::new(),
                minimum: self.minimum.as_ref().map_or(0, |minimum| minimum.of(count)),
                should: clauses,
            },
        }
    }
}

/// Takes an operator: whether it is `and`.
pub(super) fn take_operator(members: &mut Members<'_>, name: &str) -> Result<bool, ApiError> {
    match members.text(name)?.map(|operator| operator.to_ascii_lowercase()).as_deref() {
        None | Some("or") => Ok(false),
        Some("and") => Ok(true),
        Some(_) => Err(members.error(format!("[{name}] must be and, or or"))),
    }
}

fn take_zero_terms(members: &mut Members<'_>) -> Result<bool, ApiError> {
    match members.text("zero_terms_query")?.map(|value| value.to_ascii_lowercase()).as_deref() {
        None | Some("none") => Ok(false),
        Some("all") => Ok(true),
        Some(_) => Err(members.error("[zero_terms_query] must be none or all".to_string())),
    }
}

/// `match`
pub(super) fn match_words(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let FieldText { field, text, members } = FieldText::of(body, "match", "query")?;
    let (mut boost, mut options) = (boost, WordOptions::default());
    if let Some(mut members) = members {
        boost *= members.boost()?;
        options = WordOptions::take(&mut members)?;
        members.ignore(&["lenient"], &mut scope.ignored);
        members.only("auto_generate_synonyms_phrase_query", &json!(true))?;
        members.finish()?;
    }
    let Some(number) = scope.field(field)? else { return Ok(Query::Nothing) };
    words_in(scope, &text, BoostedField { number, boost }, &options)
}

/// The words of a text in a field.
pub(super) fn words_in(
    scope: &mut QueryScope<'_>,
    text: &str,
    field: BoostedField,
    options: &WordOptions,
) -> Result<Query, ApiError> {
    let BoostedField { number, boost } = field;
    let clauses = match options.fuzziness {
        Some(fuzziness) => fuzzy_clauses(scope, text, field, fuzziness)?,
        None => Query::of_words(text, number, options.joins_synonyms(), boost, scope.schema)?,
    };
    scope.add_clauses(clauses.len())?;
    Ok(options.combine(clauses, boost))
}

/// The terms of a text as fuzzy words; text without blanks is not fuzzy. There are more than the limit of
/// clauses if the text has more.
fn fuzzy_clauses(
    scope: &QueryScope<'_>,
    text: &str,
    field: BoostedField,
    fuzziness: Fuzziness,
) -> Result<Vec<Query>, ApiError> {
    let BoostedField { number, boost } = field;
    let mut analyzer = Analyzer::new(&scope.schema.fields[number].analysis);
    let (mut clauses, mut runs): (Vec<Query>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    analyzer.analyze(text, 0, |token| {
        if clauses.len() + runs.len() > QUERY_CLAUSES_MAX {
            return;
        }
        let term = token.term.to_string();
        match (token.run, runs.last_mut(), fuzziness.of_word(&term)) {
            (Some(part), Some(run), _) if !part.is_first => run.end = token.end,
            (Some(_), ..) => runs.push(token.start..token.end),
            (None, _, 0) => clauses.push(Query::Term { field: number, term, boost }),
            (None, _, distance) => clauses.push(Query::Fuzzy { field: number, word: term, distance, boost }),
        }
    });
    for run in runs {
        clauses.extend(Query::of_words(&text[run], number, false, boost, scope.schema)?);
    }
    Ok(clauses)
}

/// `match_phrase`
pub(super) fn match_phrase(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let FieldText { field, text, members } = FieldText::of(body, "match_phrase", "query")?;
    let (mut boost, mut slop, mut all_if_empty) = (boost, 0, false);
    if let Some(mut members) = members {
        boost *= members.boost()?;
        slop = members.count("slop")?.unwrap_or(0);
        all_if_empty = take_zero_terms(&mut members)?;
        members.finish()?;
    }
    let Some(number) = scope.field(field)? else { return Ok(Query::Nothing) };
    let phrase = phrase_in(scope, &text, BoostedField { number, boost }, slop)?;
    Ok(phrase.unwrap_or(if all_if_empty { Query::All { boost } } else { Query::Nothing }))
}

/// The phrase of a text in a field; `None` if it has no words.
pub(super) fn phrase_in(
    scope: &mut QueryScope<'_>,
    text: &str,
    field: BoostedField,
    slop: usize,
) -> Result<Option<Query>, ApiError> {
    let slop = u32::try_from(slop).unwrap_or(u32::MAX);
    scope.add_clauses(1)?;
    Ok(Query::of_phrase(text, field.number, slop, field.boost, scope.schema)?)
}

/// `match_bool_prefix`
pub(super) fn match_bool_prefix(
    scope: &mut QueryScope<'_>,
    body: &Value,
    boost: f64,
) -> Result<Query, ApiError> {
    let FieldText { field, text, members } = FieldText::of(body, "match_bool_prefix", "query")?;
    let (mut boost, mut options) = (boost, WordOptions::default());
    if let Some(mut members) = members {
        boost *= members.boost()?;
        options = WordOptions::take(&mut members)?;
        options.without_fuzziness("match_bool_prefix")?;
        members.finish()?;
    }
    let Some(number) = scope.field(field)? else { return Ok(Query::Nothing) };
    words_and_prefix(scope, &text, BoostedField { number, boost }, &options)
}

/// The words of a text, of which the last one is a prefix: it is neither stemmed nor a stop word.
pub(super) fn words_and_prefix(
    scope: &mut QueryScope<'_>,
    text: &str,
    field: BoostedField,
    options: &WordOptions,
) -> Result<Query, ApiError> {
    let BoostedField { number, boost } = field;
    let mut last = None;
    let mut analyzer = Analyzer::new(&scope.schema.fields[number].analysis);
    analyzer.normalized(text, |token| {
        last = token.run.is_none().then(|| (token.start, token.term.to_string()));
    });
    let words = last.as_ref().map_or(text, |(start, _)| &text[..*start]);
    let mut clauses = Query::of_words(words, number, options.joins_synonyms(), boost, scope.schema)?;
    if let Some((_, prefix)) = last {
        clauses.push(Query::Prefix { field: number, prefix, whole_clusters: false, boost });
    }
    scope.add_clauses(clauses.len())?;
    Ok(options.combine(clauses, boost))
}

/// `multi_match`: the scores of the fields are added.
pub(super) fn multi_match(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let mut members = Members::of(body, "multi_match")?;
    let text = members.text("query")?.ok_or_else(|| parsing_error("[multi_match] needs [query]"))?;
    check_text(&text, "multi_match")?;
    let boost = boost * members.boost()?;
    let kind = members.text("type")?.unwrap_or_else(|| "best_fields".to_string());
    let tie_breaker = members.number("tie_breaker")?;
    let slop = members.count("slop")?.unwrap_or(0);
    // Of a phrase, the members of words are not supported.
    let options = if kind == "phrase" { WordOptions::default() } else { WordOptions::take(&mut members)? };
    if kind == "bool_prefix" {
        options.without_fuzziness("multi_match")?;
    }
    let fields = match members.take("fields") {
        Some(names) => scope.fields(&names_of(names, "fields")?)?,
        None => scope.all_fields(),
    };
    members.ignore(&["lenient"], &mut scope.ignored);
    members.only("auto_generate_synonyms_phrase_query", &json!(true))?;
    members.finish()?;
    let tie_breaker = match &*kind {
        "most_fields" | "bool_prefix" => Some(tie_breaker.unwrap_or(1.0)),
        "best_fields" | "phrase" => Some(tie_breaker.unwrap_or(0.0)),
        _ => None,
    };
    let is_sum = tie_breaker.is_some_and(|found| found == 1.0 || fields.len() < 2);
    if !is_sum {
        return Err(parsing_error(format!(
            "[multi_match] of the type [{}] with {} fields is not supported: use the type most_fields, or the \
             tie_breaker 1, which add the scores of fields",
            kind.escape_debug(),
            fields.len()
        )));
    }
    let mut queries = Vec::with_capacity(fields.len());
    for field in fields {
        let field = BoostedField { boost: field.boost * boost, ..field };
        queries.push(match &*kind {
            "phrase" => phrase_in(scope, &text, field, slop)?.unwrap_or(Query::Nothing),
            "bool_prefix" => words_and_prefix(scope, &text, field, &options)?,
            _ => words_in(scope, &text, field, &options)?,
        });
    }
    Ok(sum_of(queries))
}

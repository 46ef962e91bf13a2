//! Query strings: their members, and their syntax trees to queries.

use super::fields::{BoostedField, QueryScope, check_text, sum_of};
use super::full_text::{WordOptions, phrase_in, take_operator, words_and_prefix, words_in};
use super::lucene_syntax::parse_lucene;
use super::minimum::MinimumMatch;
use super::simple_syntax::parse_simple;
use super::text_syntax::{TextClause, TextOccur, TextSyntax};
use crate::api_error::ApiError;
use crate::es::error::parsing_error;
use crate::es::members::{Members, names_of};
use serde_json::{Value, json};
use tierdex::Query;

/// How the parts of a query string are searched.
struct StringOptions {
    words: WordOptions,
    phrase_slop: usize,
    /// Whether the scores of several fields are added; if not, several are an error.
    adds_fields: bool,
    /// Optional clauses of the outermost group that must match.
    minimum: Option<MinimumMatch>,
}

/// `query_string`
pub(super) fn query_string(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let mut members = Members::of(body, "query_string")?;
    let default_field = members.text("default_field")?;
    let kind = members.text("type")?.unwrap_or_else(|| "best_fields".to_string());
    let tie_breaker = members.number("tie_breaker")?;
    members.only("analyze_wildcard", &json!(false))?;
    let phrase_slop = members.count("phrase_slop")?.unwrap_or(0);
    members.ignore(&["allow_leading_wildcard"], &mut scope.ignored);
    let found = StringMembers::take(scope, members, default_field, boost)?;
    let StringMembers { text, fields, boost, options } = found;
    let adds_fields = kind == "most_fields" || tie_breaker == Some(1.0);
    let options = StringOptions { phrase_slop, adds_fields, ..options };
    if !["best_fields", "most_fields"].contains(&&*kind) {
        return Err(parsing_error(format!("the type [{}] is not supported", kind.escape_debug())));
    }
    let syntax = match text.trim() {
        "*" => TextSyntax::All,
        _ => parse_lucene(&text, options.words.are_required)?,
    };
    // Elasticsearch combines words without an operator between them within each field.
    if fields.len() > 1 && options.minimum.is_some() {
        return Err(several_fields_error("[minimum_should_match]", fields.len()));
    }
    if fields.len() > 1 && options.words.are_required && has_adjacent_words(&syntax) {
        return Err(several_fields_error("[default_operator] and", fields.len()));
    }
    let query = root_query(scope, &syntax, &fields, &options, boost)?;
    Ok(query.unwrap_or(Query::Nothing))
}

/// `simple_query_string`
pub(super) fn simple_query_string(
    scope: &mut QueryScope<'_>,
    body: &Value,
    boost: f64,
) -> Result<Query, ApiError> {
    let mut members = Members::of(body, "simple_query_string")?;
    members.only("flags", &json!("ALL"))?;
    members.only("analyze_wildcard", &json!(false))?;
    let StringMembers { text, fields, boost, options } = StringMembers::take(scope, members, None, boost)?;
    let syntax = match text.trim() {
        "*" => TextSyntax::All,
        _ => parse_simple(&text, options.words.are_required)?,
    };
    let query = root_query(scope, &syntax, &fields, &options, boost)?;
    Ok(query.unwrap_or(Query::Nothing))
}

/// The members that both languages have.
struct StringMembers {
    text: String,
    fields: Vec<BoostedField>,
    boost: f64,
    options: StringOptions,
}

impl StringMembers {
    fn take(
        scope: &mut QueryScope<'_>,
        mut members: Members<'_>,
        default_field: Option<String>,
        boost: f64,
    ) -> Result<StringMembers, ApiError> {
        let text = members.text("query")?.ok_or_else(|| members.error("[query] is missing".to_string()))?;
        check_text(&text, "query")?;
        let names = members.take("fields").map(|names| names_of(names, "fields")).transpose()?;
        let fields = match names.or(default_field.map(|name| vec![name])) {
            Some(names) => scope.fields(&names)?,
            None => scope.all_fields(),
        };
        let are_required = take_operator(&mut members, "default_operator")?;
        let minimum = members.take("minimum_should_match").map(MinimumMatch::parse).transpose()?;
        let boost = boost * members.boost()?;
        members.only("auto_generate_synonyms_phrase_query", &json!(true))?;
        members.ignore(&["lenient"], &mut scope.ignored);
        members.finish()?;
        let words = WordOptions { are_required, ..WordOptions::default() };
        Ok(StringMembers {
            text,
            fields,
            boost,
            options: StringOptions { words, phrase_slop: 0, adds_fields: true, minimum },
        })
    }
}

/// The query of a whole string, to which a minimum applies.
fn root_query(
    scope: &mut QueryScope<'_>,
    syntax: &TextSyntax,
    fields: &[BoostedField],
    options: &StringOptions,
    boost: f64,
) -> Result<Option<Query>, ApiError> {
    let mut syntax = syntax;
    // A group of one clause is that clause: no minimum applies to it.
    while let TextSyntax::Group(clauses) = syntax
        && let [TextClause { occur: TextOccur::Should | TextOccur::Must, syntax: inner }] = &clauses[..]
    {
        syntax = inner;
    }
    let mut query = query_of(scope, syntax, fields, options, boost)?;
    if let (TextSyntax::Group(_), Some(asked)) = (syntax, &options.minimum)
        && let Some(Query::Bool { should, minimum, .. }) = &mut query
    {
        *minimum = (*minimum).max(asked.of(should.len()));
    }
    Ok(query)
}

fn several_fields_error(what: &str, fields: usize) -> ApiError {
    parsing_error(format!(
        "[query_string] with {what} in {fields} fields is not supported; name one field as default_field (in a \
         URL: df), or write AND between words instead"
    ))
}

/// Whether a group in all fields has words beside each other.
fn has_adjacent_words(syntax: &TextSyntax) -> bool {
    match syntax {
        TextSyntax::Group(clauses) => {
            let are_words =
                |pair: &[TextClause]| pair.iter().all(|clause| matches!(clause.syntax, TextSyntax::Words(_)));
            clauses.windows(2).any(are_words)
                || clauses.iter().any(|clause| has_adjacent_words(&clause.syntax))
        }
        TextSyntax::Boosted(inner, _) => has_adjacent_words(inner),
        _ => false,
    }
}

/// The query of a syntax tree; `None` if analysis drops all its words.
fn query_of(
    scope: &mut QueryScope<'_>,
    syntax: &TextSyntax,
    fields: &[BoostedField],
    options: &StringOptions,
    boost: f64,
) -> Result<Option<Query>, ApiError> {
    match syntax {
        TextSyntax::All => Ok(Some(Query::All { boost })),
        TextSyntax::Boosted(inner, factor) => query_of(scope, inner, fields, options, boost * factor),
        TextSyntax::InField(name, inner) => {
            let fields = scope.fields(std::slice::from_ref(name))?;
            let query = query_of(scope, inner, &fields, options, boost)?;
            Ok(Some(query.unwrap_or(Query::Nothing)))
        }
        TextSyntax::Not(inner) => {
            let excluded = query_of(scope, inner, fields, options, 1.0)?;
            Ok(excluded.map(|query| Query::clauses(vec![Query::All { boost }], Vec::new(), vec![query])))
        }
        TextSyntax::Group(clauses) => {
            let (mut must, mut should, mut must_not) = (Vec::new(), Vec::new(), Vec::new());
            for clause in clauses {
                let list = match clause.occur {
                    TextOccur::Should => &mut should,
                    TextOccur::Must => &mut must,
                    TextOccur::MustNot => &mut must_not,
                };
                list.extend(query_of(scope, &clause.syntax, fields, options, boost)?);
            }
            let count = must.len() + should.len() + must_not.len();
            Ok((count > 0).then(|| Query::clauses(must, should, must_not)))
        }
        TextSyntax::Words(_) | TextSyntax::Phrase(..) | TextSyntax::Prefix(_) | TextSyntax::Fuzzy(..) => {
            if fields.len() > 1 && !options.adds_fields {
                return Err(parsing_error(format!(
                    "[query_string] in {} fields needs the type most_fields or the tie_breaker 1, which add the \
                     scores of fields; or name one field as default_field (in a URL: df)",
                    fields.len()
                )));
            }
            let mut queries = Vec::with_capacity(fields.len());
            for field in fields {
                let field = BoostedField { boost: field.boost * boost, ..*field };
                queries.extend(leaf_in(scope, syntax, field, options)?);
            }
            Ok((!queries.is_empty()).then(|| sum_of(queries)))
        }
    }
}

/// The query of words, a phrase, a prefix or a fuzzy word in a field; `None` if analysis drops all words.
fn leaf_in(
    scope: &mut QueryScope<'_>,
    syntax: &TextSyntax,
    field: BoostedField,
    options: &StringOptions,
) -> Result<Option<Query>, ApiError> {
    let words = &options.words;
    let query = match syntax {
        TextSyntax::Phrase(text, slop) => {
            return phrase_in(scope, text, field, slop.unwrap_or(options.phrase_slop));
        }
        TextSyntax::Prefix(text) => words_and_prefix(scope, text, field, words)?,
        TextSyntax::Fuzzy(text, fuzziness) => {
            let words = WordOptions { fuzziness: Some(*fuzziness), ..words.clone() };
            words_in(scope, text, field, &words)?
        }
        TextSyntax::Words(text) => words_in(scope, text, field, words)?,
        _ => return Ok(None),
    };
    Ok(Some(query).filter(|query| *query != Query::Nothing))
}

//! The queries of a file, for commands that answer many: flags, parsing, and queries that fail.

use crate::cmd::index::OnError;
use crate::failure::{Failure, Outcome};
use crate::{messages, query_file::QueryFile, size};
use clap::{Args, ValueEnum};
use std::{cell::Cell, path::Path, path::PathBuf};
use tierdex::{Error, Index, Query};

/// Maximum length of the example query in a warning, in characters.
const EXAMPLE_QUERY_CHARS_MAX: usize = 60;

/// Advice for queries that are not in the query language, or need what the index does not have.
const SYNTAX_ADVICE: &str = "; with --syntax terms queries are bags of words";

/// The file of queries, and how it is read.
#[derive(Args)]
pub struct QueryFileArguments {
    /// File of queries, or - for standard input; each line is an id, a tab and the query. gzip and zstd are
    /// detected by content
    #[arg(long)]
    pub queries: PathBuf,
    /// Syntax of the queries [default: query, with a warning if queries contain operators]
    #[arg(long, value_enum)]
    pub syntax: Option<QuerySyntax>,
    /// Ignore the parts of a query with syntax errors, with a warning
    #[arg(long)]
    pub lenient: bool,
    /// Action for a query with a syntax error or above a limit. A damaged index gives exit code 1 in any case
    #[arg(long, value_enum, default_value_t = OnError::Fail)]
    pub on_error: OnError,
}

impl QueryFileArguments {
    /// Rejects flags that contradict each other.
    pub fn check(&self) -> Outcome {
        if self.lenient && self.syntax == Some(QuerySyntax::Terms) {
            return Err(Failure::Usage(
                "--lenient needs --syntax query: bags of words have no syntax errors".to_string(),
            ));
        }
        Ok(())
    }
}

/// Value of `--syntax`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QuerySyntax {
    /// Query language of `tierdex search`
    Query,
    /// Bag of words: a disjunction of all terms; no character is an operator
    Terms,
}

/// Handles queries without a result: with `--on-error skip` each is printed and counted, without it the first
/// one ends the batch.
pub struct FailedQueries<'b> {
    file: &'b str,
    dir: &'b Path,
    on_error: OnError,
    /// Whether `--syntax` is not given; error messages then suggest it.
    any_syntax: bool,
    skipped: Cell<u64>,
    unanswered: Cell<u64>,
}

impl<'b> FailedQueries<'b> {
    pub fn new(arguments: &QueryFileArguments, file: &'b str, dir: &'b Path) -> FailedQueries<'b> {
        let QueryFileArguments { syntax, on_error, .. } = *arguments;
        let (skipped, unanswered) = (Cell::new(0), Cell::new(0));
        FailedQueries { file, dir, on_error, any_syntax: syntax.is_none(), skipped, unanswered }
    }

    /// The numbers of skipped queries and of those without an answer; an error if there are some, and no
    /// query was answered.
    pub fn check_any_answered(&self, answered: u64) -> Outcome<(u64, u64)> {
        let (skipped, unanswered) = (self.skipped.get(), self.unanswered.get());
        let failed = skipped + unanswered;
        if answered == 0 && failed > 0 {
            return Err(Failure::Failed(format!("{}: no query was answered; {failed} failed", self.file)));
        }
        Ok((skipped, unanswered))
    }

    /// Skips a line of the file, or returns its error.
    fn skip_line(&self, failure: Failure) -> Outcome {
        self.skip_or_fail(failure, "skipped", &self.skipped)
    }

    /// Skips a query, or returns its error. An error of the query itself is what `skip` means: its syntax,
    /// its size, or a clause that the index does not support. Any other, such as damage, leaves it without
    /// an answer.
    pub fn skip_query(&self, id: &str, error: Error) -> Outcome {
        let (word, count) = match error {
            Error::Query { .. } | Error::TooLarge(_) | Error::Usage(_) => ("skipped", &self.skipped),
            _ => ("no answer", &self.unanswered),
        };
        self.skip_or_fail(self.query_failure(id, error), word, count)
    }

    fn skip_or_fail(&self, failure: Failure, word: &str, count: &Cell<u64>) -> Outcome {
        let (Failure::Failed(error), OnError::Skip) = (&failure, self.on_error) else {
            return Err(failure);
        };
        messages::print_message(format_args!("{error}; {word}"));
        count.set(count.get() + 1);
        Ok(())
    }

    pub fn query_failure(&self, id: &str, error: Error) -> Failure {
        let of_query = matches!(error, Error::Query { .. } | Error::Usage(_));
        let advice = if of_query && self.any_syntax { SYNTAX_ADVICE } else { "" };
        let reason = Failure::from(error).in_folder(self.dir);
        Failure::Failed(format!("{}, query {id}: {reason}{advice}", self.file))
    }
}

/// Parses the queries of a file.
pub struct QueryParser<'b> {
    index: &'b Index,
    file: &'b str,
    syntax: Option<QuerySyntax>,
    lenient: bool,
    pub operators: OperatorQueries,
}

impl<'b> QueryParser<'b> {
    pub fn new(arguments: &QueryFileArguments, file: &'b str, index: &'b Index) -> QueryParser<'b> {
        let QueryFileArguments { syntax, lenient, .. } = *arguments;
        QueryParser { index, file, syntax, lenient, operators: OperatorQueries::default() }
    }

    fn parse_query(&mut self, id: &str, text: &str) -> tierdex::Result<Query> {
        let schema = self.index.schema();
        let query = match self.syntax {
            Some(QuerySyntax::Terms) => Query::any_term(text, schema),
            _ => {
                let parsed = match self.lenient {
                    true => Ok(Query::parse_lenient(text, schema)),
                    false => Query::parse_with_notes(text, schema),
                };
                parsed.map(|(query, notes)| {
                    for note in notes {
                        messages::print_message(format_args!("{}, query {id}: {note}", self.file));
                    }
                    query
                })
            }
        };
        if self.syntax.is_none() {
            self.operators.count_query(text, query.as_ref(), self.index);
        }
        query
    }
}

/// Id and query of the next line that has one; `None` at the end of the file.
///
/// # Errors
/// If the file cannot be read, and for a line with an error that is not skipped.
pub fn next_query(
    queries: &mut QueryFile,
    parser: &mut QueryParser<'_>,
    failed: &FailedQueries<'_>,
) -> Outcome<Option<(String, Query)>> {
    while let Some(line) = queries.next()? {
        match line.map(|(id, text)| (parser.parse_query(&id, &text), id)) {
            Ok((Ok(query), id)) => return Ok(Some((id, query))),
            Ok((Err(error), id)) => failed.skip_query(&id, error)?,
            Err(failure) => failed.skip_line(failure)?,
        }
    }
    Ok(None)
}

/// Counts queries with operators: those whose parse differs from the disjunction of their words.
#[derive(Default)]
pub struct OperatorQueries {
    queries: u64,
    example: String,
}

impl OperatorQueries {
    /// Counts the query if its text has operators.
    fn count_query(&mut self, text: &str, parsed: Result<&Query, &Error>, index: &Index) {
        let may_differ = text
            .contains(['+', '-', '!', '#', '"', '*', '~', '^', ':', '(', ')', '\\', '&', '|', '/'])
            || text.split_whitespace().any(|word| matches!(word, "AND" | "OR" | "NOT"));
        let words = Query::any_term(text, index.schema());
        if may_differ && words.ok().as_ref().map(flat_alternatives) != parsed.ok().map(flat_alternatives) {
            if self.queries == 0 {
                self.example = text.chars().take(EXAMPLE_QUERY_CHARS_MAX).collect();
            }
            self.queries += 1;
        }
    }

    pub fn print_warning(&self, file: &str) {
        if self.queries > 0 {
            let queries = size::show_count(self.queries, "query", "queries");
            messages::print_message(format_args!(
                "{file}: {queries} with operators, such as `{}`, parsed as query language; give --syntax query, or --syntax \
                 terms for bags of words",
                self.example
            ));
        }
    }
}

/// The clauses of a disjunction, with those of nested disjunctions; any other query is its own single clause.
fn flat_alternatives(query: &Query) -> Vec<&Query> {
    match query {
        Query::Bool { must, filter, should, must_not, minimum: 0 }
            if must.is_empty() && filter.is_empty() && must_not.is_empty() =>
        {
            should.iter().flat_map(flat_alternatives).collect()
        }
        other => vec![other],
    }
}

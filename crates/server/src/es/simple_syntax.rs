//! The language of `simple_query_string`: every text is a query. `+` requires, `|` is an alternative, `-`
//! excludes; there are phrases, prefixes, fuzzy words and groups. Operators are joined from left to right.

use super::text_syntax::{QueryTextReader, TextClause, TextRole, TextSyntax};
use crate::api_error::ApiError;

/// Characters that end a word, unless they are escaped.
const SPECIAL: &str = "\"|+()";

/// Parses a query string. Clauses without an operator are required if `are_required`.
pub(super) fn parse_simple(text: &str, are_required: bool) -> Result<TextSyntax, ApiError> {
    let mut parser = SimpleParser { text: QueryTextReader::new(text), are_required };
    parser.group()
}

struct SimpleParser {
    text: QueryTextReader,
    are_required: bool,
}

/// The clauses of a group so far, with the role that all of them have.
#[derive(Default)]
struct JoinedClauses {
    clauses: Vec<TextSyntax>,
    are_required: bool,
}

impl JoinedClauses {
    /// Adds a clause. With another operator than before, the clauses until now become one.
    fn add(&mut self, clause: TextSyntax, is_required: bool) {
        if self.clauses.len() > 1 && is_required != self.are_required {
            let joined = std::mem::take(self).into_group();
            self.clauses.push(joined);
        }
        self.are_required = is_required;
        self.clauses.push(clause);
    }

    fn into_group(mut self) -> TextSyntax {
        if self.clauses.len() == 1 {
            return self.clauses.remove(0);
        }
        let role = if self.are_required { TextRole::Required } else { TextRole::Optional };
        let clauses = self.clauses.into_iter();
        TextSyntax::Group(clauses.map(|syntax| TextClause { role, syntax }).collect())
    }
}

impl SimpleParser {
    /// Reads clauses until the end of a group or of the text.
    fn group(&mut self) -> Result<TextSyntax, ApiError> {
        self.text.enter()?;
        let mut joined = JoinedClauses::default();
        let (mut is_required, mut is_excluded) = (self.are_required, false);
        loop {
            self.text.skip_blanks();
            let clause = match self.text.peek() {
                None => break,
                Some(')') if self.text.depth > 1 => {
                    self.text.at += 1;
                    break;
                }
                Some(operator @ ('+' | '|')) => {
                    self.text.at += 1;
                    is_required = operator == '+';
                    continue;
                }
                Some('-') => {
                    self.text.at += 1;
                    is_excluded = !is_excluded;
                    continue;
                }
                Some(')') => {
                    self.text.at += 1;
                    continue;
                }
                Some(_) => self.clause()?,
            };
            if let Some(clause) = clause {
                joined.add(if is_excluded { all_but(clause) } else { clause }, is_required);
            }
            (is_required, is_excluded) = (self.are_required, false);
        }
        self.text.depth -= 1;
        Ok(joined.into_group())
    }

    fn clause(&mut self) -> Result<Option<TextSyntax>, ApiError> {
        if self.text.take('(') {
            return self.group().map(Some);
        }
        if self.text.take('"') {
            let Some(phrase) = self.text.phrase() else { return Ok(None) };
            let slop = if self.text.take('~') { self.text.number() } else { None };
            return Ok(Some(TextSyntax::Phrase(phrase, slop.map(|slop| slop as usize))));
        }
        let word = self.text.word(|c| SPECIAL.contains(c) || c == '*' || c == '~');
        Ok(match (word.is_empty(), self.text.peek()) {
            (true, Some('*' | '~')) => {
                self.text.at += 1;
                None
            }
            (true, _) => None,
            (false, Some('*')) => {
                self.text.at += 1;
                Some(TextSyntax::Prefix(word))
            }
            (false, Some('~')) => {
                self.text.at += 1;
                let edits = self.text.edits();
                Some(edits.map_or(TextSyntax::Words(word.clone()), |edits| TextSyntax::Fuzzy(word, edits)))
            }
            (false, _) => Some(TextSyntax::Words(word)),
        })
    }
}

/// All documents without those of a clause.
fn all_but(syntax: TextSyntax) -> TextSyntax {
    let clause = |role, syntax| TextClause { role, syntax };
    TextSyntax::Group(vec![clause(TextRole::Excluded, syntax), clause(TextRole::Required, TextSyntax::All)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_query() {
        let characters: Vec<char> = "ab \"|+-()*~2\\é".chars().collect();
        let mut state = 1u64;
        for _ in 0..20_000 {
            let text: String = (0..12)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    characters[(state >> 33) as usize % characters.len()]
                })
                .collect();
            assert!(parse_simple(&text, false).is_ok(), "{text}");
        }
        assert!(parse_simple(&"(".repeat(10_000), false).is_err());
    }

    #[test]
    fn operators_are_joined_from_left_to_right() {
        let group = |role, parts: Vec<TextSyntax>| {
            TextSyntax::Group(parts.into_iter().map(|syntax| TextClause { role, syntax }).collect())
        };
        let (a, b, c) = (word("a"), word("b"), word("c"));
        let any = group(TextRole::Optional, vec![a.clone(), b.clone()]);
        assert_eq!(parse_simple("a b", false).unwrap(), any);
        assert_eq!(
            parse_simple("a | b + c", false).unwrap(),
            group(TextRole::Required, vec![any, c.clone()])
        );
        let all = group(TextRole::Required, vec![a.clone(), b]);
        assert_eq!(parse_simple("a b | c", true).unwrap(), group(TextRole::Optional, vec![all, c]));
        assert_eq!(parse_simple("--a", true).unwrap(), a);
    }

    fn word(text: &str) -> TextSyntax {
        TextSyntax::Words(text.to_string())
    }
}

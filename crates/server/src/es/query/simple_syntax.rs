//! The language of `simple_query_string`: every text is a query. `+` requires, `|` is an alternative, `-`
//! excludes what directly follows it; there are phrases, prefixes, fuzzy words and groups. Operators are
//! joined from left to right. The reference is Lucene's `SimpleQueryParser`.

use super::fuzziness::Fuzziness;
use super::text_syntax::{QueryTextReader, TextClause, TextOccur, TextSyntax};
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

/// The clauses of a group so far, and whether all of them are required.
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
        let occur = if self.are_required { TextOccur::Must } else { TextOccur::Should };
        let clauses = self.clauses.into_iter();
        TextSyntax::Group(clauses.map(|syntax| TextClause { occur, syntax }).collect())
    }
}

impl SimpleParser {
    /// Reads clauses until the end of a group or of the text.
    fn group(&mut self) -> Result<TextSyntax, ApiError> {
        self.text.enter()?;
        let mut joined = JoinedClauses::default();
        // The first operator behind a clause counts, and `-` directly before one.
        let (mut is_required, mut is_excluded) = (None, false);
        loop {
            let clause = match self.text.peek() {
                None => break,
                Some(')') if self.text.depth > 1 => {
                    self.text.at += 1;
                    break;
                }
                Some('-') => {
                    self.text.at += 1;
                    is_excluded = !is_excluded;
                    continue;
                }
                Some(operator @ ('+' | '|')) => {
                    self.text.at += 1;
                    if !joined.clauses.is_empty() {
                        is_required.get_or_insert(operator == '+');
                    }
                    None
                }
                Some(c) if c == ')' || c.is_whitespace() => {
                    self.text.at += 1;
                    None
                }
                Some(_) => self.clause()?,
            };
            if let Some(clause) = clause {
                let clause = if is_excluded { TextSyntax::Not(Box::new(clause)) } else { clause };
                joined.add(clause, is_required.take().unwrap_or(self.are_required));
            }
            is_excluded = false;
        }
        self.text.depth -= 1;
        Ok(joined.into_group())
    }

    /// Reads a group, a phrase or a word; `None` if it is empty.
    fn clause(&mut self) -> Result<Option<TextSyntax>, ApiError> {
        self.text.count_clause()?;
        if self.text.take('(') {
            if !self.text.is_group_closed() {
                return Ok(None);
            }
            let group = self.group()?;
            return Ok(Some(group).filter(|group| *group != TextSyntax::Group(Vec::new())));
        }
        if self.text.take('"') {
            let Some(phrase) = self.text.phrase() else { return Ok(None) };
            let slop = if self.text.take('~') { self.text.number() } else { None };
            return Ok(Some(TextSyntax::Phrase(phrase, slop.map(|slop| slop as usize))));
        }
        let (mut word, mut is_prefix) = (String::new(), false);
        while let Some(c) = self.text.peek() {
            if c.is_whitespace() || SPECIAL.contains(c) || c == '~' && !word.is_empty() {
                break;
            }
            self.text.at += 1;
            is_prefix = c == '*' && !word.is_empty();
            word.extend(if c == '\\' { self.text.next() } else { Some(c) });
        }
        Ok(Some(if self.text.take('~') {
            // As in Lucene, 2 by default and at most.
            match self.text.number().unwrap_or(2.0).min(2.0) as u8 {
                0 => TextSyntax::Words(word),
                edits => TextSyntax::Fuzzy(word, Fuzziness::Edits(edits)),
            }
        } else if is_prefix {
            word.pop();
            TextSyntax::Prefix(word)
        } else {
            TextSyntax::Words(word)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::es::query::text_syntax::random_texts;

    #[test]
    fn all_texts_are_queries() {
        let mut kinds = [0; 6];
        for text in random_texts("ab \"|+-()*~2\\é", 12, 20_000) {
            let syntax = parse_simple(&text, false).unwrap();
            let shown = format!("{syntax:?}");
            // No character is lost but operators, and no other is added.
            let letters = |text: &str| text.chars().filter(|c| *c == 'é').count();
            assert_eq!(letters(&shown), letters(&text), "{text}: {shown}");
            let names = ["Words", "Phrase", "Prefix", "Fuzzy", "Not", "Group"];
            for (count, name) in kinds.iter_mut().zip(names) {
                *count += usize::from(shown.contains(name));
            }
        }
        assert!(kinds.iter().all(|count| *count > 300), "{kinds:?}");
        assert!(parse_simple(&"(".repeat(10_000), false).is_err());
        assert!(parse_simple(&"a ".repeat(10_000), false).is_err());
    }

    #[test]
    fn operators_are_joined_from_left_to_right() {
        let group = |occur, parts: Vec<TextSyntax>| {
            TextSyntax::Group(parts.into_iter().map(|syntax| TextClause { occur, syntax }).collect())
        };
        let (a, b, c) = (word("a"), word("b"), word("c"));
        let any = group(TextOccur::Should, vec![a.clone(), b.clone()]);
        assert_eq!(parse_simple("a b", false).unwrap(), any);
        assert_eq!(
            parse_simple("a | b + c", false).unwrap(),
            group(TextOccur::Must, vec![any.clone(), c.clone()])
        );
        let all = group(TextOccur::Must, vec![a.clone(), b.clone()]);
        assert_eq!(parse_simple("a b | c", true).unwrap(), group(TextOccur::Should, vec![all.clone(), c]));
        // The first operator counts, if it is behind a clause.
        assert_eq!(parse_simple("| a + | b", false).unwrap(), all);
        assert_eq!(parse_simple("+ a | + b", true).unwrap(), any);
        // A parenthesis that is not closed is ignored.
        assert_eq!(parse_simple("((a (b", false).unwrap(), any);
        assert_eq!(parse_simple("(a b) + (c", false).unwrap(), group(TextOccur::Must, vec![any, word("c")]));
    }

    #[test]
    fn exclusions_concern_what_directly_follows() {
        let not = |text: &str| TextSyntax::Not(Box::new(word(text)));
        for (text, expected) in [
            ("-a", not("a")),
            ("--a", word("a")),
            ("- a", word("a")),
            ("-|a", word("a")),
            ("-+a", word("a")),
            ("->a", not(">a")),
            ("-\ta", word("a")),
            ("a-b", word("a-b")),
        ] {
            assert_eq!(parse_simple(text, true).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_and_distances_are_at_the_ends_of_words() {
        let fuzzy = |text: &str, edits| TextSyntax::Fuzzy(text.to_string(), Fuzziness::Edits(edits));
        for (text, expected) in [
            ("ab*", TextSyntax::Prefix("ab".to_string())),
            ("a*b", word("a*b")),
            ("a*b*", TextSyntax::Prefix("a*b".to_string())),
            ("ab\\*", word("ab*")),
            ("*ab", word("*ab")),
            ("ab~", fuzzy("ab", 2)),
            ("ab~1", fuzzy("ab", 1)),
            ("ab~5", fuzzy("ab", 2)),
            ("ab~0", word("ab")),
            ("~ab", word("~ab")),
        ] {
            assert_eq!(parse_simple(text, true).unwrap(), expected, "{text}");
        }
    }

    fn word(text: &str) -> TextSyntax {
        TextSyntax::Words(text.to_string())
    }
}

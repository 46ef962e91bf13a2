//! What the two languages of query strings have in common: their syntax tree, and the characters of a text.

use super::fuzziness::Fuzziness;
use crate::api_error::{ApiError, ApiErrorKind};
use crate::es::error::parsing_error;
use tierdex::limits::QUERY_CLAUSES_MAX;

/// Groups inside one another, at most.
const DEPTH_MAX: usize = 32;

/// A syntax tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextSyntax {
    Words(String),
    /// A phrase with its slop.
    Phrase(String, Option<usize>),
    Prefix(String),
    /// Words within a number of edits.
    Fuzzy(String, Fuzziness),
    All,
    /// All documents but those of a part.
    Not(Box<TextSyntax>),
    /// A part in a field.
    InField(String, Box<TextSyntax>),
    Boosted(Box<TextSyntax>, f64),
    Group(Vec<TextClause>),
}

/// A clause of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextClause {
    pub(super) occur: TextOccur,
    pub(super) syntax: TextSyntax,
}

/// How a clause counts in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextOccur {
    Should,
    Must,
    MustNot,
}

/// The characters of a text that were not read yet.
pub(super) struct QueryTextReader {
    characters: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    clauses: usize,
}

impl QueryTextReader {
    pub(super) fn new(text: &str) -> QueryTextReader {
        QueryTextReader { characters: text.chars().collect(), at: 0, depth: 0, clauses: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.at += 1;
        self.characters.get(self.at - 1).copied()
    }

    /// Reads a character if it is the next one.
    pub(super) fn take(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(number, c)| self.characters.get(self.at + number) == Some(&c))
    }

    /// Reads a word if it is the next one: a blank, a parenthesis or the end is behind it.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let length = word.chars().count();
        let after = self.characters.get(self.at + length);
        let is_next = self.starts_with(word) && after.is_none_or(|c| c.is_whitespace() || *c == '(');
        self.at += if is_next { length } else { 0 };
        is_next
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Reads a phrase behind its first quotation mark; `None` if it has no last one.
    pub(super) fn phrase(&mut self) -> Option<String> {
        let (start, mut phrase) = (self.at, String::new());
        loop {
            match self.next() {
                Some('"') => return Some(phrase),
                Some('\\') => phrase.extend(self.next()),
                Some(c) => phrase.push(c),
                None => {
                    self.at = start;
                    return None;
                }
            }
        }
    }

    /// Reads a word until a character that ends it, and that is not escaped.
    pub(super) fn word(&mut self, ends: impl Fn(char) -> bool) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !ends(*c)) {
            self.at += 1;
            word.extend(if c == '\\' { self.next() } else { Some(c) });
        }
        word
    }

    /// Reads a number of digits, with a fraction if there is one.
    pub(super) fn number(&mut self) -> Option<f64> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.at += 1;
        }
        self.characters[start..self.at].iter().collect::<String>().parse().ok()
    }

    /// Counts a clause, of which a query may have a limited number.
    pub(super) fn count_clause(&mut self) -> Result<(), ApiError> {
        self.clauses += 1;
        if self.clauses > QUERY_CLAUSES_MAX {
            let message = format!("the query has more than {QUERY_CLAUSES_MAX} clauses");
            return Err(ApiError::new(ApiErrorKind::Limit, message));
        }
        Ok(())
    }

    /// Whether the group whose `(` was read is closed. Simple query strings ignore a parenthesis that is not.
    pub(super) fn is_group_closed(&self) -> bool {
        let (mut depth, mut is_escaped) = (1, false);
        self.characters[self.at..].iter().any(|&c| {
            match c {
                _ if is_escaped => {}
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            is_escaped = c == '\\' && !is_escaped;
            depth == 0
        })
    }

    /// Enters a group.
    pub(super) fn enter(&mut self) -> Result<(), ApiError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong(format!("more than {DEPTH_MAX} groups inside one another")));
        }
        Ok(())
    }

    /// An error at the next character.
    pub(super) fn wrong(&self, message: impl Into<String>) -> ApiError {
        parsing_error(format!(
            "[query], character {}: {}",
            self.at.min(self.characters.len()) + 1,
            message.into()
        ))
    }
}

/// Texts of random characters, the same in each run.
#[cfg(test)]
pub(super) fn random_texts(characters: &str, length: usize, count: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = characters.chars().collect();
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        characters[(state >> 33) as usize % characters.len()]
    };
    (0..count).map(move |_| (0..length).map(|_| next()).collect())
}

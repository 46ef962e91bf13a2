//! Tokenizer of the query language.

use super::problems::Problems;
use super::suffix::{Suffixes, is_mark, is_number_like};
use super::tree::{Fields, SyntaxTree, boosted};
use crate::error::Result;

/// A token of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum QueryToken {
    /// `(`, with the field before it.
    Open(Option<String>),
    Close(Suffixes),
    And,
    Or,
    Not,
    Plus,
    Minus,
    Hash,
    /// A word or phrase with its suffixes, and the field named before it.
    Leaf(SyntaxTree),
}

/// Splits `text` into tokens, each with its byte offset.
pub(super) fn tokenize(
    text: &str,
    fields: Fields<'_>,
    problems: &mut Problems,
) -> Result<Vec<(usize, QueryToken)>> {
    let mut tokenizer = QueryTokenizer { text, at: 0, fields, problems };
    let mut tokens = Vec::new();
    while let Some(c) = tokenizer.peek() {
        let at = tokenizer.at;
        if c.is_whitespace() {
            tokenizer.at += c.len_utf8();
        } else if let Some(token) = tokenizer.token(c)? {
            tokens.push((at, token));
        }
    }
    Ok(tokens)
}

struct QueryTokenizer<'a> {
    text: &'a str,
    at: usize,
    fields: Fields<'a>,
    problems: &'a mut Problems,
}

/// A character of a word, and whether it was escaped.
#[derive(Clone, Copy)]
struct Letter {
    at: usize,
    c: char,
    escaped: bool,
}

impl Letter {
    fn is(self, c: char) -> bool {
        self.c == c && !self.escaped
    }
}

impl QueryTokenizer<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// The token that starts with `c`; `None` if it is dropped.
    fn token(&mut self, c: char) -> Result<Option<QueryToken>> {
        let token = match c {
            '(' => QueryToken::Open(None),
            ')' => {
                self.at += 1;
                return Ok(Some(QueryToken::Close(self.suffixes()?)));
            }
            '+' => QueryToken::Plus,
            '-' => QueryToken::Minus,
            '#' => QueryToken::Hash,
            '"' => return self.phrase(None).map(Some),
            _ => return self.word(),
        };
        self.at += 1;
        Ok(Some(token))
    }

    /// Parses the suffixes after a phrase or a group.
    fn suffixes(&mut self) -> Result<Suffixes> {
        if !self.peek().is_some_and(is_mark) {
            return Ok(Suffixes::default());
        }
        let at = self.at;
        let rest = &self.text[at..];
        let len = rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"'));
        let run = &rest[..len.unwrap_or(rest.len())];
        self.at += run.len();
        Suffixes::read(at, run, self.problems)
    }

    fn phrase(&mut self, field: Option<String>) -> Result<QueryToken> {
        let start = self.at;
        let mut words = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        let mut end = None;
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    end = Some(start + 1 + at + 1);
                    break;
                }
                '\\' => words.extend(chars.next().map(|(_, c)| c)),
                _ => words.push(c),
            }
        }
        self.at = end.unwrap_or(self.text.len());
        if end.is_none() {
            self.problems.at(start, "this `\"` is not closed")?;
        }
        let suffixes = self.suffixes()?;
        let slop = suffixes.slop(self.problems)?;
        Ok(QueryToken::Leaf(boosted(SyntaxTree::Phrase(field, words, slop), suffixes.boost())))
    }

    fn word(&mut self) -> Result<Option<QueryToken>> {
        let start = self.at;
        if let Some(token) = self.plain_word() {
            return Ok(Some(token));
        }
        let (mut field, mut colon) = (None, false);
        let mut letters: Vec<Letter> = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '"' if field.is_some() && letters.is_empty() => return self.phrase(field).map(Some),
                '(' if field.is_some() && letters.is_empty() => {
                    self.at += 1;
                    return Ok(Some(QueryToken::Open(field)));
                }
                '(' | ')' | '"' => break,
                // Field names contain no colon, so only the first colon of a word can end one.
                ':' if !std::mem::replace(&mut colon, true) && self.is_field(start, &letters)? => {
                    field = Some(spelled(&letters));
                    letters.clear();
                }
                '\\' => {
                    self.at += 1;
                    let Some(c) = self.peek() else { break };
                    letters.push(Letter { at: self.at - 1, c, escaped: true });
                }
                _ if c.is_whitespace() => break,
                _ => letters.push(Letter { at: self.at, c, escaped: false }),
            }
            self.at += self.peek().map_or(0, char::len_utf8);
        }
        if letters.is_empty()
            && let Some(field) = field.take()
        {
            let message = format!("a word, a phrase or a group must follow `{field}:` at once");
            self.problems.at(start, message)?;
            return Ok(Some(QueryToken::Leaf(SyntaxTree::Word(None, field))));
        }
        self.finish_word(start, field, letters)
    }

    /// Fast path of [`QueryTokenizer::word`] for a word without operator characters, as most are.
    fn plain_word(&mut self) -> Option<QueryToken> {
        let rest = &self.text[self.at..];
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            if matches!(c, '\\' | ':' | '^' | '~' | '*') {
                return None;
            }
            if c.is_whitespace() || matches!(c, '(' | ')' | '"') {
                end = at;
                break;
            }
        }
        let word = &rest[..end];
        self.at += word.len();
        Some(match word {
            "AND" => QueryToken::And,
            "OR" => QueryToken::Or,
            "NOT" => QueryToken::Not,
            _ => QueryToken::Leaf(SyntaxTree::Word(None, word.to_string())),
        })
    }

    /// Whether the letters before the colon at the current offset name a field. A name that looks like a
    /// field and is none is reported; it is then text.
    fn is_field(&mut self, start: usize, letters: &[Letter]) -> Result<bool> {
        if letters.iter().any(|letter| letter.escaped) {
            return Ok(false);
        }
        let name = spelled(letters);
        let Err(fields) = (self.fields)(&name) else { return Ok(true) };
        if is_name(&name) && self.text[self.at + 1..].starts_with(begins_clause) {
            let message =
                format!("`{name}` is not a field of this index, {fields}; write `{name}\\:` for the word");
            self.problems.at(start, message)?;
        }
        Ok(false)
    }

    /// The token of a word with these letters.
    fn finish_word(
        &mut self,
        start: usize,
        field: Option<String>,
        mut letters: Vec<Letter>,
    ) -> Result<Option<QueryToken>> {
        if field.is_none() && letters.iter().all(|letter| !letter.escaped) {
            match spelled(&letters).as_str() {
                "AND" => return Ok(Some(QueryToken::And)),
                "OR" => return Ok(Some(QueryToken::Or)),
                "NOT" => return Ok(Some(QueryToken::Not)),
                _ => {}
            }
        }
        let suffixes = self.strip_suffixes(&mut letters)?;
        let all = field.is_none() && letters.len() == 3 && "*:*".chars().zip(&letters).all(|(c, l)| l.is(c));
        let kept = letters.iter().rposition(|letter| !letter.is('*')).map_or(0, |last| last + 1);
        let syntax = if all {
            SyntaxTree::All
        } else if kept < letters.len() {
            letters.truncate(kept);
            if letters.is_empty() {
                self.problems.at(start, "`*` needs the beginning of a word in front of it")?;
                return Ok(None);
            }
            SyntaxTree::Prefix(field, spelled(&letters))
        } else {
            match suffixes.distance(self.problems)? {
                Some(distance) => SyntaxTree::Fuzzy(field, spelled(&letters), distance),
                None => SyntaxTree::Word(field, spelled(&letters)),
            }
        };
        if suffixes.has_tilde() && matches!(syntax, SyntaxTree::All | SyntaxTree::Prefix(..)) {
            self.problems.at(start, "what ends in `*` cannot be fuzzy too")?;
        }
        Ok(Some(QueryToken::Leaf(boosted(syntax, suffixes.boost()))))
    }

    /// Removes the suffix operators from the end of a word. The first letter is never an operator.
    fn strip_suffixes(&mut self, letters: &mut Vec<Letter>) -> Result<Suffixes> {
        let mut suffixes = Suffixes::default();
        while let Some(mark) = letters.iter().rposition(|letter| letter.is('^') || letter.is('~')) {
            let number = spelled(&letters[mark + 1..]);
            let escaped = letters[mark + 1..].iter().any(|letter| letter.escaped);
            if mark == 0 || escaped || !is_number_like(&number) {
                break;
            }
            suffixes.add(letters[mark].at, letters[mark].c, &number, self.problems)?;
            letters.truncate(mark);
        }
        Ok(suffixes)
    }
}

/// Whether `text` looks like a field name: a letter or `_`, then letters, digits, `_` and `-`.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether `c` after a colon starts a clause, unlike in URLs, paths and sentences.
fn begins_clause(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '/' | '\\' | ':' | ')')
}

fn spelled(letters: &[Letter]) -> String {
    letters.iter().map(|letter| letter.c).collect()
}

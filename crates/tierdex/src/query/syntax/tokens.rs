//! Tokenizer of the query language. A character or word is an operator only where it is written in full:
//! brackets and quotation marks in pairs, signs before a clause, `name:` with the name of a field. Everything
//! else is text. Operators of other query languages that are not supported are faults in their full form.

use super::column::{WrittenColumn, parse_column};
use super::pairs::{end_of_phrase, find_unpaired};
use super::problems::Problems;
use super::suffix::{Suffixes, is_number, is_suffix_operator};
use super::tree::{Fields, NameKind, Occur, SyntaxTree, with_boost};
use crate::{Result, text::is_in_hebrew_word};

/// A token of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum QueryToken {
    /// `(`, with the field before it.
    Open(Option<String>),
    Close(Suffixes),
    And,
    Or,
    /// `+`, `-`, `!`, `#` or `NOT`.
    Sign(Occur),
    /// A word or phrase with its suffixes, and the field named before it.
    Leaf(SyntaxTree),
}

/// Splits `text` into tokens, each with its byte offset.
pub(super) fn tokenize(
    text: &str,
    fields: Fields<'_>,
    problems: &mut Problems,
) -> Result<Vec<(usize, QueryToken)>> {
    let unpaired = find_unpaired(text);
    if let Some(at) = unpaired.first() {
        let c = text[*at..].chars().next().unwrap_or_default();
        problems.warn_at(*at, format!("this `{c}` has no pair and is read as text"));
    }
    let mut tokenizer = QueryTokenizer { text, at: 0, unpaired, fields, problems };
    let mut tokens = Vec::new();
    while let Some(c) = tokenizer.peek() {
        let at = tokenizer.at;
        if c.is_whitespace() || tokenizer.unpaired.binary_search(&at).is_ok() {
            tokenizer.at += c.len_utf8();
        } else if let Some(token) = tokenizer.read_token(c, tokens.is_empty())? {
            tokens.push((at, token));
        }
    }
    Ok(tokens)
}

struct QueryTokenizer<'a> {
    text: &'a str,
    at: usize,
    /// Offsets of brackets and quotation marks without a pair, which are text.
    unpaired: Vec<usize>,
    fields: Fields<'a>,
    problems: &'a mut Problems,
}

/// A character of a word with its offset, and whether a backslash stood before it.
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
    fn read_token(&mut self, c: char, first: bool) -> Result<Option<QueryToken>> {
        let token = match c {
            '(' => QueryToken::Open(None),
            ')' => {
                self.at += 1;
                return Ok(Some(QueryToken::Close(self.read_suffixes()?)));
            }
            '+' if self.is_before_clause() => QueryToken::Sign(Occur::Must),
            '-' | '!' if self.is_before_clause() => QueryToken::Sign(Occur::MustNot),
            '#' if self.is_before_clause() => QueryToken::Sign(Occur::Filter),
            '"' => return self.read_phrase(None).map(Some),
            '&' | '|' if !first && self.is_between_blanks() => {
                self.at += 2;
                return Ok(Some(if c == '&' { QueryToken::And } else { QueryToken::Or }));
            }
            _ => return self.read_word(),
        };
        self.at += 1;
        Ok(Some(token))
    }

    /// Whether the sign at the current offset is directly before a word, phrase or group, and not behind one.
    fn is_before_clause(&self) -> bool {
        if self.text[..self.at].ends_with([')', '"']) {
            return false;
        }
        let next = self.text[self.at + 1..].chars().next();
        let begins = |c: char| c.is_alphanumeric() || matches!(c, '"' | '(' | '\\' | '*' | '_');
        next.is_some_and(begins) && self.unpaired.binary_search(&(self.at + 1)).is_err()
    }

    /// Whether `&&` or `||` is at the current offset, with blanks around it and more text behind it.
    fn is_between_blanks(&self) -> bool {
        let rest = &self.text[self.at..];
        let behind = rest.strip_prefix("&&").or_else(|| rest.strip_prefix("||"));
        behind
            .is_some_and(|behind| behind.starts_with(char::is_whitespace) && !behind.trim_start().is_empty())
            && self.text[..self.at].ends_with(char::is_whitespace)
    }

    /// Parses the suffixes after a phrase or a group.
    fn read_suffixes(&mut self) -> Result<Suffixes> {
        let mut suffixes = Suffixes::default();
        while let Some(mark) = self.peek().filter(|c| is_suffix_operator(*c)) {
            let rest = first_bytes(&self.text[self.at + 1..], SUFFIX_BYTES_MAX);
            let len = rest
                .find(|c: char| c.is_whitespace() || is_suffix_operator(c) || matches!(c, '(' | ')' | '"'));
            let number = &rest[..len.unwrap_or(rest.len())];
            if !is_number(number) {
                break;
            }
            suffixes.add_operator(self.at, mark, number, self.problems)?;
            self.at += 1 + number.len();
        }
        Ok(suffixes)
    }

    fn read_phrase(&mut self, field: Option<String>) -> Result<QueryToken> {
        let start = self.at + 1;
        let end = end_of_phrase(self.text, start);
        self.at = end.unwrap_or(self.text.len());
        let inside = &self.text[start..end.map_or(self.at, |end| end - 1)];
        let (mut words, mut chars) = (String::new(), inside.chars());
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(c) if c.is_alphanumeric() => words.extend([' ', c]),
                    next => words.extend(next),
                },
                _ => words.push(c),
            }
        }
        let suffixes = self.read_suffixes()?;
        let slop = suffixes.count(self.problems)?.map_or(0, |(_, slop)| slop);
        Ok(QueryToken::Leaf(with_boost(SyntaxTree::Phrase(field, words, slop), suffixes.boost)))
    }

    fn read_word(&mut self) -> Result<Option<QueryToken>> {
        let start = self.at;
        if let Some(token) = self.read_plain_word() {
            return Ok(Some(token));
        }
        self.report_foreign_operator(start)?;
        let (mut field, mut colon) = (None, false);
        let mut letters: Vec<Letter> = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '"' if is_in_hebrew_word(self.text, self.at) => {
                    letters.push(Letter { at: self.at, c, escaped: true })
                }
                '"' | '(' if self.unpaired.binary_search(&self.at).is_ok() => break,
                '"' if field.is_some() && letters.is_empty() => return self.read_phrase(field).map(Some),
                '(' if field.is_some() && letters.is_empty() => {
                    self.at += 1;
                    return Ok(Some(QueryToken::Open(field)));
                }
                '(' | ')' | '"' => break,
                // Field names contain no colon, so only the first colon of a word can end one.
                ':' if !std::mem::replace(&mut colon, true)
                    && let Some(kind) = self.kind_of_name(start, &letters) =>
                {
                    let name = letters_to_text(&letters);
                    if kind == NameKind::Column {
                        return self.read_column(start, name);
                    }
                    field = Some(name);
                    letters.clear();
                    self.at = self.start_of_clause(start, self.at + 1)?;
                    continue;
                }
                '\\' => {
                    let Some(next) = self.text[self.at + 1..].chars().next() else {
                        self.at += 1;
                        break;
                    };
                    // Before a letter a backslash is text, as in paths.
                    if next.is_alphanumeric() {
                        letters.push(Letter { at: self.at, c, escaped: false });
                    } else {
                        letters.push(Letter { at: self.at, c: next, escaped: true });
                        self.at += 1;
                    }
                }
                _ if c.is_whitespace() => break,
                _ => letters.push(Letter { at: self.at, c, escaped: false }),
            }
            self.at += self.peek().map_or(0, char::len_utf8);
        }
        if letters.is_empty() {
            // What follows the name of the field is not a clause, so the name is text.
            return Ok(field.map(|name| QueryToken::Leaf(SyntaxTree::Word(None, name))));
        }
        self.finish_word(start, field, letters)
    }

    /// Where the clause after `name:` begins. The name begins at `start`; the clause, or blanks before it as
    /// in Lucene, at `at`. Reports an operator in place of the clause.
    fn start_of_clause(&mut self, start: usize, at: usize) -> Result<usize> {
        let (name, rest) = (&self.text[start..at - 1], &self.text[at..]);
        let clause = rest.trim_start();
        let has_blanks = clause.len() < rest.len();
        let is_operator = ["NOT ", "AND ", "OR ", "&& ", "|| "].iter().any(|name| clause.starts_with(name));
        let mut signs = clause.chars();
        let fault = match (signs.next(), signs.next()) {
            (Some('+' | '-' | '!' | '#'), Some(c)) if has_blanks && !c.is_whitespace() => return Ok(at),
            (Some(sign @ ('+' | '-' | '!' | '#')), Some(c)) if !c.is_whitespace() => {
                format!("write `{sign}{name}:` for `{name}:{sign}`")
            }
            (Some('<' | '>'), Some('=' | '0'..='9')) => {
                format!("ranges are not supported; write `{name}\\:` for the word")
            }
            _ if has_blanks && is_operator => return Ok(at),
            _ if clause.starts_with("NOT ") => format!("write `NOT {name}:` for `{name}:NOT`"),
            _ => String::new(),
        };
        if !fault.is_empty() {
            self.problems.report_at(start, fault)?;
        }
        let clause_at = self.text.len() - clause.len();
        self.report_foreign_operator(clause_at)?;
        Ok(clause_at)
    }

    /// Reports an operator of another query language that begins at `at` in its full form.
    fn report_foreign_operator(&mut self, at: usize) -> Result<()> {
        let rest = first_bytes(&self.text[at..], FOREIGN_BYTES_MAX);
        let word = rest.split(char::is_whitespace).next().unwrap_or("");
        let message = if is_regular_expression(word) {
            "regular expressions are not supported; write `\\/` for the character"
        } else if is_range(rest) {
            "ranges are not supported; write `\\[` or `\\{` for the character"
        } else if word.strip_prefix("NEAR").is_some_and(is_near_argument) {
            "`NEAR` is no operator; write `\"one two\"~5` for words at a distance of 5"
        } else {
            return Ok(());
        };
        self.problems.report_at(at, message)
    }

    /// Fast path of [`QueryTokenizer::read_word`] for a word without operator characters, as most are.
    fn read_plain_word(&mut self) -> Option<QueryToken> {
        let rest = &self.text[self.at..];
        if rest.starts_with(['/', '[', '{']) || rest.starts_with("NEAR") {
            return None;
        }
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            if matches!(c, '\\' | ':' | '^' | '~' | '*') || (c == '"' && is_in_hebrew_word(rest, at)) {
                return None;
            }
            if c.is_whitespace() || matches!(c, '(' | ')' | '"') {
                end = at;
                break;
            }
        }
        let word = &rest[..end];
        self.at += word.len();
        let token = || QueryToken::Leaf(SyntaxTree::Word(None, word.to_string()));
        Some(operator_named(word).unwrap_or_else(token))
    }

    /// The clause on a column, whose name begins at `start` and ends at the current offset.
    fn read_column(&mut self, start: usize, column: String) -> Result<Option<QueryToken>> {
        match parse_column(&self.text[self.at + 1..]) {
            Ok(WrittenColumn { ranges, boost, len }) => {
                self.at += 1 + len;
                Ok(Some(QueryToken::Leaf(SyntaxTree::Column { column, at: start, ranges, boost })))
            }
            Err((len, message)) => {
                self.at += 1 + len;
                self.problems.report_at(start, message)?;
                Ok(None)
            }
        }
    }

    /// What the letters before the colon at the current offset name, if they do. Records a warning for a name
    /// that looks like that of a field but is not.
    fn kind_of_name(&mut self, start: usize, letters: &[Letter]) -> Option<NameKind> {
        if letters.iter().any(|letter| letter.escaped) {
            return None;
        }
        let name = letters_to_text(letters);
        let fields = match (self.fields)(&name) {
            Ok(kind) => return Some(kind),
            Err(fields) => fields,
        };
        if is_name(&name) && self.text[self.at + 1..].starts_with(begins_field_clause) {
            let message = format!("`{name}:` is read as text: it is not a field of this index, {fields}");
            self.problems.warn_at(start, message);
        }
        None
    }

    /// The token of a word of these letters, which begins at `start`: without its suffixes and the `*` of a
    /// prefix. `None` if nothing is left.
    fn finish_word(
        &mut self,
        start: usize,
        field: Option<String>,
        mut letters: Vec<Letter>,
    ) -> Result<Option<QueryToken>> {
        if field.is_none()
            && letters.iter().all(|letter| !letter.escaped)
            && let Some(token) = operator_named(&letters_to_text(&letters))
        {
            return Ok(Some(token));
        }
        let suffixes = self.strip_suffixes(&mut letters)?;
        let all = field.is_none() && letters.len() == 3 && "*:*".chars().zip(&letters).all(|(c, l)| l.is(c));
        let kept = letters.iter().rposition(|letter| !letter.is('*')).map_or(0, |last| last + 1);
        if !all && is_wildcard(&letters[..kept]) {
            let message = "a `*` inside a word is read as text; it stands for letters at the end only";
            self.problems.warn_at(start, message);
        }
        let syntax = if all {
            SyntaxTree::All
        } else if kept == letters.len() {
            match suffixes.distance(self.problems)? {
                Some(distance) => SyntaxTree::Fuzzy(field, letters_to_text(&letters), distance),
                None => SyntaxTree::Word(field, letters_to_text(&letters)),
            }
        } else if kept > 0 {
            SyntaxTree::Prefix(field, letters_to_text(&letters[..kept]))
        } else if field.is_some() {
            let message = "`*` needs the beginning of a word in front of it; write `*:*` for all documents";
            return self.problems.report_at(start, message).map(|()| None);
        } else {
            return Ok(None);
        };
        if suffixes.tilde.is_some() && matches!(syntax, SyntaxTree::All | SyntaxTree::Prefix(..)) {
            self.problems.report_at(start, "what ends in `*` cannot be fuzzy too")?;
        }
        Ok(Some(QueryToken::Leaf(with_boost(syntax, suffixes.boost))))
    }

    /// Removes the suffix operators from the end of a word. The first letter is never an operator.
    fn strip_suffixes(&mut self, letters: &mut Vec<Letter>) -> Result<Suffixes> {
        let mut suffixes = Suffixes::default();
        while let Some(mark) = letters.iter().rposition(|letter| letter.is('^') || letter.is('~')) {
            let number = letters_to_text(&letters[mark + 1..]);
            let escaped = letters[mark + 1..].iter().any(|letter| letter.escaped);
            let is_fuzzy = letters[mark].c == '~' && number.is_empty() && suffixes.tilde.is_none();
            if mark == 0 || escaped || !(is_fuzzy || is_number(&number)) {
                break;
            }
            suffixes.add_operator(letters[mark].at, letters[mark].c, &number, self.problems)?;
            letters.truncate(mark);
        }
        Ok(suffixes)
    }
}

/// Maximum bytes of the number of a suffix; a longer one is text.
const SUFFIX_BYTES_MAX: usize = 32;

/// Maximum bytes of an operator of another query language that is reported; a longer one is text.
const FOREIGN_BYTES_MAX: usize = 256;

/// The first characters of a text, of at most `bytes_max` bytes.
fn first_bytes(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Whether a word is a regular expression between slashes, with a character that is special in one.
fn is_regular_expression(word: &str) -> bool {
    let inner = word.strip_prefix('/').and_then(|word| word.strip_suffix('/'));
    // A full stop alone is more often that of an abbreviation.
    let is_special =
        |c: char| matches!(c, '*' | '+' | '?' | '[' | ']' | '(' | ')' | '{' | '}' | '|' | '\\' | '$');
    inner.is_some_and(|inner| !inner.contains('/') && inner.contains(is_special))
}

/// Whether a word has a `*` before a letter, and no other character than a letter before it.
fn is_wildcard(letters: &[Letter]) -> bool {
    let is_letter = |at: usize| letters.get(at).is_some_and(|letter| letter.c.is_alphabetic());
    (0..letters.len()).any(|at| letters[at].is('*') && (at == 0 || is_letter(at - 1)) && is_letter(at + 1))
}

/// Whether a text begins with a range such as `[a TO b]`.
fn is_range(text: &str) -> bool {
    let Some(inner) = text.strip_prefix(['[', '{']) else { return false };
    let Some(end) = inner.find([']', '}']) else { return false };
    let mut words = inner[..end].split_whitespace();
    words.next().is_some() && words.next() == Some("TO") && words.next().is_some() && words.next().is_none()
}

/// Whether a text behind `NEAR` makes it an operator: a bracket, or `/` and a number.
fn is_near_argument(text: &str) -> bool {
    text.starts_with('(') || text.strip_prefix('/').is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Whether `text` looks like a field name: a letter or `_`, then letters, digits, `_` and `-`.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether `c` directly after `name:` may begin a clause. In URLs, paths and sentences the next character is
/// another.
fn begins_field_clause(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '/' | '\\' | ':' | ')')
}

/// The operator that a word is.
fn operator_named(word: &str) -> Option<QueryToken> {
    match word {
        "AND" => Some(QueryToken::And),
        "OR" => Some(QueryToken::Or),
        "NOT" => Some(QueryToken::Sign(Occur::MustNot)),
        _ => None,
    }
}

fn letters_to_text(letters: &[Letter]) -> String {
    letters.iter().map(|letter| letter.c).collect()
}

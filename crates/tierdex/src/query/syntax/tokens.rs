//! Query text to tokens.

use super::problems::Problems;
use super::suffix::{Suffixes, is_mark, is_number_like};
use super::{Fields, Syntax, boosted};
use crate::error::Result;

/// A piece of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `(`, and the field in front of it.
    Open(Option<String>),
    Close(Suffixes),
    And,
    Or,
    Not,
    Plus,
    Minus,
    Hash,
    /// A word or phrase with what stands behind it. The field is the one that is named in front of it.
    Leaf(Syntax),
}

/// Cuts `text` up. Each token comes with its place.
pub(super) fn tokenize(
    text: &str,
    fields: Fields<'_>,
    problems: &mut Problems,
) -> Result<Vec<(usize, Token)>> {
    let mut tokenizer = Tokenizer { text, at: 0, fields, problems };
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

struct Tokenizer<'a> {
    text: &'a str,
    at: usize,
    fields: Fields<'a>,
    problems: &'a mut Problems,
}

/// A character of a word, and whether a backslash made it ordinary.
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

impl Tokenizer<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// The token that begins with `c`; `None` if it is dropped.
    fn token(&mut self, c: char) -> Result<Option<Token>> {
        let token = match c {
            '(' => Token::Open(None),
            ')' => {
                self.at += 1;
                return Ok(Some(Token::Close(self.suffixes()?)));
            }
            '+' => Token::Plus,
            '-' => Token::Minus,
            '#' => Token::Hash,
            '"' => return self.phrase(None).map(Some),
            _ => return self.word(),
        };
        self.at += 1;
        Ok(Some(token))
    }

    /// The operators that stand here, right behind a phrase or a group.
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

    fn phrase(&mut self, field: Option<String>) -> Result<Token> {
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
        Ok(Token::Leaf(boosted(Syntax::Phrase(field, words, slop), suffixes.boost())))
    }

    fn word(&mut self) -> Result<Option<Token>> {
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
                    return Ok(Some(Token::Open(field)));
                }
                '(' | ')' | '"' => break,
                // No name has a colon in it: what is in front of the first one decides.
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
            return Ok(Some(Token::Leaf(Syntax::Word(None, field))));
        }
        self.finish_word(start, field, letters)
    }

    /// A word of nothing but ordinary characters, which most are: what [`Tokenizer::word`] makes of it,
    /// without a look at each.
    fn plain_word(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"'));
        let word = &rest[..end.unwrap_or(rest.len())];
        if word.contains(['\\', ':', '^', '~', '*']) {
            return None;
        }
        self.at += word.len();
        Some(match word {
            "AND" => Token::And,
            "OR" => Token::Or,
            "NOT" => Token::Not,
            _ => Token::Leaf(Syntax::Word(None, word.to_string())),
        })
    }

    /// Whether the letters before the colon that stands here name a field. What looks like a field and is
    /// none is a problem; then it is text.
    fn is_field(&mut self, start: usize, letters: &[Letter]) -> Result<bool> {
        if letters.iter().any(|letter| letter.escaped) {
            return Ok(false);
        }
        let name = spelled(letters);
        let Err(which) = (self.fields)(&name) else { return Ok(true) };
        if is_name(&name) && self.text[self.at + 1..].starts_with(begins_clause) {
            let message =
                format!("`{name}` is not a field of this index, {which}; write `{name}\\:` for the word");
            self.problems.at(start, message)?;
        }
        Ok(false)
    }

    /// What the letters of a word mean.
    fn finish_word(
        &mut self,
        start: usize,
        field: Option<String>,
        mut letters: Vec<Letter>,
    ) -> Result<Option<Token>> {
        if field.is_none() && letters.iter().all(|letter| !letter.escaped) {
            match spelled(&letters).as_str() {
                "AND" => return Ok(Some(Token::And)),
                "OR" => return Ok(Some(Token::Or)),
                "NOT" => return Ok(Some(Token::Not)),
                _ => {}
            }
        }
        let suffixes = self.strip_suffixes(&mut letters)?;
        let all = field.is_none() && letters.len() == 3 && "*:*".chars().zip(&letters).all(|(c, l)| l.is(c));
        let kept = letters.iter().rposition(|letter| !letter.is('*')).map_or(0, |last| last + 1);
        let syntax = if all {
            Syntax::All
        } else if kept < letters.len() {
            letters.truncate(kept);
            if letters.is_empty() {
                self.problems.at(start, "`*` needs the beginning of a word in front of it")?;
                return Ok(None);
            }
            Syntax::Prefix(field, spelled(&letters))
        } else {
            match suffixes.distance(self.problems)? {
                Some(distance) => Syntax::Fuzzy(field, spelled(&letters), distance),
                None => Syntax::Word(field, spelled(&letters)),
            }
        };
        if suffixes.has_tilde() && matches!(syntax, Syntax::All | Syntax::Prefix(..)) {
            self.problems.at(start, "what ends in `*` cannot be fuzzy too")?;
        }
        Ok(Some(Token::Leaf(boosted(syntax, suffixes.boost()))))
    }

    /// Takes the operators from the end of a word. A word does not begin with one.
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

/// Whether a field may be meant: no number, and nothing with other signs in it.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether what follows a colon is text that a field may hold, as it is not in addresses, paths and
/// sentences.
fn begins_clause(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '/' | '\\' | ':' | ')')
}

fn spelled(letters: &[Letter]) -> String {
    letters.iter().map(|letter| letter.c).collect()
}

//! The query language.
//!
//! ```text
//! list    = clause { [ "OR" ] clause }
//! clause  = unary { "AND" unary }
//! unary   = [ "+" | "-" | "NOT" ] primary
//! primary = word | field ":" word | phrase | field ":" phrase | "(" list ")"
//! phrase  = '"' words '"'
//! ```
//!
//! Clauses stand side by side as alternatives, as with `OR`; `+` makes one required, `-` and `NOT` exclude.
//! `AND` binds tighter than `OR`. `a OR NOT b` means the documents that hold `a` and those that do not hold `b`;
//! `a NOT b` those that hold `a` and not `b`. A backslash makes the next character ordinary. `name:` in front
//! of a word is a field only when the index has one of that name.

use crate::error::{Error, Result};
use crate::limits::{QUERY_BYTES_MAX, QUERY_CLAUSES_MAX, QUERY_DEPTH_MAX};

/// A syntax tree. Words are as written, not yet analysed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A word, in a field if one is named.
    Word(Option<String>, String),
    /// A quoted phrase.
    Phrase(Option<String>, String),
    /// Clauses side by side.
    List(Vec<(Occur, Syntax)>),
}

/// How a clause takes part in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occur {
    /// Adds to the score of documents that match it.
    Should,
    /// Documents must match it.
    Must,
    /// Documents must not match it.
    MustNot,
}

/// Reads a query. `is_field` says whether the index has a field of that name.
pub fn parse(text: &str, is_field: &dyn Fn(&str) -> bool) -> Result<Syntax> {
    check_length(text)?;
    let mut parser = Parser { tokens: tokenize(text, is_field)?, next: 0, end: text.len(), clauses: 0 };
    let tree = parser.list(0)?;
    match parser.peek() {
        None => Ok(tree),
        Some(_) => Err(parser.error("`)` without `(`")),
    }
}

/// Refuses queries that are too long to be read.
pub(super) fn check_length(text: &str) -> Result<()> {
    if text.len() <= QUERY_BYTES_MAX {
        return Ok(());
    }
    let message = format!("longer than {QUERY_BYTES_MAX} bytes");
    Err(Error::Query { at: QUERY_BYTES_MAX, message })
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Plus,
    Minus,
    Word(Option<String>, String),
    Phrase(Option<String>, String),
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    clauses: usize,
}

impl Parser {
    fn list(&mut self, depth: usize) -> Result<Syntax> {
        if depth > QUERY_DEPTH_MAX {
            return Err(self.error(&format!("more than {QUERY_DEPTH_MAX} parentheses inside one another")));
        }
        let mut clauses: Vec<(Occur, Syntax)> = Vec::new();
        loop {
            let after_or = self.take(&Token::Or);
            if after_or && clauses.is_empty() {
                self.next -= 1;
                return Err(self.error("`OR` has nothing on its left"));
            }
            match self.peek() {
                None | Some(Token::Close) if after_or => {
                    return Err(self.error("`OR` has nothing on its right"));
                }
                None | Some(Token::Close) => break,
                Some(_) => {}
            }
            let (occur, node) = self.clause(depth)?;
            let alternative = after_or || self.peek() == Some(&Token::Or);
            clauses.push(match occur {
                Occur::MustNot if alternative => (Occur::Should, Syntax::List(vec![(occur, node)])),
                _ => (occur, node),
            });
        }
        match clauses.as_slice() {
            [(Occur::Should | Occur::Must, _)] => Ok(clauses.remove(0).1),
            _ => Ok(Syntax::List(clauses)),
        }
    }

    fn clause(&mut self, depth: usize) -> Result<(Occur, Syntax)> {
        let first = self.unary(depth)?;
        if self.peek() != Some(&Token::And) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take(&Token::And) {
            if matches!(self.peek(), None | Some(Token::Close | Token::And | Token::Or)) {
                return Err(self.error("`AND` has nothing on its right"));
            }
            operands.push(self.unary(depth)?);
        }
        for (occur, _) in &mut operands {
            if *occur == Occur::Should {
                *occur = Occur::Must;
            }
        }
        Ok((Occur::Should, Syntax::List(operands)))
    }

    fn unary(&mut self, depth: usize) -> Result<(Occur, Syntax)> {
        let mut occur = Occur::Should;
        loop {
            occur = match (self.peek(), occur) {
                (Some(Token::Plus), Occur::Should) => Occur::Must,
                (Some(Token::Minus | Token::Not), Occur::Should) => Occur::MustNot,
                (Some(Token::Plus | Token::Minus | Token::Not), _) => {
                    return Err(self.error("two of `+`, `-` and `NOT` in a row"));
                }
                _ => break,
            };
            self.next += 1;
        }
        Ok((occur, self.primary(depth)?))
    }

    fn primary(&mut self, depth: usize) -> Result<Syntax> {
        self.clauses += 1;
        if self.clauses > QUERY_CLAUSES_MAX {
            return Err(self.error(&format!("more than {QUERY_CLAUSES_MAX} clauses")));
        }
        match self.peek().cloned() {
            Some(Token::Word(field, word)) => {
                self.next += 1;
                Ok(Syntax::Word(field, word))
            }
            Some(Token::Phrase(field, words)) => {
                self.next += 1;
                Ok(Syntax::Phrase(field, words))
            }
            Some(Token::Open) => {
                self.next += 1;
                let list = self.list(depth + 1)?;
                if self.take(&Token::Close) { Ok(list) } else { Err(self.error("`(` is not closed")) }
            }
            Some(Token::And) => Err(self.error("`AND` has nothing on its left")),
            _ => Err(self.error("a word is missing here")),
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    fn error(&self, message: &str) -> Error {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        Error::Query { at, message: message.to_string() }
    }
}

fn tokenize(text: &str, is_field: &dyn Fn(&str) -> bool) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some(&(at, c)) = chars.peek() {
        let token = match c {
            _ if c.is_whitespace() => {
                chars.next();
                continue;
            }
            '(' => Token::Open,
            ')' => Token::Close,
            '+' => Token::Plus,
            '-' => Token::Minus,
            '"' => {
                chars.next();
                tokens.push((at, Token::Phrase(None, phrase(at, &mut chars)?)));
                continue;
            }
            _ => {
                let token = word(&mut chars, is_field)?;
                tokens.push((at, token));
                continue;
            }
        };
        chars.next();
        tokens.push((at, token));
    }
    Ok(tokens)
}

type Chars<'a> = std::iter::Peekable<std::str::CharIndices<'a>>;

fn phrase(at: usize, chars: &mut Chars<'_>) -> Result<String> {
    let mut words = String::new();
    while let Some((_, c)) = chars.next() {
        match c {
            '"' => return Ok(words),
            '\\' => words.extend(chars.next().map(|(_, c)| c)),
            _ => words.push(c),
        }
    }
    Err(Error::Query { at, message: "this `\"` is not closed".to_string() })
}

fn word(chars: &mut Chars<'_>, is_field: &dyn Fn(&str) -> bool) -> Result<Token> {
    let start = chars.peek().map_or(0, |&(at, _)| at);
    let mut field = None;
    let mut word = String::new();
    let mut escaped = false;
    while let Some(&(at, c)) = chars.peek() {
        match c {
            '(' | ')' => break,
            '"' if field.is_some() && word.is_empty() => {
                chars.next();
                return Ok(Token::Phrase(field, phrase(at, chars)?));
            }
            '"' => break,
            ':' if field.is_none() && !escaped && is_field(&word) => {
                field = Some(std::mem::take(&mut word));
            }
            '\\' => {
                chars.next();
                escaped = true;
                word.extend(chars.peek().map(|&(_, c)| c));
            }
            _ if c.is_whitespace() => break,
            _ => word.push(c),
        }
        chars.next();
    }
    if word.is_empty()
        && let Some(field) = field
    {
        let message = format!("a word or a phrase must follow `{field}:` at once");
        return Err(Error::Query { at: start, message });
    }
    Ok(match word.as_str() {
        "AND" if field.is_none() && !escaped => Token::And,
        "OR" if field.is_none() && !escaped => Token::Or,
        "NOT" if field.is_none() && !escaped => Token::Not,
        _ => Token::Word(field, word),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn show(tree: &Syntax) -> String {
        let name = |field: &Option<String>| field.as_ref().map_or(String::new(), |f| format!("{f}:"));
        match tree {
            Syntax::Word(field, word) => format!("{}{word}", name(field)),
            Syntax::Phrase(field, words) => format!("{}\"{words}\"", name(field)),
            Syntax::List(clauses) => {
                let clauses = clauses.iter().map(|(occur, node)| {
                    let sign = match occur {
                        Occur::Should => "",
                        Occur::Must => "+",
                        Occur::MustNot => "-",
                    };
                    format!("{sign}{}", show(node))
                });
                format!("({})", clauses.collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn check(text: &str, expected: Expect) {
        let found = match parse(text, &|name| name == "title") {
            Ok(tree) => show(&tree),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn queries_are_read_as_documented() {
        check("one", expect!["one"]);
        check("a b", expect!["(a b)"]);
        check("a OR b", expect!["(a b)"]);
        check("a AND b", expect!["(+a +b)"]);
        check("a AND b OR c", expect!["((+a +b) c)"]);
        check("a OR b AND c", expect!["(a (+b +c))"]);
        check("+a -b c", expect!["(+a -b c)"]);
        check("a NOT b", expect!["(a -b)"]);
        check("a OR NOT b", expect!["(a (-b))"]);
        check("NOT b OR a", expect!["((-b) a)"]);
        check("a AND NOT b", expect!["(+a -b)"]);
        check("NOT a", expect!["(-a)"]);
        check("(a OR b) AND (c OR d)", expect!["(+(a b) +(c d))"]);
        check("\"to be\" x", expect![[r#"("to be" x)"#]]);
        check("title:x title:\"a b\" http://y", expect![[r#"(title:x title:"a b" http://y)"#]]);
        check("state-of c++ \\-x \\AND", expect!["(state-of c++ -x AND)"]);
        check("", expect!["()"]);
        check("and or not", expect!["(and or not)"]);
    }

    #[test]
    fn errors_name_the_place() {
        check("(a b", expect!["query, byte 4: `(` is not closed"]);
        check("a b)", expect!["query, byte 3: `)` without `(`"]);
        check("a \"b", expect!["query, byte 2: this `\"` is not closed"]);
        check("a AND", expect!["query, byte 5: `AND` has nothing on its right"]);
        check("AND a", expect!["query, byte 0: `AND` has nothing on its left"]);
        check("a OR", expect!["query, byte 4: `OR` has nothing on its right"]);
        check("OR a", expect!["query, byte 0: `OR` has nothing on its left"]);
        check("a + ", expect!["query, byte 4: a word is missing here"]);
        check("title:(a b)", expect!["query, byte 0: a word or a phrase must follow `title:` at once"]);
        check("x title:", expect!["query, byte 2: a word or a phrase must follow `title:` at once"]);
        check("+-a", expect!["query, byte 1: two of `+`, `-` and `NOT` in a row"]);
        check(&"(".repeat(100), expect!["query, byte 65: more than 64 parentheses inside one another"]);
        check(&"a ".repeat(5000), expect!["query, byte 2048: more than 1024 clauses"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ab ()\"+:\\\\-]{0,40}|( AND| OR| NOT|[+-]|a|\\(|\\)){0,20}|\\PC{0,40}") {
            if let Err(Error::Query { at, .. }) = parse(&text, &|name| name == "a") {
                prop_assert!(at <= text.len());
            }
        }
    }
}

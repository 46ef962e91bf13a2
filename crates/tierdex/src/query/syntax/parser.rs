//! Tokens to a syntax tree.

use super::problems::Problems;
use super::suffix::Suffixes;
use super::tokens::Token;
use super::{Occur, Syntax, boosted};
use crate::error::Result;
use crate::limits::{QUERY_CLAUSES_MAX, QUERY_DEPTH_MAX};

/// Reads all of `tokens`, which come from a text of `end` bytes.
pub(super) fn parse(tokens: Vec<(usize, Token)>, end: usize, problems: &mut Problems) -> Result<Syntax> {
    let mut parser = Parser { tokens, next: 0, end, count: 0, field: None, problems };
    let mut clauses = Vec::new();
    loop {
        parser.clauses(0, &mut clauses)?;
        if parser.peek().is_none() {
            return Ok(list(clauses, 0));
        }
        parser.problem("`)` without `(`")?;
        parser.next += 1;
    }
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    /// Words, phrases and groups so far.
    count: usize,
    /// The field that is named in front of the group.
    field: Option<String>,
    problems: &'a mut Problems,
}

type Clause = (Occur, Syntax);

impl Parser<'_> {
    /// Reads clauses up to the end of the list.
    fn clauses(&mut self, depth: usize, clauses: &mut Vec<Clause>) -> Result<()> {
        loop {
            let after_or = self.or(clauses.is_empty())?;
            if matches!(self.peek(), None | Some(Token::Close(_))) {
                return if after_or { self.problem("`OR` has nothing on its right") } else { Ok(()) };
            }
            let Some((occur, node)) = self.clause(depth)? else { continue };
            let alternative = after_or || self.peek() == Some(&Token::Or);
            clauses.push(match occur {
                Occur::MustNot | Occur::Filter if alternative => {
                    (Occur::Should, Syntax::List(vec![(occur, node)], 0))
                }
                _ => (occur, node),
            });
        }
    }

    /// Takes an `OR` if one stands here.
    fn or(&mut self, first: bool) -> Result<bool> {
        if self.peek() != Some(&Token::Or) {
            return Ok(false);
        }
        if first {
            self.problem("`OR` has nothing on its left")?;
        }
        self.next += 1;
        Ok(!first)
    }

    /// `None` if nothing can be made of what stands here; it is passed over.
    fn clause(&mut self, depth: usize) -> Result<Option<Clause>> {
        let first = self.unary(depth)?;
        if self.peek() != Some(&Token::And) {
            return Ok(first);
        }
        let mut operands: Vec<Clause> = first.into_iter().collect();
        while self.peek() == Some(&Token::And) {
            self.next += 1;
            if matches!(self.peek(), None | Some(Token::Close(_) | Token::And | Token::Or)) {
                self.problem("`AND` has nothing on its right")?;
                continue;
            }
            operands.extend(self.unary(depth)?);
        }
        for (occur, _) in &mut operands {
            if *occur == Occur::Should {
                *occur = Occur::Must;
            }
        }
        Ok((!operands.is_empty()).then_some((Occur::Should, Syntax::List(operands, 0))))
    }

    fn unary(&mut self, depth: usize) -> Result<Option<Clause>> {
        let mut occur = Occur::Should;
        while let Some(sign) = self.peek().and_then(sign) {
            if occur == Occur::Should {
                occur = sign;
            } else {
                self.problem("two of `+`, `-`, `#` and `NOT` in a row")?;
            }
            self.next += 1;
        }
        Ok(self.primary(depth)?.map(|syntax| (occur, syntax)))
    }

    fn primary(&mut self, depth: usize) -> Result<Option<Syntax>> {
        self.count += 1;
        if self.count > QUERY_CLAUSES_MAX {
            self.problem(&format!("more than {QUERY_CLAUSES_MAX} clauses"))?;
            self.next = self.tokens.len();
            return Ok(None);
        }
        match self.tokens.get_mut(self.next).map(|(_, token)| token) {
            Some(Token::Leaf(leaf)) => {
                self.next += 1;
                // Tokens are not looked at twice.
                let leaf = std::mem::replace(leaf, Syntax::All);
                Ok(Some(in_field(leaf, self.field.as_ref())))
            }
            Some(Token::Open(field)) => {
                let field = field.take();
                self.group(depth + 1, field)
            }
            Some(Token::And) => {
                self.problem("`AND` has nothing on its left")?;
                self.next += 1;
                Ok(None)
            }
            _ => {
                self.problem("a word is missing here")?;
                Ok(None)
            }
        }
    }

    fn group(&mut self, depth: usize, field: Option<String>) -> Result<Option<Syntax>> {
        self.next += 1;
        if depth > QUERY_DEPTH_MAX {
            self.problem(&format!("more than {QUERY_DEPTH_MAX} parentheses inside one another"))?;
            self.pass_over_group();
            return Ok(None);
        }
        let outer = field.map(|field| self.field.replace(field));
        let mut clauses = Vec::new();
        self.clauses(depth, &mut clauses)?;
        if let Some(outer) = outer {
            self.field = outer;
        }
        let suffixes = match self.peek().cloned() {
            Some(Token::Close(suffixes)) => {
                self.next += 1;
                suffixes
            }
            _ => {
                // That the query was cut has been said.
                if self.count <= QUERY_CLAUSES_MAX {
                    self.problem("`(` is not closed")?;
                }
                Suffixes::default()
            }
        };
        let minimum = self.minimum(&suffixes, &clauses)?;
        Ok(Some(boosted(list(clauses, minimum), suffixes.boost())))
    }

    /// How many of the alternatives among `clauses` must match: no more than there are.
    fn minimum(&mut self, suffixes: &Suffixes, clauses: &[Clause]) -> Result<u32> {
        let Some((at, minimum)) = suffixes.minimum(self.problems)? else { return Ok(0) };
        let alternatives = clauses.iter().filter(|(occur, _)| *occur == Occur::Should).count() as u32;
        if minimum > alternatives {
            let message =
                format!("the group has {alternatives} alternatives, of which {minimum} cannot match");
            self.problems.at(at, message)?;
        }
        Ok(minimum.min(alternatives))
    }

    fn pass_over_group(&mut self) {
        let mut open = 1;
        while let Some(token) = self.peek() {
            match token {
                Token::Open(_) => open += 1,
                Token::Close(_) => open -= 1,
                _ => {}
            }
            self.next += 1;
            if open == 0 {
                return;
            }
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn problem(&mut self, message: &str) -> Result<()> {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        self.problems.at(at, message)
    }
}

fn sign(token: &Token) -> Option<Occur> {
    match token {
        Token::Plus => Some(Occur::Must),
        Token::Minus | Token::Not => Some(Occur::MustNot),
        Token::Hash => Some(Occur::Filter),
        _ => None,
    }
}

/// A single clause that is not negated is what it says, without a list around it.
fn list(mut clauses: Vec<Clause>, minimum: u32) -> Syntax {
    match clauses.as_slice() {
        [(Occur::Should | Occur::Must, _)] => clauses.remove(0).1,
        _ => Syntax::List(clauses, minimum),
    }
}

/// `leaf` in the field of its group, if it does not name one.
fn in_field(mut leaf: Syntax, of_group: Option<&String>) -> Syntax {
    let mut inner = &mut leaf;
    while let Syntax::Boost(boosted, _) = inner {
        inner = boosted;
    }
    if let Syntax::Word(field, _)
    | Syntax::Prefix(field, _)
    | Syntax::Fuzzy(field, ..)
    | Syntax::Phrase(field, ..) = inner
        && field.is_none()
    {
        *field = of_group.cloned();
    }
    leaf
}

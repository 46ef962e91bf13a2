//! Recursive-descent parser. Input: tokens, in which round brackets are in pairs. Output: a syntax tree.

use super::tree::{Occur, SyntaxClause, SyntaxTree, with_boost};
use super::{problems::Problems, suffix::Suffixes, tokens::QueryToken};
use crate::{Result, limits::QUERY_CLAUSES_MAX, limits::QUERY_DEPTH_MAX};

/// Parses all `tokens` of a text of `end` bytes.
pub(super) fn parse(
    tokens: Vec<(usize, QueryToken)>,
    end: usize,
    problems: &mut Problems,
) -> Result<SyntaxTree> {
    let mut parser = Parser { tokens, next: 0, end, count: 0, field: None, problems };
    let mut clauses = Vec::new();
    while parser.peek().is_some() {
        parser.parse_clauses(0, &mut clauses)?;
        // Skip a closing bracket without an opening one: faulty parts of the query were ignored.
        parser.next += 1;
    }
    Ok(list_or_clause(clauses, 0))
}

struct Parser<'a> {
    tokens: Vec<(usize, QueryToken)>,
    next: usize,
    end: usize,
    /// Words, phrases and groups so far.
    count: usize,
    /// The field of the enclosing group.
    field: Option<String>,
    problems: &'a mut Problems,
}

impl Parser<'_> {
    /// Parses clauses up to the end of the list.
    fn parse_clauses(&mut self, depth: usize, clauses: &mut Vec<SyntaxClause>) -> Result<()> {
        loop {
            let after_or = self.take_or(clauses.is_empty())?;
            if matches!(self.peek(), None | Some(QueryToken::Close(_))) {
                return if after_or { self.report("`OR` has nothing on its right") } else { Ok(()) };
            }
            let Some((occur, node)) = self.parse_clause(depth)? else { continue };
            let alternative = after_or || self.peek() == Some(&QueryToken::Or);
            clauses.push(match occur {
                Occur::MustNot | Occur::Filter if alternative => {
                    (Occur::Should, SyntaxTree::List(vec![(occur, node)], 0))
                }
                _ => (occur, node),
            });
        }
    }

    /// Consumes an `OR` if it is the next token; `first`: no clause is before it. Returns whether one with a
    /// clause before it was consumed.
    fn take_or(&mut self, first: bool) -> Result<bool> {
        if self.peek() != Some(&QueryToken::Or) {
            return Ok(false);
        }
        if first {
            self.report("`OR` has nothing on its left")?;
        }
        self.next += 1;
        Ok(!first)
    }

    /// Parses operands joined by `AND`, or a single one; `None` if it skipped tokens that are no clause.
    fn parse_clause(&mut self, depth: usize) -> Result<Option<SyntaxClause>> {
        let first = self.parse_unary(depth)?;
        if self.peek() != Some(&QueryToken::And) {
            return Ok(first);
        }
        let mut operands: Vec<SyntaxClause> = first.into_iter().collect();
        while self.peek() == Some(&QueryToken::And) {
            self.next += 1;
            if matches!(self.peek(), None | Some(QueryToken::Close(_) | QueryToken::And | QueryToken::Or)) {
                self.report("`AND` has nothing on its right")?;
                continue;
            }
            operands.extend(self.parse_unary(depth)?);
        }
        for (occur, _) in &mut operands {
            if *occur == Occur::Should {
                *occur = Occur::Must;
            }
        }
        Ok((!operands.is_empty()).then_some((Occur::Should, SyntaxTree::List(operands, 0))))
    }

    fn parse_unary(&mut self, depth: usize) -> Result<Option<SyntaxClause>> {
        let mut occur = Occur::Should;
        while let Some(&QueryToken::Sign(sign)) = self.peek() {
            if occur == Occur::Should {
                occur = sign;
            } else {
                self.report("two of `+`, `-`, `#` and `NOT` in a row")?;
            }
            self.next += 1;
        }
        Ok(self.parse_primary(depth)?.map(|syntax| (occur, syntax)))
    }

    fn parse_primary(&mut self, depth: usize) -> Result<Option<SyntaxTree>> {
        self.count += 1;
        if self.count > QUERY_CLAUSES_MAX {
            self.report(&format!("more than {QUERY_CLAUSES_MAX} clauses"))?;
            self.next = self.tokens.len();
            return Ok(None);
        }
        match self.tokens.get_mut(self.next).map(|(_, token)| token) {
            Some(QueryToken::Leaf(leaf)) => {
                self.next += 1;
                // A token is consumed once, so its tree is taken and another left.
                let leaf = std::mem::replace(leaf, SyntaxTree::All);
                Ok(Some(with_group_field(leaf, self.field.as_ref())))
            }
            Some(QueryToken::Open(field)) => {
                let field = field.take();
                self.parse_group(depth + 1, field)
            }
            Some(QueryToken::And) => {
                self.report("`AND` has nothing on its left")?;
                self.next += 1;
                Ok(None)
            }
            _ => {
                self.report("a word is missing here")?;
                Ok(None)
            }
        }
    }

    fn parse_group(&mut self, depth: usize, field: Option<String>) -> Result<Option<SyntaxTree>> {
        self.next += 1;
        if depth > QUERY_DEPTH_MAX {
            self.report(&format!("more than {QUERY_DEPTH_MAX} parentheses inside one another"))?;
            self.skip_group();
            return Ok(None);
        }
        let outer = field.map(|field| self.field.replace(field));
        let mut clauses = Vec::new();
        self.parse_clauses(depth, &mut clauses)?;
        if let Some(outer) = outer {
            self.field = outer;
        }
        // The closing bracket is missing only if the rest of a query with too many clauses was cut off.
        let mut suffixes = Suffixes::default();
        if let Some((_, QueryToken::Close(of_group))) = self.tokens.get_mut(self.next) {
            suffixes = std::mem::take(of_group);
            self.next += 1;
        }
        let minimum = self.parse_minimum(&suffixes, &clauses)?;
        Ok(Some(with_boost(list_or_clause(clauses, minimum), suffixes.boost)))
    }

    /// The minimum number of alternatives among `clauses` that must match, at most their number.
    fn parse_minimum(&mut self, suffixes: &Suffixes, clauses: &[SyntaxClause]) -> Result<u32> {
        let Some((at, minimum)) = suffixes.count(self.problems)? else { return Ok(0) };
        let alternatives = clauses.iter().filter(|(occur, _)| *occur == Occur::Should).count() as u32;
        if minimum > alternatives {
            let message =
                format!("the group has {alternatives} alternatives, of which {minimum} cannot match");
            self.problems.report_at(at, message)?;
        }
        Ok(minimum.min(alternatives))
    }

    fn skip_group(&mut self) {
        let mut open = 1;
        while open > 0
            && let Some(token) = self.peek()
        {
            match token {
                QueryToken::Open(_) => open += 1,
                QueryToken::Close(_) => open -= 1,
                _ => {}
            }
            self.next += 1;
        }
    }

    fn peek(&self) -> Option<&QueryToken> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn report(&mut self, message: &str) -> Result<()> {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        self.problems.report_at(at, message)
    }
}

/// A list of clauses; of a single required or optional clause, the clause itself.
fn list_or_clause(mut clauses: Vec<SyntaxClause>, minimum: u32) -> SyntaxTree {
    match clauses.as_slice() {
        [(Occur::Should | Occur::Must, _)] => clauses.remove(0).1,
        _ => SyntaxTree::List(clauses, minimum),
    }
}

/// `leaf` with the field of its group, unless it names a field itself.
fn with_group_field(mut leaf: SyntaxTree, of_group: Option<&String>) -> SyntaxTree {
    let mut inner = &mut leaf;
    while let SyntaxTree::Boost(with_boost, _) = inner {
        inner = with_boost;
    }
    if let SyntaxTree::Word(field, _)
    | SyntaxTree::Prefix(field, _)
    | SyntaxTree::Fuzzy(field, ..)
    | SyntaxTree::Phrase(field, ..) = inner
        && field.is_none()
    {
        *field = of_group.cloned();
    }
    leaf
}

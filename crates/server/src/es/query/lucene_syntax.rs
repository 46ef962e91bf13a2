//! The language of `query_string`: words, phrases, prefixes, fuzzy words, fields, boosts, groups, and the
//! operators `+`, `-`, `!`, `NOT`, `AND`, `OR`, `&&` and `||`. Other operators are errors.
//!
//! As in Lucene, `AND` makes the clauses beside it required and `OR` none; it does not bind tighter.

use super::fuzziness::Fuzziness;
use super::text_syntax::{QueryTextReader, TextClause, TextOccur, TextSyntax};
use crate::api_error::ApiError;

/// Characters that end a word, unless they are escaped.
const SPECIAL: &str = "()[]{}^\"~*?:";

/// Parses a query string. Clauses without an operator are required if `are_required`.
pub(super) fn parse_lucene(text: &str, are_required: bool) -> Result<TextSyntax, ApiError> {
    let mut parser = LuceneParser { text: QueryTextReader::new(text), are_required };
    let group = parser.group()?;
    match parser.text.peek() {
        None => Ok(group),
        Some(_) => Err(parser.text.wrong("`)` has no `(`")),
    }
}

struct LuceneParser {
    text: QueryTextReader,
    are_required: bool,
}

/// The operator between two clauses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LuceneOperator {
    None,
    And,
    Or,
}

impl LuceneParser {
    /// Reads clauses until the end of a group or of the text.
    fn group(&mut self) -> Result<TextSyntax, ApiError> {
        self.text.enter()?;
        let mut clauses: Vec<TextClause> = Vec::new();
        loop {
            self.text.skip_blanks();
            let is_first = clauses.is_empty();
            let operator = self.operator();
            if operator != LuceneOperator::None && is_first {
                return Err(self.text.wrong("an operator without a clause before it"));
            }
            self.text.skip_blanks();
            if self.text.peek().is_none_or(|c| c == ')') {
                if operator != LuceneOperator::None {
                    return Err(self.text.wrong("an operator without a clause behind it"));
                }
                break;
            }
            let occur = self.sign();
            let syntax = self.clause()?;
            self.add(&mut clauses, operator, TextClause { occur, syntax });
        }
        self.text.depth -= 1;
        Ok(TextSyntax::Group(clauses))
    }

    /// Adds a clause; its operator also concerns the clause before it.
    fn add(&self, clauses: &mut Vec<TextClause>, operator: LuceneOperator, mut clause: TextClause) {
        if let Some(before) = clauses.last_mut().filter(|before| before.occur != TextOccur::MustNot) {
            match operator {
                LuceneOperator::And => before.occur = TextOccur::Must,
                LuceneOperator::Or if self.are_required => before.occur = TextOccur::Should,
                _ => {}
            }
        }
        let is_required = match operator {
            LuceneOperator::And => true,
            LuceneOperator::Or => false,
            LuceneOperator::None => self.are_required,
        };
        if clause.occur == TextOccur::Should && is_required {
            clause.occur = TextOccur::Must;
        }
        clauses.push(clause);
    }

    fn operator(&mut self) -> LuceneOperator {
        if self.text.take_word("AND") || self.text.take_word("&&") {
            LuceneOperator::And
        } else if self.text.take_word("OR") || self.text.take_word("||") {
            LuceneOperator::Or
        } else {
            LuceneOperator::None
        }
    }

    fn sign(&mut self) -> TextOccur {
        let occur = if self.text.take('+') {
            TextOccur::Must
        } else if self.text.take('-') || self.text.take('!') || self.text.take_word("NOT") {
            TextOccur::MustNot
        } else {
            TextOccur::Should
        };
        self.text.skip_blanks();
        occur
    }

    fn clause(&mut self) -> Result<TextSyntax, ApiError> {
        self.text.count_clause()?;
        let syntax = match self.text.peek() {
            Some('(') => {
                self.text.at += 1;
                let group = self.group()?;
                if !self.text.take(')') {
                    return Err(self.text.wrong("`(` has no `)`"));
                }
                group
            }
            Some('"') => {
                self.text.at += 1;
                let phrase = self.text.phrase().ok_or_else(|| self.text.wrong("a phrase without its end"))?;
                let has_slop = self.text.take('~');
                let slop = if has_slop { self.text.number() } else { None };
                if has_slop && slop.is_none() {
                    return Err(self.text.wrong("`~` behind a phrase needs a number"));
                }
                TextSyntax::Phrase(phrase, slop.map(|slop| slop as usize))
            }
            _ => return self.word(),
        };
        self.boosted(syntax)
    }

    /// Reads a word with its suffixes, or a field with its clause.
    fn word(&mut self) -> Result<TextSyntax, ApiError> {
        if self.text.starts_with("*:*") {
            self.text.at += 3;
            return self.boosted(TextSyntax::All);
        }
        if let Some(c) = self.text.peek().filter(|c| "/<>=+-!".contains(*c)) {
            return Err(self.text.wrong(format!("`{c}` is not supported here; `\\{c}` is the character")));
        }
        let word = self.text.word(|c| SPECIAL.contains(c));
        if word.is_empty() {
            return Err(self.unsupported());
        }
        let syntax = if self.text.take(':') {
            self.text.enter()?;
            if self.text.peek().is_none_or(char::is_whitespace) {
                return Err(self.text.wrong("a field without a clause"));
            }
            let clause = self.clause()?;
            self.text.depth -= 1;
            return Ok(TextSyntax::InField(word, Box::new(clause)));
        } else if self.text.take('*') {
            TextSyntax::Prefix(word)
        } else if self.text.take('~') {
            TextSyntax::Fuzzy(word, self.fuzziness()?)
        } else {
            TextSyntax::Words(word)
        };
        self.boosted(syntax)
    }

    /// Reads the edit distance behind `~`, by the length of the word if there is none.
    fn fuzziness(&mut self) -> Result<Fuzziness, ApiError> {
        if !self.text.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(Fuzziness::DEFAULT);
        }
        let number = self.text.number();
        let edits = [0, 1, 2].into_iter().find(|edits| number == Some(f64::from(*edits)));
        edits.map(Fuzziness::Edits).ok_or_else(|| self.text.wrong("the distance must be 0, 1 or 2"))
    }

    fn boosted(&mut self, syntax: TextSyntax) -> Result<TextSyntax, ApiError> {
        let syntax = match self.text.take('^') {
            true => {
                let boost = self.text.number().ok_or_else(|| self.text.wrong("`^` needs a number"))?;
                TextSyntax::Boosted(Box::new(syntax), boost)
            }
            false => syntax,
        };
        match self.text.peek() {
            Some(c) if !c.is_whitespace() && !"()\"".contains(c) => Err(self.unsupported()),
            _ => Ok(syntax),
        }
    }

    fn unsupported(&self) -> ApiError {
        let c = self.text.peek().unwrap_or(' ');
        self.text.wrong(format!(
            "`{c}` is not supported here: there are no ranges, regular expressions and wildcards within words; \
             `\\{c}` is the character"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::es::query::text_syntax::random_texts;

    /// The clauses of a query as a text, each with its sign.
    fn shown(syntax: &TextSyntax) -> String {
        match syntax {
            TextSyntax::Words(word) => word.clone(),
            TextSyntax::Phrase(phrase, slop) => format!("'{phrase}'{slop:?}"),
            TextSyntax::Prefix(word) => format!("{word}*"),
            TextSyntax::Fuzzy(word, Fuzziness::Edits(edits)) => format!("{word}~{edits}"),
            TextSyntax::Fuzzy(word, _) => format!("{word}~"),
            TextSyntax::Not(inner) => format!("-{}", shown(inner)),
            TextSyntax::All => "*:*".to_string(),
            TextSyntax::InField(name, inner) => format!("{name}:{}", shown(inner)),
            TextSyntax::Boosted(inner, boost) => format!("{}^{boost}", shown(inner)),
            TextSyntax::Group(clauses) => {
                let clause = |clause: &TextClause| {
                    let sign = match clause.occur {
                        TextOccur::Should => "",
                        TextOccur::Must => "+",
                        TextOccur::MustNot => "-",
                    };
                    format!("{sign}{}", shown(&clause.syntax))
                };
                format!("({})", clauses.iter().map(clause).collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn operators_concern_the_clauses_beside_them() {
        let parsed = |text: &str, are_required| shown(&parse_lucene(text, are_required).unwrap());
        for (text, expected) in [
            ("a b", "(a b)"),
            ("a OR b AND c", "(a +b +c)"),
            ("a && !b || c", "(+a -b c)"),
            ("a NOT b +c - d", "(a -b +c -d)"),
            ("title:(a b)^2 \"c d\"~3^4", "(title:(a b)^2 'c d'Some(3)^4)"),
            ("a\\:b c~ d~1 e* x-y ANDROID", "(a:b c~ d~1 e* x-y ANDROID)"),
        ] {
            assert_eq!(parsed(text, false), expected, "{text}");
        }
        assert_eq!(parsed("a b OR c -d", true), "(+a b c -d)");
        let mut valid = 0;
        for text in random_texts("ab \"|+-()*~2\\é:^&!/[?", 8, 20_000) {
            valid += usize::from(parse_lucene(&text, false).is_ok());
        }
        assert!((200..15_000).contains(&valid), "{valid}");
    }
}

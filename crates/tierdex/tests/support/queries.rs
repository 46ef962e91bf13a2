//! Seeded queries: a tree, its text, and its normal form as the documentation defines it.

use super::corpus::{EVERYWHERE, STOP_WORDS, VOCABULARY, word};
use super::model::tokens;
use super::random::Random;
use tierdex::query::Query;
use tierdex::schema::Schema;

/// A query as a user means it.
#[derive(Clone, Debug)]
pub enum Ast {
    Word(Option<&'static str>, String),
    Phrase(Option<&'static str>, String),
    /// `a AND NOT b AND c`
    All(Vec<(bool, Ast)>),
    /// `a OR NOT b OR c`
    Any(Vec<(bool, Ast)>),
    /// `+a -b c`
    List(Vec<(Sign, Ast)>),
}

/// What stands in front of a clause of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    None,
    Plus,
    Minus,
    Not,
}

/// A query for an index with or without a field `title` and positions.
pub fn query(random: &mut Random, schema: &Schema) -> Ast {
    let depth = random.below(4);
    node(random, schema, depth)
}

fn node(random: &mut Random, schema: &Schema, depth: usize) -> Ast {
    if depth == 0 {
        return leaf(random, schema);
    }
    let most = if random.one_in(10) { 12 } else { 4 };
    let count = 1 + random.below(most);
    let mut clauses: Vec<Ast> = (0..count).map(|_| node(random, schema, depth - 1)).collect();
    if random.one_in(4) {
        clauses.push(clauses[random.below(count)].clone());
    }
    let signed = |random: &mut Random| match random.below(8) {
        0 => Sign::Minus,
        1 => Sign::Not,
        2 | 3 => Sign::Plus,
        _ => Sign::None,
    };
    match random.below(3) {
        0 if clauses.len() > 1 => Ast::All(clauses.into_iter().map(|c| (random.one_in(6), c)).collect()),
        1 if clauses.len() > 1 => Ast::Any(clauses.into_iter().map(|c| (random.one_in(6), c)).collect()),
        _ => Ast::List(clauses.into_iter().map(|c| (signed(random), c)).collect()),
    }
}

fn leaf(random: &mut Random, schema: &Schema) -> Ast {
    let field = match random.below(6) {
        0 if schema.field("title").is_some() => Some("title"),
        1 => Some("text"),
        _ => None,
    };
    if schema.fields[0].positions && random.one_in(4) {
        let words = (0..1 + random.below(4)).map(|_| term(random));
        return Ast::Phrase(field, words.collect::<Vec<_>>().join(" "));
    }
    if random.one_in(12) {
        return Ast::Word(field, format!("{}/{}", term(random), term(random)));
    }
    Ast::Word(field, term(random))
}

fn term(random: &mut Random) -> String {
    match random.below(16) {
        0 => "absent".to_string(),
        1 => EVERYWHERE.to_uppercase(),
        2 => (*random.pick(&STOP_WORDS)).to_string(),
        3 => format!("only{}", random.below(300)),
        4..=7 => word(random.below(VOCABULARY)),
        _ => word(random.skewed(VOCABULARY)),
    }
}

impl Ast {
    /// The query's text.
    pub fn text(&self) -> String {
        let name = |field: &Option<&str>| field.map_or(String::new(), |field| format!("{field}:"));
        let operand = |(negated, node): &(bool, Ast)| {
            format!("{}{}", if *negated { "NOT " } else { "" }, node.operand())
        };
        match self {
            Ast::Word(field, word) => format!("{}{word}", name(field)),
            Ast::Phrase(field, words) => format!("{}\"{words}\"", name(field)),
            Ast::All(operands) => operands.iter().map(operand).collect::<Vec<_>>().join(" AND "),
            Ast::Any(operands) => operands.iter().map(operand).collect::<Vec<_>>().join(" OR "),
            Ast::List(clauses) => {
                let clauses = clauses.iter().map(|(sign, node)| {
                    let sign = match sign {
                        Sign::None => "",
                        Sign::Plus => "+",
                        Sign::Minus => "-",
                        Sign::Not => "NOT ",
                    };
                    format!("{sign}{}", node.operand())
                });
                clauses.collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn operand(&self) -> String {
        match self {
            Ast::Word(..) | Ast::Phrase(..) => self.text(),
            _ => format!("({})", self.text()),
        }
    }

    /// The normal form: what the engine's parser must make of the text.
    pub fn normal(&self, schema: &Schema) -> Query {
        self.meaning(schema).unwrap_or(Query::Nothing)
    }

    /// `None` when analysis leaves nothing of what is asked for.
    fn meaning(&self, schema: &Schema) -> Option<Query> {
        match self {
            Ast::Word(field, word) => {
                let (field, terms) = analysed(*field, word, schema);
                let terms = terms.into_iter().map(|(_, term)| Query::Term { field, term, boost: 1.0 });
                boolean(Vec::new(), terms.collect(), Vec::new())
            }
            Ast::Phrase(field, words) => {
                let (field, terms) = analysed(*field, words, schema);
                let first = terms.first()?.0;
                if let [(_, term)] = terms.as_slice() {
                    return Some(Query::Term { field, term: term.clone(), boost: 1.0 });
                }
                let terms = terms.into_iter().map(|(position, term)| (position - first, term)).collect();
                Some(Query::Phrase { field, terms, boost: 1.0 })
            }
            Ast::All(operands) => {
                let with = |negated| {
                    let wanted = operands.iter().filter(move |operand| operand.0 == negated);
                    wanted.filter_map(|(_, node)| node.meaning(schema)).collect::<Vec<_>>()
                };
                let asked = operands.iter().any(|(negated, _)| !negated);
                let (must, must_not) = (with(false), with(true));
                if asked && must.is_empty() { None } else { boolean(must, Vec::new(), must_not) }
            }
            Ast::Any(operands) => {
                let clause = |(negated, node): &(bool, Ast)| {
                    let meaning = node.meaning(schema)?;
                    if *negated { boolean(Vec::new(), Vec::new(), vec![meaning]) } else { Some(meaning) }
                };
                boolean(Vec::new(), operands.iter().filter_map(clause).collect(), Vec::new())
            }
            Ast::List(clauses) => {
                let with = |signs: &'static [Sign]| {
                    let wanted = clauses.iter().filter(|clause| signs.contains(&clause.0));
                    wanted.filter_map(|(_, node)| node.meaning(schema)).collect::<Vec<_>>()
                };
                let (must, should) = (with(&[Sign::Plus]), with(&[Sign::None]));
                let asked = clauses.iter().any(|(sign, _)| matches!(sign, Sign::None | Sign::Plus));
                if asked && must.is_empty() && should.is_empty() {
                    return None;
                }
                boolean(must, should, with(&[Sign::Minus, Sign::Not]))
            }
        }
    }
}

fn analysed(field: Option<&str>, text: &str, schema: &Schema) -> (usize, Vec<(u32, String)>) {
    let number = field.map_or(0, |name| schema.field(name).expect("the field exists"));
    let analysis = &schema.fields[number].analysis;
    let kept = (0u32..).zip(tokens(text, analysis.tokenizer));
    (number, kept.filter(|(_, token)| !analysis.stop_words.contains(token)).collect())
}

/// A node in normal form over clauses in normal form; `None` when nothing is left.
fn boolean(must: Vec<Query>, should: Vec<Query>, must_not: Vec<Query>) -> Option<Query> {
    let must = joined(must, |clause| match clause {
        Query::Bool { must, should, must_not } if should.is_empty() && must_not.is_empty() => Ok(must),
        other => Err(other),
    });
    let should = joined(should, |clause| match clause {
        Query::Bool { must, should, must_not } if must.is_empty() && must_not.is_empty() => Ok(should),
        other => Err(other),
    });
    match (must.as_slice(), should.as_slice(), must_not.as_slice()) {
        ([], [], []) => None,
        ([single], [], []) | ([], [single], []) => Some(single.clone()),
        _ => Some(Query::Bool { must, should, must_not }),
    }
}

/// Lists of the same kind flattened, equal leaves counted at the place of the first.
fn joined(clauses: Vec<Query>, inner: fn(Query) -> Result<Vec<Query>, Query>) -> Vec<Query> {
    let flat = clauses.into_iter().flat_map(|clause| inner(clause).unwrap_or_else(|single| vec![single]));
    let mut joined: Vec<Query> = Vec::new();
    for clause in flat {
        let (key, times) = counted(&clause);
        let first = joined.iter_mut().find(|other| key.is_some() && counted(other).0 == key);
        match first {
            Some(Query::Term { boost, .. } | Query::Phrase { boost, .. }) => *boost += times,
            _ => joined.push(clause),
        }
    }
    joined
}

/// Field and terms of a leaf.
type Leaf = (usize, Vec<(u32, String)>);

/// What makes two leaves equal, and how often this one counts.
fn counted(clause: &Query) -> (Option<Leaf>, f64) {
    match clause {
        Query::Term { field, term, boost } => (Some((*field, vec![(0, term.clone())])), *boost),
        Query::Phrase { field, terms, boost } => (Some((*field, terms.clone())), *boost),
        _ => (None, 0.0),
    }
}

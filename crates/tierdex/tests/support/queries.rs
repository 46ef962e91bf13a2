//! Random queries that depend on a seed: as a tree, as text, and as the query that the parser must return.

use super::corpus::{STOP_WORDS, VOCABULARY_WORDS, WORD_EVERYWHERE, vocabulary_word};
use super::{model::tokenize, random::Random};
use tierdex::{Query, limits::QUERY_EXPANDED_MAX, schema::Schema};

/// A query as a user writes it.
#[derive(Clone, Debug)]
pub enum QueryTree {
    Word(Option<&'static str>, String),
    /// `word*`
    Prefix(Option<&'static str>, String),
    /// `word~1`
    Fuzzy(Option<&'static str>, String, u8),
    /// `"words"~slop`
    Phrase(Option<&'static str>, String, u32),
    /// `*:*`
    Everything,
    /// `clause^2`
    Boost(Box<QueryTree>, f64),
    /// `(a b c)~2`
    Minimum(Vec<QueryTree>, usize),
    /// `a AND NOT b AND c`
    All(Vec<(bool, QueryTree)>),
    /// `a OR NOT b OR c`
    Any(Vec<(bool, QueryTree)>),
    /// `+a -b c`
    List(Vec<(Sign, QueryTree)>),
}

/// The sign before a clause of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    None,
    Plus,
    Hash,
    Minus,
    Not,
}

/// What random queries may contain.
#[derive(Clone, Copy, Debug)]
pub struct QueryChoices {
    /// Boosts of some clauses.
    pub boosts: &'static [f64],
    /// Maximum clauses of a long group.
    pub clauses: usize,
}

/// A query for an index with or without a field `title` and positions.
pub fn random_query(random: &mut Random, schema: &Schema) -> QueryTree {
    random_query_of(random, schema, &QueryChoices { boosts: &BOOSTS, clauses: 12 })
}

/// As [`random_query`], with other boosts and numbers of clauses.
pub fn random_query_of(random: &mut Random, schema: &Schema, choices: &QueryChoices) -> QueryTree {
    loop {
        let depth = random.below(4);
        let query = random_node(random, (schema, choices), depth);
        // Two queries combined must not exceed the limit of prefixes and fuzzy words.
        if query.text().matches(['*', '~']).count() <= QUERY_EXPANDED_MAX / 2 {
            return query;
        }
    }
}

fn random_node(random: &mut Random, of: (&Schema, &QueryChoices), depth: usize) -> QueryTree {
    if depth == 0 {
        return random_leaf(random, of);
    }
    let most = if random.one_in(10) { of.1.clauses } else { 4 };
    let count = 1 + random.below(most);
    let mut clauses: Vec<QueryTree> = (0..count).map(|_| random_node(random, of, depth - 1)).collect();
    if random.one_in(4) {
        clauses.push(clauses[random.below(count)].clone());
    }
    let signed = |random: &mut Random| match random.below(9) {
        0 => Sign::Minus,
        1 => Sign::Not,
        2 | 3 => Sign::Plus,
        4 => Sign::Hash,
        _ => Sign::None,
    };
    let node = match random.below(4) {
        3 => {
            let minimum = random.below(clauses.len() + 1);
            QueryTree::Minimum(clauses, minimum)
        }
        0 if clauses.len() > 1 => {
            QueryTree::All(clauses.into_iter().map(|c| (random.one_in(6), c)).collect())
        }
        1 if clauses.len() > 1 => {
            QueryTree::Any(clauses.into_iter().map(|c| (random.one_in(6), c)).collect())
        }
        _ => QueryTree::List(clauses.into_iter().map(|c| (signed(random), c)).collect()),
    };
    boost_sometimes(random, of.1, node)
}

/// Factors whose products and sums are exact.
const BOOSTS: [f64; 6] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0];

fn boost_sometimes(random: &mut Random, choices: &QueryChoices, node: QueryTree) -> QueryTree {
    if random.one_in(6) { QueryTree::Boost(Box::new(node), *random.pick(choices.boosts)) } else { node }
}

fn random_leaf(random: &mut Random, (schema, choices): (&Schema, &QueryChoices)) -> QueryTree {
    let leaf = bare_leaf(random, schema);
    boost_sometimes(random, choices, leaf)
}

fn bare_leaf(random: &mut Random, schema: &Schema) -> QueryTree {
    let field = match random.below(6) {
        0 if schema.field("title").is_some() => Some("title"),
        1 => Some("text"),
        _ => None,
    };
    if schema.fields[0].positions && random.one_in(4) {
        let words = (0..1 + random.below(4)).map(|_| random_term(random));
        let words = words.collect::<Vec<_>>().join(" ");
        return QueryTree::Phrase(field, words, if random.one_in(2) { random.below(5) as u32 } else { 0 });
    }
    match random.below(12) {
        0 => return QueryTree::Everything,
        1 | 2 => return QueryTree::Prefix(field, random_prefix(random)),
        3 | 4 => return QueryTree::Fuzzy(field, misspelt_term(random), random.below(3) as u8),
        _ => {}
    }
    if random.one_in(12) {
        return QueryTree::Word(field, format!("{}/{}", random_term(random), random_term(random)));
    }
    QueryTree::Word(field, random_term(random))
}

fn random_term(random: &mut Random) -> String {
    match random.below(16) {
        0 => "absent".to_string(),
        1 => WORD_EVERYWHERE.to_uppercase(),
        2 => (*random.pick(&STOP_WORDS)).to_string(),
        3 => format!("only{}", random.below(300)),
        4..=7 => vocabulary_word(random.below(VOCABULARY_WORDS)),
        _ => vocabulary_word(random.skewed(VOCABULARY_WORDS)),
    }
}

/// A prefix of a term; sometimes with another word before it.
fn random_prefix(random: &mut Random) -> String {
    let term = random_term(random);
    let kept = 1 + random.below(term.chars().count());
    let front = if random.one_in(8) { "of/" } else { "" };
    front.chars().chain(term.chars().take(kept)).collect()
}

/// A term with up to two characters deleted, inserted or substituted, or two transposed.
fn misspelt_term(random: &mut Random) -> String {
    let mut letters: Vec<char> = random_term(random).chars().collect();
    for _ in 0..random.below(3) {
        let at = random.below(letters.len());
        match random.below(4) {
            0 if letters.len() > 1 => drop(letters.remove(at)),
            1 => letters.insert(at, *random.pick(&['w', 'ü', '1'])),
            2 => letters[at] = *random.pick(&['w', '3', 'é']),
            _ if at > 0 => letters.swap(at - 1, at),
            _ => {}
        }
    }
    letters.into_iter().collect()
}

/// Boosts so small and so large that some scores are negligible, and groups of many clauses.
const MANY_CLAUSES: QueryChoices =
    QueryChoices { boosts: &[0.0, 1e-40, 1e-9, 0.001, 0.5, 1.0, 1.5, 2.0, 3.0, 1e3, 1e9], clauses: 40 };

/// The signs of the clauses of a list.
const CLAUSE_SIGNS: [&[&str]; 8] =
    [&["+", ""], &["+", "#"], &["", "-"], &["", "#"], &["+", "", "#", "-"], &["#"], &["#", "-"], &["+", "-"]];

/// The text of a query: any tree, or 1 to 40 words of one sign or of several.
pub fn random_query_text(random: &mut Random, schema: &Schema) -> String {
    let (kind, long) = (random.below(5), random.one_in(3));
    match kind {
        0 | 1 => random_query_of(random, schema, &MANY_CLAUSES).text(),
        2 => {
            let most = *random.pick(&[2, 6, 40]);
            random_flat_query(random, &[""], most)
        }
        3 => random_flat_query(random, &["+"], if long { 12 } else { 4 }),
        _ => {
            let signs = *random.pick(&CLAUSE_SIGNS);
            random_flat_query(random, signs, if long { 20 } else { 5 })
        }
    }
}

fn random_flat_query(random: &mut Random, signs: &[&str], most: usize) -> String {
    let most_frequent = [8, 30, VOCABULARY_WORDS][random.below(3)];
    let boosts = random.one_in(3);
    let clauses = (0..1 + random.below(most)).map(|_| {
        let term = match random.below(12) {
            0 => format!("only{}", random.below(300)),
            1 => WORD_EVERYWHERE.to_string(),
            2 => "filler".to_string(),
            _ => vocabulary_word(random.below(most_frequent)),
        };
        let boost = if boosts { format!("^{}", random.pick(MANY_CLAUSES.boosts)) } else { String::new() };
        format!("{}{term}{boost}", random.pick(signs))
    });
    clauses.collect::<Vec<_>>().join(" ")
}

impl QueryTree {
    /// The text of the query.
    pub fn text(&self) -> String {
        let name = |field: &Option<&str>| field.map_or(String::new(), |field| format!("{field}:"));
        let operand = |(negated, node): &(bool, QueryTree)| {
            format!("{}{}", if *negated { "NOT " } else { "" }, node.operand())
        };
        match self {
            QueryTree::Word(field, word) => format!("{}{word}", name(field)),
            QueryTree::Prefix(field, word) => format!("{}{word}*", name(field)),
            QueryTree::Fuzzy(field, word, 2) => format!("{}{word}~", name(field)),
            QueryTree::Fuzzy(field, word, distance) => format!("{}{word}~{distance}", name(field)),
            QueryTree::Phrase(field, words, 0) => format!("{}\"{words}\"", name(field)),
            QueryTree::Phrase(field, words, slop) => format!("{}\"{words}\"~{slop}", name(field)),
            QueryTree::Everything => "*:*".to_string(),
            QueryTree::Boost(inner, boost) if matches!(**inner, QueryTree::Boost(..)) => {
                format!("({})^{boost}", inner.text())
            }
            QueryTree::Boost(inner, boost) => format!("{}^{boost}", inner.operand()),
            QueryTree::Minimum(clauses, minimum) => {
                let clauses = clauses.iter().map(QueryTree::operand).collect::<Vec<_>>();
                format!("({})~{minimum}", clauses.join(" "))
            }
            QueryTree::All(operands) => operands.iter().map(operand).collect::<Vec<_>>().join(" AND "),
            QueryTree::Any(operands) => operands.iter().map(operand).collect::<Vec<_>>().join(" OR "),
            QueryTree::List(clauses) => {
                let clauses = clauses.iter().map(|(sign, node)| {
                    let sign = match sign {
                        Sign::None => "",
                        Sign::Plus => "+",
                        Sign::Hash => "#",
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
            QueryTree::All(..) | QueryTree::Any(..) | QueryTree::List(..) => format!("({})", self.text()),
            _ => self.text(),
        }
    }

    /// The query that the parser of the engine must return for the text.
    pub fn to_query(&self, schema: &Schema) -> Query {
        self.meaning(schema).unwrap_or(Query::Nothing)
    }

    /// `None` if analysis drops all terms.
    fn meaning(&self, schema: &Schema) -> Option<Query> {
        match self {
            QueryTree::Word(field, word) => {
                let (field, terms) = analysed_terms(*field, word, schema);
                any_of(terms.into_iter().map(|(_, term)| Query::Term { field, term, boost: 1.0 }))
            }
            QueryTree::Prefix(field, text) => {
                let (field, mut words) = normalized_tokens(*field, text, schema);
                let prefix = words.pop()?;
                let analysis = &schema.fields[field].analysis;
                let words = words.into_iter().filter(|word| !analysis.stop_words.contains(word));
                let words = any_of(words.map(|term| Query::Term { field, term, boost: 1.0 }));
                let prefix = Query::Prefix { field, prefix, whole_clusters: false, boost: 1.0 };
                any_of(words.into_iter().chain([prefix]))
            }
            QueryTree::Fuzzy(field, text, distance) => {
                let (field, words) = normalized_tokens(*field, text, schema);
                any_of(words.into_iter().map(|word| match distance {
                    0 => Query::Term { field, term: word, boost: 1.0 },
                    &distance => Query::Fuzzy { field, word, distance, boost: 1.0 },
                }))
            }
            QueryTree::Everything => Some(Query::All { boost: 1.0 }),
            QueryTree::Boost(inner, factor) => {
                let mut query = inner.meaning(schema)?;
                scale_boosts(&mut query, *factor);
                Some(query)
            }
            QueryTree::Minimum(clauses, minimum) => {
                let clauses: Vec<_> = clauses.iter().map(|clause| (Sign::None, clause)).collect();
                clause_list(&clauses, *minimum, schema)
            }
            QueryTree::Phrase(field, words, slop) => {
                let (field, terms) = analysed_terms(*field, words, schema);
                let first = terms.first()?.0;
                if let [(_, term)] = terms.as_slice() {
                    return Some(Query::Term { field, term: term.clone(), boost: 1.0 });
                }
                let terms = terms.into_iter().map(|(position, term)| (position - first, term)).collect();
                Some(Query::Phrase { field, terms, slop: *slop, open_end: false, boost: 1.0 })
            }
            QueryTree::All(operands) => {
                let sign = |negated| if negated { Sign::Not } else { Sign::Plus };
                let clauses: Vec<_> = operands.iter().map(|(negated, node)| (sign(*negated), node)).collect();
                clause_list(&clauses, 0, schema)
            }
            QueryTree::Any(operands) => {
                let excluded = |node: &QueryTree| QueryTree::List(vec![(Sign::Not, node.clone())]);
                let clauses = operands.iter();
                let clauses: Vec<QueryTree> = clauses
                    .map(|(negated, node)| if *negated { excluded(node) } else { node.clone() })
                    .collect();
                let clauses: Vec<_> = clauses.iter().map(|clause| (Sign::None, clause)).collect();
                clause_list(&clauses, 0, schema)
            }
            QueryTree::List(clauses) => {
                let clauses: Vec<_> = clauses.iter().map(|(sign, node)| (*sign, node)).collect();
                clause_list(&clauses, 0, schema)
            }
        }
    }
}

/// The query of a list of clauses; if there is one clause, and it is not a filter or excluded, the query of
/// the clause. `None` if analysis drops all clauses that are not excluded, unless the list has none.
fn clause_list(clauses: &[(Sign, &QueryTree)], minimum: usize, schema: &Schema) -> Option<Query> {
    if let [(Sign::None | Sign::Plus, clause)] = clauses {
        return clause.meaning(schema);
    }
    let with = |signs: &[Sign]| {
        let clauses = clauses.iter().filter(|clause| signs.contains(&clause.0));
        clauses.filter_map(|(_, node)| node.meaning(schema)).collect::<Vec<_>>()
    };
    let (must, filter, should) = (with(&[Sign::Plus]), with(&[Sign::Hash]), with(&[Sign::None]));
    let must_not = with(&[Sign::Minus, Sign::Not]);
    let asked = clauses.iter().any(|(sign, _)| !matches!(sign, Sign::Minus | Sign::Not));
    if must.is_empty() && filter.is_empty() && should.is_empty() && (asked || must_not.is_empty()) {
        return None;
    }
    let minimum = minimum.min(should.len()) as u32;
    Some(Query::Bool { must, filter, should, must_not, minimum })
}

/// A query that any of the clauses matches; `None` if there are none.
fn any_of(clauses: impl Iterator<Item = Query>) -> Option<Query> {
    let mut should: Vec<Query> = clauses.collect();
    if should.len() < 2 { should.pop() } else { Some(Query::clauses(Vec::new(), should, Vec::new())) }
}

/// The field that a query names, and the tokens of a text in it, with stop words.
fn normalized_tokens(field: Option<&str>, text: &str, schema: &Schema) -> (usize, Vec<String>) {
    let number = field.map_or(0, |name| schema.field(name).expect("the field exists"));
    (number, tokenize(text, schema.fields[number].analysis.tokenizer))
}

fn analysed_terms(field: Option<&str>, text: &str, schema: &Schema) -> (usize, Vec<(u32, String)>) {
    let number = field.map_or(0, |name| schema.field(name).expect("the field exists"));
    let analysis = &schema.fields[number].analysis;
    let kept = (0u32..).zip(tokenize(text, analysis.tokenizer));
    (number, kept.filter(|(_, token)| !analysis.stop_words.contains(token)).collect())
}

/// Multiplies all boosts in a query by a factor.
fn scale_boosts(query: &mut Query, factor: f64) {
    match query {
        Query::Bool { must, filter, should, must_not, .. } => {
            let clauses = must.iter_mut().chain(filter).chain(should).chain(must_not);
            clauses.for_each(|clause| scale_boosts(clause, factor));
        }
        Query::Term { boost, .. }
        | Query::Phrase { boost, .. }
        | Query::Prefix { boost, .. }
        | Query::Fuzzy { boost, .. }
        | Query::All { boost } => *boost *= factor,
        _ => {}
    }
}

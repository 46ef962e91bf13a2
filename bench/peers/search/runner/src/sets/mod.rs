//! Query sets: drawn from the terms of the corpus by document frequency, cut from its text, or real.
//!
//! Classes of terms: H occur in more than 1% of the documents, M in 0.001% to 1%, L in less and at least two.
//! A set's name says what its queries are: `single-h` one term of class H, `and-mm` two different terms of
//! class M that must both stand, `or-3-5` three to five different terms as alternatives, the class of each H
//! or M with equal odds (`or-3-5-h`: all H). Mixed queries have clauses of different kinds: `must-m-filter-h`
//! is `+m #h`, a required term of class M and a filter of class H, and `should-hh-not-h` is `h h -h`; M are
//! there only terms of at least two hundred documents. `phrase-3` are three adjacent words
//! somewhere.
//!
//! [`draw`] makes them, [`phrases`] cuts phrases, [`real`] reads those that people asked.

mod draw;
mod phrases;
mod real;

use crate::flags::Flags;
use crate::tokens::Corpus;
use crate::tools::{self, say};
use draw::{Classes, Queues};
use std::path::PathBuf;
use tierdex_bench::{Random, Result};

/// The sets on which engines are compared unless flags say otherwise.
pub const JUDGED: &[&str] = &[
    "single-h",
    "single-m",
    "and-hh",
    "and-mm",
    "and-3-5",
    "or-hh",
    "or-mm",
    "or-3-5",
    "game-and",
    "game-or",
    "questions-or",
];

/// The sets on which they are compared under a limit of memory.
pub const LIMITED: &[&str] = &["single-h", "and-hh"];

/// Clauses of mixed queries.
const MIXED: [&[(Occur, Class)]; 8] = [
    &[(Occur::Must, Class::M200), (Occur::Filter, Class::H)],
    &[(Occur::Must, Class::H), (Occur::Filter, Class::H)],
    &[(Occur::Must, Class::M200), (Occur::Not, Class::H)],
    &[(Occur::Must, Class::H), (Occur::Not, Class::H)],
    &[(Occur::Must, Class::M200), (Occur::Should, Class::H)],
    &[(Occur::Must, Class::H), (Occur::Should, Class::H)],
    &[(Occur::Should, Class::H), (Occur::Should, Class::H), (Occur::Filter, Class::H)],
    &[(Occur::Should, Class::H), (Occur::Should, Class::H), (Occur::Not, Class::H)],
];

/// Words of phrases.
const PHRASES: [usize; 3] = [2, 3, 4];

/// What the queries of a set are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// One term.
    Single(Class),
    /// Two terms of one class.
    Pair(Join, Class),
    /// Three to five terms, of one class or of H and M mixed.
    Several(Join, Option<Class>),
    /// Clauses of different kinds, a term each.
    Mixed(&'static [(Occur, Class)]),
    /// A number of adjacent words.
    Phrase(usize),
    /// What people asked.
    Real(Source, Join),
}

/// Which sets belong together in a table of means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Terms, all required or all alternatives.
    Flat,
    /// Clauses of different kinds.
    Mixed,
    /// Phrases.
    Phrases,
}

/// What a clause is to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occur {
    /// Required.
    Must,
    /// Adds to the score.
    Should,
    /// Required, and adds nothing to the score.
    Filter,
    /// Excluded.
    Not,
}

/// Whether all terms must stand or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// All.
    And,
    /// Any.
    Or,
}

/// How many documents hold a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// More than one of a hundred.
    H,
    /// One of a hundred thousand to one of a hundred.
    M,
    /// Fewer, and at least two.
    L,
    /// Those of M with at least two hundred.
    M200,
}

/// Where real queries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// search-benchmark-game.jsonl
    Game,
    /// msmarco-passage.dev-subset.tsv
    Questions,
    /// terabyte05.efficiency.tsv
    Terabyte,
}

/// Queries of one kind, as the protocol writes them.
pub struct Set {
    /// Its name, with the probability of repeats if there is one.
    pub name: String,
    /// Where it belongs.
    pub group: Group,
    /// Its queries.
    pub queries: Vec<String>,
}

impl Recipe {
    /// All recipes, in the order of tables.
    pub fn all() -> Vec<Recipe> {
        let classes = [Class::H, Class::M, Class::L];
        let mut all: Vec<Recipe> = classes.map(Recipe::Single).to_vec();
        for join in [Join::And, Join::Or] {
            all.extend(classes.map(|class| Recipe::Pair(join, class)));
            all.extend([None, Some(Class::H)].map(|class| Recipe::Several(join, class)));
        }
        for source in [Source::Game, Source::Questions, Source::Terabyte] {
            all.extend([Join::And, Join::Or].map(|join| Recipe::Real(source, join)));
        }
        all.extend(MIXED.map(Recipe::Mixed));
        all.extend(PHRASES.map(Recipe::Phrase));
        all
    }

    /// Where its sets belong.
    pub fn group(&self) -> Group {
        match self {
            Recipe::Mixed(_) => Group::Mixed,
            Recipe::Phrase(_) => Group::Phrases,
            _ => Group::Flat,
        }
    }

    /// Whether it is compared unless flags say otherwise.
    pub fn is_judged(&self) -> bool {
        self.group() != Group::Flat || JUDGED.contains(&self.name().as_str())
    }

    /// The name that users type.
    pub fn name(&self) -> String {
        match self {
            Recipe::Single(class) => format!("single-{}", class.letter()),
            Recipe::Pair(join, class) => format!("{}-{1}{1}", join.word(), class.letter()),
            Recipe::Several(join, None) => format!("{}-3-5", join.word()),
            Recipe::Several(join, Some(class)) => format!("{}-3-5-{}", join.word(), class.letter()),
            Recipe::Mixed(clauses) => mixed_name(clauses),
            Recipe::Phrase(words) => format!("phrase-{words}"),
            Recipe::Real(source, join) => format!("{}-{}", source.word(), join.word()),
        }
    }
}

impl Class {
    fn letter(self) -> char {
        match self {
            Class::H => 'h',
            Class::M | Class::M200 => 'm',
            Class::L => 'l',
        }
    }
}

/// `must-m-filter-h`: classes behind what their clauses are.
fn mixed_name(clauses: &[(Occur, Class)]) -> String {
    let kinds = clauses.chunk_by(|one, other| one.0 == other.0).map(|kind| {
        let letters: String = kind.iter().map(|(_, class)| class.letter()).collect();
        format!("{}-{letters}", kind[0].0.word())
    });
    kinds.collect::<Vec<_>>().join("-")
}

impl Group {
    /// All, in the order of tables.
    pub const ALL: [Group; 3] = [Group::Flat, Group::Mixed, Group::Phrases];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Group::Flat => "flat",
            Group::Mixed => "mixed",
            Group::Phrases => "phrases",
        }
    }
}

impl Occur {
    fn word(self) -> &'static str {
        match self {
            Occur::Must => "must",
            Occur::Should => "should",
            Occur::Filter => "filter",
            Occur::Not => "not",
        }
    }

    /// What the protocol writes before a term.
    fn sign(self) -> &'static str {
        match self {
            Occur::Must => "+",
            Occur::Should => "",
            Occur::Filter => "#",
            Occur::Not => "-",
        }
    }
}

impl Join {
    fn word(self) -> &'static str {
        match self {
            Join::And => "and",
            Join::Or => "or",
        }
    }

    /// A query of the protocol.
    fn query(self, terms: &[&str]) -> String {
        let sign = if self == Join::And { "+" } else { "" };
        let words: Vec<String> = terms.iter().map(|term| format!("{sign}{term}")).collect();
        words.join(" ")
    }
}

impl Source {
    fn word(self) -> &'static str {
        match self {
            Source::Game => "game",
            Source::Questions => "questions",
            Source::Terabyte => "terabyte",
        }
    }
}

/// Makes the sets that are wanted, and writes each below the work directory. Sets without queries are left out.
///
/// # Errors
/// If real queries cannot be read or a set cannot be written.
pub fn make(flags: &Flags, corpus: &Corpus) -> Result<Vec<Set>> {
    let recipes = flags.recipes()?;
    let classes = Classes::of(corpus);
    let mut sets = Vec::new();
    for recipe in recipes {
        let group = recipe.group();
        if let Recipe::Real(source, join) = recipe {
            let queries = real::queries(flags, corpus, source, join)?;
            sets.push(Set { name: recipe.name(), group, queries });
            continue;
        }
        if let Recipe::Phrase(words) = recipe {
            let queries = phrases::queries(corpus, words, flags.count(), &mut Random::new(flags.seed))?;
            sets.push(Set { name: recipe.name(), group, queries });
            continue;
        }
        for &percent in &flags.repeat {
            let tail = if percent == 0 { String::new() } else { format!("-rp{percent}") };
            let mut queues = Queues::new(&classes, percent, Random::new(flags.seed));
            let queries = (0..flags.count()).map_while(|_| queues.query(recipe)).collect();
            sets.push(Set { name: recipe.name() + &tail, group, queries });
        }
    }
    let folder = folder(flags);
    tools::make_folder(&folder)?;
    for set in &sets {
        if set.queries.is_empty() {
            say(&format!("set {} is left out: there are no such queries", set.name));
        }
        let text: String = set.queries.iter().map(|query| format!("{query}\n")).collect();
        tools::write(&folder.join(format!("{}.txt", set.name)), &text)?;
    }
    sets.retain(|set| !set.queries.is_empty());
    Ok(sets)
}

/// Where sets and batches are written.
pub fn folder(flags: &Flags) -> PathBuf {
    flags.place().join("sets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_queries_are_named_by_their_clauses() {
        let names = MIXED.map(mixed_name);
        assert_eq!((names[0].as_str(), names[7].as_str()), ("must-m-filter-h", "should-hh-not-h"));
    }

    #[test]
    fn names_are_different_and_hold_the_judged() {
        let mut names: Vec<String> = Recipe::all().iter().map(Recipe::name).collect();
        assert!(JUDGED.iter().all(|name| names.iter().any(|known| known == name)));
        let len = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), len);
    }

    #[test]
    fn queries_are_written_as_the_protocol_has_them() {
        assert_eq!(Join::And.query(&["a", "b"]), "+a +b");
        assert_eq!(Join::Or.query(&["a", "b"]), "a b");
    }
}

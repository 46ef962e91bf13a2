//! The query sets: their names, groups, clauses and classes of terms.

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
pub(super) const MIXED: [&[(Occur, Class)]; 8] = [
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

/// Conjunction or disjunction of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// All.
    And,
    /// Any.
    Or,
}

/// Classes of terms by document frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// High: more than 1% of the documents.
    H,
    /// Medium: 0.001% to 1% of the documents.
    M,
    /// Low: fewer, at least two documents.
    L,
    /// Terms of class M in at least 200 documents.
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
    pub(super) fn letter(self) -> char {
        match self {
            Class::H => 'h',
            Class::M | Class::M200 => 'm',
            Class::L => 'l',
        }
    }
}

/// `must-m-filter-h`: classes behind what their clauses are.
pub(super) fn mixed_name(clauses: &[(Occur, Class)]) -> String {
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
    pub(super) fn sign(self) -> &'static str {
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
    pub(super) fn query(self, terms: &[&str]) -> String {
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

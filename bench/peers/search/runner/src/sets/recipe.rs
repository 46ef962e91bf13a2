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

/// Words and slop of phrases.
const PHRASES: [(usize, usize); 5] = [(2, 0), (3, 0), (4, 0), (2, 3), (3, 4)];

/// Clauses of different kinds, a term each: name and pattern ([`pattern`](super::pattern)).
const MIXED: [(&str, &str); 8] = [
    ("must-m-filter-h", "+m #h"),
    ("must-h-filter-h", "+h #h"),
    ("must-m-not-h", "+m -h"),
    ("must-h-not-h", "+h -h"),
    ("must-m-should-h", "+m h"),
    ("must-h-should-h", "+h h"),
    ("should-hh-filter-h", "h h #h"),
    ("should-hh-not-h", "h h -h"),
];

/// Nested groups, minimum match, prefixes and fuzzy words: name and pattern ([`pattern`](super::pattern)).
const SHAPES: [(&str, &str); 26] = [
    ("nested-1", "+(x x) +(x x)"),
    ("nested-2", "+x +(x x)"),
    ("nested-3", "(+x +x) x"),
    ("nested-4", "(x x x) -(x x)"),
    ("nested-5", "+(x (+x +x)) +(x x) -x"),
    ("nested-6", "((+x +x) (+x +x)) -x"),
    ("nested-7", "+(x x x) #(x x) x"),
    ("nested-8", "(x x) (+x #x)"),
    ("nested-9", "+x -(x x)"),
    ("nested-10", "+(x x) x"),
    ("minimum-2-of-3", "(x x x)~2"),
    ("minimum-2-of-4", "(x x x x)~2"),
    ("minimum-3-of-5", "(x x x x x)~3"),
    ("minimum-filter", "#x +(x x x x)~2"),
    ("minimum-not", "+(x x x x)~2 -x"),
    ("prefix-alone", "p*"),
    ("prefix-m", "+m #p*"),
    ("prefix-h", "+h #p*"),
    ("prefix-should", "m p*"),
    ("prefix-two", "+p* +p*"),
    ("prefix-or", "+m +(p* p*)"),
    ("prefix-not", "+h -p*"),
    ("fuzzy-1", "x~1"),
    ("fuzzy-2", "x~2"),
    ("fuzzy-and", "+x~1 +h"),
    ("fuzzy-or", "x~1 m"),
];

/// What the queries of a set are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// One term.
    Single(Class),
    /// Two terms of one class.
    Pair(Join, Class),
    /// Three to five terms, of one class or of H and M mixed.
    Several(Join, Option<Class>),
    /// Words in the placeholders of a pattern.
    Pattern { group: Group, name: &'static str, pattern: &'static str },
    /// Adjacent words; if there is a slop, words in another order or with a gap.
    Phrase { words: usize, slop: usize },
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
    /// Nested groups, minimum match, prefixes, fuzzy words, and phrases with slop.
    Shapes,
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
        for (group, patterns) in [(Group::Mixed, &MIXED[..]), (Group::Shapes, &SHAPES[..])] {
            all.extend(patterns.iter().map(|&(name, pattern)| Recipe::Pattern { group, name, pattern }));
        }
        all.extend(PHRASES.map(|(words, slop)| Recipe::Phrase { words, slop }));
        all
    }

    /// Where its sets belong.
    pub fn group(&self) -> Group {
        match self {
            Recipe::Pattern { group, .. } => *group,
            Recipe::Phrase { slop: 0, .. } => Group::Phrases,
            Recipe::Phrase { .. } => Group::Shapes,
            _ => Group::Flat,
        }
    }

    /// Whether it is compared where its group is.
    pub fn is_judged(&self) -> bool {
        self.group() != Group::Flat || JUDGED.contains(&self.name().as_str())
    }

    /// Whether its queries need an index with positions.
    pub fn has_positions(&self) -> bool {
        matches!(self, Recipe::Phrase { .. })
    }

    /// Whether all engines match the same documents. They expand fuzzy words to different terms.
    pub fn is_counted(&self) -> bool {
        !matches!(self, Recipe::Pattern { pattern, .. } if pattern.contains("x~"))
    }

    /// Whether a command is measured unless flags say otherwise.
    pub fn has_command(&self, command: &str) -> bool {
        match self.group() {
            Group::Flat | Group::Mixed => true,
            Group::Phrases => command != "TOP_1024",
            Group::Shapes => command == "TOP_10" || command == "COUNT" && self.is_counted(),
        }
    }

    /// The name that users type.
    pub fn name(&self) -> String {
        match self {
            Recipe::Single(class) => format!("single-{}", class.letter()),
            Recipe::Pair(join, class) => format!("{}-{1}{1}", join.word(), class.letter()),
            Recipe::Several(join, None) => format!("{}-3-5", join.word()),
            Recipe::Several(join, Some(class)) => format!("{}-3-5-{}", join.word(), class.letter()),
            Recipe::Pattern { name, .. } => (*name).to_string(),
            Recipe::Phrase { words, slop: 0 } => format!("phrase-{words}"),
            Recipe::Phrase { words, .. } => format!("slop-{words}"),
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

impl Group {
    /// All, in the order of tables.
    pub const ALL: [Group; 4] = [Group::Flat, Group::Mixed, Group::Phrases, Group::Shapes];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Group::Flat => "flat",
            Group::Mixed => "mixed",
            Group::Phrases => "phrases",
            Group::Shapes => "shapes",
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

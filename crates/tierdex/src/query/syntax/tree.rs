//! The syntax tree of a query.

/// A syntax tree. Words are unanalyzed; each may name a field.
#[derive(Clone, Debug, PartialEq)]
pub enum SyntaxTree {
    /// A word.
    Word(Option<String>, String),
    /// Words with this prefix.
    Prefix(Option<String>, String),
    /// Words within an edit distance.
    Fuzzy(Option<String>, String, u8),
    /// A quoted phrase, and its slop.
    Phrase(Option<String>, String, u32),
    /// Values of a column in one of these ranges.
    Column {
        /// Name of the column.
        column: String,
        /// Byte offset of the clause in the query.
        at: usize,
        /// The ranges.
        ranges: Vec<ColumnRange>,
        /// Score of each match.
        boost: f64,
    },
    /// All documents.
    All,
    /// A list of clauses, and the minimum number of its alternatives that must match.
    List(Vec<SyntaxClause>, u32),
    /// A clause with a boost.
    Boost(Box<SyntaxTree>, f64),
}

/// A range of values as it is written: each end with whether it belongs to the range; `None` without a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRange {
    /// The low end.
    pub low: Option<(String, bool)>,
    /// The high end.
    pub high: Option<(String, bool)>,
}

/// What a name before a colon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A text field.
    Field,
    /// A column.
    Column,
}

/// A clause of a list, with its role there.
pub type SyntaxClause = (Occur, SyntaxTree);

/// The role of a clause in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occur {
    /// Contributes to the score of documents that match it.
    Should,
    /// Documents must match it.
    Must,
    /// Documents must match it; it does not contribute to their score.
    Filter,
    /// Documents must not match it.
    MustNot,
}

/// Whether the index has a field or column of this name. The error lists its fields.
pub type Fields<'a> = &'a dyn Fn(&str) -> std::result::Result<NameKind, String>;

/// `syntax` with a boost, if it has one.
pub(super) fn with_boost(syntax: SyntaxTree, boost: Option<f64>) -> SyntaxTree {
    match boost {
        Some(boost) => SyntaxTree::Boost(Box::new(syntax), boost),
        None => syntax,
    }
}

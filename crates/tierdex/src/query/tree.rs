//! Queries: trees of analyzed terms in numbered fields.

use super::typed::merge_ranges;
use crate::schema::{Column, ColumnValue, Schema};
use crate::{Error, Result};
use std::ops::{Bound, RangeBounds};

/// A query: its words are terms of the index, its fields are numbers.
///
/// [`Query::parse`] reads the query language: `a b` (either), `+a -b` or `a AND NOT b`, `"a b"~2` (phrase
/// with slop), `title:a`, `pre*`, `fuzy~1`, `a^2` (boost), `#a` (filter), groups in parentheses, and of
/// columns `year:[1990 TO 2000}`, `year:>=1990`, `year:(1990 1995)`, `year:*` (any value). Queries may
/// also be built from their variants.
///
/// ```
/// use tierdex::{Query, Schema};
///
/// let query = Query::parse("disk", &Schema::default())?;
/// assert_eq!(query, Query::Term { field: 0, term: "disk".to_string(), boost: 1.0 });
/// let error = Query::parse("disk AND", &Schema::default()).unwrap_err();
/// assert!(error.to_string().starts_with("query, byte "));
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Query {
    /// Documents that contain a term.
    Term {
        /// Number of the field.
        field: usize,
        /// The term after analysis.
        term: String,
        /// Factor of the score of the clause.
        boost: f64,
    },
    /// Documents that contain terms at given distances.
    Phrase {
        /// Number of the field.
        field: usize,
        /// Terms with their distances from the first, increasing.
        terms: Vec<(u32, String)>,
        /// Total number of positions by which the terms may be displaced (`crate::eval::nodes::slop`). With
        /// the largest distance it is at most [`crate::limits::POSITION_GAP`]: more counts as that.
        slop: u32,
        /// Whether the last term is a grapheme cluster of text without blanks, which stands for all terms
        /// that begin with it.
        open_end: bool,
        /// Factor of the score of the clause.
        boost: f64,
    },
    /// Documents that contain a term with this prefix. Each scores `boost`.
    Prefix {
        /// Number of the field.
        field: usize,
        /// The prefix, not empty.
        prefix: String,
        /// Whether a term only counts if a grapheme cluster ends behind the prefix: the prefix is one
        /// character of text without blanks.
        whole_clusters: bool,
        /// Score.
        boost: f64,
    },
    /// Documents that contain a term close to a word. Matching terms are within `distance` edits (insertion,
    /// deletion, substitution, transposition of adjacent characters), and the edit distance is less than the
    /// length of either in characters. At most [`crate::limits::FUZZY_EXPANSIONS_MAX`] terms are used: the
    /// closest, then those with the highest document frequency, then the first in byte order. Scores of
    /// several terms are summed. Each term scores with the document frequency of the most frequent of them,
    /// and its boost is multiplied by `1 - distance / length`, where `length` is that of the shorter of term
    /// and word.
    Fuzzy {
        /// Number of the field.
        field: usize,
        /// The word.
        word: String,
        /// Maximum edit distance, 0 to 2.
        distance: u8,
        /// Factor of the score of the clause.
        boost: f64,
    },
    /// Documents with a value of a column in one of some ranges. Each scores `boost`, which is 0 in the query
    /// language unless it is given.
    Column {
        /// Number of the column.
        column: usize,
        /// Ranges of values as integers that have their order, ascending, without overlaps, both ends
        /// included; [`Query::range`] makes them of values.
        ranges: Vec<(u64, u64)>,
        /// Score.
        boost: f64,
    },
    /// All documents. Each scores `boost`.
    All {
        /// Score.
        boost: f64,
    },
    /// Documents that match all of `must` and `filter`, at least `minimum` of `should`, and none of
    /// `must_not`. If `must` and `filter` are empty and `should` is not, at least one of `should` must
    /// match. If all three are empty, all documents match that `must_not` does not exclude, with score 0.
    Bool {
        /// Required clauses.
        must: Vec<Query>,
        /// Required clauses that do not contribute to the score.
        filter: Vec<Query>,
        /// Alternatives, or optional clauses that contribute to the score.
        should: Vec<Query>,
        /// Exclusions.
        must_not: Vec<Query>,
        /// Minimum number of `should` clauses that must match.
        minimum: u32,
    },
    /// No document.
    Nothing,
}

impl Query {
    /// Bytes of memory of the query, with its texts and inner queries.
    #[doc(hidden)]
    pub fn memory(&self) -> usize {
        let text = match self {
            Query::Term { term, .. } => term.capacity(),
            Query::Prefix { prefix, .. } => prefix.capacity(),
            Query::Fuzzy { word, .. } => word.capacity(),
            Query::Phrase { terms, .. } => {
                let term = |(_, term): &(u32, String)| size_of::<(u32, String)>() + term.capacity();
                terms.iter().map(term).sum()
            }
            Query::Bool { must, filter, should, must_not, .. } => {
                [must, filter, should, must_not].into_iter().flatten().map(Query::memory).sum()
            }
            Query::Column { ranges, .. } => size_of::<(u64, u64)>() * ranges.capacity(),
            Query::All { .. } | Query::Nothing => 0,
        };
        size_of::<Query>() + text
    }

    /// The numbers of the fields that the query searches, in order, without those of exclusions.
    pub fn fields(&self) -> Vec<usize> {
        let mut fields = Vec::new();
        self.collect_fields(&mut fields);
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    fn collect_fields(&self, fields: &mut Vec<usize>) {
        match self {
            Query::Term { field, .. }
            | Query::Phrase { field, .. }
            | Query::Prefix { field, .. }
            | Query::Fuzzy { field, .. } => fields.push(*field),
            Query::Bool { must, filter, should, .. } => {
                let inner = [must, filter, should].into_iter().flatten();
                inner.for_each(|query| query.collect_fields(fields));
            }
            Query::Column { .. } | Query::All { .. } | Query::Nothing => {}
        }
    }

    /// Documents with a value in a range of a column, with score 0. Use it as a filter of a [`Query::Bool`].
    ///
    /// ```
    /// use tierdex::schema::{Column, ColumnType, ColumnValue, Schema};
    /// use tierdex::Query;
    ///
    /// let schema = Schema::default().with_columns(vec![Column::new("year", ColumnType::I64)]);
    /// let nineties = Query::range(&schema, "year", ColumnValue::I64(1990)..ColumnValue::I64(2000))?;
    /// assert_eq!(nineties, Query::parse("year:[1990 TO 2000}", &schema)?);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if the schema has no such column, or a bound has another type.
    pub fn range(schema: &Schema, column: &str, range: impl RangeBounds<ColumnValue>) -> Result<Query> {
        let number = schema.column_named(column)?;
        let bits = |value| bits_of(&schema.columns[number], value);
        let low = match range.start_bound() {
            Bound::Unbounded => Some(0),
            Bound::Included(value) => Some(bits(*value)?),
            Bound::Excluded(value) => bits(*value)?.checked_add(1),
        };
        let high = match range.end_bound() {
            Bound::Unbounded => Some(u64::MAX),
            Bound::Included(value) => Some(bits(*value)?),
            Bound::Excluded(value) => bits(*value)?.checked_sub(1),
        };
        let range = low.zip(high).filter(|(low, high)| low <= high);
        Ok(Query::Column { column: number, ranges: range.into_iter().collect(), boost: 0.0 })
    }

    /// Documents with one of these values in a column, with score 0.
    ///
    /// # Errors
    /// As [`Query::range`].
    pub fn terms(schema: &Schema, column: &str, values: &[ColumnValue]) -> Result<Query> {
        let number = schema.column_named(column)?;
        let bits = values.iter().map(|value| bits_of(&schema.columns[number], *value));
        let ranges = bits.map(|bits| bits.map(|bits| (bits, bits))).collect::<Result<Vec<_>>>()?;
        Ok(Query::Column { column: number, ranges: merge_ranges(ranges), boost: 0.0 })
    }

    /// Documents with a value in a column, with score 0.
    ///
    /// # Errors
    /// As [`Query::range`].
    pub fn exists(schema: &Schema, column: &str) -> Result<Query> {
        Query::range(schema, column, ..)
    }

    /// A [`Query::Bool`] without filters and without a minimum.
    pub fn clauses(must: Vec<Query>, should: Vec<Query>, must_not: Vec<Query>) -> Query {
        Query::Bool { must, filter: Vec::new(), should, must_not, minimum: 0 }
    }

    /// The boost of a query that is not a combination of others.
    pub(super) fn boost(&self) -> Option<f64> {
        match self {
            Query::Term { boost, .. }
            | Query::Phrase { boost, .. }
            | Query::Prefix { boost, .. }
            | Query::Fuzzy { boost, .. }
            | Query::Column { boost, .. }
            | Query::All { boost } => Some(*boost),
            Query::Bool { .. } | Query::Nothing => None,
        }
    }
}

/// The integer of a value in a column.
fn bits_of(column: &Column, value: ColumnValue) -> Result<u64> {
    column.values.to_bits(value).ok_or_else(|| {
        let (name, what) = (&column.name, column.values.description());
        Error::Usage(format!("column `{name}`: {value:?} is not {what}"))
    })
}

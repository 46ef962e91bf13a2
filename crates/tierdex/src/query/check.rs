//! Limits of queries that were built from the variants of [`Query`]: those of parsed queries.

use super::tree::Query;
use crate::limits::{
    FUZZY_BYTES_MAX, FUZZY_DISTANCE_MAX, PHRASE_TERMS_MAX, POSITION_GAP, QUERY_DEPTH_MAX, QUERY_EXPANDED_MAX,
    QUERY_TERMS_MAX,
};
use crate::{Error, Result, schema::Schema};

/// Maximum number of queries inside one another. A pair of parentheses is parsed to at most two of them, and
/// a word with synonyms to at most four.
const LEVELS_MAX: usize = 2 * QUERY_DEPTH_MAX + 4;

/// The distance of the last term of a phrase from the first one.
pub(super) fn last_distance(terms: &[(u32, String)]) -> u32 {
    terms.last().map_or(0, |(distance, _)| *distance)
}

/// What is wrong with a phrase whose last term has this distance from the first one, more than the limit.
pub(super) fn phrase_too_long(distance: u32) -> String {
    format!("a phrase of {} words; at most {} can be one", u64::from(distance) + 1, POSITION_GAP + 1)
}

impl Query {
    /// Checks a query before its memory is computed and it is planned, which both recurse into it.
    ///
    /// # Errors
    /// [`Error::Usage`] when the query is not within the limits of parsed queries.
    pub(crate) fn check(&self, schema: &Schema) -> Result<()> {
        let (mut terms, mut expanded) = (0, 0);
        let mut open = vec![(self, 1)];
        while let Some((query, level)) = open.pop() {
            let (field, counts) = match query {
                Query::Term { field, .. } => (field, (1, 0)),
                Query::Prefix { field, whole_clusters, .. } => {
                    (field, if *whole_clusters { (1, 0) } else { (0, 1) })
                }
                Query::Fuzzy { field, .. } => (field, (0, 1)),
                Query::Phrase { field, terms, .. } => (field, (terms.len(), 0)),
                Query::Bool { must, filter, should, must_not, .. } => {
                    let inner = [must, filter, should, must_not].into_iter().flatten();
                    open.extend(inner.map(|query| (query, level + 1)));
                    (&0, (0, 0))
                }
                Query::Column { ranges, .. } => (&0, (ranges.len(), 0)),
                Query::All { .. } | Query::Nothing => (&0, (0, 0)),
            };
            (terms, expanded) = (terms + counts.0, expanded + counts.1);
            let fields = schema.fields.len();
            let fault = match () {
                () if level > LEVELS_MAX => format!("has more than {LEVELS_MAX} queries inside one another"),
                () if terms > QUERY_TERMS_MAX => format!("has more than {QUERY_TERMS_MAX} terms"),
                () if expanded > QUERY_EXPANDED_MAX => {
                    format!("has more than {QUERY_EXPANDED_MAX} prefixes and fuzzy words")
                }
                () if *field >= fields => format!("searches field {field}; the schema has {fields} fields"),
                () if matches!(query, Query::Column { column, .. } if *column >= schema.columns.len()) => {
                    format!("has a clause on a column that the schema does not have: {query:?}")
                }
                () => match query.fault() {
                    Some(fault) => fault,
                    None => continue,
                },
            };
            return Err(Error::Usage(format!("the query {fault}")));
        }
        Ok(())
    }

    /// What is wrong with a query that has no inner queries.
    fn fault(&self) -> Option<String> {
        match self {
            Query::Prefix { prefix, .. } if prefix.is_empty() => Some("has an empty prefix".to_string()),
            Query::Fuzzy { distance, .. } if *distance > FUZZY_DISTANCE_MAX => Some(format!(
                "has a fuzzy word at distance {distance}; at most {FUZZY_DISTANCE_MAX} is possible"
            )),
            Query::Fuzzy { word, .. } if word.len() > FUZZY_BYTES_MAX => {
                let bytes = word.len();
                Some(format!("has a fuzzy word of {bytes} bytes; at most {FUZZY_BYTES_MAX} are possible"))
            }
            Query::Phrase { terms, .. } if !(1..=PHRASE_TERMS_MAX).contains(&terms.len()) => {
                Some(format!("has a phrase of {} terms; it must have 1 to {PHRASE_TERMS_MAX}", terms.len()))
            }
            Query::Phrase { terms, .. } if !terms.is_sorted_by(|(a, _), (b, _)| a < b) => {
                Some("has a phrase whose distances do not increase".to_string())
            }
            Query::Phrase { terms, .. } if last_distance(terms) > POSITION_GAP => {
                Some(format!("has {}", phrase_too_long(last_distance(terms))))
            }
            Query::Column { ranges, .. }
                if !ranges.iter().all(|(low, high)| low <= high)
                    || !ranges.is_sorted_by(|(_, high), (low, _)| high < low) =>
            {
                Some("has ranges of a column that are not in order".to_string())
            }
            _ => None,
        }
    }
}

//! The edit distance of a word by its length (`fuzziness`).

use crate::api_error::ApiError;
use crate::es::error::parsing_error;
use crate::es::members::{Members, text_of};
use serde_json::{Value, json};

/// The edit distance of words: the same for all, or by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fuzziness {
    Edits(u8),
    /// 0 below the first number of characters, 1 below the second one, and 2.
    Auto(usize, usize),
}

impl Fuzziness {
    pub(super) const DEFAULT: Fuzziness = Fuzziness::Auto(3, 6);

    pub(super) fn parse(value: &Value) -> Result<Fuzziness, ApiError> {
        let text = text_of(value).unwrap_or_default().to_ascii_uppercase();
        let lengths = text.strip_prefix("AUTO").and_then(|rest| match rest {
            "" => Some(Fuzziness::DEFAULT),
            rest => {
                let (low, high) = rest.strip_prefix(':')?.split_once(',')?;
                let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
                (low <= high).then_some(Fuzziness::Auto(low, high))
            }
        });
        let edits = || text.parse().ok().filter(|edits| *edits <= 2).map(Fuzziness::Edits);
        lengths.or_else(edits).ok_or_else(|| {
            parsing_error(format!("[fuzziness] must be 0, 1, 2, AUTO or AUTO:n,m; it is {value}"))
        })
    }

    /// Takes the members that say how a word is expanded.
    pub(super) fn take(members: &mut Members<'_>) -> Result<Option<Fuzziness>, ApiError> {
        members.only("prefix_length", &json!(0))?;
        members.only("max_expansions", &json!(50))?;
        members.take("fuzziness").map(Fuzziness::parse).transpose()
    }

    pub(super) fn of_word(self, word: &str) -> u8 {
        let length = word.chars().count();
        match self {
            Fuzziness::Edits(edits) => edits,
            Fuzziness::Auto(low, _) if length < low => 0,
            Fuzziness::Auto(_, high) if length < high => 1,
            Fuzziness::Auto(..) => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_follow_from_lengths() {
        let distances = |value: Value| {
            let fuzziness = Fuzziness::parse(&value).unwrap();
            ["ab", "abc", "abcde", "äöüäöü"].map(|word| fuzziness.of_word(word))
        };
        assert_eq!(distances(json!("AUTO")), [0, 1, 1, 2]);
        assert_eq!(distances(json!("auto:0,4")), [1, 1, 2, 2]);
        assert_eq!(distances(json!(1)), [1; 4]);
        assert_eq!(distances(json!("2")), [2; 4]);
        for wrong in [json!(3), json!(-1), json!("AUTO:5,2"), json!("AUTO:"), json!({}), json!(0.5)] {
            assert!(Fuzziness::parse(&wrong).is_err(), "{wrong}");
        }
    }
}

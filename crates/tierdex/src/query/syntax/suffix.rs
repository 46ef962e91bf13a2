//! Suffixes of a word, a phrase or a group: `^` with a boost; `~` with the edit distance of a word, the slop
//! of a phrase, or the number of alternatives of a group that must match.

use super::problems::Problems;
use crate::{Result, limits::BOOST_MAX, limits::FUZZY_DISTANCE_MAX};

/// The suffix operators of one clause.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Suffixes {
    /// Offset of `~`, and the text after it.
    pub(super) tilde: Option<(usize, String)>,
    pub(super) boost: Option<f64>,
}

impl Suffixes {
    /// Adds the operator `mark` at byte `at` with the text of its number ([`is_number`]), which may be empty
    /// for `~`. A second operator of the same kind is a fault.
    pub(super) fn add_operator(
        &mut self,
        at: usize,
        mark: char,
        number: &str,
        problems: &mut Problems,
    ) -> Result<()> {
        let is_second = if mark == '^' { self.boost.is_some() } else { self.tilde.is_some() };
        if is_second {
            return problems.report_at(at, format!("a second `{mark}` behind one clause"));
        }
        match mark {
            '^' => {
                self.boost = number.parse().ok().filter(|boost| (0.0..=BOOST_MAX).contains(boost));
                if self.boost.is_none() {
                    let message =
                        format!("a boost lies between 0 and {BOOST_MAX}, which `{number}` does not");
                    problems.report_at(at, message)?;
                }
            }
            _ => self.tilde = Some((at, number.to_string())),
        }
        Ok(())
    }

    /// Maximum edit distance of a fuzzy word; `None` if it is not fuzzy.
    pub(super) fn distance(&self, problems: &mut Problems) -> Result<Option<u8>> {
        let Some((at, number)) = &self.tilde else { return Ok(None) };
        if number.is_empty() {
            return Ok(Some(FUZZY_DISTANCE_MAX));
        }
        match number.parse::<u64>() {
            Ok(distance) if distance <= u64::from(FUZZY_DISTANCE_MAX) => Ok(Some(distance as u8)),
            read => {
                let most = format!("a fuzzy word is 0 to {FUZZY_DISTANCE_MAX} edits away, not `{number}`");
                problems.report_at(*at, format!("{most}; write `\\~` for the character"))?;
                Ok(read.is_ok().then_some(FUZZY_DISTANCE_MAX))
            }
        }
    }

    /// The number behind `~`, with its offset: the slop of a phrase, or the minimum of a group.
    pub(super) fn count(&self, problems: &mut Problems) -> Result<Option<(usize, u32)>> {
        let Some((at, number)) = &self.tilde else { return Ok(None) };
        let count = number.parse().ok();
        if count.is_none() {
            let message = if number.bytes().all(|byte| byte.is_ascii_digit()) {
                format!("{number} behind `~` is too large; at most {} can be asked for", u32::MAX)
            } else {
                format!("`~` behind a phrase or a group needs a whole number, not `{number}`")
            };
            problems.report_at(*at, message)?;
        }
        Ok(count.map(|count| (*at, count)))
    }
}

/// Whether `c` is `^` or `~`, which start a suffix.
pub(super) fn is_suffix_operator(c: char) -> bool {
    matches!(c, '^' | '~')
}

/// Whether `text`, which follows a `^` or `~`, is a number. Otherwise these characters are text.
pub(super) fn is_number(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_digit() || c == '.';
    text.starts_with(begins) && text.parse::<f64>().is_ok()
}

//! How many optional clauses must match (`minimum_should_match`).
//!
//! A specification is a number, a percentage of the clauses, either of them negative for clauses that may be
//! missing, or a list of conditions `n<specification`: the last one whose `n` is below the number of clauses
//! counts, and all must match if there is none.

use crate::api_error::ApiError;
use crate::es::error::parsing_error;
use crate::es::members::text_of;
use serde_json::Value;

/// A specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MinimumMatch {
    /// The number of clauses above which each amount counts, in order.
    conditions: Vec<(i64, MinimumAmount)>,
    /// The amount if there are no conditions.
    always: Option<MinimumAmount>,
}

/// A number of clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MinimumAmount {
    Count(i64),
    Percent(i64),
}

impl MinimumMatch {
    pub(super) fn parse(value: &Value) -> Result<MinimumMatch, ApiError> {
        let text = text_of(value).unwrap_or_default();
        let wrong = || parsing_error(format!("[minimum_should_match] cannot be `{}`", text.escape_debug()));
        let mut found = MinimumMatch { conditions: Vec::new(), always: None };
        if !text.contains('<') {
            found.always = Some(MinimumAmount::parse(text.trim()).ok_or_else(wrong)?);
            return Ok(found);
        }
        for condition in text.split_whitespace() {
            let parts = condition.split_once('<').ok_or_else(wrong)?;
            let above = parts.0.parse().map_err(|_| wrong())?;
            found.conditions.push((above, MinimumAmount::parse(parts.1).ok_or_else(wrong)?));
        }
        Ok(found)
    }

    /// The number of clauses that must match, of `clauses`: at least 0, and possibly more than there are.
    pub(super) fn of(&self, clauses: usize) -> u32 {
        let clauses = clauses as i64;
        let conditions = self.conditions.iter().take_while(|(above, _)| clauses > *above);
        let amount = self.always.or_else(|| conditions.last().map(|(_, amount)| *amount));
        amount.map_or(clauses, |amount| amount.of(clauses)).clamp(0, i64::from(u32::MAX)) as u32
    }
}

impl MinimumAmount {
    fn parse(text: &str) -> Option<MinimumAmount> {
        let number = |text: &str| text.parse::<i32>().ok().map(i64::from);
        match text.strip_suffix('%') {
            Some(percent) => number(percent).map(MinimumAmount::Percent),
            None => number(text).map(MinimumAmount::Count),
        }
    }

    fn of(self, clauses: i64) -> i64 {
        match self {
            MinimumAmount::Count(count) if count < 0 => clauses + count,
            MinimumAmount::Count(count) => count,
            // Rounded towards 0: also fewer clauses may be missing.
            MinimumAmount::Percent(percent) if percent < 0 => clauses + clauses * percent / 100,
            MinimumAmount::Percent(percent) => clauses * percent / 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_rounded_towards_zero() {
        for (value, clauses, expected) in [
            (json!(2), 5, 2),
            (json!(-2), 5, 3),
            (json!("-7"), 5, 0),
            (json!("75%"), 4, 3),
            (json!("75%"), 5, 3),
            (json!("-25%"), 5, 4),
            (json!("-25%"), 3, 3),
            (json!("100%"), 3, 3),
            (json!("0%"), 3, 0),
            (json!(9), 3, 9),
            (json!("3<90%"), 3, 3),
            (json!("3<90%"), 4, 3),
            (json!("2<-25% 9<-3"), 2, 2),
            (json!("2<-25% 9<-3"), 8, 6),
            (json!("2<-25% 9<-3"), 12, 9),
        ] {
            assert_eq!(MinimumMatch::parse(&value).unwrap().of(clauses), expected, "{value} {clauses}");
        }
        for wrong in [json!("x"), json!("2<"), json!("<3"), json!("2<1 3"), json!([1]), json!(1.5)] {
            assert!(MinimumMatch::parse(&wrong).is_err(), "{wrong}");
        }
    }
}

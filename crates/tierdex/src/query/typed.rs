//! Bounds of typed values, as they are written in queries, as ranges of integers in the order of values.
//!
//! A bound need not be a value of the column: `>1.5` of integers is `>=2`, and `<0` of a `u64` matches
//! nothing. A date without a time stands for all its microseconds: `[2024-05-01 TO 2024-05-02]` has two days.

use super::date_math::{Period, parse_period};
use crate::schema::{ColumnType, ColumnValue};
use crate::{Error, Result};

/// An end of a range as it is written: a text, and whether the range has the value itself.
pub type TextBound<'t> = Option<(&'t str, bool)>;

/// The values of a type between two bounds, as integers ([`ColumnType::to_bits`]), both ends included. `None`
/// if there is no such value. `now`: what `now` stands for, in microseconds UTC.
///
/// # Errors
/// [`Error::Usage`] if a bound is not a value that can be compared with those of the type.
pub fn range_of(
    of: ColumnType,
    low: TextBound<'_>,
    high: TextBound<'_>,
    now: i64,
) -> Result<Option<(u64, u64)>> {
    let low = match low {
        None => Some(0),
        Some((text, included)) => of.bound(text, Side::Low, included, now)?,
    };
    let high = match high {
        None => Some(u64::MAX),
        Some((text, included)) => of.bound(text, Side::High, included, now)?,
    };
    Ok(low.zip(high).filter(|(low, high)| low <= high))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

impl ColumnType {
    /// The smallest integer that a low bound allows, or the largest that a high one does; `None` if none.
    fn bound(self, text: &str, side: Side, included: bool, now: i64) -> Result<Option<u64>> {
        let invalid = || Error::Usage(format!("`{text}` is not {}", self.description()));
        match self {
            ColumnType::I64 | ColumnType::U64 => {
                let bound = integer_bound(text, side, included).ok_or_else(invalid)?;
                Ok(self.integer_bits(bound, side))
            }
            ColumnType::Date => {
                let Period { first, last } = parse_period(text, now).ok_or_else(invalid)?;
                let (first, last) = (i128::from(first), i128::from(last));
                let bound = match (side, included) {
                    (Side::Low, true) => first,
                    (Side::Low, false) => last + 1,
                    (Side::High, true) => last,
                    (Side::High, false) => first - 1,
                };
                Ok(self.integer_bits(bound, side))
            }
            ColumnType::F64 | ColumnType::Bool => {
                let bits = self.to_bits(self.parse(text)?).ok_or_else(invalid)?;
                Ok(match (side, included) {
                    (_, true) => Some(bits),
                    (Side::Low, false) => bits.checked_add(1),
                    (Side::High, false) => bits.checked_sub(1),
                })
            }
        }
    }

    /// A bound within the values of an integer type; `None` if all values are beyond it.
    fn integer_bits(self, bound: i128, side: Side) -> Option<u64> {
        let (min, max) = match self {
            ColumnType::U64 => (0, i128::from(u64::MAX)),
            _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
        };
        match side {
            Side::Low if bound > max => return None,
            Side::High if bound < min => return None,
            _ => {}
        }
        let bound = bound.clamp(min, max);
        self.to_bits(match self {
            ColumnType::U64 => ColumnValue::U64(bound as u64),
            ColumnType::I64 => ColumnValue::I64(bound as i64),
            _ => ColumnValue::Date(bound as i64),
        })
    }
}

/// The smallest integer that a low bound allows, or the largest that a high one does.
fn integer_bound(text: &str, side: Side, included: bool) -> Option<i128> {
    let (floor, is_whole) = match text.parse::<i128>() {
        Ok(integer) => (integer, true),
        Err(_) => split_decimal(text).or_else(|| split_float(text))?,
    };
    Some(match (side, is_whole, included) {
        (Side::Low, true, true) | (Side::High, true, true) | (Side::High, false, _) => floor,
        (Side::Low, true, false) | (Side::Low, false, _) => floor.saturating_add(1),
        (Side::High, true, false) => floor.saturating_sub(1),
    })
}

/// The largest integer that is not above a decimal number, and whether it is equal.
fn split_decimal(text: &str) -> Option<(i128, bool)> {
    let (whole, fraction) = text.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(fraction) || !is_digits(whole.trim_start_matches('-')) {
        return None;
    }
    let integer: i128 = whole.parse().ok()?;
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    let is_below = whole.starts_with('-') && !is_whole;
    Some((integer.saturating_sub(i128::from(is_below)), is_whole))
}

/// As [`split_decimal`], of a number with an exponent.
fn split_float(text: &str) -> Option<(i128, bool)> {
    let number: f64 = text.parse().ok().filter(|number: &f64| !number.is_nan())?;
    let floor = number.floor();
    Some((floor as i128, floor == number))
}

/// Sorts ranges, and joins those that overlap or touch.
pub fn merge_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = (*end).max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_714_566_600_000_000; // 2024-05-01T12:30:00Z

    /// The first and the last value of a range, as texts.
    fn range(of: ColumnType, low: TextBound<'_>, high: TextBound<'_>) -> Option<(String, String)> {
        let (low, high) = range_of(of, low, high, NOW).unwrap()?;
        Some((of.value_of_bits(low).to_string(), of.value_of_bits(high).to_string()))
    }

    #[test]
    fn bounds_of_integers_are_rounded_into_the_range() {
        use ColumnType::{I64, U64};
        let of = |of, low, high| range(of, low, high).map(|(low, high)| format!("{low}..{high}"));
        let yes = |text| Some((text, true));
        let no = |text| Some((text, false));
        for (column, low, high, expected) in [
            (I64, yes("1"), no("5"), "1..4"),
            (I64, no("1"), yes("5"), "2..5"),
            (I64, yes("1.5"), yes("5.5"), "2..5"),
            (I64, no("-1.5"), no("-0.5"), "-1..-1"),
            (I64, yes("-2.0"), yes("1e1"), "-2..10"),
            (U64, yes("-7"), yes("3"), "0..3"),
            (U64, no("0"), None, "1..18446744073709551615"),
            (I64, None, yes("1e300"), "-9223372036854775808..9223372036854775807"),
            (I64, yes("-170141183460469231731687303715884105728.5"), yes("0"), "-9223372036854775808..0"),
            (U64, yes("18446744073709551615"), None, "18446744073709551615..18446744073709551615"),
        ] {
            assert_eq!(of(column, low, high).as_deref(), Some(expected));
        }
        for (column, low, high) in [
            (U64, None, yes("-1")),
            (U64, None, no("0")),
            (U64, no("18446744073709551615"), None),
            (I64, no("9223372036854775807"), None),
            (I64, yes("5"), yes("4")),
            (I64, yes("1.2"), yes("1.8")),
        ] {
            assert_eq!(of(column, low, high), None);
        }
        for text in ["", "x", ".5.", "1..5", "--1.5", "NaN", "0x10"] {
            assert!(range_of(I64, Some((text, true)), None, NOW).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_are_periods() {
        let day = |low: &str, high: &str| {
            range(ColumnType::Date, Some((low, true)), Some((high, true))).expect("not empty")
        };
        assert_eq!(day("2024-05-01", "2024-05-01").1, "2024-05-01T23:59:59.999999Z");
        assert_eq!(day("2024", "2024-02").0, "2024-01-01T00:00:00Z");
        assert_eq!(day("2024", "2024-02").1, "2024-02-29T23:59:59.999999Z");
        assert_eq!(day("now-7d/d", "now").0, "2024-04-24T00:00:00Z");
        assert_eq!(day("now-7d/d", "now").1, "2024-05-01T12:30:00Z");
        let open = range(ColumnType::Date, Some(("2024-05-01", false)), Some(("2024-05-03", false))).unwrap();
        assert_eq!(open, ("2024-05-02T00:00:00Z".to_string(), "2024-05-02T23:59:59.999999Z".to_string()));
        assert_eq!(range(ColumnType::Date, Some(("2024", false)), Some(("2024-12-31", true))), None);
    }

    #[test]
    fn numbers_have_neighbours() {
        let below = range_of(ColumnType::F64, None, Some(("0", false)), NOW).unwrap().unwrap().1;
        let bits = |value| ColumnType::F64.to_bits(ColumnValue::F64(value)).unwrap();
        assert!((bits(-5e-324)..bits(0.0)).contains(&below));
        let one = range_of(ColumnType::F64, Some(("-0.0", true)), Some(("0", true)), NOW).unwrap();
        assert!(one.is_some_and(|(low, high)| low == high));
        assert!(range_of(ColumnType::F64, Some(("nan", true)), None, NOW).is_err());
        assert_eq!(
            range_of(ColumnType::Bool, Some(("true", true)), Some(("true", true)), NOW).unwrap(),
            Some((1, 1))
        );
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(
            merge_ranges(vec![(5, 9), (1, 2), (3, 3), (9, 9), (20, u64::MAX), (30, 40)]),
            [(1, 3), (5, 9), (20, u64::MAX)]
        );
    }
}

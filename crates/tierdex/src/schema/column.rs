//! A column: a number, a truth value or a time of each document, by which queries filter.

use super::messages::{Setting, yes_no};
use super::{Field, date};
use crate::{Error, Result, limits};
use std::fmt;

/// A column of typed values. A document has no value, one, or in a multi-valued column several, in no order.
///
/// ```
/// use tierdex::schema::{Column, ColumnType, ColumnValue, Field, Schema};
/// use tierdex::{Document, IndexWriter, Merge, WriterOptions};
///
/// let mut schema = Schema::of(vec![Field::new("text", &["text"])]);
/// schema.columns = vec![Column::new("year", ColumnType::I64), Column::new("price", ColumnType::F64)];
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("index");
/// let mut writer = IndexWriter::create(&dir, schema, WriterOptions::default())?;
/// let book = Document::new("b1").with("text", "a book").with_column("year", ColumnValue::I64(1987));
/// writer.add_all([book], 1)?;
/// writer.commit(Merge::Keep)?;
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, as in queries (`name:[1 TO 5]`), of the characters that a field may have. No field has it.
    pub name: String,
    /// The member of documents that has the values, for programs that read documents. It need not be a member
    /// of the schema.
    pub member: String,
    /// The type of the values.
    pub values: ColumnType,
    /// Whether a document may have several values, at most [`COLUMN_VALUES_MAX`](limits::COLUMN_VALUES_MAX).
    pub multi: bool,
}

/// The type of the values of a column. The number of a variant is its number in manifests and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// Integers from -2^63 to 2^63 - 1.
    I64 = 1,
    /// Integers from 0 to 2^64 - 1.
    U64 = 2,
    /// Numbers of double precision, also infinite ones. -0 is stored as 0; NaN is rejected.
    F64 = 3,
    /// True or false.
    Bool = 4,
    /// Points in time, in microseconds UTC.
    Date = 5,
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ColumnValue {
    /// Of a column of [`ColumnType::I64`].
    I64(i64),
    /// Of a column of [`ColumnType::U64`].
    U64(u64),
    /// Of a column of [`ColumnType::F64`].
    F64(f64),
    /// Of a column of [`ColumnType::Bool`].
    Bool(bool),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Date(i64),
}

impl Column {
    /// A single-valued column of the member of the same name.
    pub fn new(name: &str, values: ColumnType) -> Column {
        Column { name: name.to_string(), member: name.to_string(), values, multi: false }
    }

    pub(super) fn validate(&self) -> Result<()> {
        Field::new(&self.name, &[]).validate()?;
        if !(1..=limits::MEMBER_NAME_BYTES_MAX).contains(&self.member.len()) {
            return Err(Error::Usage(format!(
                "the name of the member of column `{}` is not 1 to {} bytes",
                self.name,
                limits::MEMBER_NAME_BYTES_MAX
            )));
        }
        Ok(())
    }

    pub(super) fn settings(&self) -> [Setting; 3] {
        [
            Setting::new("type", self.values.name()),
            Setting::new("member", &self.member),
            Setting::new("multi-valued", yes_no(self.multi)),
        ]
    }
}

impl ColumnType {
    /// All types.
    pub const ALL: [ColumnType; 5] =
        [ColumnType::I64, ColumnType::U64, ColumnType::F64, ColumnType::Bool, ColumnType::Date];

    /// Name: `i64`, `u64`, `f64`, `bool` or `date`.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::I64 => "i64",
            ColumnType::U64 => "u64",
            ColumnType::F64 => "f64",
            ColumnType::Bool => "bool",
            ColumnType::Date => "date",
        }
    }

    /// The type of this [`ColumnType::name`].
    pub fn from_name(name: &str) -> Option<ColumnType> {
        ColumnType::ALL.into_iter().find(|of| of.name() == name)
    }

    /// The type of this number in manifests.
    pub(crate) fn from_id(id: u64) -> Option<ColumnType> {
        ColumnType::ALL.into_iter().find(|of| *of as u64 == id)
    }

    /// The value that a text stands for: a decimal number, `true` or `false`, or a time in the format of RFC
    /// 3339. A time without an offset is UTC, a date alone is its first microsecond.
    ///
    /// ```
    /// use tierdex::schema::{ColumnType, ColumnValue};
    ///
    /// assert_eq!(ColumnType::U64.parse("17")?, ColumnValue::U64(17));
    /// let noon = ColumnType::Date.parse("1970-01-02T12:00:00+01:00")?;
    /// assert_eq!(noon, ColumnValue::Date(35 * 3600 * 1_000_000));
    /// let error = ColumnType::U64.parse("-1").unwrap_err().to_string();
    /// assert_eq!(error, "`-1` is not an integer from 0 to 2^64-1");
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is no value of this type.
    pub fn parse(self, text: &str) -> Result<ColumnValue> {
        let value = match self {
            ColumnType::I64 => text.parse().ok().map(ColumnValue::I64),
            ColumnType::U64 => text.parse().ok().map(ColumnValue::U64),
            ColumnType::F64 => text.parse().ok().filter(|value: &f64| !value.is_nan()).map(ColumnValue::F64),
            ColumnType::Bool => text.parse().ok().map(ColumnValue::Bool),
            ColumnType::Date => date::parse_time(text).map(ColumnValue::Date),
        };
        value.ok_or_else(|| Error::Usage(format!("`{}` is not {}", super::shorten(text), self.description())))
    }

    /// What the values are, for messages.
    #[doc(hidden)]
    pub fn description(self) -> &'static str {
        match self {
            ColumnType::I64 => "an integer from -2^63 to 2^63-1",
            ColumnType::U64 => "an integer from 0 to 2^64-1",
            ColumnType::F64 => "a number",
            ColumnType::Bool => "true or false",
            ColumnType::Date => "a date such as 2024-05-01 or 2024-05-01T12:30:00Z",
        }
    }

    /// The value as an integer that has the order of the values; `None` if it is of another type, or NaN.
    pub(crate) fn to_bits(self, value: ColumnValue) -> Option<u64> {
        match (self, value) {
            (ColumnType::I64, ColumnValue::I64(value)) | (ColumnType::Date, ColumnValue::Date(value)) => {
                Some(value as u64 ^ SIGN)
            }
            (ColumnType::U64, ColumnValue::U64(value)) => Some(value),
            (ColumnType::F64, ColumnValue::F64(value)) if !value.is_nan() => {
                // Adding 0 turns -0 into 0.
                let bits = (value + 0.0).to_bits();
                Some(if bits & SIGN == 0 { bits ^ SIGN } else { !bits })
            }
            (ColumnType::Bool, ColumnValue::Bool(value)) => Some(u64::from(value)),
            _ => None,
        }
    }

    /// The inverse of [`ColumnType::to_bits`].
    pub(crate) fn value_of_bits(self, bits: u64) -> ColumnValue {
        match self {
            ColumnType::I64 => ColumnValue::I64((bits ^ SIGN) as i64),
            ColumnType::Date => ColumnValue::Date((bits ^ SIGN) as i64),
            ColumnType::U64 => ColumnValue::U64(bits),
            ColumnType::F64 => {
                ColumnValue::F64(f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN }))
            }
            ColumnType::Bool => ColumnValue::Bool(bits != 0),
        }
    }
}

/// The bit that is flipped so that signed values have the order of unsigned ones.
const SIGN: u64 = 1 << 63;

impl fmt::Display for ColumnValue {
    /// The value as [`ColumnType::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnValue::I64(value) => write!(f, "{value}"),
            ColumnValue::U64(value) => write!(f, "{value}"),
            ColumnValue::F64(value) => write!(f, "{value}"),
            ColumnValue::Bool(value) => write!(f, "{value}"),
            ColumnValue::Date(value) => f.write_str(&date::format_time(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = (ColumnType, ColumnValue)> {
        prop_oneof![
            any::<i64>().prop_map(|value| (ColumnType::I64, ColumnValue::I64(value))),
            any::<u64>().prop_map(|value| (ColumnType::U64, ColumnValue::U64(value))),
            any::<f64>().prop_map(|value| (ColumnType::F64, ColumnValue::F64(value))),
            any::<bool>().prop_map(|value| (ColumnType::Bool, ColumnValue::Bool(value))),
            any::<i64>().prop_map(|value| (ColumnType::Date, ColumnValue::Date(value))),
        ]
    }

    proptest! {
        #[test]
        fn bits_have_the_order_of_values(a in any::<f64>(), b in any::<f64>(), c in any::<i64>(), d in any::<i64>()) {
            let f64_bits = |value| ColumnType::F64.to_bits(ColumnValue::F64(value)).unwrap();
            prop_assert_eq!(f64_bits(a).cmp(&f64_bits(b)), a.partial_cmp(&b).unwrap());
            let i64_bits = |value| ColumnType::I64.to_bits(ColumnValue::I64(value)).unwrap();
            prop_assert_eq!(i64_bits(c).cmp(&i64_bits(d)), c.cmp(&d));
        }

        #[test]
        fn values_round_trip((of, value) in any_value()) {
            let bits = of.to_bits(value).unwrap();
            prop_assert_eq!(of.value_of_bits(bits), value);
            for other in ColumnType::ALL.into_iter().filter(|other| *other != of) {
                prop_assert_eq!(other.to_bits(value), None);
            }
            // All microseconds beside the years that a text can have have a text of their own.
            prop_assert_eq!(of.parse(&value.to_string()).ok(), Some(value), "{}", value);
        }
    }

    #[test]
    fn zeros_are_equal_and_nan_is_rejected() {
        let bits = |value| ColumnType::F64.to_bits(ColumnValue::F64(value));
        assert_eq!(bits(-0.0), bits(0.0));
        assert_eq!(bits(f64::NAN), None);
        assert!(ColumnType::F64.parse("NaN").is_err());
        assert!(bits(f64::NEG_INFINITY) < bits(f64::MIN) && bits(f64::MAX) < bits(f64::INFINITY));
        assert!(bits(-f64::MIN_POSITIVE) < bits(-5e-324) && bits(-5e-324) < bits(0.0));
    }

    #[test]
    fn texts_of_other_types_are_rejected() {
        for (of, texts) in [
            (ColumnType::I64, &["", "1.5", "9223372036854775808", "x"][..]),
            (ColumnType::U64, &["-1", "18446744073709551616", "1e3"]),
            (ColumnType::F64, &["", "one", "1,5"]),
            (ColumnType::Bool, &["", "1", "True", "yes"]),
            (ColumnType::Date, &["", "now", "2024-13-01", "2024-02-30", "1714521600", "24-05-01"]),
        ] {
            for text in texts {
                let message = of.parse(text).unwrap_err().to_string();
                assert_eq!(message, format!("`{text}` is not {}", of.description()));
            }
        }
    }
}

//! Values in the columns of a batch, with their types.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};
use jiff::{Timestamp, civil::DateTime};
use std::borrow::Cow;

/// Microseconds of a second and of a day.
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A value of a column that is not a list or a struct.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellValue<'a> {
    Bool(bool),
    I64(i64),
    U64(u64),
    /// The shortest text of the number, if it has less precision in the column.
    F64(f64),
    F32(f32),
    /// A point in time.
    Date(DateValue),
    Text(Cow<'a, str>),
    /// Bytes that are not UTF-8.
    Bytes(&'a [u8]),
}

/// A date or a time, in microseconds since 1970-01-01. What is finer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateValue {
    pub microseconds: i64,
    pub kind: DateKind,
}

/// How much of a point in time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateKind {
    /// A day.
    Day,
    /// A date and a time without a time zone.
    Local,
    /// A date and a time in UTC.
    Utc,
}

/// The types of which [`value_of`] knows the values.
pub(super) fn has_values(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null | DataType::Boolean | DataType::FixedSizeBinary(_) => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => true,
        DataType::Time32(_) | DataType::Time64(_) => true,
        data_type => data_type.is_integer() || data_type.is_floating() || data_type.is_decimal(),
    }
}

/// The value in a row of a column; `None` for null. The type of the column has values.
pub(super) fn value_of(column: &dyn Array, row: usize) -> Option<CellValue<'_>> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(CellValue::Text(column.as_string::<i32>().value(row).into())),
        DataType::LargeUtf8 => Some(CellValue::Text(column.as_string::<i64>().value(row).into())),
        DataType::Utf8View => Some(CellValue::Text(column.as_string_view().value(row).into())),
        DataType::Boolean => Some(CellValue::Bool(column.as_boolean().value(row))),
        data_type if data_type.is_integer() => integer_of(column, row),
        DataType::Float16 => Some(CellValue::F32(column.as_primitive::<Float16Type>().value(row).to_f32())),
        DataType::Float32 => Some(CellValue::F32(column.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Some(CellValue::F64(column.as_primitive::<Float64Type>().value(row))),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => date_of(column, row),
        DataType::Time32(_) | DataType::Time64(_) => time_of(column, row),
        _ => bytes_of(column, row).or_else(|| decimal_of(column, row)),
    }
}

fn integer_of<'a>(column: &dyn Array, row: usize) -> Option<CellValue<'a>> {
    Some(match column.data_type() {
        DataType::Int8 => CellValue::I64(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => CellValue::I64(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => CellValue::I64(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => CellValue::I64(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => CellValue::U64(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => CellValue::U64(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => CellValue::U64(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => CellValue::U64(column.as_primitive::<UInt64Type>().value(row)),
        _ => return None,
    })
}

fn date_of<'a>(column: &dyn Array, row: usize) -> Option<CellValue<'a>> {
    let in_days = |microseconds| (microseconds, DateKind::Day);
    let (microseconds, kind) = match column.data_type() {
        DataType::Date32 => {
            in_days(i64::from(column.as_primitive::<Date32Type>().value(row)).saturating_mul(DAY))
        }
        DataType::Date64 => in_days(column.as_primitive::<Date64Type>().value(row).saturating_mul(1000)),
        DataType::Timestamp(unit, zone) => {
            let kind = if zone.is_some() { DateKind::Utc } else { DateKind::Local };
            let microseconds = match unit {
                TimeUnit::Second => {
                    column.as_primitive::<TimestampSecondType>().value(row).saturating_mul(SECOND)
                }
                TimeUnit::Millisecond => {
                    column.as_primitive::<TimestampMillisecondType>().value(row).saturating_mul(1000)
                }
                TimeUnit::Microsecond => column.as_primitive::<TimestampMicrosecondType>().value(row),
                TimeUnit::Nanosecond => {
                    column.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000)
                }
            };
            (microseconds, kind)
        }
        _ => return None,
    };
    Some(CellValue::Date(DateValue { microseconds, kind }))
}

/// A time of day as a text.
fn time_of<'a>(column: &dyn Array, row: usize) -> Option<CellValue<'a>> {
    let microseconds = match column.data_type() {
        DataType::Time32(TimeUnit::Second) => {
            i64::from(column.as_primitive::<Time32SecondType>().value(row)) * SECOND
        }
        DataType::Time32(_) => i64::from(column.as_primitive::<Time32MillisecondType>().value(row)) * 1000,
        DataType::Time64(TimeUnit::Microsecond) => column.as_primitive::<Time64MicrosecondType>().value(row),
        DataType::Time64(_) => column.as_primitive::<Time64NanosecondType>().value(row).div_euclid(1000),
        _ => return None,
    };
    let text = local_time(microseconds.rem_euclid(DAY)).map(|time| time.time().to_string());
    Some(CellValue::Text(text.unwrap_or_else(|| microseconds.to_string()).into()))
}

fn bytes_of(column: &dyn Array, row: usize) -> Option<CellValue<'_>> {
    let bytes = match column.data_type() {
        DataType::Binary => column.as_binary::<i32>().value(row),
        DataType::LargeBinary => column.as_binary::<i64>().value(row),
        DataType::BinaryView => column.as_binary_view().value(row),
        DataType::FixedSizeBinary(_) => {
            let bytes = column.as_fixed_size_binary().value(row);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            return Some(CellValue::Text(hex.into()));
        }
        _ => return None,
    };
    // Some programs write texts as bytes.
    Some(std::str::from_utf8(bytes).map_or(CellValue::Bytes(bytes), |text| CellValue::Text(text.into())))
}

/// A decimal number as a text, exactly.
fn decimal_of<'a>(column: &dyn Array, row: usize) -> Option<CellValue<'a>> {
    let (digits, scale) = match column.data_type() {
        DataType::Decimal32(_, scale) => {
            (column.as_primitive::<Decimal32Type>().value(row).to_string(), scale)
        }
        DataType::Decimal64(_, scale) => {
            (column.as_primitive::<Decimal64Type>().value(row).to_string(), scale)
        }
        DataType::Decimal128(_, scale) => {
            (column.as_primitive::<Decimal128Type>().value(row).to_string(), scale)
        }
        DataType::Decimal256(_, scale) => {
            (column.as_primitive::<Decimal256Type>().value(row).to_string(), scale)
        }
        _ => return None,
    };
    Some(CellValue::Text(decimal_text(&digits, *scale).into()))
}

/// A number of `scale` decimal places, of which `number` has the digits. A damaged file may have more digits
/// than the type says.
fn decimal_text(number: &str, scale: i8) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        return format!("{sign}{digits}{}", "0".repeat(places));
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{fraction}")
}

fn local_time(microseconds: i64) -> Option<DateTime> {
    let time = Timestamp::from_microsecond(microseconds).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(time))
}

impl DateValue {
    /// As in RFC 3339; a number of microseconds for a year above 9,999.
    fn to_text(self) -> String {
        let DateValue { microseconds, kind } = self;
        let text = match kind {
            DateKind::Day => local_time(microseconds).map(|time| time.date().to_string()),
            DateKind::Local => local_time(microseconds).map(|time| time.to_string()),
            DateKind::Utc => Timestamp::from_microsecond(microseconds).ok().map(|time| time.to_string()),
        };
        text.unwrap_or_else(|| microseconds.to_string())
    }
}

impl<'a> CellValue<'a> {
    /// The value as a text, as JSON shows it. `None` for a number that JSON does not have, and for bytes.
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        Some(match self {
            CellValue::Text(text) => text,
            CellValue::Date(date) => date.to_text().into(),
            CellValue::Bytes(_) => return None,
            value => match value.to_json() {
                serde_json::Value::Null => return None,
                value => value.to_string().into(),
            },
        })
    }

    /// The value in JSON. Bytes are shown in hexadecimal digits.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            CellValue::Bool(value) => (*value).into(),
            CellValue::I64(value) => (*value).into(),
            CellValue::U64(value) => (*value).into(),
            CellValue::F64(value) => (*value).into(),
            // With the digits of its own precision.
            CellValue::F32(value) if value.is_finite() => value.to_string().parse::<f64>().ok().into(),
            CellValue::F32(_) => serde_json::Value::Null,
            CellValue::Date(date) => date.to_text().into(),
            CellValue::Text(text) => (**text).into(),
            CellValue::Bytes(bytes) => {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::*;

    #[track_caller]
    fn check_text(column: &dyn Array, expected: &[Option<&str>]) {
        assert!(has_values(column.data_type()));
        let found: Vec<Option<String>> = (0..column.len())
            .map(|row| value_of(column, row).and_then(|value| value.into_text().map(Cow::into_owned)))
            .collect();
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_are_shown_as_in_json() {
        check_text(&Int8Array::from(vec![Some(-1), None]), &[Some("-1"), None]);
        check_text(&UInt64Array::from(vec![u64::MAX]), &[Some("18446744073709551615")]);
        check_text(&Int64Array::from(vec![i64::MIN]), &[Some("-9223372036854775808")]);
        check_text(&Float64Array::from(vec![1.0, 0.1, f64::NAN]), &[Some("1.0"), Some("0.1"), None]);
        check_text(&Float32Array::from(vec![0.1, f32::INFINITY]), &[Some("0.1"), None]);
        check_text(&BooleanArray::from(vec![true, false]), &[Some("true"), Some("false")]);
        check_text(&BinaryArray::from(vec![&b"ab"[..], b"\xFF"]), &[Some("ab"), None]);
        check_text(&LargeStringArray::from(vec!["x"]), &[Some("x")]);
        let fixed = FixedSizeBinaryArray::try_from_iter([[1u8, 0xAB]].into_iter()).unwrap();
        check_text(&fixed, &[Some("01ab")]);
        let decimal = Decimal128Array::from(vec![1250, -5]).with_precision_and_scale(10, 2).unwrap();
        check_text(&decimal, &[Some("12.50"), Some("-0.05")]);
        for (number, scale, expected) in
            [("7", 0, "7"), ("-7", -2, "-700"), ("-123", 3, "-0.123"), ("123", 1, "12.3"), ("5", 127, "0.")]
        {
            assert!(decimal_text(number, scale).starts_with(expected), "{number} {scale}");
        }
    }

    #[test]
    fn points_in_time_are_shown_as_in_rfc_3339() {
        check_text(&Date32Array::from(vec![0, 19_000]), &[Some("1970-01-01"), Some("2022-01-08")]);
        let local = TimestampMillisecondArray::from(vec![0, 1_234, -1]);
        check_text(
            &local,
            &[Some("1970-01-01T00:00:00"), Some("1970-01-01T00:00:01.234"), Some("1969-12-31T23:59:59.999")],
        );
        let utc = TimestampNanosecondArray::from(vec![1_500]).with_timezone("Europe/Vienna");
        check_text(&utc, &[Some("1970-01-01T00:00:00.000001Z")]);
        check_text(&TimestampSecondArray::from(vec![i64::MAX]), &[Some("9223372036854775807")]);
        check_text(&Time64NanosecondArray::from(vec![3_600_000_001_000]), &[Some("01:00:00.000001")]);
        check_text(&Date32Array::from(vec![i32::MAX]), &[Some("9223372036854775807")]);
        let Some(CellValue::Date(date)) = value_of(&Date64Array::from(vec![86_400_000]), 0) else {
            panic!("not a date")
        };
        assert_eq!(date, DateValue { microseconds: DAY, kind: DateKind::Day });
    }
}

//! Points in time as texts (RFC 3339) and as microseconds UTC.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

/// Microseconds UTC of a text: a time with an offset, one without, which is UTC, a date, whose first
/// microsecond counts, or `INTEGERus`, which [`format_time`] writes for times of years with more digits. A
/// time is cut to microseconds.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    if let Some(microseconds) = text.strip_suffix("us") {
        return microseconds.parse().ok();
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(floor_to_microseconds(timestamp));
    }
    let has_time = text.len() > "2024-05-01".len();
    let civil = if has_time { text.parse::<DateTime>().ok()? } else { text.parse::<Date>().ok()?.into() };
    Some(floor_to_microseconds(Offset::UTC.to_timestamp(civil).ok()?))
}

fn floor_to_microseconds(timestamp: Timestamp) -> i64 {
    timestamp.as_nanosecond().div_euclid(1000) as i64
}

/// The text of a time, with as many digits of the second as it needs.
pub(super) fn format_time(microseconds: i64) -> String {
    match Timestamp::from_microsecond(microseconds) {
        Ok(timestamp) => timestamp.to_string(),
        Err(_) => format!("{microseconds}us"),
    }
}

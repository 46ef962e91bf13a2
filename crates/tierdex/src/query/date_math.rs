//! Dates of queries, and arithmetic with them: `2024-05`, `now-7d/d`, `2024-05-01||+1M/w`.
//!
//! Steps after `now` or after `DATE||`, from left to right: `+1d` and `-1d` move by a number of units, `/d`
//! is the unit that the date is in. Units: y, M, w (from Monday), d, h, m, s. All in UTC.

use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use jiff::{Span, Timestamp};

/// The microseconds that a date of a query stands for, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub first: i64,
    pub last: i64,
}

/// The period of a text; `None` if it is no date.
pub fn parse_period(text: &str, now: i64) -> Option<Period> {
    if let Some(steps) = text.strip_prefix("now") {
        return apply_steps(Period { first: now, last: now }, steps);
    }
    match text.split_once("||") {
        Some((date, steps)) => apply_steps(parse_date(date)?, steps),
        None => parse_date(text),
    }
}

/// The period of a date without arithmetic.
fn parse_date(text: &str) -> Option<Period> {
    // A year, a month, a day.
    let (rest, unit) = match text.len() {
        4 => ("-01-01", 'y'),
        7 => ("-01", 'M'),
        10 => ("", 'd'),
        _ => {
            let time = crate::schema::parse_time(text)?;
            return Some(Period { first: time, last: time });
        }
    };
    let date: Date = format!("{text}{rest}").parse().ok()?;
    period_of(date.to_datetime(jiff::civil::Time::midnight()), unit)
}

fn apply_steps(mut period: Period, steps: &str) -> Option<Period> {
    let mut rest = steps;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let unit = after.chars().next()?;
        rest = &after[unit.len_utf8()..];
        period = match (sign, number) {
            ('/', "") => period_of(civil(period.first)?, unit)?,
            ('+' | '-', number) => {
                let count: i64 = if number.is_empty() { 1 } else { number.parse().ok()? };
                let span = span_of(if sign == '-' { -count } else { count }, unit)?;
                let moved = |time: i64| microseconds(civil(time)?.checked_add(span).ok()?);
                Period { first: moved(period.first)?, last: moved(period.last)? }
            }
            _ => return None,
        };
    }
    Some(period)
}

/// The year, month and so on that a time is in.
fn period_of(time: DateTime, unit: char) -> Option<Period> {
    let date = time.date();
    let start_of = |date: Date| date.to_datetime(jiff::civil::Time::midnight());
    let start = match unit {
        'y' => start_of(date.first_of_year()),
        'M' => start_of(date.first_of_month()),
        'w' => {
            let days = i64::from(date.weekday().to_monday_zero_offset());
            start_of(date.checked_sub(Span::new().try_days(days).ok()?).ok()?)
        }
        'd' => start_of(date),
        'h' => start_of(date).with().hour(time.hour()).build().ok()?,
        'm' => start_of(date).with().hour(time.hour()).minute(time.minute()).build().ok()?,
        's' => time.with().subsec_nanosecond(0).build().ok()?,
        _ => return None,
    };
    let end = start.checked_add(span_of(1, unit)?).ok()?;
    Some(Period { first: microseconds(start)?, last: microseconds(end)? - 1 })
}

fn span_of(count: i64, unit: char) -> Option<Span> {
    let span = Span::new();
    match unit {
        'y' => span.try_years(count),
        'M' => span.try_months(count),
        'w' => span.try_weeks(count),
        'd' => span.try_days(count),
        'h' | 'H' => span.try_hours(count),
        'm' => span.try_minutes(count),
        's' => span.try_seconds(count),
        _ => return None,
    }
    .ok()
}

fn civil(time: i64) -> Option<DateTime> {
    Some(Offset::UTC.to_datetime(Timestamp::from_microsecond(time).ok()?))
}

fn microseconds(time: DateTime) -> Option<i64> {
    Some(Offset::UTC.to_timestamp(time).ok()?.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> Option<String> {
        let now = crate::schema::parse_time("2024-03-31T12:34:56.789Z").unwrap();
        let Period { first, last } = parse_period(text, now)?;
        let show = |time| Timestamp::from_microsecond(time).unwrap().to_string();
        Some(if first == last { show(first) } else { format!("{}/{}", show(first), show(last)) })
    }

    #[test]
    fn periods_have_all_their_microseconds() {
        for (text, expected) in [
            ("now", "2024-03-31T12:34:56.789Z"),
            ("now/h", "2024-03-31T12:00:00Z/2024-03-31T12:59:59.999999Z"),
            ("now/w", "2024-03-25T00:00:00Z/2024-03-31T23:59:59.999999Z"),
            // A month that is shorter ends the month.
            ("now-1M", "2024-02-29T12:34:56.789Z"),
            ("now-1M/M", "2024-02-01T00:00:00Z/2024-02-29T23:59:59.999999Z"),
            ("now+1d-1d/s", "2024-03-31T12:34:56Z/2024-03-31T12:34:56.999999Z"),
            ("2023", "2023-01-01T00:00:00Z/2023-12-31T23:59:59.999999Z"),
            ("2023-12-31||+1d", "2024-01-01T00:00:00Z/2024-01-01T23:59:59.999999Z"),
            ("2024-05-01T10:00:00+02:00", "2024-05-01T08:00:00Z"),
            ("2024-05-01T10:00", "2024-05-01T10:00:00Z"),
        ] {
            assert_eq!(show(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "no",
            "now-",
            "now-1",
            "now-x",
            "now/",
            "now/7d",
            "now*2d",
            "2024-13",
            "20xx",
            "now-99999999999y",
            "2024-05-01||",
            "||+1d",
        ] {
            let expected = (text == "2024-05-01||").then(|| show("2024-05-01")).flatten();
            assert_eq!(show(text), expected, "{text}");
        }
    }
}

//! Sizes as users write them: bytes or a percentage.

use crate::error::{Error, ErrorKind, Result};
use std::{fmt, str::FromStr};

/// A number of bytes: `1048576`, `64K`, `512M`, `2G`, `1T` (powers of 1,024), or a percentage, `10%`,
/// `0.5%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// Hundredths of a percent.
    BasisPoints(u64),
}

/// 100% in basis points.
const HUNDRED_PERCENT: u64 = 10_000;

/// Maximum percentage, 100,000%, in basis points.
const BASIS_POINTS_MAX: u64 = 1_000 * HUNDRED_PERCENT;

/// The suffixes of sizes in bytes, with the base-2 logarithms of their units.
const UNIT_SUFFIXES: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];

impl Size {
    /// The size in bytes; a percentage is of `total`, rounded up.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::BasisPoints(points) => {
                let bytes = (u128::from(total) * u128::from(points)).div_ceil(u128::from(HUNDRED_PERCENT));
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Size::BasisPoints(points) if points.is_multiple_of(100) => write!(f, "{}%", points / 100),
            Size::BasisPoints(points) => write!(f, "{}.{:02}%", points / 100, points % 100),
            Size::Bytes(bytes) => {
                let whole = |shift: u32| bytes > 0 && bytes.is_multiple_of(1 << shift);
                match UNIT_SUFFIXES.iter().rev().find(|(_, shift)| whole(*shift)) {
                    Some((suffix, shift)) => write!(f, "{}{suffix}", bytes >> shift),
                    None => write!(f, "{bytes}"),
                }
            }
        }
    }
}

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Size> {
        let size = match text.strip_suffix('%') {
            Some(number) => parse_basis_points(number).map(Size::BasisPoints),
            None => parse_bytes(text).map(Size::Bytes),
        };
        size.ok_or_else(|| {
            let why = "a size is a number of bytes such as 65536, 64K, 512M or 2G, or a part such as 10%, and not 0";
            Error::new(ErrorKind::Denied, "use", format!("size {text:?}"), why)
        })
    }
}

/// Parses a number of bytes with or without a suffix.
fn parse_bytes(text: &str) -> Option<u64> {
    let suffix =
        UNIT_SUFFIXES.iter().find(|(suffix, _)| text.ends_with([*suffix, suffix.to_ascii_lowercase()]));
    let (number, shift) = suffix.map_or((text, 0), |(_, shift)| (&text[..text.len() - 1], *shift));
    parse_digits(number)?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// Parses a percentage with up to two decimals. The result is in basis points.
fn parse_basis_points(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.len() > 2 {
        return None;
    }
    let hundredths = parse_digits(fraction)? * if fraction.len() == 1 { 10 } else { 1 };
    let points = parse_digits(whole)?.checked_mul(100)?.checked_add(hundredths)?;
    (1..=BASIS_POINTS_MAX).contains(&points).then_some(points)
}

/// Parses a number that has digits only, and no sign.
fn parse_digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        let cases = [
            ("1", 1),
            ("1048576", 1 << 20),
            ("64K", 64 << 10),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("2G", 2 << 30),
            ("3T", 3 << 40),
            ("10%", 100),
            ("0.5%", 5),
            ("0.05%", 1),
            ("12.25%", 123),
            ("100%", 1000),
            ("150%", 1500),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse::<Size>().unwrap().of(1000), bytes, "{text}");
        }
        assert_eq!("100000%".parse::<Size>().unwrap().of(u64::MAX), u64::MAX);
    }

    #[test]
    fn sizes_are_displayed_as_users_write_them() {
        for text in ["1", "1000", "64K", "512M", "2G", "1025M", "10%", "0.50%", "12.25%"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        let too_large = ["99999999999999999999", "18446744073709551615K", "100001%", "99999999999999999999%"];
        let malformed = [
            "", "0", "0K", "0%", "0.00%", "K", "%", "-1", "+1", "1 M", "1.5M", "1KB", "é", "1é", "0.001%",
            "1.%", ".5%", "1.+1%",
        ];
        for text in too_large.into_iter().chain(malformed) {
            let error = text.parse::<Size>().expect_err(text);
            assert_eq!(error.to_string().lines().count(), 1);
        }
        let error = "12X".parse::<Size>().unwrap_err();
        assert!(
            error.to_string().starts_with("cannot use size \"12X\": a size is a number of bytes such as"),
            "{error}"
        );
    }
}

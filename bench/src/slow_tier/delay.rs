//! The delay of a slower memory tier, as users write it.

use crate::{Error, Result};
use std::str::FromStr;

/// Largest latency and bandwidth that users can write.
const NANOSECONDS_MAX: u32 = 1_000_000;
const GBPS_MAX: f64 = 10_000.0;

/// Additional time of reads from emulated slow memory, as users write it: `NS` or `NS,GBPS`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadDelay {
    /// Additional latency of a line of 256 bytes. When lines are read in order, four are in flight.
    pub nanoseconds: u32,
    /// Bandwidth of the whole region in 10^9 bytes a second; `None`: unlimited.
    pub gbps: Option<f64>,
}

impl FromStr for ReadDelay {
    type Err = Error;

    fn from_str(text: &str) -> Result<ReadDelay> {
        parse_delay(text).ok_or_else(|| {
            Error::Usage(format!(
                "`{text}` is not a delay; write nanoseconds of latency for a line of 256 bytes, at most 1000000, and \
                 optionally a bandwidth in GB/s: 300, or 300,2.5"
            ))
        })
    }
}

fn parse_delay(text: &str) -> Option<ReadDelay> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || b",.".contains(&byte)) {
        return None;
    }
    let (nanoseconds, gbps) = match text.split_once(',') {
        Some((nanoseconds, gbps)) => (nanoseconds, Some(gbps.parse::<f64>().ok()?)),
        None => (text, None),
    };
    let nanoseconds =
        nanoseconds.parse::<u32>().ok().filter(|nanoseconds| *nanoseconds <= NANOSECONDS_MAX)?;
    let is_possible = gbps.is_none_or(|gbps| (0.001..=GBPS_MAX).contains(&gbps));
    is_possible.then_some(ReadDelay { nanoseconds, gbps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_parsed() {
        for (text, nanoseconds, gbps) in [
            ("0", 0, None),
            ("1000000", 1_000_000, None),
            ("300,2.5", 300, Some(2.5)),
            ("0,10", 0, Some(10.0)),
        ] {
            assert_eq!(text.parse::<ReadDelay>().unwrap(), ReadDelay { nanoseconds, gbps });
        }
        let bad = [
            "", ",", "300,", "-1", "+3", "1.5", "x", "1000001", "300,0", "300,-1", "300,nan", "1,2,3",
            "1,1e3",
        ];
        for text in bad {
            let error = text.parse::<ReadDelay>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("`{text}` is not a delay; write ")), "{error}");
        }
    }
}

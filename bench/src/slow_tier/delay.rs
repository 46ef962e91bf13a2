//! The delay of a slower memory tier, as users write it.

use crate::{Error, Result};
use std::{fmt, str::FromStr};

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

impl fmt::Display for ReadDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.nanoseconds)?;
        self.gbps.map_or(Ok(()), |gbps| write!(f, ",{gbps}"))
    }
}

impl FromStr for ReadDelay {
    type Err = Error;

    fn from_str(text: &str) -> Result<ReadDelay> {
        let (nanoseconds, gbps) = match text.split_once(',') {
            Some((nanoseconds, gbps)) => (nanoseconds, Some(gbps)),
            None => (text, None),
        };
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let nanoseconds = Some(nanoseconds).filter(|text| is_number(text)).and_then(|text| text.parse().ok());
        let nanoseconds = nanoseconds.filter(|nanoseconds| *nanoseconds <= NANOSECONDS_MAX);
        let gbps = gbps.map(|text| Some(text).filter(|text| is_number(text))?.parse::<f64>().ok());
        let is_possible = |gbps: &Option<f64>| gbps.is_some_and(|gbps| (0.001..=GBPS_MAX).contains(&gbps));
        match (nanoseconds, gbps) {
            (Some(nanoseconds), None) => Ok(ReadDelay { nanoseconds, gbps: None }),
            (Some(nanoseconds), Some(gbps)) if is_possible(&gbps) => Ok(ReadDelay { nanoseconds, gbps }),
            _ => {
                let why = "write nanoseconds of latency for a line of 256 bytes, at most 1000000, and optionally a \
                           bandwidth in GB/s: 300, or 300,2.5";
                Err(Error::Usage(format!("`{text}` is not a delay; {why}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_parsed_and_shown() {
        for text in ["0", "300", "1000000", "300,2.5", "0,10"] {
            assert_eq!(text.parse::<ReadDelay>().unwrap().to_string(), text);
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

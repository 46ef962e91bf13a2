//! Emulation of slower memory: reads of a region take longer, by busy waiting on the time stamp counter.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};

/// Bytes of a line: the unit in which persistent memory is read.
pub const SLOW_LINE: u64 = 256;

/// Limits of a delay.
const NANOSECONDS_MAX: u32 = 1_000_000;
const GBPS_MAX: f64 = 10_000.0;

/// Time to calibrate the counter.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Additional time of reads from emulated slow memory, as users write it: `NS` or `NS,GBPS`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadDelay {
    /// Nanoseconds for each line of [`SLOW_LINE`] bytes.
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
                let why = "a delay is nanoseconds for each line of 256 bytes, at most 1000000, and optionally a \
                           bandwidth in GB/s: 300, or 300,2.5";
                Err(Error::new(ErrorKind::Denied, "use", format!("delay {text:?}"), why))
            }
        }
    }
}

/// Delays the reads of all threads from one region.
#[derive(Debug)]
pub(crate) struct DelayedReads {
    ticks_per_line: f64,
    /// Ticks that the region needs to transfer a line.
    transfer_per_line: f64,
    /// Tick at which the transfers requested so far end.
    transferred: AtomicU64,
}

impl DelayedReads {
    pub(crate) fn new(delay: ReadDelay) -> DelayedReads {
        let ticks = ticks_per_nanosecond();
        DelayedReads {
            ticks_per_line: f64::from(delay.nanoseconds) * ticks,
            transfer_per_line: delay.gbps.map_or(0.0, |gbps| SLOW_LINE as f64 / gbps * ticks),
            transferred: AtomicU64::new(0),
        }
    }

    /// Waits as long as a read of `lines` takes.
    pub(crate) fn wait(&self, lines: u64) {
        let now = ticks();
        let end = now + (lines as f64 * self.ticks_per_line) as u64;
        let transfer = (lines as f64 * self.transfer_per_line) as u64;
        let end = if transfer == 0 { end } else { end.max(self.reserve(now, transfer)) };
        while ticks() < end {}
    }

    /// The tick at which a transfer of `ticks` ends that starts after all others.
    fn reserve(&self, now: u64, ticks: u64) -> u64 {
        let next = |transferred: u64| Some(transferred.max(now) + ticks);
        let before = self.transferred.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        before.unwrap_or_else(|before| before).max(now) + ticks
    }
}

/// Ticks of [`ticks`] per nanosecond, measured on first use.
fn ticks_per_nanosecond() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (began, first) = (Instant::now(), ticks());
        while began.elapsed() < CALIBRATION {}
        (ticks() - first) as f64 / began.elapsed().as_nanos() as f64
    })
}

/// The time stamp counter, which has a constant rate on all supported CPUs.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction, and it does not change the state of the program.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
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
            assert!(error.starts_with(&format!("cannot use delay {text:?}: a delay is ")), "{error}");
        }
    }

    #[test]
    fn transfers_follow_each_other() {
        let reads = DelayedReads::new(ReadDelay { nanoseconds: 0, gbps: Some(1.0) });
        assert_eq!((reads.reserve(100, 20), reads.reserve(105, 20), reads.reserve(500, 20)), (120, 140, 520));
    }

    #[test]
    fn a_read_ends_not_before_its_delay() {
        let reads = DelayedReads::new(ReadDelay { nanoseconds: 1000, gbps: None });
        let first = ticks();
        reads.wait(3);
        assert!(ticks() - first >= (3.0 * reads.ticks_per_line) as u64);
    }
}

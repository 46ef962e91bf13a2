//! Emulation of slower memory: reads of a region take longer, by busy waiting on the time stamp counter.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};

/// Bytes of a line: the unit in which persistent memory is read.
const LINE: u64 = 256;

/// Lines that are in flight when a thread reads in order: 16 cache lines, about as many as a core fetches
/// ahead.
const IN_FLIGHT: u64 = 4;

/// Lines that a stream keeps in the CPU cache: 256 KiB, a part of a second-level cache.
const CACHED: u32 = 1024;

/// Limits of a delay.
const NANOSECONDS_MAX: u32 = 1_000_000;
const GBPS_MAX: f64 = 10_000.0;

/// Time to calibrate the counter.
const CALIBRATION: Duration = Duration::from_millis(20);

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
                let why = "a delay is nanoseconds of latency for a line of 256 bytes, at most 1000000, and optionally a \
                           bandwidth in GB/s: 300, or 300,2.5";
                Err(Error::new(ErrorKind::Denied, "use", format!("delay {text:?}"), why))
            }
        }
    }
}

/// One sequence of reads from emulated slow memory, for example of the documents of a list. Lines next to
/// those of earlier reads are fetched ahead, while the thread works.
#[derive(Clone, Debug)]
pub struct ReadStream {
    /// Adjacent lines that were read last, which are in the CPU cache. A file in memory is smaller than the
    /// 2^40 bytes of all line numbers.
    lines: Range<u32>,
    /// Tick at which the last of them arrived.
    arrival: u64,
}

impl Default for ReadStream {
    fn default() -> ReadStream {
        ReadStream { lines: u32::MAX..u32::MAX, arrival: 0 }
    }
}

/// Delays the reads of all threads from one region.
#[derive(Debug)]
pub(crate) struct DelayedReads {
    /// Ticks until a line arrives.
    latency: u64,
    /// Ticks that the region needs to transfer a line.
    transfer_per_line: f64,
    /// Tick at which the transfers requested so far end.
    transferred: AtomicU64,
}

impl DelayedReads {
    pub(crate) fn new(delay: ReadDelay) -> DelayedReads {
        let ticks = ticks_per_nanosecond();
        DelayedReads {
            latency: (f64::from(delay.nanoseconds) * ticks) as u64,
            transfer_per_line: delay.gbps.map_or(0.0, |gbps| LINE as f64 / gbps * ticks),
            transferred: AtomicU64::new(0),
        }
    }

    /// Waits until the bytes of `range` have arrived.
    pub(crate) fn wait(&self, range: &Range<u64>, stream: &mut ReadStream) {
        let read = (range.start / LINE) as u32..range.end.div_ceil(LINE) as u32;
        let cached = stream.lines.clone();
        let continues = read.start <= cached.end && cached.start <= read.end;
        let new = match continues {
            true => cached.start.saturating_sub(read.start) + read.end.saturating_sub(cached.end),
            false => read.end - read.start,
        };
        if new == 0 {
            return;
        }
        stream.arrival = self.arrival(ticks(), u64::from(new), continues.then_some(stream.arrival));
        stream.lines = match continues {
            false => read,
            true if read.end > cached.end => {
                read.start.min(cached.start).max(read.end.saturating_sub(CACHED))..read.end
            }
            true => read.start..cached.end.min(read.start + CACHED),
        };
        while ticks() < stream.arrival {}
    }

    /// The tick at which the last of `lines` arrives that are needed `now`. If they continue a sequence whose
    /// last line arrived at `previous_arrival`, they were requested up to a latency ago, [`IN_FLIGHT`] at a
    /// time.
    fn arrival(&self, now: u64, lines: u64, previous_arrival: Option<u64>) -> u64 {
        let interval = |lines: u64| lines * self.latency / IN_FLIGHT;
        let earliest_request = now.saturating_sub(self.latency);
        let (requested, arrival) = match previous_arrival {
            Some(arrival) => (earliest_request, arrival.max(earliest_request) + interval(lines)),
            None => (now, now + self.latency + interval(lines.saturating_sub(1))),
        };
        let transfer = (lines as f64 * self.transfer_per_line) as u64;
        if transfer == 0 { arrival } else { arrival.max(self.reserve(requested, transfer)) }
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
    fn lines_in_order_are_fetched_ahead() {
        let reads = DelayedReads { latency: 100, transfer_per_line: 0.0, transferred: AtomicU64::new(0) };
        // A first line takes the whole latency, and the next ones follow.
        assert_eq!(reads.arrival(1000, 1, None), 1100);
        assert_eq!(reads.arrival(1000, 3, None), 1150);
        // Without work in between, a line arrives every 25 ticks.
        assert_eq!(reads.arrival(1101, 1, Some(1100)), 1125);
        // After a latency of work four lines have arrived, and more take longer.
        assert_eq!(reads.arrival(1300, 4, Some(1100)), 1300);
        assert_eq!(reads.arrival(1300, 8, Some(1100)), 1400);
    }

    #[test]
    fn only_lines_that_are_not_cached_are_waited_for() {
        let reads = DelayedReads::new(ReadDelay { nanoseconds: 1000, gbps: None });
        let mut stream = ReadStream::default();
        // Of a new stream the first line of the file also takes the whole latency.
        let mut read = |range: Range<u64>| {
            let (began, before) = (ticks(), stream.arrival);
            reads.wait(&range, &mut stream);
            let waited = stream.arrival != before;
            (stream.lines.clone(), waited, ticks() - began >= reads.latency)
        };
        assert_eq!(read(0..10), (0..1, true, true));
        assert_eq!(read(1000..1100), (3..5, true, true));
        let (lines, waited, _) = read(1100..1280);
        assert_eq!((lines, waited), (3..5, false));
        for (range, lines) in [(1280..1281, 3..6), (600..1000, 2..6), (1281..1536, 2..6), (1530..5000, 2..20)]
        {
            let (now, waited, _) = read(range.clone());
            assert_eq!((now, waited), (lines, range != (1281..1536)), "{range:?}");
        }
        let (lines, _, _) = read(20 * LINE..2000 * LINE);
        assert_eq!(lines, 2000 - CACHED..2000);
        assert_eq!(read(300..400), (1..2, true, true));
    }

    #[test]
    fn lines_before_the_cached_ones_continue_a_stream() {
        let reads = DelayedReads::new(ReadDelay { nanoseconds: 0, gbps: None });
        let mut stream = ReadStream { lines: 2000..2010, arrival: 0 };
        reads.wait(&(LINE * 1990..LINE * 2001), &mut stream);
        assert_eq!(stream.lines, 1990..2010);
        reads.wait(&(LINE * 900..LINE * 1990), &mut stream);
        assert_eq!(stream.lines, 900..900 + CACHED);
    }
}

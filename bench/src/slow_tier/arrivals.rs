//! Computes when lines of emulated slow memory arrive, for all threads that read from it.

use crate::slow_tier::delay::ReadDelay;
use quanta::Clock;
use std::{ops::Range, sync::atomic::AtomicU64, sync::atomic::Ordering};

/// Bytes of a line: persistent memory is read in units of 256 bytes.
pub(super) const LINE_BYTES: u64 = 256;

/// Lines that are requested ahead when a thread reads in order: 16 cache lines, about as many as the
/// prefetcher of a core requests.
const LINES_IN_FLIGHT: u64 = 4;

/// Arrival times of the reads of all threads, in nanoseconds since this was created, by the time stamp
/// counter of the processor.
pub(super) struct Arrivals {
    clock: Clock,
    start: u64,
    /// Nanoseconds from the request of a line to its arrival.
    latency: u64,
    /// Nanoseconds in which the memory transfers a line; 0 without a limit of the bandwidth.
    transfer_per_line: f64,
    /// When the transfers requested so far end.
    transferred: AtomicU64,
}

impl Arrivals {
    pub(super) fn new(delay: ReadDelay) -> Arrivals {
        let clock = Clock::new();
        let start = clock.raw();
        Arrivals {
            clock,
            start,
            latency: u64::from(delay.nanoseconds),
            transfer_per_line: delay.gbps.map_or(0.0, |gbps| LINE_BYTES as f64 / gbps),
            transferred: AtomicU64::new(0),
        }
    }

    /// Nanoseconds since the tier was created.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.clock.delta_as_nanos(self.start, self.clock.raw())
    }

    /// The time when the last of `lines` cache lines that a thread needs at time `now` arrives. If they
    /// directly follow lines that had all arrived at `previous_arrival`, the hardware prefetcher requested
    /// them up to one latency ago, [`LINES_IN_FLIGHT`] at a time.
    pub(super) fn arrival_time(&self, now: u64, lines: u64, previous_arrival: Option<u64>) -> u64 {
        let interval = |lines: u64| lines * self.latency / LINES_IN_FLIGHT;
        let earliest_request = now.saturating_sub(self.latency);
        let (requested, arrival) = match previous_arrival {
            Some(arrival) => (earliest_request, arrival.max(earliest_request) + interval(lines)),
            None => (now, now + self.latency + interval(lines.saturating_sub(1))),
        };
        let transfer = (lines as f64 * self.transfer_per_line).round() as u64;
        if transfer == 0 { arrival } else { arrival.max(self.reserve_transfer(requested, transfer)) }
    }

    /// Adds a transfer that takes `time` nanoseconds and starts after all earlier ones. Returns its end.
    fn reserve_transfer(&self, now: u64, time: u64) -> u64 {
        let next = |transferred: u64| Some(transferred.max(now) + time);
        let before = self.transferred.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        before.unwrap_or_else(|before| before).max(now) + time
    }
}

/// The numbers of the lines that contain a range of bytes of a file.
pub(super) fn lines_of(range: &Range<u64>) -> Range<u64> {
    range.start / LINE_BYTES..range.end.div_ceil(LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(nanoseconds: u32, gbps: Option<f64>) -> Arrivals {
        Arrivals::new(ReadDelay { nanoseconds, gbps })
    }

    #[test]
    fn transfers_follow_each_other() {
        let reads = arrivals(0, Some(1.0));
        assert_eq!([100, 105, 500].map(|now| reads.reserve_transfer(now, 20)), [120, 140, 520]);
    }

    #[test]
    fn lines_in_order_are_fetched_ahead() {
        let reads = arrivals(100, None);
        // A first line takes the whole latency, and the next ones follow.
        assert_eq!(reads.arrival_time(1000, 1, None), 1100);
        assert_eq!(reads.arrival_time(1000, 3, None), 1150);
        // Without work in between, a line arrives every 25 ns.
        assert_eq!(reads.arrival_time(1101, 1, Some(1100)), 1125);
        // After a latency of work four lines have arrived, and more take longer.
        assert_eq!(reads.arrival_time(1300, 4, Some(1100)), 1300);
        assert_eq!(reads.arrival_time(1300, 8, Some(1100)), 1400);
    }
}

//! The sequences of reads of one query: lines next to those of earlier reads are fetched ahead, as by the
//! prefetchers of a processor, and lines that were read lately are in its cache.

use super::arrivals::{Arrivals, lines_of};
use std::ops::Range;

/// Number of last lines of a stream that count as cached by the processor: 256 KiB, a part of a second-level
/// cache.
const CACHED_LINES_MAX: u64 = 1024;

/// Most streams of a query: documents and frequencies of 16 lists. The least recently used one is dropped.
const STREAMS_MAX: usize = 32;

/// A range of adjacent lines of a file that a query has read lately.
struct ReadStream {
    file: u64,
    lines: Range<u64>,
    /// When the last of them arrived.
    arrival: u64,
}

/// The streams of a query. The most recently used one is the last.
#[derive(Default)]
pub(super) struct ReadStreams(Vec<ReadStream>);

impl ReadStreams {
    /// Records a read of the byte range `range` of file number `file`. Returns the time at which its bytes
    /// arrive; `None` if the processor has them in its cache.
    pub(super) fn read_arrival(&mut self, arrivals: &Arrivals, file: u64, range: &Range<u64>) -> Option<u64> {
        let read = lines_of(range);
        let continues = |stream: &ReadStream| {
            stream.file == file && read.start <= stream.lines.end && stream.lines.start <= read.end
        };
        if let Some(at) = self.0.iter().rposition(continues) {
            let arrival = self.0[at].extend(arrivals, &read);
            self.0[at..].rotate_left(1);
            return arrival;
        }
        if self.0.len() == STREAMS_MAX {
            self.0.remove(0);
        }
        let arrival = arrivals.arrival_time(arrivals.now(), read.end - read.start, None);
        self.0.push(ReadStream { file, lines: read, arrival });
        Some(arrival)
    }
}

impl ReadStream {
    /// Adds the lines of a read next to those of the stream. Returns the time at which they arrive; `None` if
    /// all of them are cached.
    fn extend(&mut self, arrivals: &Arrivals, read: &Range<u64>) -> Option<u64> {
        let cached = self.lines.clone();
        let new = cached.start.saturating_sub(read.start) + read.end.saturating_sub(cached.end);
        if new == 0 {
            return None;
        }
        self.arrival = arrivals.arrival_time(arrivals.now(), new, Some(self.arrival));
        self.lines = match read.end > cached.end {
            true => read.start.min(cached.start).max(read.end.saturating_sub(CACHED_LINES_MAX))..read.end,
            false => read.start..cached.end.min(read.start + CACHED_LINES_MAX),
        };
        Some(self.arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::arrivals::LINE_BYTES, super::delay::ReadDelay, *};

    fn arrivals() -> Arrivals {
        Arrivals::new(ReadDelay { nanoseconds: 1000, gbps: None })
    }

    #[test]
    fn only_lines_that_are_not_cached_are_waited_for() {
        let (arrivals, mut streams) = (arrivals(), ReadStreams::default());
        let mut read = |range: Range<u64>| {
            let arrival = streams.read_arrival(&arrivals, 7, &range);
            (streams.0.last().unwrap().lines.clone(), arrival.is_some())
        };
        assert_eq!(read(0..10), (0..1, true));
        assert_eq!(read(1000..1100), (3..5, true));
        assert_eq!(read(1100..1280), (3..5, false));
        assert_eq!(read(1280..1281), (3..6, true));
        assert_eq!(read(600..1000), (2..6, true));
        assert_eq!(read(1281..1536), (2..6, false));
        assert_eq!(read(1530..5000), (2..20, true));
        assert_eq!(read(20 * LINE_BYTES..2000 * LINE_BYTES), (2000 - CACHED_LINES_MAX..2000, true));
        // The stream of the first line is still there.
        assert_eq!(read(0..300), (0..2, true));
        assert_eq!(
            read(LINE_BYTES * 900..LINE_BYTES * 990),
            (900..2000 - 1000 + CACHED_LINES_MAX - 100, true)
        );
    }

    #[test]
    fn files_have_streams_of_their_own_and_old_streams_are_forgotten() {
        let (arrivals, mut streams) = (arrivals(), ReadStreams::default());
        for file in 0..STREAMS_MAX as u64 {
            assert!(streams.read_arrival(&arrivals, file, &(0..10)).is_some());
        }
        assert!(streams.read_arrival(&arrivals, 0, &(0..10)).is_none());
        assert!(streams.read_arrival(&arrivals, 99, &(0..10)).is_some());
        assert!(streams.read_arrival(&arrivals, 0, &(0..10)).is_none());
        assert!(streams.read_arrival(&arrivals, 1, &(0..10)).is_some());
        assert_eq!(streams.0.len(), STREAMS_MAX);
    }
}

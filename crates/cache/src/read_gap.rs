//! Measures up to which distance two reads are joined: one read of both, with the pages between them, can
//! take less time than two reads. It is measured when a read queue starts, as devices differ by orders of
//! magnitude. On a device with 50,000 reads and 0.8 GB a second, an additional page takes a third of the time
//! of a read; with 3,000 reads and 125 MB a second it takes a tenth.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex_io::{Cells, PAGE, ReadFile, ReadQueue, ReadTarget};

/// Maximum result, in pages. A longer gap would evict too many pages if the device was slow by chance.
const GAP_PAGES_MAX: u64 = 8;

/// Number of measured reads of one page, and of [`LONG_READ_PAGES`]. Both are spread over the file.
const SHORT_READS: u64 = 32;
const LONG_READS: u64 = 8;
const LONG_READ_PAGES: u64 = 16;

/// Minimum length of a file that is measured, in pages. For smaller files the result is 0.
const FILE_PAGES_MIN: u64 = 4096;

/// Number of measurements. The fastest counts.
const MEASUREMENTS: usize = 3;

/// No further round begins after this time: slow devices need no exact measurement.
const TIME_MAX: Duration = Duration::from_millis(20);

/// The pages of a gap may take at most this part of the time of the read that is saved, because they also
/// evict other pages. With 0.5, queries of one term read 1.05 times the bytes from a fast SSD, and were not
/// faster.
const GAP_TIME_FRACTION: f64 = 0.25;

/// Returns the number of pages between two pages of `file` up to which one read is faster than two. 0 for
/// small files, and if a read fails. Reads into cells of `cells` that are not in use.
pub fn measure_gap(queue: &mut ReadQueue, cells: &Arc<Cells>, file: &Arc<dyn ReadFile>) -> u64 {
    let pages = file.len() / PAGE;
    let is_small =
        pages < FILE_PAGES_MIN || (cells.len() as u64) < SHORT_READS.max(LONG_READS * LONG_READ_PAGES);
    if is_small || file.descriptor().is_none() {
        return 0;
    }
    let (mut short, mut long) = (Duration::MAX, Duration::MAX);
    let began = Instant::now();
    for round in 0..MEASUREMENTS as u64 {
        let times = (
            time_reads(queue, cells, file, SHORT_READS, 1, round),
            time_reads(queue, cells, file, LONG_READS, LONG_READ_PAGES, round),
        );
        let (Some(of_short), Some(of_long)) = times else { return 0 };
        (short, long) = (short.min(of_short), long.min(of_long));
        if began.elapsed() > TIME_MAX {
            break;
        }
    }
    gap_pages(short.as_secs_f64() / SHORT_READS as f64, long.as_secs_f64() / LONG_READS as f64)
}

/// The maximum gap in pages, from the times in seconds of a read of one page and of [`LONG_READ_PAGES`].
fn gap_pages(short: f64, long: f64) -> u64 {
    let page = (long - short).max(0.0) / (LONG_READ_PAGES - 1) as f64;
    let read = (short - page).max(0.0);
    // Not positive by an error of measurement.
    if read <= 0.0 { 0 } else { ((GAP_TIME_FRACTION * read / page) as u64).min(GAP_PAGES_MAX) }
}

/// The time of `reads` concurrent reads of `pages` pages each; `None` if one fails. The offsets differ
/// between rounds, so that no page is read twice.
fn time_reads(
    queue: &mut ReadQueue,
    cells: &Arc<Cells>,
    file: &Arc<dyn ReadFile>,
    reads: u64,
    pages: u64,
    round: u64,
) -> Option<Duration> {
    let distance = file.len() / PAGE / reads;
    // Long reads begin behind the short ones of all rounds.
    let first = if pages == 1 { round } else { MEASUREMENTS as u64 + round * pages };
    let began = Instant::now();
    for number in 0..reads {
        if let Some(own) = cells.write_all((number * pages) as u32..((number + 1) * pages) as u32) {
            queue.submit(file, (number * distance + first) * PAGE, ReadTarget::from(own), number);
        }
    }
    let mut ended = 0;
    while let Some(completion) = queue.next(true) {
        ended += u64::from(completion.result.is_ok_and(|bytes| bytes as u64 == pages * PAGE));
    }
    (ended == reads).then(|| began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::gap_pages;

    #[test]
    fn the_gap_follows_from_the_times_of_reads() {
        let times = |read: f64, page: f64| (read + page, read + 16.0 * page);
        for (read, page, pages) in [
            (15e-6, 5e-6, 0),
            (310e-6, 30e-6, 2),
            (8e-3, 40e-6, 8),
            (1e-6, 5e-6, 0),
            (0.0, 5e-6, 0),
            (1e-6, 0.0, 8),
        ] {
            let (short, long) = times(read, page);
            assert_eq!(gap_pages(short, long), pages, "{read} {page}");
        }
        assert_eq!(gap_pages(0.0, 0.0), 0);
    }
}

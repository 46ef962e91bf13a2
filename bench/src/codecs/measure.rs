//! Times the codecs on a group of lists, on one thread. The result is the encoded size and the medians of
//! three times:
//!
//! 1. *L1*: every list is decoded block by block into the same buffer of one block, while the encoded bytes
//!    are streamed. The lists are decoded once before the timed pass.
//! 2. *RAM*: every list is decoded into memory that no cache holds.
//! 3. *encode*: every list is encoded into the same vector.
//!
//! Contenders alternate within each round, so that a disturbance of the machine affects all of them.

use crate::Result;
use crate::codecs::{buffers::Buffers, contender::Peer, list_group::ListGroup, rows::CodecRow};
use std::time::Instant;
use tierdex::StopSignal;

/// Seconds of each round for one codec: decoding into one block, decoding into main memory, encoding.
#[derive(Default)]
struct CodecTimes {
    l1: Vec<f64>,
    ram: Vec<f64>,
    encode: Vec<f64>,
}

/// Measures all contenders that encode values of the group's kind.
///
/// # Errors
/// If a round trip differs, or `stop` is raised.
pub(super) fn measure_group(
    group: &ListGroup,
    contenders: &[Box<dyn Peer>],
    rounds: usize,
    buffers: &mut Buffers,
    stop: &StopSignal,
) -> Result<Vec<CodecRow>> {
    let mut entered = Vec::new();
    for contender in contenders.iter().filter(|contender| contender.info().takes(group.kind)) {
        stop.check()?;
        entered.push((contender.info(), contender.enter(group)?, CodecTimes::default()));
    }
    for _ in 0..rounds {
        for (_, cell, times) in &mut entered {
            stop.check()?;
            times.encode.push(time_seconds(|| cell.encode(buffers)));
            times.ram.push(time_seconds(|| cell.decode_ram(buffers)));
            cell.decode_l1(buffers);
            times.l1.push(time_seconds(|| cell.decode_l1(buffers)));
        }
    }
    let rows = entered.into_iter().map(|(contender, cell, times)| CodecRow {
        contender,
        dataset: group.dataset,
        k: group.k,
        ints: group.ints(),
        bytes: cell.bytes(),
        l1_seconds: median(times.l1),
        ram_seconds: median(times.ram),
        encode_seconds: median(times.encode),
    });
    Ok(rows.collect())
}

/// The median of times of an odd number of rounds.
fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn time_seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::codecs::{Contender, ContenderInfo, ValueKind, own::Memcpy};

    /// Copies values. With `wrong`, decodes the last value of each block wrongly.
    struct PlainCodec {
        wrong: bool,
    }

    impl Contender for PlainCodec {
        type Word = u32;

        fn info(&self) -> ContenderInfo {
            ContenderInfo { codec: "plain".to_string(), kernel: "test", kind: Some(ValueKind::Frequencies) }
        }

        fn encode(&self, values: &[u32], _: u32, out: &mut Vec<u32>) {
            out.extend_from_slice(values);
        }

        fn decode(&self, words: &[u32], _: u32, out: &mut [u32]) -> Option<usize> {
            out.copy_from_slice(&words[..out.len()]);
            *out.last_mut()? ^= u32::from(self.wrong);
            Some(out.len())
        }
    }

    fn measured(kind: ValueKind, wrong: bool) -> Result<Vec<CodecRow>> {
        let group = ListGroup {
            dataset: "some",
            kind,
            k: Some(8),
            lists: vec![(1..=300).collect(), (5..=260).collect()],
        };
        let contenders: [Box<dyn Peer>; 1] = [Box::new(PlainCodec { wrong })];
        measure_group(&group, &contenders, 3, &mut Buffers::default(), &StopSignal::default())
    }

    #[test]
    fn sizes_are_counted_and_only_matching_kinds_are_measured() {
        let rows = measured(ValueKind::Frequencies, false).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].ints, rows[0].bytes), (556, 4 * 556));
        assert_eq!(measured(ValueKind::Ids, false).unwrap().len(), 0);
    }

    #[test]
    fn a_round_trip_that_differs_ends_the_run() {
        let error = measured(ValueKind::Frequencies, true).unwrap_err().to_string();
        assert_eq!(error, "the round trip of codec plain, kernel test, dataset some, K 8 differs");
    }

    #[test]
    fn a_raised_stop_signal_ends_the_run() {
        let group = ListGroup { dataset: "some", kind: ValueKind::Ids, k: None, lists: vec![vec![1]] };
        let stop = StopSignal::default();
        stop.raise();
        let contenders: [Box<dyn Peer>; 1] = [Box::new(Memcpy)];
        let result = measure_group(&group, &contenders, 1, &mut Buffers::default(), &stop);
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}

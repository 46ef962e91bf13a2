//! Round trips and time, on one thread.
//!
//! You have a group of lists and contenders; you get for each its bytes and the medians of three times:
//! 1. *L1*: every list is decoded block by block into the same small buffer, while its bytes stream past; the lists
//!    are decoded once before the clock starts;
//! 2. *RAM*: every list is decoded into memory that no cache holds any more;
//! 3. *encode*: every list is encoded into the same vector.
//!
//! Contenders take turns, so that what slows the machine for a while slows them all.

use super::buffers::{Buffers, Word};
use super::contender::{Contender, Peer};
use super::data::Group;
use super::rows::Row;
use crate::{Error, Result};
use std::hint::black_box;
use std::time::Instant;

/// One contender's encoding of one group, ready to be timed.
pub trait Cell {
    /// Bytes of all lists.
    fn bytes(&self) -> u64;

    /// Decodes each list block by block into one small buffer.
    fn decode_near(&self, buffers: &mut Buffers);

    /// Decodes each list into memory that has not been touched for long.
    fn decode_far(&self, buffers: &mut Buffers);

    /// Encodes each list into a vector that is there already.
    fn encode(&self, buffers: &mut Buffers);
}

/// Seconds of each round.
#[derive(Default)]
struct Times {
    near: Vec<f64>,
    far: Vec<f64>,
    encode: Vec<f64>,
}

/// Measures all contenders that take such values.
pub(super) fn group(
    group: &Group,
    contenders: &[Box<dyn Peer>],
    rounds: usize,
    buffers: &mut Buffers,
) -> Result<Vec<Row>> {
    let contenders = contenders.iter().filter(|contender| contender.takes(group.kind));
    let mut entered = Vec::new();
    for contender in contenders {
        entered.push((contender, contender.enter(group)?, Times::default()));
    }
    for _ in 0..rounds {
        for (_, cell, times) in &mut entered {
            times.encode.push(seconds(|| cell.encode(buffers)));
            times.far.push(seconds(|| cell.decode_far(buffers)));
            cell.decode_near(buffers);
            times.near.push(seconds(|| cell.decode_near(buffers)));
        }
    }
    let rows = entered.into_iter().map(|(contender, cell, mut times)| Row {
        codec: contender.codec(),
        kernel: contender.kernel(),
        dataset: group.dataset,
        kind: group.kind,
        k: group.k,
        lists: group.lists.len() as u64,
        ints: group.ints(),
        bytes: cell.bytes(),
        near_seconds: median(&mut times.near),
        far_seconds: median(&mut times.far),
        encode_seconds: median(&mut times.encode),
    });
    Ok(rows.collect())
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The lists of a group as a contender wrote them.
pub(super) struct Encoded<'a, C: Contender> {
    contender: &'a C,
    group: &'a Group,
    words: Vec<C::Word>,
    /// Where each list starts in `words`, and the end of the last.
    starts: Vec<usize>,
}

impl<'a, C: Contender> Encoded<'a, C> {
    /// Encodes all lists, and decodes them to see that they come back.
    pub(super) fn new(contender: &'a C, group: &'a Group) -> Result<Encoded<'a, C>> {
        let (mut words, mut starts) = (Vec::new(), vec![0]);
        for list in &group.lists {
            encode_list(contender, list, &mut words);
            starts.push(words.len());
        }
        words.shrink_to_fit();
        let encoded = Encoded { contender, group, words, starts };
        encoded.check()?;
        Ok(encoded)
    }

    fn check(&self) -> Result<()> {
        let mut back = Vec::new();
        for (words, list) in self.lists() {
            back.clear();
            back.resize(list.len(), 0);
            if self.decode_list(words, &mut back) != Some(words.len()) || back != *list {
                return Err(self.differs());
            }
        }
        Ok(())
    }

    fn differs(&self) -> Error {
        Error::Failed(format!(
            "the round trip of codec {}, kernel {}, dataset {}{} differs",
            self.contender.codec(),
            self.contender.kernel(),
            self.group.dataset,
            self.group.k.map(|k| format!(", K {k}")).unwrap_or_default()
        ))
    }

    /// Each list, as it was written and as it is.
    fn lists(&self) -> impl Iterator<Item = (&[C::Word], &Vec<u32>)> {
        let words = self.starts.windows(2).map(|ends| &self.words[ends[0]..ends[1]]);
        words.zip(&self.group.lists)
    }

    /// Decodes a list to where it has room; returns the words that it took.
    fn decode_list(&self, words: &[C::Word], out: &mut [u32]) -> Option<usize> {
        let (mut at, mut prev) = (0, u32::MAX);
        for block in out.chunks_mut(self.contender.block()) {
            at += self.contender.decode(&words[at..], prev, block)?;
            prev = block[block.len() - 1];
        }
        Some(at)
    }

    /// Decodes a list of `len` values block by block into the front of `near`.
    fn decode_through(&self, words: &[C::Word], len: usize, near: &mut [u32]) -> Option<()> {
        let (mut at, mut prev, mut left) = (0, u32::MAX, len);
        while left > 0 {
            let count = left.min(near.len());
            let block = &mut near[..count];
            at += self.contender.decode(&words[at..], prev, block)?;
            prev = black_box(&*block)[count - 1];
            left -= count;
        }
        Some(())
    }
}

impl<C: Contender> Cell for Encoded<'_, C> {
    fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }

    fn decode_near(&self, buffers: &mut Buffers) {
        let near = buffers.near(self.contender.block());
        for (words, list) in self.lists() {
            black_box(self.decode_through(black_box(words), list.len(), near));
        }
    }

    fn decode_far(&self, buffers: &mut Buffers) {
        for (words, list) in self.lists() {
            let far = buffers.far(list.len());
            black_box(self.decode_list(black_box(words), far));
            black_box(far);
        }
    }

    fn encode(&self, buffers: &mut Buffers) {
        let out = C::Word::scratch(buffers);
        for list in &self.group.lists {
            out.clear();
            encode_list(self.contender, black_box(list), out);
            black_box(out.as_slice());
        }
    }
}

fn encode_list<C: Contender>(contender: &C, list: &[u32], out: &mut Vec<C::Word>) {
    let mut prev = u32::MAX;
    for block in list.chunks(contender.block()) {
        contender.encode(block, prev, out);
        prev = block[block.len() - 1];
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::Kind;
    use super::*;

    /// Writes values as they are, and reads the last one of each block wrongly if it is told to.
    struct Plain {
        wrong: bool,
    }

    impl Contender for Plain {
        type Word = u32;

        fn codec(&self) -> String {
            "plain".to_string()
        }

        fn kernel(&self) -> String {
            "test".to_string()
        }

        fn takes(&self, kind: Kind) -> bool {
            kind == Kind::Frequencies
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

    fn measured(kind: Kind, wrong: bool) -> Result<Vec<Row>> {
        let group = Group {
            dataset: "some",
            kind,
            k: Some(8),
            lists: vec![(1..=300).collect(), (5..=260).collect()],
        };
        let contenders: [Box<dyn Peer>; 1] = [Box::new(Plain { wrong })];
        super::group(&group, &contenders, 3, &mut Buffers::new())
    }

    #[test]
    fn sizes_are_counted_and_only_fitting_values_are_measured() {
        let rows = measured(Kind::Frequencies, false).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].lists, rows[0].ints, rows[0].bytes), (2, 556, 4 * 556));
        assert_eq!(measured(Kind::Ids, false).unwrap().len(), 0);
    }

    #[test]
    fn a_round_trip_that_differs_ends_the_run() {
        let error = measured(Kind::Frequencies, true).unwrap_err().to_string();
        assert_eq!(error, "the round trip of codec plain, kernel test, dataset some, K 8 differs");
    }

    #[test]
    fn medians_stand_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    }
}

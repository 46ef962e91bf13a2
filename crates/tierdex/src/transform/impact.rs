//! Impacts: what a block of postings can score at most, for any BM25 parameters.
//!
//! BM25 grows with the frequency and falls with the document's length. So the best score in a block is
//! reached at one of the postings whose (frequency, norm) no other posting of the block beats in both: the
//! Pareto front. It is kept in order, frequencies and norms strictly rising (Ding and Suel, SIGIR 2011, keep
//! one score instead; the pairs stay exact when k1, b or the average length change).

use crate::bytes::{View, push_varint};
use crate::error::Result;
use crate::limits::BLOCK;
use tierdex_codec::{Places, values_at_least};

/// A pair of the front. `norm` is a code of [`super::norm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impact {
    /// Occurrences in the document.
    pub frequency: u32,
    /// Code of the document's length.
    pub norm: u8,
}

/// Longest front in bytes that a block keeps; longer ones are coarsened, which stays safe.
pub const BLOCK_FRONT_BYTES_MAX: usize = u8::MAX as usize;

/// Longest front in bytes that 32 blocks together keep.
pub const SUPERBLOCK_FRONT_BYTES_MAX: usize = 4096;

/// Collects pairs and gives their front.
#[derive(Clone)]
pub struct FrontBuilder {
    /// Smallest norm seen for each frequency below 256, by each lane: neighbours in a block, which have the
    /// same frequency more often than not, do not wait for one another.
    small: [[u8; SMALL]; LANES],
    /// Largest frequency below 256 that was seen.
    largest: usize,
    large: Vec<Impact>,
}

const SMALL: usize = 256;

const LANES: usize = 4;

const NO_NORM: u8 = u8::MAX;

impl Default for FrontBuilder {
    fn default() -> FrontBuilder {
        FrontBuilder { small: [[NO_NORM; SMALL]; LANES], largest: 0, large: Vec::new() }
    }
}

impl FrontBuilder {
    /// Adds a pair.
    #[inline]
    pub fn add(&mut self, frequency: u32, norm: u8) {
        match self.small[0].get_mut(frequency as usize) {
            Some(best) => {
                *best = norm.min(*best);
                self.largest = self.largest.max(frequency as usize);
            }
            None => self.large.push(Impact { frequency, norm }),
        }
    }

    /// Adds pairs, as many norms as frequencies, which are at least 1.
    pub fn extend(&mut self, frequencies: &[u32], norms: &[u8]) {
        // Most frequencies are 1, and of these the smallest norm is in the front only if it is the smallest
        // of all.
        self.add(1, norms.iter().fold(NO_NORM, |best, &norm| best.min(norm)));
        let mut places = Places::new();
        for (frequencies, norms) in frequencies.chunks(BLOCK).zip(norms.chunks(BLOCK)) {
            values_at_least(frequencies, 2, &mut places);
            let mut largest = 0;
            for places in places.get().chunks(LANES) {
                for (lane, &place) in self.small.iter_mut().zip(places) {
                    let (frequency, norm) = (frequencies[usize::from(place)], norms[usize::from(place)]);
                    match lane.get_mut(frequency as usize) {
                        Some(best) => {
                            *best = norm.min(*best);
                            largest = largest.max(frequency);
                        }
                        None => self.large.push(Impact { frequency, norm }),
                    }
                }
            }
            self.largest = self.largest.max(largest as usize);
        }
    }

    /// Writes the front of all pairs added since the last call into `front`, rising, and starts anew.
    pub fn take(&mut self, front: &mut Vec<Impact>) {
        front.clear();
        self.large.sort_unstable_by_key(|impact| (impact.frequency, std::cmp::Reverse(impact.norm)));
        let best_of =
            |frequency: usize| self.small.iter().fold(NO_NORM, |best, lane| best.min(lane[frequency]));
        let small = (0..=self.largest).rev();
        let small = small.map(|frequency| Impact { frequency: frequency as u32, norm: best_of(frequency) });
        let mut best = NO_NORM;
        for impact in self.large.iter().rev().copied().chain(small) {
            if impact.norm < best {
                best = impact.norm;
                front.push(impact);
            }
        }
        front.reverse();
        self.large.clear();
        self.small.iter_mut().for_each(|lane| lane[..=self.largest].fill(NO_NORM));
        self.largest = 0;
    }
}

/// Makes a front fit into `bytes_max` bytes by joining neighbours into a pair that is as good as both.
pub fn coarsen(front: &mut Vec<Impact>, bytes_max: usize) {
    while encoded_len(front) > bytes_max {
        let mut kept = 0;
        for i in (0..front.len()).step_by(2) {
            let upper = front.get(i + 1).unwrap_or(&front[i]).frequency;
            front[kept] = Impact { frequency: upper, norm: front[i].norm };
            kept += 1;
        }
        front.truncate(kept);
    }
}

/// Appends a front: for each pair the gap of its frequency to the one before as a variable-length integer,
/// and the norm as a byte.
pub fn write(front: &[Impact], out: &mut Vec<u8>) {
    let mut previous = 0;
    for impact in front {
        push_varint(out, u64::from(impact.frequency - previous));
        out.push(impact.norm);
        previous = impact.frequency;
    }
}

/// Reads a front that fills `view`, and checks that it rises.
pub fn read(view: View<'_>, front: &mut Vec<Impact>) -> Result<()> {
    front.clear();
    each(view, |impact| front.push(impact))
}

/// The same, pair by pair.
#[inline]
pub fn each(mut view: View<'_>, mut body: impl FnMut(Impact)) -> Result<()> {
    // The least norm that the next pair may have.
    let (mut frequency, mut least) = (0u32, 0);
    while view.remaining() > 0 {
        let (gap, norm) = (view.varint32()?, view.u8()?);
        frequency = match frequency.checked_add(gap) {
            Some(frequency) if gap > 0 && u16::from(norm) >= least => frequency,
            _ => return Err(view.corrupt("impacts do not rise")),
        };
        least = u16::from(norm) + 1;
        body(Impact { frequency, norm });
    }
    Ok(())
}

fn encoded_len(front: &[Impact]) -> usize {
    let mut previous = 0;
    let len = |impact: &Impact| {
        let bits = u32::BITS - (impact.frequency - previous).leading_zeros();
        previous = impact.frequency;
        bits.max(1).div_ceil(7) as usize + 1
    };
    front.iter().map(len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(pairs: &[(u32, u8)]) -> Vec<Impact> {
        let beaten = |p: &(u32, u8)| pairs.iter().any(|q| q != p && q.0 >= p.0 && q.1 <= p.1);
        let mut front: Vec<_> = pairs.iter().filter(|p| !beaten(p)).copied().collect();
        front.sort_unstable();
        front.dedup();
        front.into_iter().map(|(frequency, norm)| Impact { frequency, norm }).collect()
    }

    proptest! {
        #[test]
        fn fronts_are_exact(rounds in prop::collection::vec(
            prop::collection::vec((prop_oneof![1u32..20, 200u32..300, 1u32..100_000], 0u8..248), 1..300), 1..4)
        ) {
            let mut builder = FrontBuilder::default();
            for pairs in rounds {
                for &(frequency, norm) in &pairs {
                    builder.add(frequency, norm);
                }
                let mut front = Vec::new();
                builder.take(&mut front);
                prop_assert_eq!(&front, &naive(&pairs));
                let (frequencies, norms): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
                builder.extend(&frequencies, &norms);
                builder.take(&mut front);
                prop_assert_eq!(&front, &naive(&pairs));
                let mut bytes = Vec::new();
                write(&front, &mut bytes);
                prop_assert_eq!(encoded_len(&front), bytes.len());
                let mut back = Vec::new();
                read(View::new("f", 0, &bytes), &mut back).unwrap();
                prop_assert_eq!(&back, &front);

                let mut coarse = front.clone();
                coarsen(&mut coarse, 8);
                prop_assert!(encoded_len(&coarse) <= 8);
                for impact in &front {
                    prop_assert!(coarse.iter().any(|c| c.frequency >= impact.frequency && c.norm <= impact.norm));
                }
            }
        }
    }
}

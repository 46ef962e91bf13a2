//! Impacts: the competitive (frequency, norm) pairs of a block, from which follows the highest score in it
//! for any BM25 parameters.
//!
//! A BM25 score increases with the frequency and decreases with the document length. So the maximum score of
//! a block is that of a posting on the Pareto front: one that no other posting dominates in both frequency
//! and norm. The pairs are stored with frequencies and norms strictly increasing. Ding and Suel (SIGIR 2011)
//! store one maximum score instead; the pairs remain exact when k1, b or the average length changes.

use crate::bytes::{ByteReader, push_varint};
use crate::{Result, limits::BLOCK};
use tierdex_codec::{Selection, values_at_least};

/// A competitive pair of frequency and norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impact {
    /// Frequency of the term in the document.
    pub frequency: u32,
    /// Code of the document length ([`super::norm`]).
    pub norm: u8,
}

/// Maximum encoded bytes of the impacts of a block. More impacts are reduced by [`coarsen`], which can only
/// raise the highest score that follows from them.
pub const BLOCK_IMPACT_BYTES_MAX: usize = u8::MAX as usize;

/// Maximum encoded bytes of the impacts of a superblock.
pub const SUPERBLOCK_IMPACT_BYTES_MAX: usize = 4096;

/// Collects pairs and returns the competitive ones (as Lucene's `CompetitiveImpactAccumulator`).
#[derive(Clone)]
pub struct ImpactBuilder {
    /// For each frequency below 256 the smallest norm, in several arrays that adjacent postings use in turn:
    /// they often have equal frequencies, and would wait for each other's stores in one array.
    small: [[u8; SMALL_FREQUENCIES]; NORM_ARRAYS],
    /// Largest frequency below 256 that was added.
    largest: usize,
    /// The pairs with larger frequencies.
    large: Vec<Impact>,
}

/// Number of frequencies that are indexes of arrays.
const SMALL_FREQUENCIES: usize = 256;

/// Number of arrays of smallest norms, which consecutive postings use in turn.
const NORM_ARRAYS: usize = 4;

/// The norm of a frequency that was not added; greater than all norms.
const NO_NORM: u8 = u8::MAX;

impl Default for ImpactBuilder {
    fn default() -> ImpactBuilder {
        ImpactBuilder { small: [[NO_NORM; SMALL_FREQUENCIES]; NORM_ARRAYS], largest: 0, large: Vec::new() }
    }
}

impl ImpactBuilder {
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

    /// Adds a pair for each posting of a block: its frequency, at least 1, and its norm.
    pub fn extend(&mut self, frequencies: &[u32], norms: &[u8]) {
        // Most frequencies are 1. The smallest norm with frequency 1 is competitive only if it is the
        // smallest norm of all postings, so that one is added.
        self.add(1, norms.iter().fold(NO_NORM, |best, &norm| best.min(norm)));
        let mut selection = Selection::new();
        for (frequencies, norms) in frequencies.chunks(BLOCK).zip(norms.chunks(BLOCK)) {
            values_at_least(frequencies, 2, &mut selection);
            let mut largest = 0;
            for positions in selection.positions().chunks(NORM_ARRAYS) {
                for (lane, &position) in self.small.iter_mut().zip(positions) {
                    let (frequency, norm) =
                        (frequencies[usize::from(position)], norms[usize::from(position)]);
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

    /// Replaces `impacts` by the competitive ones of the pairs that were added, in increasing order, and
    /// removes all pairs.
    pub fn take(&mut self, impacts: &mut Vec<Impact>) {
        impacts.clear();
        self.large.sort_unstable_by_key(|impact| (impact.frequency, std::cmp::Reverse(impact.norm)));
        let min_norm =
            |frequency: usize| self.small.iter().fold(NO_NORM, |best, lane| best.min(lane[frequency]));
        let small = (0..=self.largest).rev();
        let small = small.map(|frequency| Impact { frequency: frequency as u32, norm: min_norm(frequency) });
        let mut best = NO_NORM;
        for impact in self.large.iter().rev().copied().chain(small) {
            if impact.norm < best {
                best = impact.norm;
                impacts.push(impact);
            }
        }
        impacts.reverse();
        self.large.clear();
        self.small.iter_mut().for_each(|lane| lane[..=self.largest].fill(NO_NORM));
        self.largest = 0;
    }
}

/// Reduces impacts to at most `bytes_max` encoded bytes: replaces two adjacent pairs by one that dominates
/// both, as often as needed.
pub fn coarsen(impacts: &mut Vec<Impact>, bytes_max: usize) {
    while encoded_len(impacts) > bytes_max {
        let mut kept = 0;
        for i in (0..impacts.len()).step_by(2) {
            let upper = impacts.get(i + 1).unwrap_or(&impacts[i]).frequency;
            impacts[kept] = Impact { frequency: upper, norm: impacts[i].norm };
            kept += 1;
        }
        impacts.truncate(kept);
    }
}

/// Appends encoded impacts: for each pair the gap to the previous frequency as a variable-length integer,
/// and the norm as a byte.
pub fn write(impacts: &[Impact], out: &mut Vec<u8>) {
    let mut previous = 0;
    for impact in impacts {
        push_varint(out, u64::from(impact.frequency - previous));
        out.push(impact.norm);
        previous = impact.frequency;
    }
}

/// Decodes the impacts that `view` contains, and checks that they increase.
pub fn read(view: ByteReader<'_>, impacts: &mut Vec<Impact>) -> Result<()> {
    impacts.clear();
    for_each(view, |impact| impacts.push(impact))
}

/// The largest frequency of the impacts that `view` contains, which is that of the last pair; 0 if there is
/// none.
pub fn max_frequency(view: ByteReader<'_>) -> Result<u32> {
    let mut last = 0;
    for_each(view, |impact| last = impact.frequency)?;
    Ok(last)
}

/// Calls `body` with each pair of the impacts that `view` contains, and checks that they increase.
#[inline]
pub fn for_each(mut view: ByteReader<'_>, mut body: impl FnMut(Impact)) -> Result<()> {
    // `min_norm` is the smallest norm that the next pair may have.
    let (mut frequency, mut min_norm) = (0u32, 0);
    while view.remaining() > 0 {
        let (gap, norm) = (view.varint32()?, view.u8()?);
        frequency = match frequency.checked_add(gap) {
            Some(frequency) if gap > 0 && u16::from(norm) >= min_norm => frequency,
            _ => return Err(view.corrupt("impacts do not rise")),
        };
        min_norm = u16::from(norm) + 1;
        body(Impact { frequency, norm });
    }
    Ok(())
}

fn encoded_len(impacts: &[Impact]) -> usize {
    let mut previous = 0;
    let len = |impact: &Impact| {
        let bits = u32::BITS - (impact.frequency - previous).leading_zeros();
        previous = impact.frequency;
        bits.max(1).div_ceil(7) as usize + 1
    };
    impacts.iter().map(len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The competitive pairs, by comparing each with all others.
    fn competitive_pairs(pairs: &[(u32, u8)]) -> Vec<Impact> {
        let is_dominated = |p: &(u32, u8)| pairs.iter().any(|q| q != p && q.0 >= p.0 && q.1 <= p.1);
        let mut impacts: Vec<_> = pairs.iter().filter(|p| !is_dominated(p)).copied().collect();
        impacts.sort_unstable();
        impacts.dedup();
        impacts.into_iter().map(|(frequency, norm)| Impact { frequency, norm }).collect()
    }

    proptest! {
        #[test]
        fn impacts_are_exact(rounds in prop::collection::vec(
            prop::collection::vec((prop_oneof![1u32..20, 200u32..300, 1u32..100_000], 0u8..248), 1..300), 1..4)
        ) {
            let mut builder = ImpactBuilder::default();
            for pairs in rounds {
                for &(frequency, norm) in &pairs {
                    builder.add(frequency, norm);
                }
                let mut impacts = Vec::new();
                builder.take(&mut impacts);
                prop_assert_eq!(&impacts, &competitive_pairs(&pairs));
                let (frequencies, norms): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
                builder.extend(&frequencies, &norms);
                builder.take(&mut impacts);
                prop_assert_eq!(&impacts, &competitive_pairs(&pairs));
                let mut bytes = Vec::new();
                write(&impacts, &mut bytes);
                prop_assert_eq!(encoded_len(&impacts), bytes.len());
                let mut back = Vec::new();
                read(ByteReader::new("f", 0, &bytes), &mut back).unwrap();
                prop_assert_eq!(&back, &impacts);

                let mut coarse = impacts.clone();
                coarsen(&mut coarse, 8);
                prop_assert!(encoded_len(&coarse) <= 8);
                for impact in &impacts {
                    prop_assert!(coarse.iter().any(|c| c.frequency >= impact.frequency && c.norm <= impact.norm));
                }
            }
        }
    }
}

//! Sloppy phrase matching: how often a phrase with slop occurs in a document.

/// The sloppy frequency of a phrase in a document.
///
/// The *phrase start* of an occurrence of a term is its position minus the term's distance from the first
/// term of the phrase: in an exact match all terms have the same phrase start. An interval `[low, high]` of
/// phrase starts matches if each term has an occurrence in it; a repeated term needs an occurrence for each
/// repetition. Minimal intervals (those that contain no smaller match) no wider than the slop count `1 / (1
/// + high - low)` each. They are summed in increasing order in `f64`, and the sum is rounded to `f32`. So
/// the frequency never exceeds the number of occurrences of any term, which pruning uses as an upper bound.
/// (In `f32`, ten times a tenth is more than 1.)
///
/// A slop of 0 is an exact match; one term moved by n positions needs a slop of n, and two neighbours in the
/// wrong order need 2. This is Lucene's sloppy frequency, except that Lucene's greedy search may miss
/// matches of repeated terms.
#[derive(Clone)]
pub struct Alignments {
    slots: Vec<PhraseSlot>,
    /// The largest width of an interval that counts.
    pub(crate) slop: u32,
}

/// A term of the phrase, with its positions in the current document.
#[derive(Clone)]
struct PhraseSlot {
    distance: u32,
    /// The previous slot with the same term, if any: its occurrence must be an earlier one.
    previous_same: Option<usize>,
    positions: Vec<u32>,
    /// Index of the next position to use: advances while [`Alignments::frequency`] runs.
    next: usize,
}

impl Alignments {
    /// For terms with increasing distances from the first, and this slop.
    pub fn new<T: PartialEq>(terms: &[(u32, T)], slop: u32) -> Alignments {
        let slots = terms.iter().enumerate().map(|(number, (distance, term))| PhraseSlot {
            distance: *distance,
            previous_same: terms[..number].iter().rposition(|(_, other)| other == term),
            positions: Vec::new(),
            next: 0,
        });
        Alignments { slots: slots.collect(), slop }
    }

    /// Whether the phrase consists of two different terms: it matches where they are close to each other.
    pub(crate) fn is_pair(&self) -> bool {
        self.slots.len() == 2 && self.slots[1].previous_same.is_none()
    }

    /// The positions in the document of the term with this number. The caller fills them in, in increasing
    /// order, before [`Alignments::frequency`].
    pub fn positions(&mut self, slot: usize) -> &mut Vec<u32> {
        &mut self.slots[slot].positions
    }

    /// The sloppy frequency of the phrase in the document whose positions were filled in. If it is not
    /// `exact`, 1 if there is any match.
    pub fn frequency(&mut self, exact: bool) -> f32 {
        self.slots.iter_mut().for_each(|slot| slot.next = 0);
        let mut frequency = 0.0f64;
        let mut range = self.next_match(-i64::from(u32::MAX));
        while let Some((low, high)) = range {
            if !exact {
                return 1.0;
            }
            range = self.next_match(low + 1);
            // If the next match has the same end, it is contained in this one.
            if range.is_none_or(|(_, next)| next > high) {
                frequency += 1.0 / (1 + high - low) as f64;
            }
        }
        frequency as f32
    }

    /// The first interval no wider than the slop from the smallest to the largest phrase start, if each term
    /// takes its first occurrence with a phrase start of at least `min_start`, which must increase from call
    /// to call.
    fn next_match(&mut self, mut min_start: i64) -> Option<(i64, i64)> {
        loop {
            let (mut low, mut high) = (i64::MAX, i64::MIN);
            for number in 0..self.slots.len() {
                let (before, rest) = self.slots.split_at_mut(number);
                let slot = &mut rest[0];
                let mut min = min_start + i64::from(slot.distance);
                if let Some(same) = slot.previous_same {
                    min = min.max(1 + i64::from(before[same].positions[before[same].next]));
                }
                let left = &slot.positions[slot.next..];
                let passed = left.iter().position(|position| i64::from(*position) >= min)?;
                slot.next += passed;
                let start = i64::from(left[passed]) - i64::from(slot.distance);
                (low, high) = (low.min(start), high.max(start));
            }
            // The largest phrase start does not decrease, so a match starts within the slop before it.
            min_start = high - i64::from(self.slop);
            if low >= min_start {
                return Some((low, high));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sloppy frequency of a phrase in a text.
    fn frequency(phrase: &[u8], slop: u32, text: &[u8]) -> f32 {
        let terms: Vec<(u32, u8)> = (0..).zip(phrase.iter().copied()).collect();
        let mut alignments = Alignments::new(&terms, slop);
        for (slot, term) in phrase.iter().enumerate() {
            let positions = (0..).zip(text).filter(|(_, word)| *word == term);
            *alignments.positions(slot) = positions.map(|(position, _)| position).collect();
        }
        alignments.frequency(true)
    }

    /// Whether phrase starts of the terms from the one with index `taken.len()` on, after those of `taken`,
    /// can all be chosen within the interval.
    fn matches(phrase: &[u8], taken: &[usize], text: &[u8], interval: (i64, i64)) -> bool {
        let Some(term) = phrase.get(taken.len()) else { return true };
        let mut positions = (0..text.len()).filter(|position| text[*position] == *term);
        positions.any(|position| {
            let start = position as i64 - taken.len() as i64;
            let is_taken = taken.iter().zip(phrase).any(|(at, other)| other == term && *at >= position);
            let all = [taken, &[position]].concat();
            (interval.0..=interval.1).contains(&start) && !is_taken && matches(phrase, &all, text, interval)
        })
    }

    proptest! {
        #[test]
        fn the_frequency_is_the_sum_over_minimal_intervals(
            phrase in prop::collection::vec(0u8..3, 1..5),
            text in prop::collection::vec(0u8..4, 0..20),
            slop in 0u32..10,
        ) {
            let is_match = |low, high| matches(&phrase, &[], &text, (low, high));
            let mut expected = 0.0;
            for low in -5..text.len() as i64 {
                let high = (low..=low + i64::from(slop)).find(|high| is_match(low, *high));
                if let Some(high) = high.filter(|high| !is_match(low + 1, *high)) {
                    expected += 1.0 / (1 + high - low) as f64;
                }
            }
            prop_assert_eq!(frequency(&phrase, slop, &text), expected as f32);
        }
    }
}

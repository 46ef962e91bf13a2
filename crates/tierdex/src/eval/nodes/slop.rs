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

    /// The positions in the document of the term with this number. The caller fills them in, in increasing
    /// order, before [`Alignments::frequency`].
    pub fn positions(&mut self, slot: usize) -> &mut Vec<u32> {
        &mut self.slots[slot].positions
    }

    /// The sloppy frequency of the phrase in the document whose positions were filled in.
    pub fn frequency(&mut self) -> f32 {
        self.slots.iter_mut().for_each(|slot| slot.next = 0);
        let mut frequency = 0.0f64;
        let mut range = self.next_interval(i64::MIN);
        while let Some((low, high)) = range {
            range = self.next_interval(low + 1);
            // If the next interval has the same end, it is contained in this one.
            let is_minimal = range.is_none_or(|(_, next)| next > high);
            if is_minimal && high - low <= i64::from(self.slop) {
                frequency += 1.0 / (1 + high - low) as f64;
            }
        }
        frequency as f32
    }

    /// The interval from the smallest to the largest phrase start, if each term takes its first occurrence
    /// with a phrase start of at least `min_start`, which must increase from call to call; `None` if a term
    /// has none left.
    fn next_interval(&mut self, min_start: i64) -> Option<(i64, i64)> {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for number in 0..self.slots.len() {
            let (before, rest) = self.slots.split_at_mut(number);
            let slot = &mut rest[0];
            let previous = slot.previous_same.map(|same| before[same].positions[before[same].next]);
            let phrase_start = |position: u32| i64::from(position) - i64::from(slot.distance);
            while slot.positions.get(slot.next).is_some_and(|position| {
                phrase_start(*position) < min_start || previous.is_some_and(|previous| *position <= previous)
            }) {
                slot.next += 1;
            }
            let start = phrase_start(*slot.positions.get(slot.next)?);
            (low, high) = (low.min(start), high.max(start));
        }
        Some((low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sloppy frequency of a phrase in a text.
    fn frequency<T: PartialEq + Copy>(phrase: &[T], slop: u32, text: &[T]) -> f32 {
        let terms: Vec<(u32, T)> = (0..).zip(phrase.iter().copied()).collect();
        let mut alignments = Alignments::new(&terms, slop);
        for (slot, term) in phrase.iter().enumerate() {
            let positions = (0..).zip(text).filter(|(_, word)| *word == term);
            *alignments.positions(slot) = positions.map(|(position, _)| position).collect();
        }
        alignments.frequency()
    }

    fn check(phrase: &str, slop: u32, text: &str, expected: f32) {
        let [terms, words] = [phrase, text].map(|text| text.split(' ').collect::<Vec<_>>());
        assert_eq!(frequency(&terms, slop, &words), expected, "\"{phrase}\"~{slop} in {text}");
    }

    #[test]
    fn the_frequency_depends_on_the_width_of_matches() {
        check("a b", 0, "a b x a b", 2.0);
        check("a b", 0, "a x b", 0.0);
        check("a b", 1, "a x b", 0.5);
        check("a b", 9, "a x x b", 1.0 / 3.0);
        check("a b", 1, "b a", 0.0);
        check("a b", 2, "b a", 1.0 / 3.0);
        check("a b", 3, "a b a b", 2.0);
        check("a b c", 2, "a c b", 1.0 / 3.0);
        check("a a", 1, "a", 0.0);
        check("a a", 1, "a a", 1.0);
        check("a a", 1, "a x a", 0.5);
        check("a b a", 0, "a b a b a", 2.0);
        check("a b a", 9, "a b", 0.0);
    }

    proptest! {
        #[test]
        fn without_slop_the_frequency_is_the_number_of_matches(
            phrase in prop::collection::vec(0u8..3, 1..5),
            text in prop::collection::vec(0u8..3, 0..40),
        ) {
            let matches = text.windows(phrase.len()).filter(|words| *words == phrase).count();
            prop_assert_eq!(frequency(&phrase, 0, &text), matches as f32);
        }
    }
}

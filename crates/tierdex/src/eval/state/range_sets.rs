//! The documents of a range as a bitset, and with sums of scores.

use crate::eval::state::{CandidateBatch, DocRange, aligned_origin};
use crate::eval::tuning::{MARKED_DISTANCE_MAX, WINDOW_DOCS};
use crate::segment::DeletedDocuments;
use tierdex_codec::{Survivors, collect_bits, count_ones, drain_at_least, keep_marked, mark_positive};

/// A bitset of the documents of a range.
#[derive(Default)]
pub struct Bits {
    range: DocRange,
    /// Bit `i mod 8` of byte `i div 8` is that of document `aligned_origin + i`.
    bits: Vec<u8>,
    /// A byte, 0 or 1, for each document added by its number among many others, which is converted to a bit
    /// later: stores of bytes do not depend on each other, unlike bit operations.
    marks: Vec<u8>,
    marked: bool,
    /// Whether documents were added as bits.
    used: bool,
}

/// Bytes of a bitset that are counted at a time, if the number is only compared with a limit.
const COUNTED_BYTES: usize = 256;

impl Bits {
    /// Number of documents for which memory is allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.marks.capacity()
    }

    /// Clears the set and moves it to a range.
    pub(crate) fn restart(&mut self, range: DocRange) {
        if std::mem::take(&mut self.marked) {
            self.marks.fill(0);
        }
        (self.range, self.used) = (range, false);
        let len = self.len();
        self.bits.clear();
        // Exactly, since the memory of an evaluation is counted.
        self.bits.reserve_exact(len);
        self.bits.resize(len, 0);
        let more = (8 * len).saturating_sub(self.marks.len());
        self.marks.reserve_exact(more);
        self.marks.resize(self.marks.len() + more, 0);
    }

    pub(crate) fn range(&self) -> DocRange {
        self.range
    }

    fn len(&self) -> usize {
        ((self.range.last - self.origin()) / 8 + 1) as usize
    }

    fn origin(&self) -> u32 {
        aligned_origin(self.range.first)
    }

    /// Adds ascending documents of the range.
    pub(crate) fn add(&mut self, documents: &[u32]) {
        let (Some(low), Some(high)) = (documents.first(), documents.last()) else { return };
        let first = self.origin();
        // Slices: the compiler would reload the pointer of the vector after each store.
        if !self.marked && (high - low) as usize > MARKED_DISTANCE_MAX * documents.len() {
            self.used = true;
            let bits = self.bits.as_mut_slice();
            for document in documents {
                bits[((document - first) / 8) as usize] |= 1 << ((document - first) % 8);
            }
            return;
        }
        self.marked = true;
        let marks = self.marks.as_mut_slice();
        for document in documents {
            marks[(document - first) as usize] = 1;
        }
    }

    /// Adds the documents of the range whose bits are set in `bytes`. `first`, the document of the first
    /// bit, is a multiple of eight.
    pub(crate) fn add_bytes(&mut self, first: u32, bytes: &[u8]) {
        let (before, from) = match first.checked_sub(self.origin()) {
            Some(after) => (0, after as usize / 8),
            None => ((self.origin() - first) as usize / 8, 0),
        };
        let (Some(bytes), len) = (bytes.get(before..), self.len()) else { return };
        self.used = true;
        if let Some(bits) = self.bits[..len].get_mut(from..) {
            bits.iter_mut().zip(bytes).for_each(|(bits, bytes)| *bits |= bytes);
            // Clear the bits after the last document of the range.
            let unused = 7 - (self.range.last - self.origin()) % 8;
            self.bits[len - 1] &= u8::MAX >> unused;
        }
    }

    /// Adds all documents of the range.
    pub(crate) fn add_all(&mut self) {
        self.used = true;
        self.bits.fill(u8::MAX);
        if let Some(last) = self.bits.last_mut() {
            *last >>= 7 - (self.range.last - aligned_origin(self.range.first)) % 8;
        }
    }

    /// Adds the documents whose sums, in the order of the range, are greater than 0.
    fn add_positive(&mut self, sums: &[u32]) {
        self.used = true;
        mark_positive(sums, &mut self.bits[..sums.len().div_ceil(8)]);
    }

    /// The bits of all documents of the set.
    pub(crate) fn bytes(&mut self) -> &[u8] {
        if std::mem::take(&mut self.marked) {
            let len = self.len();
            collect_bits(&mut self.marks[..8 * len], &mut self.bits);
            self.used = true;
        }
        // Clear the bits before the first document of the range.
        self.bits[0] &= u8::MAX << (self.range.first - self.origin());
        &self.bits
    }

    fn combine(&mut self, other: &mut Bits, operation: impl Fn(u8, u8) -> u8) {
        self.bytes();
        self.used = true;
        let others = other.bytes();
        self.bits.iter_mut().zip(others).for_each(|(bits, other)| *bits = operation(*bits, *other));
    }

    /// Intersects with `other`, which has the same range.
    pub(crate) fn intersect(&mut self, other: &mut Bits) {
        self.combine(other, |a, b| a & b);
    }

    /// Removes the documents of `other`, which has the same range.
    pub(crate) fn subtract(&mut self, other: &mut Bits) {
        self.combine(other, |a, b| a & !b);
    }

    /// Adds the documents of `other`, which has the same range.
    pub(crate) fn union(&mut self, other: &mut Bits) {
        self.combine(other, |a, b| a | b);
    }

    /// Removes deleted documents.
    pub(crate) fn remove(&mut self, deleted: &DeletedDocuments) {
        self.bytes();
        let live = deleted.live_bits(self.origin());
        self.bits.iter_mut().zip(live).for_each(|(bits, live)| *bits &= live);
    }

    /// Number of documents.
    pub(crate) fn count(&mut self) -> u64 {
        count_ones(self.bytes()) as u64
    }

    /// Number of documents, or a smaller number above `limit`.
    pub(crate) fn count_up_to(&mut self, limit: usize) -> usize {
        let mut count = 0;
        for chunk in self.bytes().chunks(COUNTED_BYTES) {
            count += count_ones(chunk);
            if count > limit {
                break;
            }
        }
        count
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        self.count_up_to(0) == 0
    }

    /// Whether nothing was added since the last [`Bits::restart`].
    pub(crate) fn is_unused(&self) -> bool {
        !(self.used || self.marked)
    }

    /// Keeps the candidates that are in the set, of whose range they are.
    pub(crate) fn retain_members(&mut self, batch: &mut CandidateBatch) {
        let first = self.origin();
        let bytes = self.bytes();
        batch.retain(|document, _| {
            let bit = document - first;
            bytes[(bit / 8) as usize] >> (bit % 8) & 1 == 1
        });
    }

    /// The documents, ascending.
    pub(crate) fn documents(&mut self) -> impl Iterator<Item = u32> {
        let first = self.origin();
        let words = self.bytes().chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        let starts = (first..).step_by(u64::BITS as usize);
        starts.zip(words).flat_map(|(start, word)| {
            let non_zero = |word: u64| (word != 0).then_some(word);
            let rests = std::iter::successors(non_zero(word), move |word| non_zero(word & (word - 1)));
            rests.map(move |rest| start + rest.trailing_zeros())
        })
    }
}

/// Counts in how many bitsets of a range each document is. Counters are bit-sliced: a bitset for each binary
/// digit, so one operation on a byte updates the counters of eight documents.
#[derive(Default)]
pub struct BitCounters {
    digits: Vec<Vec<u8>>,
}

impl BitCounters {
    pub(crate) fn add(&mut self, set: &[u8]) {
        let mut carry = set.to_vec();
        for digit in &mut self.digits {
            for (digit, carry) in digit.iter_mut().zip(&mut carry) {
                (*digit, *carry) = (*digit ^ *carry, *digit & *carry);
            }
        }
        if count_ones(&carry) > 0 {
            self.digits.push(carry);
        }
    }

    /// A bitset of `len` bytes: the documents whose counters are at least `minimum`.
    pub(crate) fn at_least(&self, minimum: usize, len: usize) -> Vec<u8> {
        // Compare from the highest digit on: `above` has the documents whose counters are greater by the
        // digits so far, `equal` those whose digits are the same.
        let (mut above, mut equal) = (vec![0; len], vec![u8::MAX; len]);
        let highest = (usize::BITS - minimum.leading_zeros()) as usize;
        for digit_index in (0..self.digits.len().max(highest)).rev() {
            match (self.digits.get(digit_index), minimum >> digit_index & 1 == 1) {
                (Some(digit), true) => equal.iter_mut().zip(digit).for_each(|(equal, digit)| *equal &= digit),
                (Some(digit), false) => {
                    for ((above, equal), digit) in above.iter_mut().zip(&mut equal).zip(digit) {
                        (*above, *equal) = (*above | *equal & digit, *equal & !digit);
                    }
                }
                (None, true) => equal.fill(0),
                (None, false) => {}
            }
        }
        above.iter_mut().zip(&equal).for_each(|(above, equal)| *above |= equal);
        above
    }
}

/// The sums of a window, aligned to cache lines, so that no vector load crosses two.
#[repr(align(64))]
struct Sums([u32; WINDOW_DOCS]);

/// The matches in a range of at most [`WINDOW_DOCS`] documents: a sum of scores for each document.
pub struct ScoreWindow {
    range: DocRange,
    sums: Box<Sums>,
    /// Whether a sum may be greater than 0.
    summed: bool,
    /// Documents that match with score 0, and possibly others that match.
    pub(crate) unscored: Bits,
    survivors: Survivors,
}

impl Default for ScoreWindow {
    fn default() -> ScoreWindow {
        ScoreWindow {
            range: DocRange::default(),
            sums: Box::new(Sums([0; _])),
            summed: false,
            unscored: Bits::default(),
            survivors: Survivors::default(),
        }
    }
}

impl ScoreWindow {
    /// Clears the window and moves it to a range.
    pub(crate) fn restart(&mut self, range: DocRange) {
        if std::mem::take(&mut self.summed) {
            self.sums.0.fill(0);
        }
        self.range = range;
        self.unscored.restart(range);
    }

    pub(crate) fn range(&self) -> DocRange {
        self.range
    }

    /// The sums, starting with that of the [`aligned_origin`] of the range. Those before the first document
    /// of the range are ignored.
    pub(crate) fn sums(&mut self) -> &mut [u32] {
        self.summed = true;
        let len = self.len();
        &mut self.sums.0[..len]
    }

    fn len(&self) -> usize {
        (self.range.last - self.origin() + 1) as usize
    }

    pub(crate) fn origin(&self) -> u32 {
        aligned_origin(self.range.first)
    }

    /// Removes deleted documents.
    pub(crate) fn remove(&mut self, deleted: &DeletedDocuments) {
        if !self.unscored.is_unused() {
            self.unscored.remove(deleted);
        }
        if self.summed {
            let live = deleted.live_bits(self.origin());
            keep_marked(self.of_range(), live);
        }
    }

    /// Sets the sums before the first document of the range to 0, and returns all.
    fn of_range(&mut self) -> &mut [u32] {
        let (before, len) = ((self.range.first - self.origin()) as usize, self.len());
        self.sums.0[..before].fill(0);
        &mut self.sums.0[..len]
    }

    /// Adds scores greater than 0 of documents of the range.
    #[inline]
    pub(crate) fn add(&mut self, documents: &[u32], scores: &[u32]) {
        self.summed = true;
        let first = self.origin();
        let sums = &mut self.sums.0;
        for (document, score) in documents.iter().zip(scores) {
            sums[(document - first) as usize % WINDOW_DOCS] += score;
        }
    }

    /// Adds documents of the range with their scores.
    pub(crate) fn add_matches(&mut self, batch: &CandidateBatch) {
        self.add(&batch.documents, &batch.scores);
        if batch.scores.contains(&0) {
            let all = batch.documents.iter().zip(&batch.scores);
            all.filter(|(_, score)| **score == 0).for_each(|(document, _)| self.unscored.add(&[*document]));
        }
    }

    /// Adds the documents and sums of `other`, which has the same range.
    pub(crate) fn add_window(&mut self, other: &mut ScoreWindow) {
        self.unscored.union(&mut other.unscored);
        if other.summed {
            let others = other.sums.0[..].iter();
            self.summed = true;
            self.sums.0.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
    }

    /// Adds the documents with sums greater than 0 to [`ScoreWindow::unscored`], which then has all matches.
    pub(crate) fn collect_matches(&mut self) -> &mut Bits {
        if self.summed {
            self.of_range();
            let len = self.len();
            self.unscored.add_positive(&self.sums.0[..len]);
        }
        &mut self.unscored
    }

    /// After [`ScoreWindow::collect_matches`]: all matches, and the sums.
    pub(crate) fn matches_and_sums(&mut self) -> (&mut Bits, &[u32]) {
        (&mut self.unscored, &self.sums.0[..])
    }

    /// Keeps only the matches in `bits`, which has the same range.
    pub(crate) fn intersect(&mut self, bits: &mut Bits) {
        if self.summed {
            keep_marked(self.of_range(), bits.bytes());
        }
        self.unscored.intersect(bits);
    }

    /// Keeps the candidates, which are in the range, whose sums are greater than 0. In their scores
    /// `included_bound` is replaced by the sums.
    pub(crate) fn require_sums(&mut self, batch: &mut CandidateBatch, included_bound: u32) {
        let (first, sums) = (self.origin(), &self.sums.0);
        batch.retain(|document, score| {
            let sum = sums[(document - first) as usize % WINDOW_DOCS];
            *score = *score - included_bound + sum;
            sum > 0
        });
    }

    /// Returns the documents whose sums are at least `min_score` and greater than 0, and the number of sums
    /// greater than 0. Clears the sums.
    pub(crate) fn drain_at_least(&mut self, min_score: u32) -> &Survivors {
        let (first, len) = (self.origin(), self.len());
        self.of_range();
        drain_at_least(&mut self.sums.0[..len], first, min_score.max(1), &mut self.survivors);
        self.summed = false;
        &self.survivors
    }

    /// Moves all documents to `batch` and clears the window.
    pub(crate) fn drain(&mut self, batch: &mut CandidateBatch) {
        batch.clear();
        self.collect_matches();
        let first = self.origin();
        let (unscored, sums) = (&mut self.unscored, &self.sums.0);
        batch.documents.extend(unscored.documents());
        batch
            .scores
            .extend(batch.documents.iter().map(|document| sums[(document - first) as usize % WINDOW_DOCS]));
        self.restart(self.range);
    }
}

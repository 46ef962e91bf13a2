//! Collects the tokens of one field of a batch of documents, and sorts them by term.

use super::interner::{Interner, SortedTerms};
use super::run::{RunWriter, SortedRun};
use crate::{limits::POSITION_GAP, text::Analyzer};
use std::cmp::Reverse;

/// The term id of a position whose token was dropped by analysis.
const DROPPED_TOKEN: u32 = u32::MAX;

/// Number of tokens whose memory is retained between batches: enough for an ordinary batch.
const TOKENS_RETAINED: usize = 1 << 20;

/// Collects the tokens of one field, document after document.
pub struct FieldTable {
    /// Term ids of all tokens of all documents. The position of a token is its offset in its document, plus
    /// [`POSITION_GAP`] for each value of the document that begins after the first one and up to the token.
    tokens: Vec<u32>,
    /// End of each document in `tokens`.
    ends: Vec<usize>,
    /// The offsets in `tokens` at which values begin, but for the first one of each document.
    value_starts: Vec<usize>,
    /// Number of indexed tokens of each document: its length for ranking.
    lengths: Vec<u32>,
    /// Positions from this one on are not indexed.
    tokens_max: u32,
    /// Whether positions are indexed.
    positions: bool,
}

impl FieldTable {
    /// A table of a field with or without positions, which indexes the first `tokens_max` of each document.
    pub fn new(tokens_max: u32, positions: bool) -> FieldTable {
        FieldTable {
            tokens: Vec::new(),
            ends: Vec::new(),
            value_starts: Vec::new(),
            lengths: Vec::new(),
            tokens_max,
            positions,
        }
    }

    /// Adds the next document, which has these values in the field. Returns the number of tokens from
    /// position `tokens_max` on, which are not indexed.
    ///
    /// With positions there is a gap between values, so that no phrase matches across them, and the longest
    /// value comes first: then only the tokens of the others have positions that a gap makes larger.
    pub fn add<'v>(
        &mut self,
        interner: &mut Interner,
        analyzer: &mut Analyzer,
        values: impl Iterator<Item = &'v str> + Clone,
    ) -> u64 {
        let start = self.tokens.len();
        let (mut position, mut gaps) = (0, 0);
        let (mut length, mut beyond) = (0, 0);
        let longest = if self.positions { longest_of(values.clone()) } else { 0 };
        let others = values.clone().enumerate().filter(|(number, _)| *number != longest);
        for value in values.clone().skip(longest).take(1).chain(others.map(|(_, value)| value)) {
            let (value_start, before) = (start + position as usize, length);
            let gap = if self.positions && position > 0 { POSITION_GAP } else { 0 };
            let tokens_max = self.tokens_max.saturating_sub(gaps + gap);
            let tokens = &mut self.tokens;
            position = analyzer.analyze(value, position, |token| {
                if token.position < tokens_max {
                    tokens.resize(start + token.position as usize, DROPPED_TOKEN);
                    tokens.push(interner.intern(token.term.as_bytes()));
                    length += 1;
                } else {
                    beyond += 1;
                }
            });
            if gap > 0 && length > before {
                self.value_starts.push(value_start);
                gaps += gap;
            }
        }
        self.ends.push(self.tokens.len());
        self.lengths.push(length);
        beyond
    }

    /// Returns the sorted run of all added documents with their lengths, and clears the table. The terms are
    /// those of the interner with which the documents were added.
    pub fn take_run(&mut self, terms: &SortedTerms<'_>) -> SortedRun {
        let mut writer = RunWriter::new(self.positions);
        if self.tokens.is_empty() {
            self.ends.clear();
            return writer.finish(std::mem::take(&mut self.lengths));
        }
        let (term_starts, occurrences) = self.group_by_term(terms);
        for (term, range) in terms.iter().zip(term_starts.windows(2)) {
            if range[0] < range[1] {
                writer.add(term, &occurrences[range[0]..range[1]]);
            }
        }
        self.tokens.clear();
        self.tokens.shrink_to(TOKENS_RETAINED);
        self.ends.clear();
        self.value_starts.clear();
        writer.finish(std::mem::take(&mut self.lengths))
    }

    /// Sorts the tokens by the rank of their term, by a counting sort. Returns the start of each term in the
    /// occurrences, and the occurrences `document << 32 | position`, increasing within a term.
    fn group_by_term(&self, terms: &SortedTerms<'_>) -> (Vec<usize>, Vec<u64>) {
        let rank_of = &terms.rank_of;
        let mut term_starts = vec![0usize; rank_of.len() + 1];
        for &id in self.tokens.iter().filter(|&&id| id != DROPPED_TOKEN) {
            term_starts[rank_of[id as usize] as usize + 1] += 1;
        }
        for rank in 0..rank_of.len() {
            term_starts[rank + 1] += term_starts[rank];
        }
        let mut occurrences = vec![0u64; term_starts[rank_of.len()]];
        let mut next = term_starts.clone();
        let mut value_starts = self.value_starts.iter().copied().peekable();
        let mut start = 0;
        for (document, &end) in self.ends.iter().enumerate() {
            let mut first_position = (document as u64) << 32;
            while start < end {
                let value_end = value_starts.next_if(|next| *next < end).unwrap_or(end);
                for (position, &id) in (first_position..).zip(&self.tokens[start..value_end]) {
                    if id != DROPPED_TOKEN {
                        let slot = &mut next[rank_of[id as usize] as usize];
                        occurrences[*slot] = position;
                        *slot += 1;
                    }
                }
                first_position += (value_end - start) as u64 + u64::from(POSITION_GAP);
                start = value_end;
            }
        }
        (term_starts, occurrences)
    }
}

/// The number of the longest value, the first one of several; 0 if there is none.
fn longest_of<'v>(values: impl Iterator<Item = &'v str>) -> usize {
    let longest = values.enumerate().max_by_key(|(number, value)| (value.len(), Reverse(*number)));
    longest.map_or(0, |(number, _)| number)
}

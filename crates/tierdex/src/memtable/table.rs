//! Collects the tokens of one field of a batch of documents, and sorts them by term.

use super::interner::Interner;
use super::run::{RunWriter, SortedRun};
use crate::text::Analyzer;

/// The term id of a position whose token was dropped by analysis.
const DROPPED_TOKEN: u32 = u32::MAX;

/// Number of tokens whose memory is retained between batches: enough for an ordinary batch.
const TOKENS_RETAINED: usize = 1 << 20;

/// Collects the tokens of one field, document after document.
pub struct FieldTable {
    interner: Interner,
    /// Term ids of all tokens of all documents; the offset of a token in its document is its position.
    tokens: Vec<u32>,
    /// End of each document in `tokens`.
    ends: Vec<usize>,
    /// Number of indexed tokens of each document: its length for ranking.
    lengths: Vec<u32>,
    /// Maximum number of positions of a document that are indexed.
    tokens_max: u32,
}

impl FieldTable {
    /// A table that indexes the first `tokens_max` positions of each document.
    pub fn new(tokens_max: u32) -> FieldTable {
        FieldTable {
            interner: Interner::new(),
            tokens: Vec::new(),
            ends: Vec::new(),
            lengths: Vec::new(),
            tokens_max,
        }
    }

    /// Adds the next document, which has these values in the field; positions are counted on from value to
    /// value. Returns the number of tokens from position `tokens_max` on, which are not indexed.
    pub fn add<'v>(&mut self, analyzer: &mut Analyzer, values: impl Iterator<Item = &'v str>) -> u64 {
        let start = self.tokens.len();
        let mut position = 0;
        let (mut length, mut beyond) = (0, 0);
        let tokens_max = self.tokens_max;
        let (interner, tokens) = (&mut self.interner, &mut self.tokens);
        for value in values {
            position = analyzer.analyze(value, position, |token| {
                if token.position < tokens_max {
                    tokens.resize(start + token.position as usize, DROPPED_TOKEN);
                    tokens.push(interner.intern(token.term.as_bytes()));
                    length += 1;
                } else {
                    beyond += 1;
                }
            });
        }
        self.ends.push(self.tokens.len());
        self.lengths.push(length);
        beyond
    }

    /// Returns the sorted run of all added documents with their lengths, and clears the table.
    pub fn take_run(&mut self, positions: bool) -> SortedRun {
        let order = self.interner.sorted_ids();
        let (term_starts, occurrences) = self.group_by_term(&order);
        let mut writer = RunWriter::new(positions);
        for (rank, &id) in order.iter().enumerate() {
            writer.add(self.interner.term(id), &occurrences[term_starts[rank]..term_starts[rank + 1]]);
        }
        self.interner.clear();
        self.tokens.clear();
        self.tokens.shrink_to(TOKENS_RETAINED);
        self.ends.clear();
        writer.finish(std::mem::take(&mut self.lengths))
    }

    /// Sorts the tokens by the rank of their term in `order`, by a counting sort. Returns the start of each
    /// term in the occurrences, and the occurrences `document << 32 | position`, increasing within a term.
    fn group_by_term(&self, order: &[u32]) -> (Vec<usize>, Vec<u64>) {
        let mut rank_of = vec![0u32; order.len()];
        for (rank, &id) in order.iter().enumerate() {
            rank_of[id as usize] = rank as u32;
        }
        let mut term_starts = vec![0usize; order.len() + 1];
        for &id in self.tokens.iter().filter(|&&id| id != DROPPED_TOKEN) {
            term_starts[rank_of[id as usize] as usize + 1] += 1;
        }
        for rank in 0..order.len() {
            term_starts[rank + 1] += term_starts[rank];
        }
        let mut occurrences = vec![0u64; term_starts[order.len()]];
        let mut next = term_starts.clone();
        let mut start = 0;
        for (document, &end) in self.ends.iter().enumerate() {
            for (position, &id) in self.tokens[start..end].iter().enumerate() {
                if id != DROPPED_TOKEN {
                    let slot = &mut next[rank_of[id as usize] as usize];
                    occurrences[*slot] = (document as u64) << 32 | position as u64;
                    *slot += 1;
                }
            }
            start = end;
        }
        (term_starts, occurrences)
    }
}

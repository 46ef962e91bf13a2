//! The tokens of one field of a batch of documents.

use super::interner::Interner;
use super::run::{Run, RunWriter};
use crate::limits::FIELD_TOKENS_MAX;
use crate::text::Analyzer;

/// Marks a position whose token analysis dropped.
const HOLE: u32 = u32::MAX;

/// Tokens for which memory is kept from batch to batch: those of an ordinary one.
const TOKENS_KEPT: usize = 1 << 20;

/// Collects the tokens of one field, document after document.
pub struct FieldTable {
    interner: Interner,
    /// Term numbers of all tokens of all documents; the position of a token is its place in its document.
    tokens: Vec<u32>,
    /// End of each document in `tokens`.
    ends: Vec<usize>,
    /// Indexed tokens of each document: its length for ranking.
    lengths: Vec<u32>,
    /// [`FIELD_TOKENS_MAX`]; tests choose a small one.
    pub(super) tokens_max: u32,
}

impl Default for FieldTable {
    fn default() -> FieldTable {
        FieldTable {
            interner: Interner::new(),
            tokens: Vec::new(),
            ends: Vec::new(),
            lengths: Vec::new(),
            tokens_max: FIELD_TOKENS_MAX,
        }
    }
}

impl FieldTable {
    /// Adds the next document; its text is `parts`, analysed one after another with rising positions. Tokens
    /// from position [`FIELD_TOKENS_MAX`] on are not indexed; returns how many these are.
    pub fn add(&mut self, analyzer: &mut Analyzer, parts: &[&str]) -> u64 {
        let start = self.tokens.len();
        let mut position = 0;
        let (mut length, mut beyond) = (0, 0);
        let tokens_max = self.tokens_max;
        let (interner, tokens) = (&mut self.interner, &mut self.tokens);
        for part in parts {
            position = analyzer.analyze(part, position, |token| {
                if token.position < tokens_max {
                    tokens.resize(start + token.position as usize, HOLE);
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

    /// Gives the run of all documents added, with their lengths, and starts anew.
    pub fn seal(&mut self, positions: bool) -> Run {
        let order = self.interner.sorted();
        let (places, entries) = self.group(&order);
        let mut writer = RunWriter::new(positions);
        for (rank, &id) in order.iter().enumerate() {
            writer.term(self.interner.term(id), &entries[places[rank]..places[rank + 1]]);
        }
        self.interner.clear();
        self.tokens.clear();
        self.tokens.shrink_to(TOKENS_KEPT);
        self.ends.clear();
        writer.finish(std::mem::take(&mut self.lengths))
    }

    /// Counting sort of the tokens by the rank of their term: (document << 32 | position), ascending in each
    /// term.
    fn group(&self, order: &[u32]) -> (Vec<usize>, Vec<u64>) {
        let mut rank_of = vec![0u32; order.len()];
        for (rank, &id) in order.iter().enumerate() {
            rank_of[id as usize] = rank as u32;
        }
        let mut places = vec![0usize; order.len() + 1];
        for &id in self.tokens.iter().filter(|&&id| id != HOLE) {
            places[rank_of[id as usize] as usize + 1] += 1;
        }
        for rank in 0..order.len() {
            places[rank + 1] += places[rank];
        }
        let mut entries = vec![0u64; places[order.len()]];
        let mut next = places.clone();
        let mut start = 0;
        for (document, &end) in self.ends.iter().enumerate() {
            for (position, &id) in self.tokens[start..end].iter().enumerate() {
                if id != HOLE {
                    let slot = &mut next[rank_of[id as usize] as usize];
                    entries[*slot] = (document as u64) << 32 | position as u64;
                    *slot += 1;
                }
            }
            start = end;
        }
        (places, entries)
    }
}

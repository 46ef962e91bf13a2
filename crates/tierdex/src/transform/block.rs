//! Postings to compressed blocks.

use super::impact::{FrontBuilder, Impact};
use crate::limits::BLOCK;
use tierdex_codec::Codec;

/// Encodes blocks of up to 256 postings of one field.
#[derive(Clone)]
pub struct BlockEncoder {
    doc_codec: Codec,
    freq_codec: Codec,
    front: FrontBuilder,
    norms: [u8; BLOCK],
    scratch: [u32; BLOCK],
}

/// What a block is before it is encoded.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    /// Last document before the block, `u32::MAX` at the start of a list.
    pub before: u32,
    /// 1 to 256 documents, rising.
    pub documents: &'a [u32],
    /// Frequency of each, at least 1.
    pub frequencies: &'a [u32],
    /// Positions of each document in turn, rising within a document; empty when the field keeps none.
    pub positions: &'a [u32],
}

impl BlockEncoder {
    /// An encoder for a field with these codecs.
    pub fn new(doc_codec: Codec, freq_codec: Codec) -> BlockEncoder {
        BlockEncoder {
            doc_codec,
            freq_codec,
            front: FrontBuilder::default(),
            norms: [0; BLOCK],
            scratch: [0; BLOCK],
        }
    }

    /// Appends the documents.
    pub fn documents(&self, block: Block<'_>, out: &mut Vec<u8>) {
        self.doc_codec.encode(block.documents, block.before, out);
    }

    /// Appends the frequencies, each less one.
    pub fn frequencies(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        let scratch = &mut self.scratch[..block.frequencies.len()];
        for (low, frequency) in scratch.iter_mut().zip(block.frequencies) {
            *low = frequency - 1;
        }
        self.freq_codec.encode(scratch, 0, out);
    }

    /// Appends the positions: gaps less one within each document, in pieces of 256 and a shorter last one.
    pub fn positions(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        let mut filled = 0;
        let mut at = 0;
        for &frequency in block.frequencies {
            let mut next = 0;
            for &position in &block.positions[at..at + frequency as usize] {
                self.scratch[filled] = position - next;
                next = position + 1;
                filled += 1;
                if filled == BLOCK {
                    self.freq_codec.encode(&self.scratch, 0, out);
                    filled = 0;
                }
            }
            at += frequency as usize;
        }
        self.freq_codec.encode(&self.scratch[..filled], 0, out);
    }

    /// Writes the Pareto front of the block into `front`; `norms` holds the code of every document.
    pub fn impacts(&mut self, block: Block<'_>, norms: &[u8], front: &mut Vec<Impact>) {
        // Norms are fetched by a loop of their own, so that many fetches from memory are under way at once.
        for (norm, &document) in self.norms.iter_mut().zip(block.documents) {
            *norm = norms[document as usize];
        }
        self.front.extend(block.frequencies, &self.norms[..block.frequencies.len()]);
        self.front.take(front);
    }

    /// Writes the front of several fronts into `joined`.
    pub fn join_fronts(&mut self, fronts: &[Impact], joined: &mut Vec<Impact>) {
        for impact in fronts {
            self.front.add(impact.frequency, impact.norm);
        }
        self.front.take(joined);
    }
}

//! Encodes blocks of postings, and computes their impacts.

use super::impact::{Impact, ImpactBuilder};
use crate::limits::BLOCK;
use tierdex_codec::Codec;

/// Encodes blocks of up to 256 postings of one field.
#[derive(Clone)]
pub struct BlockEncoder {
    doc_codec: Codec,
    freq_codec: Codec,
    impact_builder: ImpactBuilder,
    /// Scratch buffers: norms of the documents of a block, and values to encode.
    norms: [u8; BLOCK],
    values: [u32; BLOCK],
}

/// The postings of a block before encoding.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    /// Last document before the block; `u32::MAX` at the start of a list.
    pub before: u32,
    /// 1 to 256 documents, strictly increasing.
    pub documents: &'a [u32],
    /// Frequency of the term in each document, at least 1.
    pub frequencies: &'a [u32],
    /// Positions of all documents in order, increasing within a document; empty if the field has none.
    pub positions: &'a [u32],
}

impl BlockEncoder {
    /// An encoder for a field with these codecs.
    pub fn new(doc_codec: Codec, freq_codec: Codec) -> BlockEncoder {
        BlockEncoder {
            doc_codec,
            freq_codec,
            impact_builder: ImpactBuilder::default(),
            norms: [0; BLOCK],
            values: [0; BLOCK],
        }
    }

    /// Appends the encoded documents.
    pub fn encode_documents(&self, block: Block<'_>, out: &mut Vec<u8>) {
        self.doc_codec.encode(block.documents, block.before, out);
    }

    /// Appends the encoded frequencies, each minus one unless they are not compressed.
    pub fn encode_frequencies(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        if self.freq_codec.is_uncompressed() {
            return self.freq_codec.encode(block.frequencies, 0, out);
        }
        let values = &mut self.values[..block.frequencies.len()];
        for (value, frequency) in values.iter_mut().zip(block.frequencies) {
            *value = frequency - 1;
        }
        self.freq_codec.encode(values, 0, out);
    }

    /// Appends the encoded positions: gaps minus one within each document, in pieces of 256; the last piece
    /// may be shorter.
    pub fn encode_positions(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        let mut filled = 0;
        let mut at = 0;
        for &frequency in block.frequencies {
            let mut next = 0;
            for &position in &block.positions[at..at + frequency as usize] {
                self.values[filled] = position - next;
                next = position + 1;
                filled += 1;
                if filled == BLOCK {
                    self.freq_codec.encode(&self.values, 0, out);
                    filled = 0;
                }
            }
            at += frequency as usize;
        }
        self.freq_codec.encode(&self.values[..filled], 0, out);
    }

    /// Replaces `out` by the impacts of the block. `norms` contains the norm of each document of the segment.
    pub fn collect_impacts(&mut self, block: Block<'_>, norms: &[u8], out: &mut Vec<Impact>) {
        // Load norms in a separate loop, so that many cache misses overlap.
        for (norm, &document) in self.norms.iter_mut().zip(block.documents) {
            *norm = norms[document as usize];
        }
        self.impact_builder.extend(block.frequencies, &self.norms[..block.frequencies.len()]);
        self.impact_builder.take(out);
    }

    /// Replaces `out` by the competitive ones of these impacts, which may be those of several blocks.
    pub fn merge_impacts(&mut self, impacts: &[Impact], out: &mut Vec<Impact>) {
        for impact in impacts {
            self.impact_builder.add(impact.frequency, impact.norm);
        }
        self.impact_builder.take(out);
    }
}

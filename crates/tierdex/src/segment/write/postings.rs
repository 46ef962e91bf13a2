//! Encodes postings to blocks and superblocks, and hands each posting list to a [`ListSink`]: the files of
//! the field, or a buffer that another thread writes to them.

use super::encoded::{ListSink, ListsSender};
use super::superblock::{ShareFn, Superblock, SuperblockEncoder};
use super::terms::ListCounts;
use crate::limits::BLOCK;
use crate::transform::block::{Block, BlockEncoder};
use crate::{Error, Result, schema::Field};

/// Encodes the posting lists of one field, one after the other.
pub struct PostingsEncoder<'a> {
    superblocks: SuperblockEncoder<'a>,
    positions: bool,
    pending: PendingBlock,
    superblock: Superblock,
    /// What was handed over of the current list so far.
    sent: SentPart,
    /// Scratch buffers: encoded positions, and an encoded inline list.
    encoded_positions: Vec<u8>,
    inline_list: Vec<u8>,
}

/// The part of a list that its sink has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SentPart {
    Nothing,
    Blocks,
    InlineList,
}

/// Postings of the block that is not full yet.
struct PendingBlock {
    /// Last document of the block before; `u32::MAX` in the first block.
    before: u32,
    documents: Vec<u32>,
    frequencies: Vec<u32>,
    positions: Vec<u32>,
}

/// Appends terms of a field, each greater than the one before.
pub struct TermsEncoder<'w, 'a> {
    encoder: &'w mut PostingsEncoder<'a>,
    sink: &'w mut dyn ListSink,
}

/// Appends the postings of one term: documents (increasing over all calls), frequencies, positions.
pub struct PostingsWriter<'w, 'a> {
    encoder: &'w mut PostingsEncoder<'a>,
    sink: &'w mut dyn ListSink,
    /// Sums over the postings so far.
    counts: ListCounts,
}

impl<'w, 'a> TermsEncoder<'w, 'a> {
    pub(super) fn new(
        encoder: &'w mut PostingsEncoder<'a>,
        sink: &'w mut dyn ListSink,
    ) -> TermsEncoder<'w, 'a> {
        TermsEncoder { encoder, sink }
    }

    /// Appends a term; `body` appends its postings. A term without postings is left out.
    pub fn term(
        &mut self,
        term: &[u8],
        body: impl FnOnce(&mut PostingsWriter<'_, 'a>) -> Result<()>,
    ) -> Result<()> {
        let counts = ListCounts::default();
        let mut postings = PostingsWriter { encoder: self.encoder, sink: self.sink, counts };
        body(&mut postings)?;
        let counts = postings.counts;
        if counts.postings == 0 {
            return Ok(());
        }
        self.encoder.finish_list(self.sink)?;
        self.sink.end_list(term, counts)
    }
}

impl PostingsWriter<'_, '_> {
    /// Number of postings of the term so far.
    pub fn postings(&self) -> u32 {
        self.counts.postings
    }

    fn add_counts(&mut self, part: ListCounts) {
        self.counts.postings += part.postings;
        self.counts.occurrences += part.occurrences;
    }

    /// Appends a posting. Positions are ignored if the field has none.
    #[inline]
    pub fn add(&mut self, document: u32, frequency: u32, positions: &[u32]) -> Result<()> {
        self.add_counts(ListCounts { postings: 1, occurrences: u64::from(frequency) });
        let pending = &mut self.encoder.pending;
        pending.documents.push(document);
        pending.frequencies.push(frequency);
        if self.encoder.positions {
            pending.positions.extend_from_slice(positions);
        }
        if pending.documents.len() == BLOCK { self.encoder.close_block(self.sink) } else { Ok(()) }
    }

    /// Appends postings of a field without positions: a frequency for each document. Whole blocks are encoded
    /// from the given slices, without a copy.
    pub fn extend(&mut self, mut documents: &[u32], mut frequencies: &[u32]) -> Result<()> {
        debug_assert!(!self.encoder.positions && documents.len() == frequencies.len());
        let occurrences = frequencies.iter().map(|&frequency| u64::from(frequency)).sum();
        self.add_counts(ListCounts { postings: documents.len() as u32, occurrences });
        while !documents.is_empty() {
            let filled = self.encoder.pending.documents.len();
            let count = documents.len().min(BLOCK - filled);
            let (block_documents, later_documents) = documents.split_at(count);
            let (block_frequencies, later_frequencies) = frequencies.split_at(count);
            (documents, frequencies) = (later_documents, later_frequencies);
            let pending = &mut self.encoder.pending;
            if count == BLOCK {
                let before = std::mem::replace(&mut pending.before, block_documents[BLOCK - 1]);
                let block = Block {
                    before,
                    documents: block_documents,
                    frequencies: block_frequencies,
                    positions: &[],
                };
                self.encoder.send_block(block, self.sink)?;
                continue;
            }
            pending.documents.extend_from_slice(block_documents);
            pending.frequencies.extend_from_slice(block_frequencies);
            if filled + count == BLOCK {
                self.encoder.close_block(self.sink)?;
            }
        }
        Ok(())
    }

    /// Appends an encoded superblock. All previous superblocks of the list must be full. For fields without
    /// positions.
    pub fn add_superblock(&mut self, superblock: &Superblock, counts: ListCounts) -> Result<()> {
        debug_assert!(self.encoder.pending.documents.is_empty() && self.encoder.superblock.blocks == 0);
        self.add_counts(counts);
        self.encoder.pending.before = superblock.last_document();
        self.encoder.sent = SentPart::Blocks;
        self.sink.add_superblock(superblock)
    }

    /// Appends a whole list shorter than a block, encoded by [`SuperblockEncoder::encode_inline_list`]. For
    /// fields without positions.
    pub fn add_inline_list(&mut self, bytes: &[u8], counts: ListCounts) -> Result<()> {
        self.add_counts(counts);
        self.encoder.sent = SentPart::InlineList;
        self.sink.add_inline_list(&[], bytes)
    }
}

impl<'a> PostingsEncoder<'a> {
    /// `norms` contains the norm code of each document of the segment.
    pub(super) fn new(field: &Field, norms: &'a [u8], share: ShareFn<'a>) -> PostingsEncoder<'a> {
        let blocks = BlockEncoder::new(field.doc_codec, field.freq_codec);
        PostingsEncoder::with_encoder(SuperblockEncoder::new(blocks, norms, share), field.positions)
    }

    fn with_encoder(superblocks: SuperblockEncoder<'a>, positions: bool) -> PostingsEncoder<'a> {
        PostingsEncoder {
            superblocks,
            positions,
            pending: PendingBlock {
                before: u32::MAX,
                documents: Vec::with_capacity(BLOCK),
                frequencies: Vec::with_capacity(BLOCK),
                positions: Vec::new(),
            },
            superblock: Superblock::default(),
            sent: SentPart::Nothing,
            encoded_positions: Vec::new(),
            inline_list: Vec::new(),
        }
    }

    /// Another encoder of the field.
    pub(super) fn for_thread(&self) -> PostingsEncoder<'a> {
        PostingsEncoder::with_encoder(self.superblocks.clone(), self.positions)
    }

    pub(super) fn superblock_encoder(&self) -> SuperblockEncoder<'a> {
        self.superblocks.clone()
    }

    /// Encodes terms for `sender`.
    pub fn terms<'w>(&'w mut self, sender: &'w mut ListsSender<'_>) -> TermsEncoder<'w, 'a> {
        TermsEncoder::new(self, sender)
    }

    /// Hands over the rest of the current list, which has at least one posting.
    fn finish_list(&mut self, sink: &mut dyn ListSink) -> Result<()> {
        if self.sent == SentPart::Nothing && self.superblock.blocks == 0 {
            self.send_inline_list(sink)?;
        } else if self.sent != SentPart::InlineList {
            if !self.pending.documents.is_empty() {
                self.close_block(sink)?;
            }
            if self.superblock.blocks > 0 {
                self.close_superblock(sink)?;
            }
        }
        self.pending.before = u32::MAX;
        self.sent = SentPart::Nothing;
        Ok(())
    }

    fn send_inline_list(&mut self, sink: &mut dyn ListSink) -> Result<()> {
        let block = self.pending.as_block();
        self.encoded_positions.clear();
        self.inline_list.clear();
        if self.positions {
            check_positions_count(block.positions)?;
            self.superblocks.blocks.encode_positions(block, &mut self.encoded_positions);
        }
        self.superblocks.encode_inline_list(block, &mut self.inline_list);
        self.pending.clear();
        sink.add_inline_list(&self.encoded_positions, &self.inline_list)
    }

    fn close_block(&mut self, sink: &mut dyn ListSink) -> Result<()> {
        let before = *self.pending.documents.last().expect("a block that is closed has postings");
        let pending = std::mem::replace(&mut self.pending, PendingBlock::empty(before));
        let sent = self.send_block(pending.as_block(), sink);
        self.pending = PendingBlock { before, ..pending };
        self.pending.clear();
        sent
    }

    fn send_block(&mut self, block: Block<'_>, sink: &mut dyn ListSink) -> Result<()> {
        if self.positions {
            check_positions_count(block.positions)?;
            self.encoded_positions.clear();
            self.superblocks.blocks.encode_positions(block, &mut self.encoded_positions);
            sink.add_positions(&self.encoded_positions)?;
        }
        self.superblocks.add(block, &mut self.superblock);
        if self.superblock.is_full() { self.close_superblock(sink) } else { Ok(()) }
    }

    fn close_superblock(&mut self, sink: &mut dyn ListSink) -> Result<()> {
        self.superblocks.close(&mut self.superblock);
        self.sent = SentPart::Blocks;
        let sent = sink.add_superblock(&self.superblock);
        self.superblock.clear();
        sent
    }
}

impl PendingBlock {
    fn empty(before: u32) -> PendingBlock {
        PendingBlock { before, documents: Vec::new(), frequencies: Vec::new(), positions: Vec::new() }
    }

    fn as_block(&self) -> Block<'_> {
        Block {
            before: self.before,
            documents: &self.documents,
            frequencies: &self.frequencies,
            positions: &self.positions,
        }
    }

    fn clear(&mut self) {
        self.documents.clear();
        self.frequencies.clear();
        self.positions.clear();
    }
}

/// Checks that the number of positions of a block fits in 32 bits, as readers require.
fn check_positions_count(positions: &[u32]) -> Result<()> {
    match u32::try_from(positions.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooLarge("2^32 positions and more in one block of a list are too many".into())),
    }
}

//! Encodes the lists of a group by a contender, checks the round trip, and runs the timed operations.

use crate::codecs::contender::{Contender, ContenderInfo, EncodedGroup, Peer};
use crate::codecs::{buffers::Buffers, buffers::EncodedWord, list_group::ListGroup};
use crate::{Error, Result};
use std::hint::black_box;

/// The lists of a group, encoded by a contender.
pub(super) struct Encoding<'a, C: Contender> {
    contender: &'a C,
    group: &'a ListGroup,
    words: Vec<C::Word>,
    /// Offset of each list in `words`, and the end of the last list.
    starts: Vec<usize>,
}

impl<'a, C: Contender> Encoding<'a, C> {
    /// Encodes all lists and checks the round trip.
    pub(super) fn new(contender: &'a C, group: &'a ListGroup) -> Result<Encoding<'a, C>> {
        let (mut words, mut starts) = (Vec::new(), vec![0]);
        for list in &group.lists {
            encode_list(contender, list, &mut words);
            starts.push(words.len());
        }
        words.shrink_to_fit();
        let encoded = Encoding { contender, group, words, starts };
        encoded.check_round_trip()?;
        Ok(encoded)
    }

    fn check_round_trip(&self) -> Result<()> {
        let mut back = Vec::new();
        for (words, list) in self.lists() {
            back.clear();
            back.resize(list.len(), 0);
            if self.decode_list(words, &mut back) != Some(words.len()) || back != *list {
                return Err(self.mismatch());
            }
        }
        Ok(())
    }

    fn mismatch(&self) -> Error {
        let (info, dataset) = (self.contender.info(), self.group.dataset);
        let k = self.group.k.map(|k| format!(", K {k}")).unwrap_or_default();
        let what = format!("codec {}, kernel {}, dataset {dataset}{k}", info.codec, info.kernel);
        Error::Failed(format!("the round trip of {what} differs"))
    }

    /// Each list, encoded and plain.
    fn lists(&self) -> impl Iterator<Item = (&[C::Word], &Vec<u32>)> {
        let words = self.starts.windows(2).map(|ends| &self.words[ends[0]..ends[1]]);
        words.zip(&self.group.lists)
    }

    /// Decodes a list into `out` and returns the number of words consumed.
    fn decode_list(&self, words: &[C::Word], out: &mut [u32]) -> Option<usize> {
        let (mut at, mut prev) = (0, u32::MAX);
        for block in out.chunks_mut(self.contender.block()) {
            at += self.contender.decode(&words[at..], prev, block)?;
            prev = block[block.len() - 1];
        }
        Some(at)
    }

    /// Decodes a list of `len` values block by block into the same buffer.
    fn decode_through(&self, words: &[C::Word], len: usize, buffer: &mut [u32]) -> Option<()> {
        let (mut at, mut prev, mut left) = (0, u32::MAX, len);
        while left > 0 {
            let count = left.min(buffer.len());
            let block = &mut buffer[..count];
            at += self.contender.decode(&words[at..], prev, block)?;
            prev = black_box(&*block)[count - 1];
            left -= count;
        }
        Some(())
    }
}

impl<C: Contender> EncodedGroup for Encoding<'_, C> {
    fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }

    fn decode_l1(&self, buffers: &mut Buffers) {
        let buffer = buffers.block_buffer(self.contender.block());
        for (words, list) in self.lists() {
            black_box(self.decode_through(black_box(words), list.len(), buffer));
        }
    }

    fn decode_ram(&self, buffers: &mut Buffers) {
        for (words, list) in self.lists() {
            let out = buffers.next_ring_buffer(list.len());
            black_box(self.decode_list(black_box(words), out));
            black_box(out);
        }
    }

    fn encode(&self, buffers: &mut Buffers) {
        let out = C::Word::scratch(buffers);
        for list in &self.group.lists {
            out.clear();
            encode_list(self.contender, black_box(list), out);
            black_box(out.as_slice());
        }
    }
}

fn encode_list<C: Contender>(contender: &C, list: &[u32], out: &mut Vec<C::Word>) {
    let mut prev = u32::MAX;
    for block in list.chunks(contender.block()) {
        contender.encode(block, prev, out);
        prev = block[block.len() - 1];
    }
}

impl<C: Contender> Peer for C {
    fn info(&self) -> ContenderInfo {
        Contender::info(self)
    }

    fn enter<'a>(&'a self, group: &'a ListGroup) -> Result<Box<dyn EncodedGroup + 'a>> {
        Ok(Box::new(Encoding::new(self, group)?))
    }
}

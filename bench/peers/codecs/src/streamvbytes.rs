//! Crate `streamvbyte64`: Stream `VByte` of one to four bytes a value (`Coder1234`).
//!
//! A block is its tags, one byte for four values, then the data bytes. The crate takes multiples of four
//! values; the one to three behind them are left to [`plain`](crate::plain). It finds the end of the data
//! only by decoding, which is what happens here: it is given all bytes of the list that are left, so that it
//! may read ahead in them.

use crate::plain::{OWN, decode_short, encode_short, initial};
use std::cell::RefCell;
use streamvbyte64::{Coder, Coder1234};
use tierdex_bench::codecs::{Contender, ContenderInfo, Peer, ValueKind};

/// Ids and frequencies.
pub fn all() -> Vec<Box<dyn Peer>> {
    let new = |kind| -> Box<dyn Peer> {
        Box::new(StreamVBytePeer { coder: Coder1234::new(), kind, block: RefCell::new([0; BLOCK_MAX]) })
    };
    vec![new(ValueKind::Ids), new(ValueKind::Frequencies)]
}

struct StreamVBytePeer {
    coder: Coder1234,
    kind: ValueKind,
    block: RefCell<[u8; BLOCK_MAX]>,
}

/// Values of a group, which has one tag.
const GROUP: usize = 4;
/// Bytes of the longest block: 256 values of four bytes, and their tags.
const BLOCK_MAX: usize = 64 + 1024;

impl Contender for StreamVBytePeer {
    type Word = u8;

    fn info(&self) -> ContenderInfo {
        let codec = match self.kind {
            ValueKind::Ids => "streamvbyte64-delta",
            ValueKind::Frequencies => "streamvbyte64",
        };
        ContenderInfo { codec: codec.to_string(), kernel: OWN, kind: Some(self.kind) }
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        let (groups, rest) = values.split_at(values.len() / GROUP * GROUP);
        let block = &mut *self.block.borrow_mut();
        let (tags, data) = block.split_at_mut(groups.len() / GROUP);
        let len = match self.kind {
            ValueKind::Ids => self.coder.encode_deltas(initial(prev), groups, tags, data),
            ValueKind::Frequencies => self.coder.encode(groups, tags, data),
        };
        let used = tags.len() + len;
        out.extend_from_slice(&block[..used]);
        encode_short(self.kind, rest, groups.last().copied().unwrap_or(prev), out);
    }

    #[inline]
    fn decode(&self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        let (groups, rest) = out.split_at_mut(out.len() / GROUP * GROUP);
        let (tags, data) = bytes.split_at_checked(groups.len() / GROUP)?;
        let len = match self.kind {
            ValueKind::Ids => self.coder.decode_deltas(initial(prev), tags, data, groups),
            ValueKind::Frequencies => self.coder.decode(tags, data, groups),
        };
        let used = tags.len() + len;
        let prev = groups.last().copied().unwrap_or(prev);
        Some(used + decode_short(self.kind, bytes.get(used..)?, prev, rest)?)
    }
}
